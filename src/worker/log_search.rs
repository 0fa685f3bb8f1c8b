//! Looking for a text in the log of an attempt: forwards or backwards from a byte of the file, in bounded pieces, also while
//! the log grows.
//!
//! A match lies inside one record (`process/record.rs`); matches of one record do not overlap and are counted from its
//! begin, so that the same ones are found from wherever the search starts. The scan keeps its state from byte to byte: no
//! edge of a piece can hide a match, and each byte is looked at once.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::process::{Record, Tag};

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// How far back the begin of a record is looked for.
const BACK_MAX: u64 = 1 << 20;
/// Letters of the line of a match that are shown.
pub const LINE_CHARS_MAX: usize = 500;
/// Bytes that are shown before a match which stands further back in its line.
const BEFORE_MATCH: u64 = 120;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Matches that begin at the start or behind it, in their order.
    Next,
    /// Matches that begin before the start, the last one first.
    Previous,
}

/// What is looked for, and how far.
#[derive(Debug, Clone)]
pub struct Search {
    /// The bytes; not empty, without a line end.
    pub text: Vec<u8>,
    /// Letters from A to Z and a to z must be the same too.
    pub exact: bool,
    /// Which way.
    pub direction: Direction,
    /// From where; the begin or the end of the file unless it is given.
    pub from: Option<u64>,
    /// Matches at most.
    pub limit: usize,
    /// Bytes looked at, at most.
    pub budget: u64,
}

/// A place where the text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Of its first byte in the file.
    pub offset: u64,
    /// Of the begin of its record.
    pub line_offset: u64,
    /// What the record is; `None` where a daemon died while it wrote it.
    pub tag: Option<Tag>,
    /// Its payload, or a part of it with the match.
    pub line: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In the order of the direction.
    pub matches: Vec<Match>,
    /// From where the search goes on.
    pub searched_to: u64,
    /// Nothing is left that way, as the file is now.
    pub done: bool,
    /// Bytes of the file now.
    pub size: u64,
}

/// Where a match is, before its line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u64,
    line_offset: u64,
}

/// Looks through a log; one that was never written is empty.
pub fn search(path: &Path, wish: &Search) -> io::Result<Found> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found {
                matches: Vec::new(),
                searched_to: 0,
                done: true,
                size: 0,
            });
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let seeker = Seeker::new(&wish.text, wish.exact);
    let (places, searched_to, done) = match wish.direction {
        Direction::Next => forwards(&file, size, wish, seeker)?,
        Direction::Previous => backwards(&file, size, wish, &seeker)?,
    };
    let matches = places
        .into_iter()
        .map(|place| shown(&file, place, wish.text.len()));
    Ok(Found {
        matches: matches.collect::<io::Result<_>>()?,
        searched_to,
        done,
        size,
    })
}

type Places = (Vec<Place>, u64, bool);

fn forwards(file: &File, size: u64, wish: &Search, seeker: Seeker) -> io::Result<Places> {
    let from = wish.from.unwrap_or(0).min(size);
    let start = record_start(file, from)?;
    let end = size.min(from.saturating_add(wish.budget));
    let mut places = Vec::new();
    let mut full = false;
    scan(file, start..end, seeker, |place| {
        if place.offset >= from {
            places.push(place);
            full = places.len() == wish.limit;
        }
        !full
    })?;
    if let Some(last) = places.last().filter(|_| full) {
        return Ok((places.clone(), last.offset + 1, false));
    }
    // A text that has begun may go on behind the end, and what follows a letter there says whether it is a tag.
    let begun = end.saturating_sub(wish.text.len() as u64);
    let behind_last = places.last().map_or(0, |last| last.offset + 1);
    Ok((places, begun.max(behind_last).max(from), end == size))
}

