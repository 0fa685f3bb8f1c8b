//! The functions that exist, and what calling each of them costs: the table that admission and metering read.
//!
//! The standard library, optional values, strings, lists, math and encoders. Those whose result may be far larger than
//! what goes in, or whose time is a product, are our own (`guards`).

use std::sync::{Arc, LazyLock};

use cel_interpreter::{DeclarationError, Env, extensions};

use super::guards;

/// How a function is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `size(x)`.
    Global,
    /// `x.size()`.
    Member,
    /// `math.abs(x)`.
    In(&'static str),
}

/// What the texts and lists handed to a function cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// Numbers, or handed on as they are.
    Nothing,
    /// Texts are read once; lists are not gone through.
    Texts,
    /// Everything is copied, or gone through this many times.
    Whole(u8),
    /// Each element is compared with each other.
    Pairs,
    /// Each letter may become a hundred.
    Format,
    /// By our own function of this name.
    Own(&'static str),
    /// By the pattern that it is rewritten to.
    Pattern,
}

/// A function, or a macro, with how many arguments it takes (its receiver not counted).
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) style: Style,
    pub(super) arguments: (usize, usize),
    pub(super) charge: Charge,
    /// The result is a number, a bool, or a short text.
    pub(super) small: bool,
}

const fn known(name: &'static str, style: Style, arguments: (usize, usize), charge: Charge) -> Known {
    Known {
        name,
        style,
        arguments,
        charge,
        small: false,
    }
}

const fn small(name: &'static str, style: Style, arguments: (usize, usize), charge: Charge) -> Known {
    Known {
        name,
        style,
        arguments,
        charge,
        small: true,
    }
}

use Charge::{Nothing, Own, Pattern, Texts, Whole};
use Style::{Global, In, Member};

/// Every function that an expression may call.
const FUNCTIONS: &[Known] = &[
    small("size", Global, (1, 1), Texts),
    small("type", Global, (1, 1), Nothing),
    known("dyn", Global, (1, 1), Nothing),
    small("bool", Global, (1, 1), Texts),
    small("int", Global, (1, 1), Texts),
    small("uint", Global, (1, 1), Texts),
    small("double", Global, (1, 1), Texts),
    known("string", Global, (1, 1), Texts),
    known("bytes", Global, (1, 1), Texts),
    small("timestamp", Global, (1, 1), Texts),
    small("duration", Global, (1, 1), Texts),
    small("re", Global, (2, 2), Pattern),
    small("matches", Global, (2, 2), Pattern),
    small("matches", Member, (1, 1), Pattern),
    small("size", Member, (0, 0), Texts),
    small("contains", Member, (1, 1), Texts),
    small("startsWith", Member, (1, 1), Texts),
    small("endsWith", Member, (1, 1), Texts),
    small("charAt", Member, (1, 1), Texts),
    small("indexOf", Member, (1, 2), Own("@indexOf")),
    small("lastIndexOf", Member, (1, 2), Own("@lastIndexOf")),
    known("join", Member, (0, 1), Own("@join")),
    known("replace", Member, (2, 3), Own("@replace")),
    known("split", Member, (1, 2), Own("@split")),
    known("lowerAscii", Member, (0, 0), Texts),
    known("upperAscii", Member, (0, 0), Texts),
    known("trim", Member, (0, 0), Texts),
    known("substring", Member, (1, 2), Texts),
    known("format", Member, (1, 1), Charge::Format),
    known("reverse", Member, (0, 0), Whole(1)),
    known("slice", Member, (2, 2), Whole(1)),
    known("flatten", Member, (0, 1), Whole(2)),
    known("distinct", Member, (0, 0), Charge::Pairs),
    known("sort", Member, (0, 0), Whole(16)),
    known("@sortByAssociatedKeys", Member, (1, 1), Whole(16)),
    small("getFullYear", Member, (0, 1), Texts),
    small("getMonth", Member, (0, 1), Texts),
    small("getDayOfYear", Member, (0, 1), Texts),
    small("getDayOfMonth", Member, (0, 1), Texts),
    small("getDate", Member, (0, 1), Texts),
    small("getDayOfWeek", Member, (0, 1), Texts),
    small("getHours", Member, (0, 1), Texts),
    small("getMinutes", Member, (0, 1), Texts),
    small("getSeconds", Member, (0, 1), Texts),
    small("getMilliseconds", Member, (0, 1), Own("@getMilliseconds")),
    small("hasValue", Member, (0, 0), Nothing),
    known("value", Member, (0, 0), Nothing),
    known("or", Member, (1, 1), Nothing),
    known("orValue", Member, (1, 1), Nothing),
    known("of", In("optional"), (1, 1), Whole(1)),
    known("ofNonZeroValue", In("optional"), (1, 1), Whole(1)),
    known("none", In("optional"), (0, 0), Nothing),
    known("range", In("lists"), (1, 1), Own("@range")),
    known("quote", In("strings"), (1, 1), Whole(2)),
    known("encode", In("base64"), (1, 1), Whole(2)),
    known("decode", In("base64"), (1, 1), Whole(1)),
    // What `math.greatest` and `math.least` are read as.
    small("math.@max", Global, (1, 2), Whole(1)),
    small("math.@min", Global, (1, 2), Whole(1)),
    small("ceil", In("math"), (1, 1), Nothing),
    small("floor", In("math"), (1, 1), Nothing),
    small("round", In("math"), (1, 1), Nothing),
    small("trunc", In("math"), (1, 1), Nothing),
    small("isInf", In("math"), (1, 1), Nothing),
    small("isNaN", In("math"), (1, 1), Nothing),
    small("isFinite", In("math"), (1, 1), Nothing),
    small("abs", In("math"), (1, 1), Nothing),
    small("sign", In("math"), (1, 1), Nothing),
    small("sqrt", In("math"), (1, 1), Nothing),
    small("bitAnd", In("math"), (2, 2), Nothing),
    small("bitOr", In("math"), (2, 2), Nothing),
    small("bitXor", In("math"), (2, 2), Nothing),
    small("bitNot", In("math"), (1, 1), Nothing),
    small("bitShiftLeft", In("math"), (2, 2), Nothing),
    small("bitShiftRight", In("math"), (2, 2), Nothing),
];

