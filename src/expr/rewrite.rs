//! An admitted tree with our functions put in before everything that loops, copies or grows. The tree is shallow, so this
//! goes by recursion.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a tree is asked for the few shapes that matter; every other one is answered alike"
)]

use cel_interpreter::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr,
    operators,
};
use regex::Regex;

use super::admit::{is_binding, known_of, namespace_of, text_of};
use super::functions::{Charge, Known};
use super::guards;

/// What the rewriting needs to know of the expression.
#[derive(Clone, Copy)]
pub(super) struct Rewriting<'a> {
    pub(super) patterns: &'a [(String, Regex)],
    pub(super) has_optionals: bool,
}

fn call(name: &str, arguments: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args: arguments,
    })
}

fn wrapped(name: &str, inner: IdedExpr) -> IdedExpr {
    IdedExpr {
        id: inner.id,
        expr: call(name, vec![inner]),
    }
}

/// Wrapped, unless it is known to be small.
fn paid(name: &str, inner: IdedExpr) -> IdedExpr {
    if is_small(&inner.expr) {
        inner
    } else {
        wrapped(name, inner)
    }
}

fn number(value: usize) -> IdedExpr {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    IdedExpr {
        id: 0,
        expr: Expr::Literal(LiteralValue::Int(value.into())),
    }
}

impl Rewriting<'_> {
    /// The whole expression. Its value leaves by our function too: the interpreter's own way out would copy it first, and
    /// the way by reference is compiled into the caller, whose frames are large where it is not optimised.
    pub(super) fn program(self, tree: IdedExpr) -> IdedExpr {
        wrapped(guards::GIVE, self.tree(tree))
    }

    fn tree(self, tree: IdedExpr) -> IdedExpr {
        let IdedExpr { id, expr } = tree;
        let expr = match expr {
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => {
                let is_binding = comprehension.iter_var == "#unused";
                Expr::Comprehension(Box::new(if is_binding {
                    self.binding(*comprehension)
                } else {
                    self.comprehension(*comprehension)
                }))
            }
            Expr::Select(mut select) => {
                select.operand = Box::new(self.base(*select.operand));
                Expr::Select(select)
            }
            Expr::List(mut list) => {
                list.elements = self.all(list.elements, guards::COPIED);
                Expr::List(list)
            }
            Expr::Map(mut map) => {
                map.entries = map.entries.into_iter().map(|entry| self.entry(entry)).collect();
                Expr::Map(map)
            }
            other @ (Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified) => other,
        };
        IdedExpr { id, expr }
    }

    fn all(self, exprs: Vec<IdedExpr>, name: &str) -> Vec<IdedExpr> {
        exprs
            .into_iter()
            .map(|expr| paid(name, self.tree(expr)))
            .collect()
    }

    /// What a field or an element is taken of. A value is copied out of an optional that somebody else holds.
    fn base(self, base: IdedExpr) -> IdedExpr {
        let base = self.tree(base);
        if self.has_optionals {
            wrapped(guards::OPENED, base)
        } else {
            base
        }
    }

    fn entry(self, entry: IdedEntryExpr) -> IdedEntryExpr {
        let expr = match entry.expr {
            EntryExpr::MapEntry(MapEntryExpr { key, value, optional }) => EntryExpr::MapEntry(MapEntryExpr {
                key: paid(guards::COPIED, self.tree(key)),
                value: paid(guards::COPIED, self.tree(value)),
                optional,
            }),
            other @ EntryExpr::StructField(_) => other,
        };
        IdedEntryExpr { id: entry.id, expr }
    }

    fn comprehension(self, mut comprehension: ComprehensionExpr) -> ComprehensionExpr {
        let nodes = size(&comprehension.loop_step);
        let range = self.tree(comprehension.iter_range);
        comprehension.iter_range = IdedExpr {
            id: range.id,
            expr: call(guards::LOOP, vec![range, number(nodes)]),
        };
        comprehension.loop_step = self.step(comprehension.loop_step, &comprehension.accu_var);
        comprehension
    }

    /// The interpreter knows the shapes of the macros' steps and appends in place: they stay as they are, and only what
    /// the author wrote inside of them is rewritten.
    fn step(self, step: IdedExpr, result: &str) -> IdedExpr {
        let is_result = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if name == result);
        let IdedExpr { id, expr } = step;
        let Expr::Call(mut call) = expr else {
            return self.tree(IdedExpr { id, expr });
        };
        let first_is_result = call.args.first().is_some_and(is_result);
        let last_is_result = call.args.last().is_some_and(is_result);
        match call.func_name.as_str() {
            operators::ADD | operators::LOGICAL_AND | operators::LOGICAL_OR if first_is_result => {
                call.args = call
                    .args
                    .into_iter()
                    .map(|argument| self.tree(argument))
                    .collect();
            }
            operators::CONDITIONAL if last_is_result && call.args.len() == 3 => {
                let mut arguments = call.args.into_iter();
                call.args = Vec::with_capacity(3);
                call.args
                    .extend(arguments.next().map(|condition| self.tree(condition)));
                call.args
                    .extend(arguments.next().map(|then| self.step(then, result)));
                call.args.extend(arguments);
            }
            _ => {
                return self.tree(IdedExpr {
                    id,
                    expr: Expr::Call(call),
                });
            }
        }
        IdedExpr {
            id,
            expr: Expr::Call(call),
        }
    }

    /// A name for a value: it is copied when it is bound and when it is given back.
    fn binding(self, mut comprehension: ComprehensionExpr) -> ComprehensionExpr {
        comprehension.accu_init = paid(guards::COPIED, self.tree(comprehension.accu_init));
        comprehension.result = paid(guards::COPIED, self.tree(comprehension.result));
        comprehension
    }

    fn call(self, mut original: CallExpr) -> Expr {
        let name = original.func_name.clone();
        match (name.as_str(), original.args.len()) {
            (operators::EQUALS | operators::NOT_EQUALS, 2) => {
                let compares_small = original.args.iter().any(|argument| is_small(&argument.expr));
                original.args = if compares_small {
                    self.plain(original.args)
                } else {
                    self.all(original.args, guards::READ)
                };
            }
            (
                operators::ADD
                | operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                2,
            ) => original.args = self.all(original.args, guards::READ),
            (operators::IN, 2) => return call(guards::WITHIN, self.plain(original.args)),
            (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT, 2) => {
                return self.indexed(original);
            }
            (
                operators::CONDITIONAL
                | operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::NEGATE
                | operators::NOT_STRICTLY_FALSE,
                _,
            ) => original.args = self.plain(original.args),
            _ => return self.function(original),
        }
        Expr::Call(original)
    }

    fn plain(self, exprs: Vec<IdedExpr>) -> Vec<IdedExpr> {
        exprs.into_iter().map(|expr| self.tree(expr)).collect()
    }

    fn indexed(self, mut original: CallExpr) -> Expr {
        let key = original.args.pop().unwrap_or_default();
        let key = if matches!(key.expr, Expr::Literal(_)) && !is_fraction(&key.expr) {
            key
        } else {
            wrapped(guards::KEY, self.tree(key))
        };
        let base = original.args.pop().unwrap_or_default();
        if original.func_name == operators::INDEX {
            original.args = vec![self.base(base), key];
            Expr::Call(original)
        } else {
            call(guards::OPTIONAL_AT, vec![self.tree(base), key])
        }
    }

    fn function(self, original: CallExpr) -> Expr {
        let Some(known) = known_of(&original) else {
            return Expr::Call(original);
        };
        let is_namespaced = namespace_of(&original).is_some();
        if let Charge::Pattern = known.charge {
            return self.pattern(original);
        }
        let CallExpr {
            func_name,
            target,
            args,
        } = original;
        if let Charge::Own(own) = known.charge {
            let receiver = target.filter(|_| !is_namespaced).map(|target| *target);
            return call(own, self.plain(receiver.into_iter().chain(args).collect()));
        }
        let target = target.map(|target| {
            Box::new(if is_namespaced {
                *target
            } else {
                charged(known, self.tree(*target), true)
            })
        });
        let args = args
            .into_iter()
            .map(|argument| charged(known, self.tree(argument), false))
            .collect();
        Expr::Call(CallExpr {
            func_name,
            target,
            args,
        })
    }

    fn pattern(self, original: CallExpr) -> Expr {
        let mut arguments: Vec<IdedExpr> = original
            .target
            .map(|target| *target)
            .into_iter()
            .chain(original.args)
            .collect();
        let pattern = arguments.pop().unwrap_or_default();
        let text = text_of(&pattern.expr).unwrap_or_default();
        let index = self.patterns.iter().position(|(known, _)| known == text);
        let mut arguments = self.plain(arguments);
        arguments.push(number(index.unwrap_or(usize::MAX)));
        call(guards::MATCHES, arguments)
    }
}

