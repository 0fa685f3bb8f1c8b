//! Which expressions are admitted: the tree is gone through once, without recursion, because it may be as deep as the
//! text is long; a tree that was admitted is shallow.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a tree is asked for the few shapes that matter; every other one is answered alike"
)]

use std::rc::Rc;

use cel_interpreter::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use regex::{Regex, RegexBuilder};

use super::fault::{Fault, Kind, Profile, nearest};
use super::functions::{self, Charge, Known, Style};
use super::limits::{
    DEPTH_MAX, LOOP_NESTING_MAX, LOOPS_MAX, Limits, NODES_MAX, PATTERN_BYTES_MAX, PATTERN_COMPILED_MAX,
};
use super::parse::Source;
use super::scan::too_large;

/// What is known of an expression that may run.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) references: Vec<Vec<String>>,
    pub(super) patterns: Vec<(String, Regex)>,
    pub(super) has_optionals: bool,
    pub(super) nodes: usize,
}

/// How a node stands to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Plain,
    /// The list that a loop goes over.
    Range,
    /// What a loop does in each turn.
    Turn,
    /// What a path goes on from: the whole path was looked at already.
    Base,
    /// A name that is only the first half of a function's.
    Namespace,
}

/// The variables of the loops around a node.
struct Bound<'e> {
    name: &'e str,
    outer: Variables<'e>,
}

type Variables<'e> = Option<Rc<Bound<'e>>>;

struct Node<'e> {
    expr: &'e IdedExpr,
    parent: usize,
    part: Part,
    depth: usize,
    in_turn: bool,
    variables: Variables<'e>,
}

/// What the parts of a node need.
#[derive(Debug, Clone, Copy, Default)]
struct Need {
    steps: u64,
    turn_steps: u64,
    level: usize,
}

struct Walk<'e> {
    source: &'e Source,
    profile: Profile,
    names: &'e [&'e str],
    loops: usize,
    admitted: Admitted,
}

/// Goes through `tree` and refuses what may not run.
pub(super) fn check(
    tree: &IdedExpr,
    source: &Source,
    profile: Profile,
    names: &[&str],
) -> Result<Admitted, Fault> {
    let mut walk = Walk {
        source,
        profile,
        names,
        loops: 0,
        admitted: Admitted {
            references: Vec::new(),
            patterns: Vec::new(),
            has_optionals: false,
            nodes: 0,
        },
    };
    let nodes = walk.down(tree)?;
    walk.up(&nodes)?;
    walk.admitted.nodes = nodes.len();
    Ok(walk.admitted)
}

impl<'e> Walk<'e> {
    fn fault(&self, kind: Kind, node: &IdedExpr, message: impl Into<String>) -> Fault {
        kind.fault(self.profile, message, self.source.position(node.id))
    }

