//! The log of an attempt as a text for people: the output of both streams in its order, the tags of the records taken off.

use super::process::{PIECE_MAX, Record, Stream, Tag};

/// Turns the bytes of a log into text, piece by piece. Memory is bounded: a record has an end, or it is none.
#[derive(Debug, Default)]
pub struct LogText {
    waiting: Vec<u8>,
    /// The stream of a piece that has no line end yet.
    open: Option<Stream>,
}

impl LogText {
    /// The text of the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.waiting.extend_from_slice(bytes);
        let end = match self.waiting.iter().rposition(|byte| *byte == b'\n') {
            Some(place) => place + 1,
            None if self.waiting.len() > PIECE_MAX + 3 => self.waiting.len(),
            None => return Vec::new(),
        };
        let mut text = Vec::with_capacity(end);
        let whole: Vec<u8> = self.waiting.drain(..end).collect();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.append(line, &mut text);
        }
        text
    }

    /// The text of a last record without its end: a daemon died while it wrote it, or it is being written.
    pub fn finish(&mut self) -> Vec<u8> {
        let (line, mut text) = (std::mem::take(&mut self.waiting), Vec::new());
        if !line.is_empty() {
            self.append(&line, &mut text);
        }
        text
    }

    fn append(&mut self, line: &[u8], text: &mut Vec<u8>) {
        let (stream, payload, end): (Option<Stream>, &[u8], bool) = match Record::parse(line) {
            None => (None, line, false),
            Some(Record { tag, payload }) => match tag {
                Tag::Line(stream) => (Some(stream), payload, true),
                Tag::Piece(stream) => (Some(stream), payload, false),
                Tag::Remark => (None, payload, true),
            },
        };
        // What another stream, or ductor itself, says begins its own line.
        if self.open.is_some() && self.open != stream {
            text.push(b'\n');
        }
        let is_remark = stream.is_none() && end;
        text.extend(is_remark.then_some(b'['));
        text.extend_from_slice(payload);
        text.extend(is_remark.then_some(b']'));
        text.extend(end.then_some(b'\n'));
        self.open = stream.filter(|_| !end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(log: &[u8], size: usize) -> String {
        let mut plain = LogText::default();
        let mut out = Vec::new();
        for piece in log.chunks(size) {
            out.extend(plain.feed(piece));
        }
        out.extend(plain.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tags_are_taken_off_however_the_bytes_are_cut() {
        let log =
            b"o one\ne warn\nO half\no  line\nO 50 %\ne oh\ni 5 bytes are missing\ndamaged\nO end\no cut";
        for size in 1..=log.len() {
            assert_eq!(
                text(log, size),
                "one\nwarn\nhalf line\n50 %\noh\n[5 bytes are missing]\ndamaged\nendcut\n",
                "pieces of {size}"
            );
        }
        assert_eq!(text(b"", 1), "");
        assert_eq!(text(b"o", 1), "o");
    }

    #[test]
    fn what_has_no_end_is_not_kept() {
        let mut plain = LogText::default();
        let bytes = vec![b'x'; PIECE_MAX * 2];
        assert_eq!(plain.feed(&bytes).len(), bytes.len());
    }
}
