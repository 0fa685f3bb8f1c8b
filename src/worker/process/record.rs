//! The format of captured output: records of tag, space, payload, line end.
//!
//! `o`, `e`: a line of stdout, stderr; its payload is followed by a line end in the output. `O`, `E`: bytes of a line that
//! goes on in a later record of the same stream, or ended with the stream. `i`: a remark of ductor's own. So the output of
//! one stream is, byte for byte, its payloads in order with a line end after each small letter. Payloads are not
//! necessarily UTF-8 and hold no line end.

/// One of the two streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// The rest of a line, or the whole of it.
    Line(Stream),
    /// A piece that does not end its line.
    Piece(Stream),
    Remark,
}

impl Tag {
    pub fn byte(self) -> u8 {
        match self {
            Self::Line(Stream::Stdout) => b'o',
            Self::Line(Stream::Stderr) => b'e',
            Self::Piece(Stream::Stdout) => b'O',
            Self::Piece(Stream::Stderr) => b'E',
            Self::Remark => b'i',
        }
    }

    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            b'o' => Self::Line(Stream::Stdout),
            b'e' => Self::Line(Stream::Stderr),
            b'O' => Self::Piece(Stream::Stdout),
            b'E' => Self::Piece(Stream::Stderr),
            b'i' => Self::Remark,
            _ => return None,
        })
    }
}

/// One record, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub tag: Tag,
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// `line` with or without its line end. `None`: not a record (a daemon died while it wrote it).
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let (&tag, rest) = line.split_first()?;
        Some(Self {
            tag: Tag::from_byte(tag)?,
            payload: rest.strip_prefix(b" ")?,
        })
    }

    /// Bytes of the command's output it stands for.
    pub fn output_len(&self) -> u64 {
        let payload = u64::try_from(self.payload.len()).unwrap_or(u64::MAX);
        match self.tag {
            Tag::Line(_) => payload + 1,
            Tag::Piece(_) => payload,
            Tag::Remark => 0,
        }
    }

    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.tag.byte(), b' ']);
        out.extend_from_slice(self.payload);
        out.push(b'\n');
    }
}

/// The complete records of `bytes`; what is not one is passed over, an unfinished last line too.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .filter_map(Record::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_written() {
        let mut text = Vec::new();
        for tag in [
            Tag::Line(Stream::Stdout),
            Tag::Line(Stream::Stderr),
            Tag::Piece(Stream::Stdout),
            Tag::Piece(Stream::Stderr),
        ] {
            for payload in [&b""[..], b" ", b"a b", b"\xff\x00"] {
                let record = Record { tag, payload };
                text.clear();
                record.append_to(&mut text);
                assert_eq!(Record::parse(&text), Some(record));
                assert_eq!(records(&text).collect::<Vec<_>>(), [record]);
            }
        }
    }

    #[test]
    fn what_is_not_a_record_is_passed_over() {
        let found: Vec<_> = records(b"o a\nx b\n\no\noops\ni note\ne un")
            .map(|record| record.payload)
            .collect();
        assert_eq!(found, [&b"a"[..], b"note"]);
    }
}
