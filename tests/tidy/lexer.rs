//! Rust text as tokens with their lines, enough for tidy checks: no comments, strings kept as one token.
//!
//! Not a parser. It knows what a string, a char, a lifetime and a comment are, and finds the paths in the tokens.

/// What a token is; text that no check reads is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(String),
    Mark(char),
    /// `::`
    Colons,
    /// Strings, chars, numbers and lifetimes.
    Literal,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
    /// The line where it ends; differs for strings over several lines.
    pub(crate) last_line: usize,
}

impl Token {
    pub(crate) fn word(&self) -> Option<&str> {
        if let Kind::Word(text) = &self.kind {
            Some(text)
        } else {
            None
        }
    }

    pub(crate) fn is_word(&self, text: &str) -> bool {
        self.word() == Some(text)
    }

    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// One path as written, groups expanded: `use a::{b, c::d}` gives `a::b` and `a::c::d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// Index of its first token.
    pub(crate) start: usize,
    /// Followed by `!`: a macro call.
    pub(crate) is_macro: bool,
}

impl Path {
    pub(crate) fn begins_with(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len()
            && self.segments.iter().zip(prefix).all(|(have, want)| have == want)
    }
}

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        out: Vec::new(),
    };
    lexer.run();
    lexer.out
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    out: Vec<Token>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn bump(&mut self) {
        if self.peek(0) == '\n' {
            self.line += 1;
        }
        self.at += 1;
    }

    fn push(&mut self, kind: Kind, line: usize) {
        self.out.push(Token {
            kind,
            line,
            last_line: self.line,
        });
    }

    fn run(&mut self) {
        while self.at < self.chars.len() {
            let line = self.line;
            let (here, next) = (self.peek(0), self.peek(1));
            if here.is_whitespace() {
                self.bump();
            } else if here == '/' && next == '/' {
                self.skip_line();
            } else if here == '/' && next == '*' {
                self.skip_block();
            } else if here == '"' {
                self.quoted(line);
            } else if here == '\'' {
                self.quote_mark(line);
            } else if here.is_ascii_digit() {
                self.number(line);
            } else if here.is_alphabetic() || here == '_' {
                self.word_or_prefixed_literal(line);
            } else if here == ':' && next == ':' {
                self.at += 2;
                self.push(Kind::Colons, line);
            } else {
                self.bump();
                self.push(Kind::Mark(here), line);
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.chars.len() && self.peek(0) != '\n' {
            self.bump();
        }
    }

    fn skip_block(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            if self.peek(0) == '/' && self.peek(1) == '*' {
                depth += 1;
                self.at += 2;
            } else if self.peek(0) == '*' && self.peek(1) == '/' {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.bump();
            }
        }
    }

    fn quoted(&mut self, line: usize) {
        self.bump();
        while self.at < self.chars.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.bump();
            }
            self.bump();
        }
        self.bump();
        self.push(Kind::Literal, line);
    }

    /// A char literal or a lifetime.
    fn quote_mark(&mut self, line: usize) {
        self.bump();
        let is_char = self.peek(0) == '\\' || self.peek(1) == '\'';
        if is_char {
            while self.at < self.chars.len() && self.peek(0) != '\'' {
                if self.peek(0) == '\\' {
                    self.bump();
                }
                self.bump();
            }
            self.bump();
        } else {
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                self.bump();
            }
        }
        self.push(Kind::Literal, line);
    }

    fn number(&mut self, line: usize) {
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            self.bump();
        }
        self.push(Kind::Literal, line);
    }

    fn word_or_prefixed_literal(&mut self, line: usize) {
        let begin = self.at;
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            self.bump();
        }
        let text: String = self.chars[begin..self.at].iter().collect();
        let raw = matches!(text.as_str(), "r" | "br" | "cr");
        match self.peek(0) {
            '"' | '#' if raw && self.raw_string(line) => {}
            '#' if text == "r" => self.at += 1,
            '"' if matches!(text.as_str(), "b" | "c") => self.quoted(line),
            '\'' if text == "b" => self.quote_mark(line),
            _ => self.push(Kind::Word(text), line),
        }
    }

    /// After the `r`: true if a raw string was read, false for a raw identifier.
    fn raw_string(&mut self, line: usize) -> bool {
        let hashes = self.chars[self.at..]
            .iter()
            .take_while(|mark| **mark == '#')
            .count();
        if self.peek(hashes) != '"' {
            return false;
        }
        self.at += hashes + 1;
        while self.at < self.chars.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == '#') {
                self.at += 1 + hashes;
                break;
            }
            self.bump();
        }
        self.push(Kind::Literal, line);
        true
    }
}

/// Every path of two or more segments, and what a plain `use name;` names.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        if tokens[start].word().is_none_or(is_keyword) || continues_a_path(tokens, start) {
            continue;
        }
        let in_use =
            start > 0 && (tokens[start - 1].is_word("use") || tokens[start - 1].kind == Kind::Colons);
        let leads = tokens
            .get(start + 1)
            .is_some_and(|next| next.kind == Kind::Colons);
        let grouped = in_use_group(tokens, start);
        if leads || in_use || grouped {
            collect(tokens, start, start, &[], &mut found);
        }
    }
    found
}

/// A keyword that can stand before a path, also before one with a leading `::`.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "as", "dyn", "else", "for", "if", "impl", "in", "match", "mut", "ref", "return", "use",
    ];
    KEYWORDS.contains(&word)
}

