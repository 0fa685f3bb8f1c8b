//! `run logs --grep`: lets through the lines that match, whole, however their pieces came.

use regex::bytes::{Regex, RegexBuilder};

use crate::worker::process::{Stream, Tag};

/// A line that is longer is judged, and shown, in parts of this size.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Memory of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A pattern, and the lines of both streams that are not complete yet.
#[derive(Debug, Clone)]
pub(super) struct Sieve {
    pattern: Regex,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it was printed.
    pub(super) stream: Stream,
    /// Without its line end.
    pub(super) bytes: Vec<u8>,
    /// It had a line end.
    pub(super) ends: bool,
}

/// Reads a pattern from the command line.
pub(super) fn read_pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())
}

impl Sieve {
    /// With nothing read yet.
    pub(super) fn new(pattern: Regex) -> Sieve {
        Sieve {
            pattern,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// The line that a record completes, if it matches.
    pub(super) fn take(&mut self, tag: Tag, payload: &[u8]) -> Option<Line> {
        let (stream, ends) = match tag {
            Tag::Line(stream) => (stream, true),
            Tag::Piece(stream) => (stream, false),
            Tag::Remark => return None,
        };
        let held = self.held(stream);
        held.extend_from_slice(payload);
        if ends || held.len() >= LINE_BYTES_MAX {
            return self.judge(stream, ends);
        }
        None
    }

    /// What is left at the end of the log.
    pub(super) fn finish(&mut self) -> Vec<Line> {
        let streams = [Stream::Stdout, Stream::Stderr].into_iter();
        streams.filter_map(|stream| self.judge(stream, false)).collect()
    }

    fn held(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn judge(&mut self, stream: Stream, ends: bool) -> Option<Line> {
        let bytes = std::mem::take(self.held(stream));
        let wanted = (ends || !bytes.is_empty()) && self.pattern.is_match(&bytes);
        wanted.then_some(Line { stream, bytes, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve(pattern: &str) -> Sieve {
        Sieve::new(read_pattern(pattern).unwrap())
    }

    #[test]
    fn lines_are_judged_whole_and_each_stream_by_itself() {
        let mut sieve = sieve("^(good|even) line$");
        let (out, err) = (Stream::Stdout, Stream::Stderr);
        assert_eq!(sieve.take(Tag::Piece(out), b"good "), None);
        assert_eq!(sieve.take(Tag::Line(err), b"bad line"), None);
        let line = sieve.take(Tag::Line(out), b"line").unwrap();
        assert_eq!(
            (line.stream, line.bytes.as_slice(), line.ends),
            (out, &b"good line"[..], true)
        );
        assert_eq!(sieve.take(Tag::Remark, b"good line"), None);
        assert_eq!(sieve.take(Tag::Piece(err), b"even line"), None);
        let left = sieve.finish();
        assert_eq!((left.len(), left[0].stream, left[0].ends), (1, err, false));
        assert_eq!(sieve.finish(), []);
    }

    #[test]
    fn an_endless_line_is_judged_in_parts() {
        let mut sieve = sieve("needle");
        let hay = vec![b'x'; LINE_BYTES_MAX - 6];
        assert_eq!(sieve.take(Tag::Piece(Stream::Stdout), &hay), None);
        assert!(sieve.take(Tag::Piece(Stream::Stdout), b"needle").is_some());
        assert_eq!(sieve.take(Tag::Line(Stream::Stdout), b"rest"), None);
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        assert!(read_pattern("a(").unwrap_err().contains("unclosed group"));
        assert!(read_pattern(&"(a{1000}){1000}".repeat(3)).is_err());
    }
}
