//! Logs of attempts as the command printed them: the tags of the records are taken off.
//!
//! The format is that of `worker/process/record.rs`: `o` and `e` are lines of the two streams, `O` and `E` pieces without
//! a line end, `i` a remark of ductor's own.

use serde_json::{Value, json};

use super::failure::Failure;
use super::show::{Show, write_data, write_stderr};
use super::sieve::{Line, Sieve};
use crate::worker::process::{Record, Stream, Tag};

/// What one record becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// To standard error.
    pub(super) to_stderr: bool,
    /// The bytes, with the line end if there was one.
    pub(super) bytes: Vec<u8>,
}

/// Collects bytes of a log until records are whole.
#[derive(Debug, Default)]
pub(super) struct LogText {
    waiting: Vec<u8>,
    /// The stream of a piece that has no line end yet.
    open: Option<Stream>,
    /// Only lines that pass it are shown.
    sieve: Option<Sieve>,
}

/// Which attempt a record belongs to.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The run.
    pub(super) run: String,
    /// The step.
    pub(super) step: String,
    /// The attempt.
    pub(super) attempt: i64,
}

impl LogText {
    /// A log of which only matching lines are shown.
    pub(super) fn sieved(sieve: Option<Sieve>) -> LogText {
        LogText {
            sieve,
            ..LogText::default()
        }
    }

    /// The whole records of the bytes so far; an unfinished last one waits.
    fn records(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.waiting.extend_from_slice(bytes);
        let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let whole: Vec<u8> = self.waiting.drain(..=end).collect();
        whole
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// What is shown of the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Shown> {
        let mut shown = Vec::new();
        for line in self.records(bytes) {
            // What is not a record was cut by a daemon that died: shown as it is.
            let Some(record) = Record::parse(&line) else {
                shown.push(Shown {
                    to_stderr: false,
                    bytes: line,
                });
                continue;
            };
            shown.push(self.show(record));
        }
        shown
    }

    fn show(&mut self, record: Record<'_>) -> Shown {
        let (stream, ends) = match record.tag {
            Tag::Line(stream) => (stream, true),
            Tag::Piece(stream) => (stream, false),
            Tag::Remark => {
                let before: &[u8] = if self.open.take().is_some() { b"\n" } else { b"" };
                return Shown {
                    to_stderr: true,
                    bytes: [before, b"[", record.payload, b"]\n"].concat(),
                };
            }
        };
        self.open = (!ends).then_some(stream);
        let end: &[u8] = if ends { b"\n" } else { b"" };
        Shown {
            to_stderr: stream == Stream::Stderr,
            bytes: [record.payload, end].concat(),
        }
    }

    /// Writes the next bytes to the two streams, or as NDJSON.
    pub(super) fn write(&mut self, bytes: &[u8], source: &Source, show: &Show) -> Result<(), Failure> {
        if let Some(mut sieve) = self.sieve.take() {
            let lines: Vec<Line> = self
                .records(bytes)
                .iter()
                .filter_map(|line| Record::parse(line))
                .filter_map(|record| sieve.take(record.tag, record.payload))
                .collect();
            self.sieve = Some(sieve);
            return tell(&lines, source, show);
        }
        if show.json {
            for line in self.records(bytes) {
                if let Some(record) = Record::parse(&line) {
                    show.json_line(&document(record, source))?;
                }
            }
            return Ok(());
        }
        for part in self.feed(bytes) {
            if part.to_stderr {
                write_stderr(&part.bytes);
            } else {
                write_data(&part.bytes)?;
            }
        }
        Ok(())
    }

    /// The log has ended: a last line without a line end is judged too.
    pub(super) fn finish(&mut self, source: &Source, show: &Show) -> Result<(), Failure> {
        let left = self.sieve.as_mut().map(Sieve::finish).unwrap_or_default();
        tell(&left, source, show)
    }
}

/// Writes lines that have passed the sieve.
fn tell(lines: &[Line], source: &Source, show: &Show) -> Result<(), Failure> {
    for line in lines {
        if show.json {
            let tag = if line.ends {
                Tag::Line(line.stream)
            } else {
                Tag::Piece(line.stream)
            };
            let payload = &line.bytes;
            show.json_line(&document(Record { tag, payload }, source))?;
            continue;
        }
        let bytes = [line.bytes.as_slice(), b"\n"].concat();
        match line.stream {
            Stream::Stdout => write_data(&bytes)?,
            Stream::Stderr => write_stderr(&bytes),
        }
    }
    Ok(())
}

fn document(record: Record<'_>, source: &Source) -> Value {
    let (stream, ends) = match record.tag {
        Tag::Line(Stream::Stdout) => ("stdout", true),
        Tag::Piece(Stream::Stdout) => ("stdout", false),
        Tag::Line(Stream::Stderr) => ("stderr", true),
        Tag::Piece(Stream::Stderr) => ("stderr", false),
        Tag::Remark => ("remark", true),
    };
    json!({
        "type": "log", "run_id": source.run, "step": source.step, "attempt": source.attempt, "stream": stream,
        "text": String::from_utf8_lossy(record.payload), "line_end": ends,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], size: usize) -> (String, String) {
        let mut log = LogText::default();
        let mut streams = (Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            for shown in log.feed(piece) {
                let stream = if shown.to_stderr {
                    &mut streams.1
                } else {
                    &mut streams.0
                };
                stream.extend_from_slice(&shown.bytes);
            }
        }
        let read = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (read(streams.0), read(streams.1))
    }

    #[test]
    fn tags_are_taken_off_however_the_bytes_are_cut() {
        let log = b"o one\ne warn\nO half\no  line\ni 5 bytes are missing\no \nE end\n";
        for size in 1..log.len() {
            let (out, err) = text(log, size);
            assert_eq!(out, "one\nhalf line\n\n", "pieces of {size}");
            assert_eq!(err, "warn\n[5 bytes are missing]\nend", "pieces of {size}");
        }
    }

    #[test]
    fn a_remark_begins_its_own_line() {
        let (out, err) = text(b"O 50 %\ni log is full\n", 4);
        assert_eq!((out.as_str(), err.as_str()), ("50 %", "\n[log is full]\n"));
    }

    #[test]
    fn what_is_no_record_is_shown_as_it_is() {
        assert_eq!(text(b"damaged\no x\n", 100).0, "damaged\nx\n");
    }

    #[test]
    fn a_record_as_json_says_where_it_is_from() {
        let source = Source {
            run: "run_1".to_owned(),
            step: "main".to_owned(),
            attempt: 2,
        };
        let value = document(Record::parse(b"E a\xff").unwrap(), &source);
        assert_eq!(value["stream"], "stderr");
        assert_eq!(value["line_end"], false);
        assert_eq!(value["text"], "a\u{fffd}");
    }
}
