//! Cutting one stream into records, with bounded memory. Pure.

use super::record::{Record, Stream, Tag};

/// Longest payload of a record in bytes; a longer line becomes several.
pub const PIECE_MAX: usize = 64 * 1024;

/// The line of one stream that is not finished yet. Invariant: fewer than `PIECE_MAX` bytes wait.
#[derive(Debug)]
pub struct Splitter {
    stream: Stream,
    pending: Vec<u8>,
    seen: u64,
}

impl Splitter {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            pending: Vec::new(),
            seen: 0,
        }
    }

    /// Appends to `out` the records that `bytes` complete.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.seen += u64::try_from(bytes.len()).unwrap_or(0);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if let Some(line) = part.strip_suffix(b"\n") {
                let rest = self.cut(line, out);
                self.finish(Tag::Line(self.stream), rest, out);
            } else {
                let rest = self.cut(part, out);
                self.pending.extend_from_slice(rest);
            }
        }
    }

    /// Appends what waits as a piece: a follower should see a prompt, and a stream may end without a line end.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.is_pending() {
            self.finish(Tag::Piece(self.stream), b"", out);
        }
    }

    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes fed so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Writes full pieces while waiting bytes and `bytes` fill one; returns the rest of `bytes`.
    fn cut<'a>(&mut self, mut bytes: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        while self.pending.len() + bytes.len() >= PIECE_MAX {
            let (head, tail) = bytes.split_at(PIECE_MAX - self.pending.len());
            self.finish(Tag::Piece(self.stream), head, out);
            bytes = tail;
        }
        bytes
    }

    /// One record of the waiting bytes and `rest`.
    fn finish(&mut self, tag: Tag, rest: &[u8], out: &mut Vec<u8>) {
        if self.pending.is_empty() {
            Record { tag, payload: rest }.append_to(out);
        } else {
            self.pending.extend_from_slice(rest);
            Record {
                tag,
                payload: &self.pending,
            }
            .append_to(out);
            self.pending.clear();
        }
        // A stream of short lines should not keep the memory of one long one.
        if self.pending.capacity() > PIECE_MAX / 4 {
            self.pending = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::records;
    use super::*;

    fn check(parts: &[&str], expected: &str) {
        let mut splitter = Splitter::new(Stream::Stdout);
        let mut out = Vec::new();
        for part in parts {
            splitter.feed(part.as_bytes(), &mut out);
        }
        splitter.flush(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{parts:?}");
    }

    #[test]
    fn lines_are_tagged() {
        check(&[], "");
        check(&["a\nb\n"], "o a\no b\n");
        check(&["a", "b", "\n"], "o ab\n");
        check(&["\n\n"], "o \no \n");
        check(&["a\nb"], "o a\nO b\n");
        check(&["a\r\n"], "o a\r\n");
    }

    #[test]
    fn a_flush_cuts_a_line_that_goes_on() {
        let mut splitter = Splitter::new(Stream::Stderr);
        let mut out = Vec::new();
        splitter.feed(b"pass", &mut out);
        splitter.flush(&mut out);
        splitter.flush(&mut out);
        splitter.feed(b"word:\n", &mut out);
        splitter.feed(b"more", &mut out);
        splitter.flush(&mut out);
        splitter.feed(b"\n", &mut out);
        assert_eq!(out, b"E pass\ne word:\nE more\ne \n");
    }

    #[test]
    fn output_comes_back_byte_for_byte_and_pieces_are_bounded() {
        for (chunk, line) in [
            (1000, 70_000),
            (65_536, 65_536),
            (40_000, 65_535),
            (200_000, 131_072),
            (7, 3),
        ] {
            let mut wanted: Vec<u8> = (0..line)
                .map(|index| if index % 2 == 0 { 0xff } else { b'a' })
                .collect();
            wanted.push(b'\n');
            wanted.extend(vec![b'b'; line]);
            let mut splitter = Splitter::new(Stream::Stdout);
            let mut out = Vec::new();
            for part in wanted.chunks(chunk) {
                splitter.feed(part, &mut out);
                assert!(splitter.pending.len() < PIECE_MAX);
            }
            splitter.flush(&mut out);
            let mut found = Vec::new();
            for record in records(&out) {
                assert!(record.payload.len() <= PIECE_MAX);
                found.extend_from_slice(record.payload);
                if record.tag == Tag::Line(Stream::Stdout) {
                    found.push(b'\n');
                }
            }
            assert!(found == wanted, "{chunk} {line}");
            assert_eq!(splitter.seen(), u64::try_from(wanted.len()).unwrap());
        }
    }
}
