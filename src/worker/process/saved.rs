//! The lines of a command that reports and the API show: the first and the last of each stream, with a limit.

use std::collections::VecDeque;

use super::pump::OutputSink;
use super::record::{Stream, Tag, records};

/// Longest line kept; the rest of it is left out.
const LINE_MAX: usize = 8 * 1024;
/// Bytes kept for each stream, half at its start and half at its end, whatever the limit of lines is.
const BYTES_MAX: usize = 1024 * 1024;

/// First half and last half of `saveLimit` lines of each stream.
#[derive(Debug)]
pub struct SavedLines {
    stdout: Lines,
    stderr: Lines,
}

impl SavedLines {
    /// `limit`: lines for each stream.
    pub fn new(limit: usize) -> Self {
        Self {
            stdout: Lines::new(limit),
            stderr: Lines::new(limit),
        }
    }

    /// Takes whole records.
    pub fn feed(&mut self, tagged: &[u8]) {
        for record in records(tagged) {
            match record.tag {
                Tag::Line(stream) => self.side(stream).add(record.payload, true),
                Tag::Piece(stream) => self.side(stream).add(record.payload, false),
                Tag::Remark => {}
            }
        }
    }

    /// The stream has shown at least one byte.
    pub fn produced(&self, stream: Stream) -> bool {
        self.lines_of(stream).bytes > 0
    }

    /// Bytes shown by the stream.
    pub fn bytes(&self, stream: Stream) -> u64 {
        self.lines_of(stream).bytes
    }

    /// Lines of the stream, saved or not; an unfinished last one counts.
    pub fn lines(&self, stream: Stream) -> u64 {
        let lines = self.lines_of(stream);
        lines.count + u64::from(lines.open)
    }

    /// Lines between first and last part that are not kept.
    pub fn missing(&self, stream: Stream) -> u64 {
        self.lines_of(stream).missing
    }

    /// The saved lines as text, with a line `... N lines left out ...` at the gap. Bytes that are not UTF-8 are replaced.
    pub fn text(&self, stream: Stream) -> String {
        let lines = self.lines_of(stream);
        let mut text = String::new();
        for line in &lines.head {
            push_line(&mut text, line);
        }
        if lines.missing > 0 {
            let word = if lines.missing == 1 { "line" } else { "lines" };
            push_line(
                &mut text,
                format!("... {} {word} left out ...", lines.missing).as_bytes(),
            );
        }
        for line in lines.tail.iter().chain(lines.unfinished()) {
            push_line(&mut text, line);
        }
        text
    }

    /// The end of the saved text, at most `bytes_max` bytes, cut at a character.
    pub fn tail_text(&self, stream: Stream, bytes_max: usize) -> String {
        let text = self.text(stream);
        let mut start = text.len().saturating_sub(bytes_max);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text[start..].to_owned()
    }

    fn side(&mut self, stream: Stream) -> &mut Lines {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn lines_of(&self, stream: Stream) -> &Lines {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }
}

impl OutputSink for SavedLines {
    async fn write(&mut self, tagged: &[u8]) {
        self.feed(tagged);
    }
}

fn push_line(text: &mut String, line: &[u8]) {
    text.push_str(&String::from_utf8_lossy(line));
    text.push('\n');
}

#[derive(Debug)]
struct Lines {
    head_max: usize,
    tail_max: usize,
    head: Vec<Vec<u8>>,
    head_bytes: usize,
    tail: VecDeque<Vec<u8>>,
    tail_bytes: usize,
    /// The unfinished line.
    current: Vec<u8>,
    open: bool,
    count: u64,
    missing: u64,
    bytes: u64,
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self {
            head_max: limit / 2,
            tail_max: limit - limit / 2,
            head: Vec::new(),
            head_bytes: 0,
            tail: VecDeque::new(),
            tail_bytes: 0,
            current: Vec::new(),
            open: false,
            count: 0,
            missing: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, payload: &[u8], ends: bool) {
        self.bytes += u64::try_from(payload.len()).unwrap_or(0) + u64::from(ends);
        let room = LINE_MAX.saturating_sub(self.current.len()).min(payload.len());
        self.current.extend_from_slice(&payload[..room]);
        self.open = !ends;
        if ends {
            self.count += 1;
            let line = std::mem::take(&mut self.current);
            self.keep(line);
        }
    }