fn backwards(file: &File, size: u64, wish: &Search, seeker: &Seeker) -> io::Result<Places> {
    let from = wish.from.unwrap_or(size).min(size);
    let lowest = from.saturating_sub(wish.budget);
    // A match that begins before it may end behind it.
    let mut end = size.min(from.saturating_add(wish.text.len() as u64));
    let mut places: Vec<Place> = Vec::new();
    while end > 0 {
        let start = record_start(file, end.saturating_sub(CHUNK as u64))?;
        let left = wish.limit - places.len();
        let mut last: VecDeque<Place> = VecDeque::with_capacity(left.min(64));
        scan(file, start..end, seeker.clone(), |place| {
            if place.offset < from {
                if last.len() == left {
                    last.pop_front();
                }
                last.push_back(place);
            }
            true
        })?;
        places.extend(last.into_iter().rev());
        if let Some(first) = places.last().filter(|_| places.len() == wish.limit) {
            return Ok((places.clone(), first.offset, false));
        }
        if start <= lowest {
            return Ok((places, start.min(from), start == 0));
        }
        end = start;
    }
    Ok((places, 0, true))
}

/// The begin of the record that the byte at `at` belongs to. What has no line end for a mebibyte is no log of ours, and is
/// looked at from there.
fn record_start(file: &File, at: u64) -> io::Result<u64> {
    let (mut end, lowest) = (at, at.saturating_sub(BACK_MAX));
    let mut piece = vec![0; 4 << 10];
    while end > lowest {
        let length = piece
            .len()
            .min(usize::try_from(end - lowest).unwrap_or(usize::MAX));
        let start = end - length as u64;
        file.read_exact_at(&mut piece[..length], start)?;
        if let Some(place) = piece[..length].iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + place as u64 + 1);
        }
        end = start;
        piece.resize(CHUNK, 0);
    }
    Ok(end)
}

/// Tells the matches of a range that begins with a record, until `tell` wants no more.
fn scan(
    file: &File,
    range: Range<u64>,
    seeker: Seeker,
    mut tell: impl FnMut(Place) -> bool,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut line = Line::new(range.start, seeker);
    let mut at = range.start;
    while at < range.end {
        let length = CHUNK.min(usize::try_from(range.end - at).unwrap_or(CHUNK));
        file.read_exact_at(&mut chunk[..length], at)?;
        for (offset, byte) in (at..).zip(&chunk[..length]) {
            if !line.take(offset, *byte, &mut tell) {
                return Ok(());
            }
        }
        at += length as u64;
    }
    Ok(())
}

/// Where in its record the scan is.
#[derive(Debug)]
struct Line {
    start: u64,
    part: Part,
    seeker: Seeker,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Tag,
    /// Behind a letter that may be a tag.
    Space(u8),
    Payload,
}

impl Line {
    fn new(start: u64, seeker: Seeker) -> Line {
        Line {
            start,
            part: Part::Tag,
            seeker,
        }
    }

    /// Tells of the match that ends with this byte; false when nothing more is wanted.
    fn take(&mut self, offset: u64, byte: u8, tell: &mut impl FnMut(Place) -> bool) -> bool {
        if byte == b'\n' {
            // A letter alone is no record, and text.
            let goes_on = match self.part {
                Part::Space(tag) => self.step(offset - 1, tag, tell),
                Part::Tag | Part::Payload => true,
            };
            self.start = offset + 1;
            self.part = Part::Tag;
            self.seeker.met = 0;
            return goes_on;
        }
        match std::mem::replace(&mut self.part, Part::Payload) {
            Part::Tag if Tag::from_byte(byte).is_some() => {
                self.part = Part::Space(byte);
                true
            }
            Part::Space(_) if byte == b' ' => true,
            // No record: what looked like its tag is text.
            Part::Space(tag) => self.step(offset - 1, tag, tell) && self.step(offset, byte, tell),
            Part::Tag | Part::Payload => self.step(offset, byte, tell),
        }
    }

    fn step(&mut self, offset: u64, byte: u8, tell: &mut impl FnMut(Place) -> bool) -> bool {
        let line_offset = self.start;
        !self.seeker.step(byte)
            || tell(Place {
                offset: offset + 1 - self.seeker.text.len() as u64,
                line_offset,
            })
    }
}

/// The automaton of Knuth, Morris and Pratt: no text makes it slow.
#[derive(Debug, Clone)]
struct Seeker {
    text: Vec<u8>,
    /// How much of the text still stands when the next letter after so many is another.
    falls: Vec<usize>,
    exact: bool,
    met: usize,
}

