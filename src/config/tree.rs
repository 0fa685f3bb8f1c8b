//! A YAML document as a tree in which every key and value knows its place.
//!
//! serde stops at the first fault and forgets where keys stood, so the parser's events (the crate
//! below serde-saphyr) become this tree, and the readers walk it collecting all faults. Aliases
//! share their target; budgets count them as if they were written out, so that a small file cannot
//! stand for a huge one. What the keys mean is not known here; broken syntax goes to `syntax.rs`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag, options};

use super::fault::{Fault, Place, shown};
use super::source::{FILE_BYTES_MAX, Source, check_length};
use super::syntax;

/// How much a text may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes of the text.
    pub(super) bytes: usize,
    /// Nodes with its aliases written out.
    pub(super) nodes: usize,
    /// Nodes that stand there by aliases alone.
    pub(super) by_aliases: usize,
}

/// Of a file of configuration: about ten thousand jobs with every key.
pub(super) const CONFIGURATION: Budget = Budget {
    bytes: FILE_BYTES_MAX,
    nodes: 500_000,
    by_aliases: usize::MAX,
};

/// Bytes of text with aliases written out.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Levels of nesting; the deepest useful place of a configuration is at eight.
const DEPTH_MAX: usize = 64;

/// A value with its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// `plain` scalars may be numbers, booleans or nothing; all others are text.
    Scalar {
        text: String,
        plain: bool,
    },
    Sequence(Vec<Rc<Node>>),
    /// Pairs as written: keys may repeat, `<<` is not merged yet.
    Mapping(Vec<(Rc<Node>, Rc<Node>)>),
}

impl Node {
    /// Nothing was written, or `null`.
    pub(super) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain } => {
                *plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            Value::Sequence(_) | Value::Mapping(_) => false,
        }
    }

    /// The text of a scalar that is not null.
    pub(super) fn scalar(&self) -> Option<(&str, bool)> {
        match &self.value {
            Value::Scalar { text, plain } if !self.is_null() => Some((text, *plain)),
            Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    /// For a message: what this is.
    pub(super) fn described(&self) -> String {
        match &self.value {
            Value::Scalar { .. } if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, plain: true } => format!("`{}`", shown(text)),
            Value::Scalar { text, plain: false } => format!("the text \"{}\"", shown(text)),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a map".to_owned(),
        }
    }
}

/// What a subtree costs when its aliases are written out.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    text_bytes: usize,
    depth: usize,
}

impl Weight {
    fn add_child(&mut self, child: Self) {
        self.nodes = self.nodes.saturating_add(child.nodes);
        self.text_bytes = self.text_bytes.saturating_add(child.text_bytes);
        self.depth = self.depth.max(child.depth + 1);
    }
}

/// A collection whose end has not been seen.
struct Open {
    at: Place,
    anchor: usize,
    weight: Weight,
    content: Content,
}

enum Content {
    Sequence(Vec<Rc<Node>>),
    Mapping {
        pairs: Vec<(Rc<Node>, Rc<Node>)>,
        key: Option<Rc<Node>>,
    },
}

/// The document of one file; an empty file is an empty mapping.
pub(super) fn parse(source: &Source) -> Result<Rc<Node>, Box<Fault>> {
    parse_within(source, CONFIGURATION)
}

/// The same within other limits.
pub(super) fn parse_within(source: &Source, budget: Budget) -> Result<Rc<Node>, Box<Fault>> {
    check_length(&Place::whole(&source.name), source.text.len(), budget.bytes)?;
    let options = options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
    };
    let mut builder = Builder::new(source, budget);
    for event in Parser::new_from_str_with_options(&source.text, options) {
        let (event, span) = event.map_err(|error| syntax::fault(source, &error))?;
        builder.take(event, span)?;
    }
    Ok(builder.finish())
}

struct Builder<'s> {
    source: &'s Source,
    budget: Budget,
    by_aliases: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, (Rc<Node>, Weight)>,
    total: Weight,
    documents: usize,
    root: Option<Rc<Node>>,
}