fn charged(known: &Known, argument: IdedExpr, is_target: bool) -> IdedExpr {
    match known.charge {
        Charge::Nothing | Charge::Own(_) | Charge::Pattern => argument,
        Charge::Texts => paid(guards::TEXTS, argument),
        Charge::Whole(1) => paid(guards::READ, argument),
        Charge::Whole(times) => {
            let id = argument.id;
            let expr = call(guards::TIMES, vec![argument, number(usize::from(times))]);
            IdedExpr { id, expr }
        }
        Charge::Pairs => wrapped(guards::PAIRS, argument),
        Charge::Format if is_target => wrapped(guards::FORMAT, argument),
        Charge::Format => paid(guards::READ, argument),
    }
}

fn is_fraction(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(LiteralValue::Double(_)))
}

/// A number, a bool, an instant or a text that stands in the expression: no need to weigh it.
fn is_small(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) => true,
        Expr::Call(call) => match call.func_name.as_str() {
            operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS
            | operators::LOGICAL_AND
            | operators::LOGICAL_OR
            | operators::LOGICAL_NOT
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE
            | operators::IN
            | guards::WITHIN
            | guards::MATCHES
            | "@indexOf"
            | "@lastIndexOf"
            | "@getMilliseconds" => true,
            _ => known_of(call).is_some_and(|known| known.small),
        },
        Expr::Comprehension(comprehension) if !is_binding(expr) => {
            // `all`, `exists` and `exists_one` begin with a literal and give a bool.
            matches!(comprehension.accu_init.expr, Expr::Literal(_))
        }
        _ => false,
    }
}

/// Nodes of an admitted tree.
fn size(tree: &IdedExpr) -> usize {
    let inner = match &tree.expr {
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .map(size)
            .sum(),
        Expr::Select(select) => size(&select.operand),
        Expr::List(list) => list.elements.iter().map(size).sum(),
        Expr::Map(map) => map
            .entries
            .iter()
            .map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => size(&entry.key) + size(&entry.value),
                EntryExpr::StructField(field) => size(&field.value),
            })
            .sum(),
        // A loop inside pays for its own turns.
        Expr::Comprehension(comprehension) => size(&comprehension.iter_range),
        Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified => 0,
    };
    inner + 1
}