impl Seeker {
    fn new(text: &[u8], exact: bool) -> Seeker {
        let text = if exact {
            text.to_vec()
        } else {
            text.to_ascii_lowercase()
        };
        let mut falls = vec![0; text.len() + 1];
        let mut length = 0;
        for at in 1..text.len() {
            while length > 0 && text[at] != text[length] {
                length = falls[length];
            }
            length += usize::from(text[at] == text[length]);
            falls[at + 1] = length;
        }
        Seeker {
            text,
            falls,
            exact,
            met: 0,
        }
    }

    /// True when the text ends with this byte.
    fn step(&mut self, byte: u8) -> bool {
        let byte = if self.exact {
            byte
        } else {
            byte.to_ascii_lowercase()
        };
        while self.met > 0 && byte != self.text[self.met] {
            self.met = self.falls[self.met];
        }
        self.met += usize::from(byte == self.text[self.met]);
        let is_whole = self.met == self.text.len();
        if is_whole {
            self.met = 0;
        }
        is_whole
    }
}

/// Reads the line of a match.
fn shown(file: &File, place: Place, length: usize) -> io::Result<Match> {
    let mut head = [0; 2];
    let read = file.read_at(&mut head, place.line_offset)?;
    let tag = Record::parse(&head[..read]).map(|record| record.tag);
    let payload = place.line_offset + if tag.is_some() { 2 } else { 0 };
    let fits = place.offset + length as u64 - payload <= LINE_CHARS_MAX as u64;
    let start = if fits {
        payload
    } else {
        place.offset.saturating_sub(BEFORE_MATCH).max(payload)
    };
    let mut bytes = vec![0; LINE_CHARS_MAX * 4];
    let read = file.read_at(&mut bytes, start)?;
    let line = bytes[..read]
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // A letter is not shown in halves.
    let whole = line.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
    let line = if start > payload {
        &line[whole.min(3)..]
    } else {
        line
    };
    let text = String::from_utf8_lossy(line);
    Ok(Match {
        offset: place.offset,
        line_offset: place.line_offset,
        tag,
        line: text.chars().take(LINE_CHARS_MAX).collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::worker::process::Stream;

    fn wish(text: &str, direction: Direction) -> Search {
        Search {
            text: text.as_bytes().to_vec(),
            exact: false,
            direction,
            from: None,
            limit: 100,
            budget: 64 << 20,
        }
    }

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    /// All matches, by looking at each record by itself.
    fn naive(bytes: &[u8], text: &str, exact: bool) -> Vec<(u64, u64)> {
        let fold = |bytes: &[u8]| {
            if exact {
                bytes.to_vec()
            } else {
                bytes.to_ascii_lowercase()
            }
        };
        let text = fold(text.as_bytes());
        let (mut found, mut start) = (Vec::new(), 0);
        for line in bytes.split(|byte| *byte == b'\n') {
            let is_record = line.len() >= 2 && Tag::from_byte(line[0]).is_some() && line[1] == b' ';
            let mut at = if is_record { 2 } else { 0 };
            let folded = fold(line);
            // What follows it will say whether it is a tag.
            let is_open = start + line.len() == bytes.len() && line.len() == 1;
            if is_open && Tag::from_byte(line[0]).is_some() {
                break;
            }
            while at + text.len() <= folded.len() {
                if folded[at..].starts_with(&text) {
                    found.push(((start + at) as u64, start as u64));
                    at += text.len();
                } else {
                    at += 1;
                }
            }
            start += line.len() + 1;
        }
        found
    }

    fn places(found: &Found) -> Vec<(u64, u64)> {
        found
            .matches
            .iter()
            .map(|found| (found.offset, found.line_offset))
            .collect()
    }

    /// Asks again and again, as a page does, until nothing is left.
    fn walk(path: &Path, mut wish: Search) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for _ in 0..10_000 {
            let found = search(path, &wish).unwrap();
            all.extend(places(&found));
            if found.done {
                return all;
            }
            assert_ne!(wish.from, Some(found.searched_to), "it must go on");
            wish.from = Some(found.searched_to);
        }
        panic!("it never ends");
    }

    #[test]
    fn a_match_is_shown_with_its_line() {
        let file = written(b"o one\ne Warning: TWO\no half\nwarn\ni warned\no war");
        let found = search(file.path(), &wish("warn", Direction::Next)).unwrap();
        let lines: Vec<_> = found
            .matches
            .iter()
            .map(|found| (found.offset, found.line_offset, found.tag, found.line.as_str()))
            .collect();
        assert_eq!(
            lines,
            [
                (8, 6, Some(Tag::Line(Stream::Stderr)), "Warning: TWO"),
                (28, 28, None, "warn"),
                (35, 33, Some(Tag::Remark), "warned"),
            ]
        );
        assert_eq!((found.size, found.done), (47, true));
        let exact = Search {
            exact: true,
            ..wish("Warn", Direction::Previous)
        };
        assert_eq!(places(&search(file.path(), &exact).unwrap()), [(8, 6)]);
    }

    #[test]
    fn what_comes_later_is_found_later() {
        let file = written(b"o first er");
        let mut asked = wish("error", Direction::Next);
        let found = search(file.path(), &asked).unwrap();
        assert_eq!((found.matches.len(), found.done), (0, true));
        std::fs::write(file.path(), b"o first error\no second error\n").unwrap();
        asked.from = Some(found.searched_to);
        let found = search(file.path(), &asked).unwrap();
        assert_eq!(places(&found), [(8, 0), (23, 14)]);
        asked.from = Some(found.searched_to);
        assert_eq!(places(&search(file.path(), &asked).unwrap()), []);
    }

    #[test]
    fn a_letter_alone_is_text_and_no_tag() {
        let file = written(b"e a\n AAa\n AAaaAAa\nEaAAAAaAA\nO\n\no");
        for budget in 2..40 {
            let asked = |direction| Search {
                budget,
                ..wish("o", direction)
            };
            assert_eq!(walk(file.path(), asked(Direction::Next)), [(28, 28)], "{budget}");
            assert_eq!(
                walk(file.path(), asked(Direction::Previous)),
                [(28, 28)],
                "{budget}"
            );
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let mut bytes = b"o ".to_vec();
        bytes.extend("\u{e9}".repeat(2_000).bytes());
        bytes.extend(b"needle and more");
        let file = written(&bytes);
        let found = search(file.path(), &wish("needle", Direction::Next)).unwrap();
        let line = &found.matches[0].line;
        assert!(
            line.starts_with('\u{e9}') && line.ends_with("needle and more"),
            "{line}"
        );
        assert!(line.chars().count() < 100);
        assert_eq!(
            search(Path::new("/nowhere/at/all"), &wish("x", Direction::Next))
                .unwrap()
                .size,
            0
        );
    }

    #[test]
    fn edges_of_pieces_hide_nothing() {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        // Every place of a match around the edge of a piece, in both directions.
        for shift in 0..12_u64 {
            let start = bytes.len() as u64;
            let fill = CHUNK - 30 + usize::try_from(shift).unwrap();
            bytes.extend(b"o ");
            bytes.resize(bytes.len() + fill, b'x');
            expected.push((bytes.len() as u64, start));
            bytes.extend(b"needle\n");
        }
        let file = written(&bytes);
        for limit in [1, 5, 100] {
            let asked = |direction| Search {
                limit,
                ..wish("needle", direction)
            };
            assert_eq!(walk(file.path(), asked(Direction::Next)), expected);
            let mut back = walk(file.path(), asked(Direction::Previous));
            back.reverse();
            assert_eq!(back, expected);
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_a_naive_search_finds(
            lines in proptest::collection::vec("[oeOEix]?[ ]?[aAb]{0,9}", 0..30),
            text in "[abo ]{1,4}",
            exact: bool,
            limit in 1_usize..6,
            budget in 8_u64..200,
        ) {
            let bytes = lines.join("\n").into_bytes();
            let file = written(&bytes);
            let expected = naive(&bytes, &text, exact);
            let asked = |direction| Search { exact, limit, budget, ..wish(&text, direction) };
            prop_assert_eq!(&walk(file.path(), asked(Direction::Next)), &expected);
            let mut back = walk(file.path(), asked(Direction::Previous));
            back.reverse();
            prop_assert_eq!(&back, &expected);
            let middle = bytes.len() as u64 / 2;
            let from = |direction| Search { from: Some(middle), ..asked(direction) };
            let split = expected.partition_point(|(offset, _)| *offset < middle);
            prop_assert_eq!(walk(file.path(), from(Direction::Next)), expected[split..].to_vec());
            let mut back = walk(file.path(), from(Direction::Previous));
            back.reverse();
            prop_assert_eq!(back, expected[..split].to_vec());
        }
    }
}