    /// The head takes lines until the first one that does not fit; from then on all go to the tail.
    fn keep(&mut self, line: Vec<u8>) {
        let fits = self.head.len() < self.head_max && self.head_bytes + line.len() <= BYTES_MAX / 2;
        if fits && self.tail.is_empty() && self.missing == 0 {
            self.head_bytes += line.len();
            self.head.push(line);
            return;
        }
        self.tail_bytes += line.len();
        self.tail.push_back(line);
        while self.tail.len() > self.tail_max || self.tail_bytes > BYTES_MAX / 2 {
            if let Some(oldest) = self.tail.pop_front() {
                self.tail_bytes -= oldest.len();
                self.missing += 1;
            }
        }
    }

    fn unfinished(&self) -> Option<&Vec<u8>> {
        (self.open && self.tail_max > 0).then_some(&self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, tagged: &str, expected: &str, missing: u64) {
        let mut saved = SavedLines::new(limit);
        saved.feed(tagged.as_bytes());
        assert_eq!(saved.text(Stream::Stdout), expected, "{limit} {tagged:?}");
        assert_eq!(saved.missing(Stream::Stdout), missing, "{limit} {tagged:?}");
    }

    #[test]
    fn first_and_last_lines_are_kept() {
        let five = "o 1\no 2\no 3\no 4\no 5\n";
        check(10, five, "1\n2\n3\n4\n5\n", 0);
        check(5, five, "1\n2\n3\n4\n5\n", 0);
        check(4, five, "1\n2\n... 1 line left out ...\n4\n5\n", 1);
        check(1, five, "... 4 lines left out ...\n5\n", 4);
        check(0, five, "... 5 lines left out ...\n", 5);
        check(4, "", "", 0);
    }

    #[test]
    fn pieces_are_joined_and_streams_kept_apart() {
        check(4, "O a\ne x\nO b\no c\ni note\nO end", "abc\n", 0);
        check(4, "O a\ne x\nO b\no c\nO end\n", "abc\nend\n", 0);
    }

    #[test]
    fn what_was_produced_is_counted() {
        let mut saved = SavedLines::new(0);
        assert!(!saved.produced(Stream::Stdout) && !saved.produced(Stream::Stderr));
        saved.feed(b"e \n");
        assert!(!saved.produced(Stream::Stdout) && saved.produced(Stream::Stderr));
        saved.feed(b"O ab\n");
        assert_eq!((saved.bytes(Stream::Stdout), saved.lines(Stream::Stdout)), (2, 1));
        assert_eq!((saved.bytes(Stream::Stderr), saved.lines(Stream::Stderr)), (1, 1));
    }

    #[test]
    fn memory_is_bounded_by_bytes_too() {
        let mut saved = SavedLines::new(1_000_000);
        let mut record = b"o ".to_vec();
        record.extend(vec![b'x'; 60_000]);
        record.push(b'\n');
        for _ in 0..300 {
            saved.feed(&record);
        }
        let lines = &saved.stdout;
        assert!(lines.head_bytes + lines.tail_bytes <= BYTES_MAX);
        assert_eq!(
            lines.missing + u64::try_from(lines.head.len() + lines.tail.len()).unwrap(),
            300
        );
        assert!(
            lines
                .head
                .iter()
                .chain(&lines.tail)
                .all(|line| line.len() == LINE_MAX)
        );
    }

    #[test]
    fn a_tail_is_cut_at_a_character() {
        let mut saved = SavedLines::new(4);
        saved.feed("o aüü\n".as_bytes());
        assert_eq!(saved.tail_text(Stream::Stdout, 4), "ü\n");
        assert_eq!(saved.tail_text(Stream::Stdout, 100), "aüü\n");
    }
}
