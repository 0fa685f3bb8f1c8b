//! JSON values in whose texts `{{ expression }}` stands for a value.

use serde_json::{Map, Value};

use super::braces::end_of;
use crate::expr::{Fault, Profile, Program, Scope};

/// A compiled template.
#[derive(Debug, Clone)]
pub enum Template {
    /// A value without any place.
    Plain(Value),
    /// A text that is one place: the value itself, whatever its type.
    Whole(Program),
    /// A text with places in it.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Template>),
    /// An object.
    Object(Vec<(String, Template)>),
}

/// A piece of a text.
#[derive(Debug, Clone)]
pub enum Piece {
    /// As it is.
    Plain(String),
    /// The value of an expression, as text.
    Place(Program),
}

impl Template {
    /// Compiles all places of `value`; they may read `names`.
    pub fn compile(value: &Value, names: &[&str]) -> Result<Template, Fault> {
        Ok(match value {
            Value::String(text) => text_of(text, names)?,
            Value::Array(items) => {
                let each = items.iter().map(|item| Template::compile(item, names));
                Template::List(each.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let mut compiled = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    compiled.push((name.clone(), Template::compile(field, names)?));
                }
                Template::Object(compiled)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Template::Plain(value.clone()),
        })
    }

    /// All places.
    pub fn programs(&self) -> Vec<&Program> {
        match self {
            Template::Plain(_) => Vec::new(),
            Template::Whole(program) => vec![program],
            Template::Text(pieces) => {
                let mut places = Vec::new();
                for piece in pieces {
                    if let Piece::Place(program) = piece {
                        places.push(program);
                    }
                }
                places
            }
            Template::List(items) => items.iter().flat_map(Template::programs).collect(),
            Template::Object(fields) => fields.iter().flat_map(|(_, field)| field.programs()).collect(),
        }
    }

    /// The value with every place filled.
    pub fn fill(&self, scope: &Scope) -> Result<Value, Fault> {
        Ok(match self {
            Template::Plain(value) => value.clone(),
            Template::Whole(program) => program.evaluate(scope)?,
            Template::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Plain(plain) => text.push_str(plain),
                        Piece::Place(program) => text.push_str(&as_text(&program.evaluate(scope)?)),
                    }
                }
                Value::String(text)
            }
            Template::List(items) => {
                let each = items.iter().map(|item| item.fill(scope));
                Value::Array(each.collect::<Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let mut filled = Map::with_capacity(fields.len());
                for (name, field) in fields {
                    filled.insert(name.clone(), field.fill(scope)?);
                }
                Value::Object(filled)
            }
        })
    }
}

/// A value inside a text: a text as it is, anything else as JSON.
pub fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The places of a text: (start of the braces, expression, end of the braces).
pub fn places(text: &str) -> Vec<(usize, &str, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").map(|at| from + at) {
        let Some(length) = end_of(&text[open + 2..]) else {
            break;
        };
        let end = open + 2 + length;
        found.push((open, text[open + 2..end].trim(), end + 2));
        from = end + 2;
    }
    found
}

fn text_of(text: &str, names: &[&str]) -> Result<Template, Fault> {
    let places = places(text);
    if places.is_empty() {
        return Ok(Template::Plain(Value::String(text.to_owned())));
    }
    let compile = |expression: &str| Program::compile(expression, Profile::Workflow, names);
    if let [(0, expression, end)] = places.as_slice()
        && *end == text.len()
    {
        return compile(expression).map(Template::Whole);
    }
    let mut pieces = Vec::new();
    let mut done = 0;
    for (start, expression, end) in places {
        if start > done {
            pieces.push(Piece::Plain(text[done..start].to_owned()));
        }
        pieces.push(Piece::Place(compile(expression)?));
        done = end;
    }
    if done < text.len() {
        pieces.push(Piece::Plain(text[done..].to_owned()));
    }
    Ok(Template::Text(pieces))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_filled() {
        let template =
            json!({"whole": "{{ input.list }}", "text": "a {{input.n}} b {{ input.s }}", "plain": ["x", 1]});
        let template = Template::compile(&template, &["input"]).unwrap();
        assert_eq!(template.programs().len(), 3);
        let mut scope = Scope::new();
        scope.set("input", &json!({"list": [1, 2], "n": 7, "s": "t"}));
        let filled = template.fill(&scope).unwrap();
        assert_eq!(
            filled,
            json!({"whole": [1, 2], "text": "a 7 b t", "plain": ["x", 1]})
        );
        let open = Template::compile(&json!("{{ input"), &["input"]).unwrap();
        assert_eq!(open.fill(&scope).unwrap(), json!("{{ input"));
    }
}
