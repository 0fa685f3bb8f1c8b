//! Masking: what a secret's value looks like in output, logs and reasons.
//!
//! A value is hidden as a whole, and so is each of its lines of [`MASKED_CHARS_MIN`] or more characters; every run of
//! hidden bytes becomes one `***`. Short lines stay: a mask for `{` would eat every log. A value that was printed in
//! another shape (base64, escaped, in halves) is not recognised.
//!
//! All needles are searched at once with an automaton of Aho and Corasick, so the time does not grow with their number.
//! Its depth is the longest end of the output that a needle could begin with: exactly that is held back, nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use super::process::{OutputFilter, Stream};

/// A value or line of fewer characters is not masked.
pub const MASKED_CHARS_MIN: usize = 8;

const MASK: &[u8] = b"***";
const ROOT: u32 = 0;

/// What is to be hidden, ready to be searched.
pub struct Needles {
    nodes: Vec<Node>,
    /// The children of the root by their byte; `ROOT` = none.
    first: [u32; 256],
}

/// A beginning of one or more needles.
struct Node {
    byte: u8,
    depth: u32,
    child: u32,
    sibling: u32,
    /// The longest proper end of this beginning that begins a needle too.
    fail: u32,
    /// Bytes of the longest needle that ends here; 0 = none.
    longest: u32,
}

impl Needles {
    /// `None` when no value is long enough to be hidden.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v str>) -> Option<Needles> {
        let mut needles = Needles {
            nodes: vec![Node::at(0, 0)],
            first: [ROOT; 256],
        };
        for value in values {
            // A command that prints its secret rarely prints the line ends around it.
            needles.add(value.trim_matches(['\r', '\n']));
            value.lines().for_each(|line| needles.add(line));
        }
        if needles.nodes.len() == 1 {
            return None;
        }
        needles.link();
        Some(needles)
    }

    fn add(&mut self, needle: &str) {
        if needle.chars().count() < MASKED_CHARS_MIN {
            return;
        }
        let mut at = ROOT;
        for byte in needle.bytes() {
            let known = self.child(at, byte);
            at = if known == ROOT { self.grow(at, byte) } else { known };
        }
        let end = self.node_mut(at);
        end.longest = end.depth;
    }

    fn grow(&mut self, parent: u32, byte: u8) -> u32 {
        let new = u32::try_from(self.nodes.len()).expect("values are limited to far fewer bytes");
        let mut node = Node::at(byte, self.node(parent).depth + 1);
        if parent == ROOT {
            self.first[usize::from(byte)] = new;
        }
        node.sibling = self.node(parent).child;
        self.node_mut(parent).child = new;
        self.nodes.push(node);
        new
    }

    /// Level by level, as a node's `fail` is always nearer to the root.
    fn link(&mut self) {
        let mut queue = VecDeque::from([ROOT]);
        while let Some(parent) = queue.pop_front() {
            let mut child = self.node(parent).child;
            while child != ROOT {
                let fail = if parent == ROOT {
                    ROOT
                } else {
                    self.step(self.node(parent).fail, self.node(child).byte)
                };
                let inherited = self.node(fail).longest;
                let node = self.node_mut(child);
                node.fail = fail;
                node.longest = node.longest.max(inherited);
                queue.push_back(child);
                child = self.node(child).sibling;
            }
        }
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    fn child(&self, parent: u32, byte: u8) -> u32 {
        if parent == ROOT {
            return self.first[usize::from(byte)];
        }
        let mut child = self.node(parent).child;
        while child != ROOT && self.node(child).byte != byte {
            child = self.node(child).sibling;
        }
        child
    }

    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            let next = self.child(at, byte);
            if next != ROOT || at == ROOT {
                return next;
            }
            at = self.node(at).fail;
        }
    }
}

impl Node {
    fn at(byte: u8, depth: u32) -> Node {
        Node {
            byte,
            depth,
            child: ROOT,
            sibling: ROOT,
            fail: ROOT,
            longest: 0,
        }
    }
}

/// The filter of one command's output. Without needles it leaves everything as it is.
pub struct Mask {
    needles: Option<Arc<Needles>>,
    stdout: Side,
    stderr: Side,
}