impl<'s> Builder<'s> {
    fn new(source: &'s Source, budget: Budget) -> Self {
        Self {
            source,
            budget,
            by_aliases: 0,
            open: Vec::new(),
            anchors: HashMap::new(),
            total: Weight::default(),
            documents: 0,
            root: None,
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Box<Fault>> {
        let at = place(&self.source.name, span);
        match event {
            Event::DocumentStart(..) => self.start_document(&at)?,
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(at, &text, style, anchor, tag.as_deref())?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.start(at, anchor, tag.as_deref(), Content::Sequence(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                let content = Content::Mapping {
                    pairs: Vec::new(),
                    key: None,
                };
                self.start(at, anchor, tag.as_deref(), content)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, &at)?,
            Event::UnresolvedAlias(name) => {
                return Err(syntax::unknown_alias(self.source, &at, &name).into());
            }
            // Nothing in these, and what else there is comes only when asked for.
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Anchor(..) | _ => {}
        }
        Ok(())
    }

    fn start_document(&mut self, at: &Place) -> Result<(), Box<Fault>> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(Fault::error(
                "config/syntax",
                at,
                "a configuration file holds one YAML document; a second one begins here",
            )
            .with_help("put it in a file of its own")
            .into());
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        at: Place,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), Box<Fault>> {
        check_tag(tag, &at)?;
        let is_text = tag.is_some_and(|tag| tag.core_suffix() == Some("str"));
        let weight = Weight {
            nodes: 1,
            text_bytes: text.len(),
            depth: 0,
        };
        let node = Node {
            at,
            value: Value::Scalar {
                text: text.to_owned(),
                plain: style == ScalarStyle::Plain && !is_text,
            },
        };
        self.charge(weight, &node.at)?;
        self.put(Rc::new(node), weight, anchor);
        Ok(())
    }

    fn start(
        &mut self,
        at: Place,
        anchor: usize,
        tag: Option<&Tag>,
        content: Content,
    ) -> Result<(), Box<Fault>> {
        check_tag(tag, &at)?;
        if self.open.len() >= DEPTH_MAX {
            return Err(too_much(&at, "nesting is deeper", DEPTH_MAX).into());
        }
        let weight = Weight {
            nodes: 1,
            ..Weight::default()
        };
        self.charge(weight, &at)?;
        self.open.push(Open {
            at,
            anchor,
            weight,
            content,
        });
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let (at, value) = match open.content {
            Content::Sequence(items) => (open.at, Value::Sequence(items)),
            // A block mapping has no mark of its own: its first key stands for it.
            Content::Mapping { pairs, .. } => {
                let at = match pairs.first() {
                    Some((key, _)) if open.at.span.is_empty() => key.at.clone(),
                    Some(_) | None => open.at,
                };
                (at, Value::Mapping(pairs))
            }
        };
        self.put(Rc::new(Node { at, value }), open.weight, open.anchor);
    }

    fn alias(&mut self, anchor: usize, at: &Place) -> Result<(), Box<Fault>> {
        let Some((node, weight)) = self.anchors.get(&anchor).cloned() else {
            return Err(
                Fault::error("config/syntax", at, "this alias refers to the value it stands in").into(),
            );
        };
        if self.open.len() + weight.depth >= DEPTH_MAX {
            return Err(too_much(at, "nesting is deeper", DEPTH_MAX).into());
        }
        self.by_aliases = self.by_aliases.saturating_add(weight.nodes);
        if self.by_aliases > self.budget.by_aliases {
            let most = self.budget.by_aliases;
            return Err(too_much(at, "values that stand here by aliases are more", most).into());
        }
        self.charge(weight, at)?;
        self.put(node, weight, 0);
        Ok(())
    }

    /// Counts what was written, or what an alias stands for.
    fn charge(&mut self, weight: Weight, at: &Place) -> Result<(), Box<Fault>> {
        self.total.nodes = self.total.nodes.saturating_add(weight.nodes);
        self.total.text_bytes = self.total.text_bytes.saturating_add(weight.text_bytes);
        if self.total.nodes > self.budget.nodes {
            let most = self.budget.nodes;
            return Err(too_much(at, "with aliases written out, values are more", most).into());
        }
        if self.total.text_bytes > TEXT_BYTES_MAX {
            return Err(too_much(
                at,
                "with aliases written out, bytes of text are more",
                TEXT_BYTES_MAX,
            )
            .into());
        }
        Ok(())
    }

    /// A finished node goes into the collection around it.
    fn put(&mut self, node: Rc<Node>, weight: Weight, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        parent.weight.add_child(weight);
        match &mut parent.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping { pairs, key } => match key.take() {
                None => *key = Some(node),
                Some(key) => pairs.push((key.clone(), placed_at_key(node, &key))),
            },
        }
    }

    fn finish(self) -> Rc<Node> {
        let empty = |name: &Arc<str>| {
            Rc::new(Node {
                at: Place::whole(name),
                value: Value::Mapping(Vec::new()),
            })
        };
        match self.root {
            Some(root) if !root.is_null() => root,
            Some(_) | None => empty(&self.source.name),
        }
    }
}

/// The value of a key that a map has, without a look at anything else in it.
pub(super) fn entry<'n>(node: &'n Node, word: &str) -> Option<&'n Node> {
    let Value::Mapping(pairs) = &node.value else {
        return None;
    };
    let is_word = |key: &Node| key.scalar().is_some_and(|(text, _)| text == word);
    pairs
        .iter()
        .find(|(key, _)| is_word(key))
        .map(|(_, value)| &**value)
}

/// A value that was not written (`slots:`) is pointed at by its key.
fn placed_at_key(node: Rc<Node>, key: &Node) -> Rc<Node> {
    if !(node.at.span.is_empty() && node.is_null()) {
        return node;
    }
    Rc::new(Node {
        at: key.at.clone(),
        value: Value::Scalar {
            text: String::new(),
            plain: true,
        },
    })
}

fn check_tag(tag: Option<&Tag>, at: &Place) -> Result<(), Box<Fault>> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => Err(Fault::error(
            "config/syntax",
            at,
            format!("the tag `{}` has no meaning here", shown(&tag.original())),
        )
        .with_help("a value that begins with `!` must stand in quotes")
        .into()),
        Some(_) | None => Ok(()),
    }
}

fn too_much(at: &Place, what: &str, max: usize) -> Fault {
    Fault::error("config/too-large", at, format!("{what} than {max}"))
}

fn place(file: &Arc<str>, span: Span) -> Place {
    let start = span.start.byte_offset().unwrap_or(0);
    let end = span.end.byte_offset().unwrap_or(start);
    Place {
        file: file.clone(),
        line: span.start.line(),
        column: span.start.col() + 1,
        span: start..end.max(start),
    }
}