/// What the parser rewrites, so that it is never seen as a call unless its arguments are wrong.
const MACROS: &[(&str, &str)] = &[
    ("has", "has(input.field)"),
    ("all", "list.all(x, condition)"),
    ("exists", "list.exists(x, condition)"),
    ("exists_one", "list.exists_one(x, condition)"),
    ("existsOne", "list.existsOne(x, condition)"),
    ("map", "list.map(x, result) or list.map(x, condition, result)"),
    ("filter", "list.filter(x, condition)"),
    ("sortBy", "list.sortBy(x, key)"),
    ("optMap", "optional.optMap(x, result)"),
    ("optFlatMap", "optional.optFlatMap(x, result)"),
    ("greatest", "math.greatest(a, b)"),
    ("least", "math.least(a, b)"),
];

/// Names of types, as `type(x) == int` needs them.
pub(super) const TYPES: &[&str] = &[
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
];

/// What a call means, when `namespace` is the name that its receiver consists of.
pub(super) fn find(name: &str, has_receiver: bool, namespace: Option<&str>) -> Option<&'static Known> {
    FUNCTIONS.iter().find(|known| {
        known.name == name
            && match known.style {
                Global => !has_receiver,
                Member => has_receiver && !namespace.is_some_and(is_namespace),
                In(space) => namespace == Some(space),
            }
    })
}

/// Whether functions stand under this name.
pub(super) fn is_namespace(name: &str) -> bool {
    FUNCTIONS
        .iter()
        .any(|known| matches!(known.style, In(space) if space == name))
}

/// How a function of that name is written, however it was written.
pub(super) fn written(name: &str) -> Option<String> {
    if let Some((_, example)) = MACROS.iter().find(|(known, _)| *known == name) {
        return Some((*example).to_owned());
    }
    let known = FUNCTIONS.iter().find(|known| known.name == name)?;
    let arguments = ["a", "b", "c"];
    let list = |count: usize| arguments[..count.min(3)].join(", ");
    let head = match known.style {
        Global => name.to_owned(),
        Member => format!("x.{name}"),
        In(space) => format!("{space}.{name}"),
    };
    let (least, most) = known.arguments;
    Some(if least == most {
        format!("{head}({})", list(least))
    } else {
        format!("{head}({}) or {head}({})", list(least), list(most))
    })
}

/// The names of all functions and macros.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS
        .iter()
        .map(|known| known.name)
        .chain(MACROS.iter().map(|(name, _)| *name))
        .filter(|name| !name.contains('@'))
}

/// The environment of every expression, made once.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let environment =
        environment().expect("no name is declared twice; every test of expressions passes here");
    Arc::new(environment)
});

pub(super) fn environment() -> Result<Env, DeclarationError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::math)?;
    env.add_extension(extensions::encoders)?;
    guards::declare(&mut env)?;
    Ok(env)
}