/// True for `b` in `a::b` and in `a::{b}`; false for the first segment, also after a leading `::`.
fn continues_a_path(tokens: &[Token], at: usize) -> bool {
    if at == 0 {
        return false;
    }
    if tokens[at - 1].kind == Kind::Colons {
        let before = at.checked_sub(2).map(|index| &tokens[index]);
        return before
            .is_some_and(|token| token.word().is_some_and(|word| !is_keyword(word)) || token.is_mark('>'));
    }
    enclosing_group(tokens, at).is_some_and(|open| open > 0 && tokens[open - 1].kind == Kind::Colons)
}

/// True inside `use {a, b};`.
fn in_use_group(tokens: &[Token], at: usize) -> bool {
    enclosing_group(tokens, at).is_some_and(|open| open > 0 && tokens[open - 1].is_word("use"))
}

/// The `{` of the use-group around `at`, if only words, `::`, `,`, `*` and inner groups lie between.
fn enclosing_group(tokens: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for index in (0..at).rev() {
        match &tokens[index].kind {
            Kind::Mark('}') => depth += 1,
            Kind::Mark('{') if depth > 0 => depth -= 1,
            Kind::Mark('{') => {
                let before = index.checked_sub(1).map(|prior| &tokens[prior])?;
                let opens = before.kind == Kind::Colons || before.is_word("use");
                return if opens { Some(index) } else { None };
            }
            Kind::Mark(',' | '*') | Kind::Colons | Kind::Word(_) => {}
            Kind::Mark(_) | Kind::Literal => return None,
        }
    }
    None
}

/// Reads the path at `at` after `base`; returns the index behind it.
fn collect(tokens: &[Token], start: usize, at: usize, base: &[String], found: &mut Vec<Path>) -> usize {
    let mut segments = base.to_vec();
    let mut index = at;
    let mut line = tokens[at].line;
    while let Some(token) = tokens.get(index) {
        match &token.kind {
            Kind::Word(text) => segments.push(text.clone()),
            Kind::Mark('*') => segments.push("*".to_owned()),
            Kind::Mark('{') => return collect_group(tokens, start, index, &segments, found),
            Kind::Mark(_) | Kind::Colons | Kind::Literal => break,
        }
        line = token.line;
        index += 1;
        let more = tokens.get(index).is_some_and(|next| next.kind == Kind::Colons);
        if !more {
            break;
        }
        index += 1;
    }
    let is_macro = tokens.get(index).is_some_and(|next| next.is_mark('!'));
    found.push(Path {
        segments,
        line,
        start,
        is_macro,
    });
    index
}

fn collect_group(
    tokens: &[Token],
    start: usize,
    open: usize,
    base: &[String],
    found: &mut Vec<Path>,
) -> usize {
    let mut index = open + 1;
    while let Some(token) = tokens.get(index) {
        match &token.kind {
            Kind::Mark('}') => return index + 1,
            Kind::Word(text) if text == "as" => index += 2,
            Kind::Word(_) | Kind::Mark('*' | '{') => index = collect(tokens, start, index, base, found),
            Kind::Mark(_) | Kind::Colons | Kind::Literal => index += 1,
        }
    }
    index
}

/// The index behind the `}` that closes the `{` at `open`.
pub(crate) fn behind_block(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if token.is_mark('{') {
            depth += 1;
        } else if token.is_mark('}') {
            depth -= 1;
            if depth == 0 {
                return index + 1;
            }
        }
    }
    tokens.len()
}

/// The `{` that opens the body of the item at `from`, or `None` if a `;` ends it before.
pub(crate) fn body_of(tokens: &[Token], from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Kind::Mark('(' | '[') => depth += 1,
            Kind::Mark(')' | ']') => depth -= 1,
            Kind::Mark('{') if depth == 0 => return Some(index),
            Kind::Mark(';') if depth == 0 => return None,
            Kind::Mark(_) | Kind::Word(_) | Kind::Colons | Kind::Literal => {}
        }
    }
    None
}

#[test]
fn strings_comments_chars_and_lifetimes_are_not_code() {
    let text =
        "/* a /* b */ c */ fn x<'a>(y: &'a str) { '{'; '\\''; b'}'; \"{ \\\" }\"; r#\"}\"}\"#; // }\n}";
    let words: Vec<String> = tokens(text)
        .iter()
        .filter_map(|token| token.word().map(str::to_owned))
        .collect();
    assert_eq!(words, ["fn", "x", "y", "str"]);
    let braces = tokens(text)
        .iter()
        .filter(|token| token.is_mark('{') || token.is_mark('}'))
        .count();
    assert_eq!(braces, 2);
    assert_eq!(tokens(text).last().map(|token| token.line), Some(2));
}

#[test]
fn raw_identifiers_are_words() {
    assert!(tokens("let r#type = 1;")[1].is_word("type"));
}

#[test]
fn groups_are_expanded() {
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<String> = paths(&tokens(text))
            .iter()
            .map(|path| path.segments.join("::"))
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    check(
        "use a::{b, c::{self, D as E}, *};",
        &["a::b", "a::c::self", "a::c::D", "a::*"],
    );
    check("use redb;", &["redb"]);
    check("use ::redb::X;", &["redb::X"]);
    check("use {redb::X, fs4};", &["redb::X", "fs4"]);
    check("fn f() { a::b(c::d); }", &["a::b", "c::d"]);
    check("let redb = 1; redb.x();", &[]);
    check("<A as b::C>::d()", &["b::C"]);
    check("if x { a::b } else { c }", &["a::b"]);
}
