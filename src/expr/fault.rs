//! Why an expression is not admitted, or cannot be evaluated. The texts are for whoever wrote the expression.

/// What an expression is written for: it decides the limits and the first part of the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Rules of routing: evaluated for each candidate on the way to a decision.
    Rule,
    /// Workflows: evaluated on a worker thread, over what steps gave.
    Workflow,
}

/// Why an expression is not admitted or cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// `expr.…` or `rule.…`, by the profile.
    pub code: &'static str,
    /// A sentence for the author of the expression.
    pub message: String,
    /// The byte of the text that it is about, where one is known.
    pub position: Option<usize>,
}

/// The kinds of faults, each with its code in both profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TooLong,
    TooLarge,
    TooDeep,
    TooManyLoops,
    LoopsTooNested,
    TooCostly,
    Pattern,
    StructLiteral,
    UnknownReference,
    Syntax,
    Evaluation,
    ResultType,
}

impl Kind {
    fn code(self, profile: Profile) -> &'static str {
        let (rule, workflow) = match self {
            Kind::TooLong => ("rule.too_long", "expr.too_long"),
            Kind::TooLarge => ("rule.too_large", "expr.too_large"),
            Kind::TooDeep => ("rule.too_deep", "expr.too_deep"),
            Kind::TooManyLoops => ("rule.too_many_loops", "expr.too_many_loops"),
            Kind::LoopsTooNested => ("rule.loops_too_nested", "expr.loops_too_nested"),
            Kind::TooCostly => ("rule.too_costly", "expr.too_costly"),
            Kind::Pattern => ("rule.pattern", "expr.pattern"),
            Kind::StructLiteral => ("rule.struct_literal", "expr.struct_literal"),
            Kind::UnknownReference => ("rule.unknown_reference", "expr.unknown_reference"),
            Kind::Syntax => ("rule.syntax", "expr.syntax"),
            Kind::Evaluation => ("rule.evaluation", "expr.evaluation"),
            Kind::ResultType => ("rule.result_type", "expr.result_type"),
        };
        match profile {
            Profile::Rule => rule,
            Profile::Workflow => workflow,
        }
    }

    /// A fault of this kind; a long message is cut.
    pub(super) fn fault(
        self,
        profile: Profile,
        message: impl Into<String>,
        position: Option<usize>,
    ) -> Fault {
        Fault {
            code: self.code(profile),
            message: cut(&message.into(), MESSAGE_CHARACTERS_MAX),
            position,
        }
    }
}

const MESSAGE_CHARACTERS_MAX: usize = 400;

/// At most `most` characters of `text`, with a sign that something is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// What a user may have meant by `word`.
pub(super) fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in among {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        let near = distance <= candidate.len().min(word.len()).div_ceil(3);
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// `at`, or where the letter begins that it lies inside of; at most the end.
pub(super) fn letter_start(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|byte| text.is_char_boundary(*byte))
        .unwrap_or(0)
}

/// 1-based line and column (in characters) of a byte.
pub fn line_and_column(text: &str, position: usize) -> (usize, usize) {
    let before = &text[..letter_start(text, position)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