impl Mask {
    /// A filter that has seen nothing yet.
    pub fn new(needles: Option<Arc<Needles>>) -> Mask {
        Mask {
            needles,
            stdout: Side::default(),
            stderr: Side::default(),
        }
    }
}

impl OutputFilter for Mask {
    fn pass(&mut self, stream: Stream, bytes: &[u8], out: &mut Vec<u8>) {
        let side = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        match &self.needles {
            None => out.extend_from_slice(bytes),
            Some(needles) => side.pass(needles, bytes, out),
        }
    }

    fn end(&mut self, stream: Stream, out: &mut Vec<u8>) {
        match stream {
            Stream::Stdout => self.stdout.end(out),
            Stream::Stderr => self.stderr.end(out),
        }
    }
}

/// A whole text with its secrets hidden.
pub fn masked(needles: &Needles, text: &str) -> String {
    let (mut side, mut out) = (Side::default(), Vec::new());
    side.pass(needles, text.as_bytes(), &mut out);
    side.end(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// One stream. Positions are counted from its beginning.
#[derive(Default)]
struct Side {
    state: u32,
    /// Bytes that are not shown yet; at most one byte less than the longest needle between two reads.
    held: Vec<u8>,
    /// Position of the first held byte.
    base: u64,
    /// What is to be hidden of them: disjoint, in order, never touching.
    hidden: VecDeque<(u64, u64)>,
    /// The last byte that was shown belongs to a mask.
    in_mask: bool,
}

impl Side {
    fn pass(&mut self, needles: &Needles, bytes: &[u8], out: &mut Vec<u8>) {
        let mut at = self.base + self.held.len() as u64;
        self.held.extend_from_slice(bytes);
        for byte in bytes {
            self.state = needles.step(self.state, *byte);
            at += 1;
            let longest = needles.node(self.state).longest;
            if longest > 0 {
                self.hide(at - u64::from(longest), at);
            }
        }
        // No later match can reach before this; and what is hidden stays so, whatever follows.
        let mut until = self.base.max(at - u64::from(needles.node(self.state).depth));
        for (start, end) in &self.hidden {
            if *start > until {
                break;
            }
            until = until.max(*end);
        }
        self.show(until, out);
    }

    fn hide(&mut self, start: u64, end: u64) {
        let mut start = start.max(self.base);
        while let Some((earlier, until)) = self.hidden.back().copied() {
            if until < start {
                break;
            }
            start = start.min(earlier);
            self.hidden.pop_back();
        }
        self.hidden.push_back((start, end));
    }

    fn show(&mut self, until: u64, out: &mut Vec<u8>) {
        let mut shown = 0;
        while let Some((start, end)) = self.hidden.front().copied().filter(|(start, _)| *start < until) {
            let (from, to) = (self.index(start), self.index(end));
            self.show_plain(shown..from, out);
            if !self.in_mask {
                out.extend_from_slice(MASK);
                self.in_mask = true;
            }
            shown = to;
            self.hidden.pop_front();
        }
        let all = self.index(until);
        self.show_plain(shown..all, out);
        self.held.drain(..all);
        self.base = until;
    }

    fn index(&self, position: u64) -> usize {
        usize::try_from(position - self.base).expect("held bytes are in memory")
    }

    fn show_plain(&mut self, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        if !range.is_empty() {
            out.extend_from_slice(&self.held[range]);
            self.in_mask = false;
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.show(self.base + self.held.len() as u64, out);
        *self = Side::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(values: &[&str]) -> Mask {
        Mask::new(Needles::of(values.iter().copied()).map(Arc::new))
    }

    /// Passes `output` in pieces that end at these positions.
    fn passed(values: &[&str], output: &[u8], cuts: &[usize]) -> Vec<u8> {
        let (mut mask, mut out, mut from) = (filter(values), Vec::new(), 0);
        for cut in cuts.iter().copied().chain([output.len()]) {
            mask.pass(Stream::Stdout, &output[from..cut], &mut out);
            from = cut;
        }
        mask.end(Stream::Stdout, &mut out);
        out
    }

    /// The same result for every cut in two, and byte by byte.
    fn check(values: &[&str], output: &[u8], expected: &[u8]) {
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for cut in 0..=output.len() {
            let found = passed(values, output, &[cut]);
            assert_eq!(show(&found), show(expected), "cut at {cut}");
            assert_eq!(found, expected);
        }
        let every: Vec<usize> = (0..output.len()).collect();
        assert_eq!(
            show(&passed(values, output, &every)),
            show(expected),
            "byte by byte"
        );
    }

    #[test]
    fn a_value_is_hidden_wherever_it_is_cut() {
        let value = ["hunter2-and-more"];
        check(&value, b"hunter2-and-more", b"***");
        check(&value, b"a hunter2-and-more b\n", b"a *** b\n");
        check(
            &value,
            b"hunthunter2-and-morehunter2-and-mor",
            b"hunt***hunter2-and-mor",
        );
        check(&value, b"hunter2-and-morehunter2-and-more\n", b"***\n");
        check(&value, b"nothing of it\n", b"nothing of it\n");
        check(&["aaaaaaaab"], b"aaaaaaaaaaaab!", b"aaaa***!");
        check(&["pässwörter"], "ein pässwörter\n".as_bytes(), b"ein ***\n");
    }

    #[test]
    fn needles_may_share_and_overlap() {
        check(
            &["abcdefgh", "abcdefghijkl"],
            b"abcdefghijkx abcdefghijkl",
            b"***ijkx ***",
        );
        check(&["abcdefgh", "efghijklm"], b"-abcdefghijklm-", b"-***-");
        check(&["12345678", "0123456789"], b"012345678 0123456789", b"0*** ***");
        check(&["aaaaaaaa", "aaaaaaaaaaaa"], b"baaaaaaaaaaaaaaaab", b"b***b");
    }

    #[test]
    fn lines_of_a_value_are_hidden_too() {
        let key = "-----BEGIN-----\nfirst-line\nshort\nsecond-line\n-----END-----";
        check(&[key], key.as_bytes(), b"***");
        check(
            &[key],
            b"> first-line\nshort\n> second-line\n",
            b"> ***\nshort\n> ***\n",
        );
        check(
            &["one-line-1\r\none-line-2\r\n"],
            b"one-line-2\none-line-1\n",
            b"***\n***\n",
        );
        check(&["with-its-end\n\n"], b"with-its-end\n\n", b"***\n\n");
    }

    #[test]
    fn o7_braces_are_no_needles() {
        let json = "{\n\"foo\": [\n\"bar\"\n]\n}";
        let line = b"[{description,\"x\"},{vsn,\"1\"}]\n";
        check(&[json, "a"], line, line);
        check(&[json], b"> \"foo\": [ \"bar\"\n", b"> *** \"bar\"\n");
        assert!(Needles::of(["", "a", "1234567", "{\n}"]).is_none());
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let all: Vec<u8> = (0..=255).chain(0..=255).collect();
        check(&["hunter2-and-more"], &all, &all);
        check(
            &["hunter2-and-more"],
            b"\xff\0hunter2-and-more\xfe",
            b"\xff\0***\xfe",
        );
    }

    #[test]
    fn only_the_beginning_of_a_needle_is_held() {
        let (mut mask, mut out) = (filter(&["hunter2-and-more"]), Vec::new());
        mask.pass(Stream::Stdout, b"password? ", &mut out);
        assert_eq!(out, b"password? ");
        mask.pass(Stream::Stdout, b"hunt", &mut out);
        mask.pass(Stream::Stderr, b"er2-and-more", &mut out);
        assert_eq!(out, b"password? er2-and-more", "streams do not mix");
        mask.pass(Stream::Stdout, b"er2-and-more", &mut out);
        assert_eq!(out, b"password? er2-and-more***", "not one byte later");
        mask.pass(Stream::Stdout, b"hunter", &mut out);
        mask.end(Stream::Stdout, &mut out);
        assert!(out.ends_with(b"***hunter"));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let value = "a".repeat(1_000);
        let (mut mask, mut out) = (filter(&[&value]), Vec::new());
        for _ in 0..100 {
            mask.pass(Stream::Stdout, &[b'a'; 999], &mut out);
            assert!(mask.stdout.held.len() < 1_000 && mask.stdout.hidden.len() < 2);
        }
        mask.end(Stream::Stdout, &mut out);
        assert_eq!(out, b"***");
        assert_eq!(
            masked(&Needles::of(["hunter2-x"]).unwrap(), "é hunter2-x é"),
            "é *** é"
        );
    }
}