    /// Every node, parents before their children.
    fn down(&mut self, tree: &'e IdedExpr) -> Result<Vec<Node<'e>>, Fault> {
        let mut nodes: Vec<Node<'e>> = Vec::new();
        let mut open = vec![Node {
            expr: tree,
            parent: 0,
            part: Part::Plain,
            depth: 1,
            in_turn: false,
            variables: None,
        }];
        while let Some(node) = open.pop() {
            if node.depth > DEPTH_MAX {
                let message = format!("the expression is nested more than {DEPTH_MAX} levels deep; split it");
                return Err(self.fault(Kind::TooDeep, node.expr, message));
            }
            if nodes.len() == NODES_MAX {
                return Err(too_large(self.profile, self.source.position(node.expr.id)));
            }
            self.enter(&node)?;
            let parent = nodes.len();
            // The last one pushed is looked at first: faults and references come in the order of the text.
            for (expr, part, variables) in parts(&node).into_iter().rev() {
                open.push(Node {
                    expr,
                    parent,
                    part,
                    depth: node.depth + 1,
                    in_turn: node.in_turn || (part == Part::Turn && !is_binding(&node.expr.expr)),
                    variables,
                });
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// What can be said of a node alone.
    fn enter(&mut self, node: &Node<'e>) -> Result<(), Fault> {
        match &node.expr.expr {
            Expr::Unspecified => Err(self.fault(Kind::Syntax, node.expr, "the expression has an empty part")),
            Expr::Struct(literal) => {
                let message = format!(
                    "`{}{{…}}` would make a message, which expressions cannot; write {{\"field\": value}}",
                    literal.type_name
                );
                Err(self.fault(Kind::StructLiteral, node.expr, message))
            }
            Expr::Comprehension(comprehension) => self.enter_loop(node.expr, comprehension),
            Expr::Call(call) if is_path_call(call) => {
                self.admitted.has_optionals |= call.func_name != operators::INDEX;
                self.enter_path(node)
            }
            Expr::Call(call) if is_operator(call) => Ok(()),
            Expr::Call(call) => self.enter_call(node, call),
            Expr::Ident(_) | Expr::Select(_) => self.enter_path(node),
            Expr::List(list) => {
                self.admitted.has_optionals |= !list.optional_indices.is_empty();
                Ok(())
            }
            Expr::Map(_) | Expr::Literal(_) => Ok(()),
        }
    }

    fn enter_loop(&mut self, expr: &IdedExpr, comprehension: &ComprehensionExpr) -> Result<(), Fault> {
        if comprehension.iter_var2.is_some() {
            return Err(self.fault(Kind::Syntax, expr, "a loop has one variable"));
        }
        if is_binding(&expr.expr) {
            return Ok(());
        }
        self.loops += 1;
        if self.loops > LOOPS_MAX {
            let message = format!(
                "the expression has more than {LOOPS_MAX} loops (map, filter, all, exists, …); compute this in a step"
            );
            return Err(self.fault(Kind::TooManyLoops, expr, message));
        }
        Ok(())
    }

    fn enter_path(&mut self, node: &Node<'e>) -> Result<(), Fault> {
        if matches!(node.part, Part::Base | Part::Namespace) {
            return Ok(());
        }
        let Some((root, path)) = path_of(node.expr) else {
            return Ok(());
        };
        let Expr::Ident(name) = &root.expr else {
            return Ok(());
        };
        if is_bound(&node.variables, name) {
            return Ok(());
        }
        if self.names.contains(&name.as_str()) {
            if !self.admitted.references.contains(&path) {
                self.admitted.references.push(path);
            }
            return Ok(());
        }
        if path.len() == 1 && functions::TYPES.contains(&name.as_str()) {
            return Ok(());
        }
        Err(self.fault(Kind::UnknownReference, root, self.unknown_name(node, name)))
    }

    fn unknown_name(&self, node: &Node<'e>, name: &str) -> String {
        let mut variables = Vec::new();
        let mut scope = node.variables.as_ref();
        while let Some(bound) = scope {
            variables.push(bound.name);
            scope = bound.outer.as_ref();
        }
        let known = || self.names.iter().copied().chain(variables.iter().copied());
        let mut message = format!("there is no `{name}` here");
        let literal = match name.to_lowercase().as_str() {
            "true" => Some("true"),
            "false" => Some("false"),
            "none" | "nil" | "undefined" => Some("null"),
            _ => None,
        };
        if let Some(found) = literal.or_else(|| nearest(name, known())) {
            message.push_str(&format!("; did you mean `{found}`?"));
        } else if self.source.is_behind_dash(name) {
            message.push_str("; a name with a dash is written in brackets: steps[\"my-step\"].output");
        } else {
            let list: Vec<&str> = known().filter(|name| !name.starts_with('@')).take(12).collect();
            message.push_str(&format!("; there is {}", list.join(", ")));
        }
        message
    }

    fn enter_call(&mut self, node: &Node<'e>, call: &'e CallExpr) -> Result<(), Fault> {
        let namespace = namespace_of(call).filter(|name| !is_bound(&node.variables, name));
        let Some(known) = functions::find(&call.func_name, call.target.is_some(), namespace) else {
            return Err(self.fault(
                Kind::UnknownReference,
                node.expr,
                unknown_function(call, namespace),
            ));
        };
        let (least, most) = known.arguments;
        if !(least..=most).contains(&call.args.len()) {
            let written = functions::written(known.name).unwrap_or_default();
            let message = format!(
                "`{}` is written {written}",
                known.name.trim_start_matches("math.@")
            );
            return Err(self.fault(Kind::UnknownReference, node.expr, message));
        }
        self.admitted.has_optionals |= known.style == Style::In("optional");
        if known.charge == Charge::Pattern {
            self.enter_pattern(node, call)?;
        }
        Ok(())
    }

    fn enter_pattern(&mut self, node: &Node<'e>, call: &CallExpr) -> Result<(), Fault> {
        let Some(pattern) = call.args.last().and_then(|pattern| text_of(&pattern.expr)) else {
            let message =
                "a pattern stands in the expression as a text; one that is computed is not admitted";
            return Err(self.fault(Kind::Pattern, node.expr, message));
        };
        if node.in_turn {
            let message =
                "a pattern is not admitted inside a loop; use contains, startsWith or endsWith there";
            return Err(self.fault(Kind::Pattern, node.expr, message));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            let message = format!(
                "the pattern has {} bytes, and {PATTERN_BYTES_MAX} are allowed",
                pattern.len()
            );
            return Err(self.fault(Kind::Pattern, node.expr, message));
        }
        if self.admitted.patterns.iter().any(|(known, _)| known == pattern) {
            return Ok(());
        }
        let compiled = RegexBuilder::new(pattern)
            .size_limit(PATTERN_COMPILED_MAX)
            .dfa_size_limit(4 * PATTERN_COMPILED_MAX)
            .build();
        match compiled {
            Ok(compiled) => {
                self.admitted.patterns.push((pattern.to_owned(), compiled));
                Ok(())
            }
            Err(regex::Error::CompiledTooBig(_)) => {
                let message = "the pattern is too large: its repetitions multiply; use smaller counts";
                Err(self.fault(Kind::Pattern, node.expr, message))
            }
            Err(error) => {
                let text = error.to_string();
                let reason = text
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                let message = format!("the pattern cannot be read: {reason}");
                Err(self.fault(Kind::Pattern, node.expr, message))
            }
        }
    }

    /// Steps and nesting, from the leaves to the root.
    fn up(&self, nodes: &[Node<'e>]) -> Result<(), Fault> {
        let limits = self.profile.limits();
        let mut needs = vec![Need::default(); nodes.len()];
        for (index, node) in nodes.iter().enumerate().rev() {
            let mut need = needs[index];
            if let Expr::Comprehension(comprehension) = &node.expr.expr
                && !is_binding(&node.expr.expr)
            {
                need.level += 1;
                if need.level > LOOP_NESTING_MAX {
                    let message = format!(
                        "loops stand inside each other more than {LOOP_NESTING_MAX} levels deep (a loop over a loop's \
                         result is inside it); compute this in a step"
                    );
                    return Err(self.fault(Kind::LoopsTooNested, node.expr, message));
                }
                let turns = list_size(&comprehension.iter_range, limits);
                need.steps = need
                    .steps
                    .saturating_add(turns.saturating_mul(need.turn_steps.saturating_add(1)));
            }
            if need.steps > limits.steps_max {
                let message = format!(
                    "the loops may take {} turns together, and {} are allowed; compute this in a step",
                    need.steps, limits.steps_max
                );
                return Err(self.fault(Kind::TooCostly, node.expr, message));
            }
            if index > 0 {
                let parent = &mut needs[node.parent];
                parent.level = parent.level.max(need.level);
                if node.part == Part::Turn {
                    parent.turn_steps = parent.turn_steps.saturating_add(need.steps);
                } else {
                    parent.steps = parent.steps.saturating_add(need.steps);
                }
            }
        }
        Ok(())
    }
}

/// The children of a node, each with the variables that it sees.
fn parts<'e>(node: &Node<'e>) -> Vec<(&'e IdedExpr, Part, Variables<'e>)> {
    let same = |expr: &'e IdedExpr, part: Part| (expr, part, node.variables.clone());
    match &node.expr.expr {
        Expr::Select(select) => vec![same(&select.operand, Part::Base)],
        Expr::Call(call) if is_path_call(call) => {
            let key = call.args.get(1).map(|key| same(key, Part::Plain));
            call.args
                .first()
                .map(|base| same(base, Part::Base))
                .into_iter()
                .chain(key)
                .collect()
        }
        Expr::Call(call) => {
            let namespace = namespace_of(call).filter(|name| !is_bound(&node.variables, name));
            let part = if namespace.is_some() {
                Part::Namespace
            } else {
                Part::Plain
            };
            let target = call.target.as_deref().map(|target| same(target, part));
            let arguments = call.args.iter().map(|argument| same(argument, Part::Plain));
            target.into_iter().chain(arguments).collect()
        }
        Expr::List(list) => list
            .elements
            .iter()
            .map(|element| same(element, Part::Plain))
            .collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            })
            .map(|expr| same(expr, Part::Plain))
            .collect(),
        Expr::Comprehension(comprehension) => {
            let bind = |name: &'e str, outer: Variables<'e>| Some(Rc::new(Bound { name, outer }));
            let with_result = bind(&comprehension.accu_var, node.variables.clone());
            let in_turn = bind(&comprehension.iter_var, with_result.clone());
            vec![
                same(&comprehension.iter_range, Part::Range),
                same(&comprehension.accu_init, Part::Plain),
                (&comprehension.loop_cond, Part::Turn, in_turn.clone()),
                (&comprehension.loop_step, Part::Turn, in_turn),
                (&comprehension.result, Part::Plain, with_result),
            ]
        }
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

fn is_bound(variables: &Variables<'_>, name: &str) -> bool {
    let mut scope = variables.as_ref();
    while let Some(bound) = scope {
        if bound.name == name {
            return true;
        }
        scope = bound.outer.as_ref();
    }
    false
}

/// A comprehension that only gives a name to a value: it goes over nothing.
pub(super) fn is_binding(expr: &Expr) -> bool {
    matches!(expr, Expr::Comprehension(comprehension) if comprehension.iter_var == "#unused")
}

fn is_path_call(call: &CallExpr) -> bool {
    call.target.is_none()
        && call.args.len() == 2
        && matches!(
            call.func_name.as_str(),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT
        )
}

/// Operators have names that cannot be written, so they are never a function's.
fn is_operator(call: &CallExpr) -> bool {
    let name = call.func_name.as_str();
    name.contains(|letter: char| "?:&|!-+*/%=<>[".contains(letter))
        || name == operators::IN
        || name == operators::NOT_STRICTLY_FALSE
}

/// The first half of a function's name: `math` of `math.abs(x)`.
pub(super) fn namespace_of(call: &CallExpr) -> Option<&str> {
    match &call.target.as_deref()?.expr {
        Expr::Ident(name) if functions::is_namespace(name) => Some(name),
        _ => None,
    }
}

/// The function that an admitted call calls.
pub(super) fn known_of(call: &CallExpr) -> Option<&'static Known> {
    functions::find(&call.func_name, call.target.is_some(), namespace_of(call))
        .or_else(|| functions::find(&call.func_name, call.target.is_some(), None))
}

pub(super) fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Where a path begins, and its constant parts with the root first; `None` if it does not begin with a name.
fn path_of(expr: &IdedExpr) -> Option<(&IdedExpr, Vec<String>)> {
    let mut parts: Vec<String> = Vec::new();
    let mut at = expr;
    loop {
        at = match &at.expr {
            Expr::Ident(name) => {
                parts.push(name.clone());
                parts.reverse();
                return Some((at, parts));
            }
            Expr::Select(select) => {
                parts.push(select.field.clone());
                &select.operand
            }
            Expr::Call(call) if is_path_call(call) => {
                match text_of(&call.args[1].expr) {
                    Some(key) => parts.push(key.to_owned()),
                    // What lies behind a key that is computed is not known.
                    None => parts.clear(),
                }
                &call.args[0]
            }
            _ => return None,
        };
    }
}

fn unknown_function(call: &CallExpr, namespace: Option<&str>) -> String {
    let name = &call.func_name;
    if let Some(written) = functions::written(name) {
        return format!("`{name}` is written {written}");
    }
    let full = namespace.map_or_else(|| name.clone(), |space| format!("{space}.{name}"));
    match nearest(name, functions::names()) {
        Some(found) => format!("there is no function `{full}`; did you mean `{found}`?"),
        None => format!("there is no function `{full}`"),
    }
}

/// How many elements a list has at most, as far as the text says it.
fn list_size(expr: &IdedExpr, limits: Limits) -> u64 {
    let mut at = expr;
    loop {
        at = match &at.expr {
            Expr::List(list) => return list.elements.len() as u64,
            Expr::Map(map) => return map.entries.len() as u64,
            Expr::Comprehension(comprehension) if is_binding(&at.expr) => &comprehension.accu_init,
            Expr::Comprehension(comprehension) => &comprehension.iter_range,
            Expr::Call(call) if namespace_of(call) == Some("lists") => {
                return match call.args.first().map(|count| &count.expr) {
                    Some(Expr::Literal(LiteralValue::Int(count))) => {
                        u64::try_from(*count.inner()).unwrap_or(0)
                    }
                    _ => limits.list_estimate,
                };
            }
            Expr::Call(call)
                if matches!(call.func_name.as_str(), "sort" | "distinct" | "reverse" | "slice") =>
            {
                match call.target.as_deref() {
                    Some(target) => target,
                    None => return limits.list_estimate,
                }
            }
            Expr::Select(select) if select.field == "tags" => return limits.tags_estimate,
            _ => return limits.list_estimate,
        };
    }
}
