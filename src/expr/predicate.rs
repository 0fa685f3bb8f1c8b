//! Plain comparisons without the interpreter: an expression of only `path op literal`, `in`, `has`, `!`, `&&` and `||`
//! becomes a flat list of nodes that looks straight at the data. It says true or false only where the interpreter surely
//! says the same; whatever is missing, of another kind, or unusual is left to the interpreter, errors included.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a tree is asked for the few shapes that matter; every other one is left to the interpreter"
)]

use std::cmp::Ordering;

use cel_interpreter::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::{Map, Value};

use super::fault::cut;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact<'f> {
    /// JSON's null.
    Null,
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(&'f str),
    /// A list.
    List(&'f [Value]),
    /// A map.
    Map(&'f Map<String, Value>),
    /// Nothing, or something that the interpreter must look at.
    Unknown,
}

impl<'f> Fact<'f> {
    /// What a JSON value is.
    pub fn of(value: &'f Value) -> Fact<'f> {
        match value {
            Value::Null => Fact::Null,
            Value::Bool(truth) => Fact::Bool(*truth),
            Value::String(text) => Fact::Text(text),
            Value::Array(list) => Fact::List(list),
            Value::Object(map) => Fact::Map(map),
            Value::Number(number) => match (number.as_i64(), number.is_f64(), number.as_f64()) {
                (Some(whole), _, _) => Fact::Int(whole),
                (None, true, Some(fraction)) => Fact::Double(fraction),
                _ => Fact::Unknown,
            },
        }
    }

    /// What stands at a path of fields below a JSON map.
    pub fn below(map: &'f Map<String, Value>, path: &[String]) -> Fact<'f> {
        let Some((first, rest)) = path.split_first() else {
            return Fact::Map(map);
        };
        let found = rest.iter().try_fold(map.get(first), |value, field| {
            Some(value?.as_object()?.get(field))
        });
        found.flatten().map_or(Fact::Unknown, Fact::of)
    }
}

/// Data that paths lead into.
pub trait Facts {
    /// What stands at a path, the variable first.
    fn fact(&self, path: &[String]) -> Fact<'_>;
}

/// A flat program; the last node is the whole expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Predicate {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A path that is true or false itself.
    Truth(Vec<String>),
    Constant(bool),
    Compare(Vec<String>, Operator, Literal),
    /// A path in a list that stands in the text.
    Among(Vec<String>, Vec<Literal>),
    /// A literal in what stands at a path.
    Within(Literal, Vec<String>),
    /// A path in what stands at another.
    Inside(Vec<String>, Vec<String>),
    Has(Vec<String>, String),
    Not(usize),
    And(usize, usize),
    Or(usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
}

impl Literal {
    fn fact(&self) -> Fact<'_> {
        match self {
            Literal::Null => Fact::Null,
            Literal::Bool(truth) => Fact::Bool(*truth),
            Literal::Int(number) => Fact::Int(*number),
            Literal::Double(number) => Fact::Double(*number),
            Literal::Text(text) => Fact::Text(text),
        }
    }
}

impl Predicate {
    /// The flat form of a tree, if it has one.
    pub(super) fn of(tree: &IdedExpr) -> Option<Predicate> {
        let mut nodes = Vec::new();
        lower(tree, &mut nodes)?;
        Some(Predicate { nodes })
    }

    /// True or false where that is sure; `None` where the interpreter decides.
    pub(super) fn decide(&self, facts: &dyn Facts) -> Option<bool> {
        self.at(self.nodes.len().checked_sub(1)?, facts)
    }

    fn at(&self, node: usize, facts: &dyn Facts) -> Option<bool> {
        match self.nodes.get(node)? {
            Node::Truth(path) => match facts.fact(path) {
                Fact::Bool(truth) => Some(truth),
                _ => None,
            },
            Node::Constant(truth) => Some(*truth),
            Node::Compare(path, operator, literal) => compare(facts.fact(path), *operator, literal.fact()),
            Node::Among(path, literals) => {
                let fact = facts.fact(path);
                if fact == Fact::Unknown {
                    return None;
                }
                any(literals.iter().map(|literal| equal(fact, literal.fact())))
            }
            Node::Within(literal, path) => contains(facts.fact(path), literal.fact()),
            Node::Inside(left, right) => contains(facts.fact(right), facts.fact(left)),
            Node::Has(path, field) => match facts.fact(path) {
                Fact::Map(map) => Some(map.contains_key(field)),
                _ => None,
            },
            Node::Not(inner) => self.at(*inner, facts).map(|truth| !truth),
            // A side that surely decides decides alone, whatever the other one is: an error too.
            Node::And(left, right) => match self.at(*left, facts) {
                Some(false) => Some(false),
                left => match (left, self.at(*right, facts)) {
                    (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
            },
            Node::Or(left, right) => match self.at(*left, facts) {
                Some(true) => Some(true),
                left => match (left, self.at(*right, facts)) {
                    (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                },
            },
        }
    }

    /// Why it is false, in words: the comparisons that decided, with what was found.
    pub(super) fn because(&self, facts: &dyn Facts) -> Option<String> {
        let mut leaves = Vec::new();
        self.blame(self.nodes.len().checked_sub(1)?, false, facts, &mut leaves);
        (!leaves.is_empty()).then(|| leaves.join(", and "))
    }

    /// The leaves that make a node what it is.
    fn blame(&self, node: usize, is: bool, facts: &dyn Facts, leaves: &mut Vec<String>) {
        if leaves.len() >= BLAMED_MAX {
            return;
        }
        match (&self.nodes[node], is) {
            (Node::Not(inner), _) => self.blame(*inner, !is, facts, leaves),
            (Node::And(left, right), false) | (Node::Or(left, right), true) => {
                let one = if self.at(*left, facts) == Some(is) {
                    left
                } else {
                    right
                };
                self.blame(*one, is, facts, leaves);
            }
            (Node::And(left, right), true) | (Node::Or(left, right), false) => {
                self.blame(*left, is, facts, leaves);
                self.blame(*right, is, facts, leaves);
            }
            (leaf, _) => leaves.push(format!("{} is {is}{}", leaf.text(), leaf.found(facts))),
        }
    }
}

/// Comparisons that are told of.
const BLAMED_MAX: usize = 3;
/// Characters of a value that are told.
const VALUE_CHARACTERS_MAX: usize = 60;

impl Node {
    fn text(&self) -> String {
        match self {
            Node::Truth(path) => path_text(path),
            Node::Constant(truth) => truth.to_string(),
            Node::Compare(path, operator, literal) => {
                format!(
                    "{} {} {}",
                    path_text(path),
                    operator.text(),
                    fact_text(literal.fact())
                )
            }
            Node::Among(path, literals) => {
                let list: Vec<String> = literals.iter().map(|literal| fact_text(literal.fact())).collect();
                format!(
                    "{} in [{}]",
                    path_text(path),
                    cut(&list.join(", "), VALUE_CHARACTERS_MAX)
                )
            }
            Node::Within(literal, path) => format!("{} in {}", fact_text(literal.fact()), path_text(path)),
            Node::Inside(left, right) => format!("{} in {}", path_text(left), path_text(right)),
            Node::Has(path, field) => format!("has({}.{field})", path_text(path)),
            Node::Not(_) | Node::And(..) | Node::Or(..) => String::new(),
        }
    }

    /// What was found at its paths.
    fn found(&self, facts: &dyn Facts) -> String {
        let paths: Vec<&Vec<String>> = match self {
            Node::Compare(path, ..) | Node::Among(path, _) | Node::Within(_, path) => vec![path],
            Node::Inside(left, right) => vec![left, right],
            _ => return String::new(),
        };
        let one = |path: &&Vec<String>| {
            let name = path.last().map_or("", String::as_str);
            match facts.fact(path) {
                Fact::Unknown => format!("{name} is not set"),
                fact => format!("{name} = {}", fact_text(fact)),
            }
        };
        format!(" ({})", paths.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

impl Operator {
    fn of(name: &str) -> Option<Operator> {
        Some(match name {
            operators::EQUALS => Operator::Equal,
            operators::NOT_EQUALS => Operator::Unequal,
            operators::LESS => Operator::Less,
            operators::LESS_EQUALS => Operator::AtMost,
            operators::GREATER => Operator::Greater,
            operators::GREATER_EQUALS => Operator::AtLeast,
            _ => return None,
        })
    }

    /// The same with its sides exchanged.
    fn turned(self) -> Operator {
        match self {
            Operator::Equal | Operator::Unequal => self,
            Operator::Less => Operator::Greater,
            Operator::AtMost => Operator::AtLeast,
            Operator::Greater => Operator::Less,
            Operator::AtLeast => Operator::AtMost,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Operator::Equal => "==",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
        }
    }
}

fn path_text(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        let plain = part
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        match (text.is_empty(), plain) {
            (true, _) => text += part,
            (false, true) => text += &format!(".{part}"),
            (false, false) => text += &format!("[{}]", Value::from(part.as_str())),
        }
    }
    text
}

fn fact_text(fact: Fact) -> String {
    let text = match fact {
        Fact::Null => "null".to_owned(),
        Fact::Bool(truth) => truth.to_string(),
        Fact::Int(number) => number.to_string(),
        Fact::Double(number) => Value::from(number).to_string(),
        Fact::Text(text) => Value::from(text).to_string(),
        Fact::List(list) => Value::from(list.to_vec()).to_string(),
        Fact::Map(_) => "a map".to_owned(),
        Fact::Unknown => "unknown".to_owned(),
    };
    cut(&text, VALUE_CHARACTERS_MAX)
}

/// Appends the nodes of a tree; the last one is the tree itself.
fn lower(tree: &IdedExpr, nodes: &mut Vec<Node>) -> Option<usize> {
    let node = match &tree.expr {
        Expr::Literal(LiteralValue::Boolean(truth)) => Node::Constant(*truth.inner()),
        Expr::Select(select) if select.test => Node::Has(path(&select.operand)?, select.field.clone()),
        Expr::Call(call) => match path(tree) {
            Some(path) => Node::Truth(path),
            None => lower_call(call, nodes)?,
        },
        _ => Node::Truth(path(tree)?),
    };
    nodes.push(node);
    Some(nodes.len() - 1)
}

fn lower_call(call: &CallExpr, nodes: &mut Vec<Node>) -> Option<Node> {
    if call.target.is_some() {
        return None;
    }
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_NOT, [inner]) => Some(Node::Not(lower(inner, nodes)?)),
        (operators::LOGICAL_AND, [left, right]) => Some(Node::And(lower(left, nodes)?, lower(right, nodes)?)),
        (operators::LOGICAL_OR, [left, right]) => Some(Node::Or(lower(left, nodes)?, lower(right, nodes)?)),
        (operators::IN, [left, right]) => match (&right.expr, path(left)) {
            (Expr::List(list), Some(path)) if list.optional_indices.is_empty() => {
                let literals: Option<Vec<Literal>> = list.elements.iter().map(literal).collect();
                Some(Node::Among(path, literals?))
            }
            (_, Some(left)) => Some(Node::Inside(left, path(right)?)),
            (_, None) => Some(Node::Within(literal(left)?, path(right)?)),
        },
        (name, [left, right]) => {
            let operator = Operator::of(name)?;
            match (path(left), path(right)) {
                (Some(path), _) => Some(Node::Compare(path, operator, literal(right)?)),
                (None, Some(path)) => Some(Node::Compare(path, operator.turned(), literal(left)?)),
                (None, None) => None,
            }
        }
        _ => None,
    }
}

fn literal(tree: &IdedExpr) -> Option<Literal> {
    let Expr::Literal(literal) = &tree.expr else {
        return None;
    };
    match literal {
        LiteralValue::Null => Some(Literal::Null),
        LiteralValue::Boolean(truth) => Some(Literal::Bool(*truth.inner())),
        LiteralValue::Int(number) => Some(Literal::Int(*number.inner())),
        LiteralValue::Double(number) => Some(Literal::Double(*number.inner())),
        LiteralValue::String(text) => Some(Literal::Text(text.inner().to_owned())),
        LiteralValue::Bytes(_) | LiteralValue::UInt(_) => None,
    }
}

/// A path of constant fields, the variable first.
fn path(tree: &IdedExpr) -> Option<Vec<String>> {
    match &tree.expr {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) if !select.test => {
            let mut path = path(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        Expr::Call(call) if call.func_name == operators::INDEX && call.target.is_none() => {
            let [base, key] = call.args.as_slice() else {
                return None;
            };
            let Expr::Literal(LiteralValue::String(key)) = &key.expr else {
                return None;
            };
            let mut path = path(base)?;
            path.push(key.inner().to_owned());
            Some(path)
        }
        _ => None,
    }
}

/// Whole numbers up to here are exact as numbers with a fraction too.
const EXACT_MAX: i64 = 1 << 53;

fn exact(number: i64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "exact in this range")]
    (-EXACT_MAX..=EXACT_MAX)
        .contains(&number)
        .then_some(number as f64)
}

/// How two of one kind stand to each other.
fn order(left: Fact, right: Fact) -> Option<Ordering> {
    match (left, right) {
        (Fact::Text(left), Fact::Text(right)) => Some(left.cmp(right)),
        (Fact::Int(left), Fact::Int(right)) => Some(left.cmp(&right)),
        (Fact::Double(left), Fact::Double(right)) => left.partial_cmp(&right),
        (Fact::Int(left), Fact::Double(right)) => exact(left)?.partial_cmp(&right),
        (Fact::Double(left), Fact::Int(right)) => left.partial_cmp(&exact(right)?),
        _ => None,
    }
}

fn equal(left: Fact, right: Fact) -> Option<bool> {
    match (left, right) {
        (Fact::Bool(left), Fact::Bool(right)) => Some(left == right),
        (Fact::Null, Fact::Null) => Some(true),
        _ => order(left, right).map(|order| order == Ordering::Equal),
    }
}

fn compare(left: Fact, operator: Operator, right: Fact) -> Option<bool> {
    match operator {
        Operator::Equal => equal(left, right),
        Operator::Unequal => equal(left, right).map(|equal| !equal),
        Operator::Less => order(left, right).map(Ordering::is_lt),
        Operator::AtMost => order(left, right).map(Ordering::is_le),
        Operator::Greater => order(left, right).map(Ordering::is_gt),
        Operator::AtLeast => order(left, right).map(Ordering::is_ge),
    }
}

fn contains(container: Fact, element: Fact) -> Option<bool> {
    match (container, element) {
        (_, Fact::Unknown) => None,
        (Fact::List(list), element) => any(list.iter().map(|one| equal(Fact::of(one), element))),
        (Fact::Map(map), Fact::Text(key)) => Some(map.contains_key(key)),
        _ => None,
    }
}

/// Whether one is surely true; all others must surely be false.
fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut sure = Some(false);
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => sure = None,
        }
    }
    sure
}
