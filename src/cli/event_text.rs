//! `text/event-stream`, read piece by piece.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its kind; `message` when it says none.
    pub(super) kind: String,
    /// Where a stream may be continued.
    pub(super) id: Option<String>,
    /// Its data, lines joined.
    pub(super) data: String,
}

/// An event never needs more: a piece of a log is far below it.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// Collects bytes until events are whole.
#[derive(Debug, Default)]
pub(super) struct EventText {
    waiting: Vec<u8>,
}

impl EventText {
    /// Takes bytes; gives back the events that are whole now. Comments are passed over.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.waiting.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some((end, skip)) = end_of_event(&self.waiting) {
            let block: Vec<u8> = self.waiting.drain(..end + skip).take(end).collect();
            events.extend(read_block(&String::from_utf8_lossy(&block)));
        }
        if self.waiting.len() > EVENT_BYTES_MAX {
            self.waiting.clear();
        }
        events
    }
}

/// Where the block ends, and how long the empty line behind it is.
fn end_of_event(bytes: &[u8]) -> Option<(usize, usize)> {
    let find = |mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
    let unix = find(b"\n\n").map(|at| (at, 2));
    let dos = find(b"\r\n\r\n").map(|at| (at, 4));
    match (unix, dos) {
        (Some(first), Some(second)) => Some(if first.0 < second.0 { first } else { second }),
        (one, None) => one,
        (None, other) => other,
    }
}

fn read_block(block: &str) -> Option<Event> {
    let mut event = Event {
        kind: "message".to_owned(),
        ..Event::default()
    };
    let mut data: Vec<&str> = Vec::new();
    let mut says_something = false;
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut event.kind),
            "id" => event.id = Some(value.to_owned()),
            "data" => data.push(value),
            _ => continue,
        }
        says_something = true;
    }
    event.data = data.join("\n");
    says_something.then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_the_bytes_are_cut() {
        let stream = b": hello\n\nretry: 2000\n\nid: 7\nevent: log\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\nevent: bye\n\n";
        let expected = [
            ("log", Some("7"), "{\"a\":\n1}"),
            ("message", None, "x"),
            ("bye", None, ""),
        ];
        for size in 1..stream.len() {
            let mut text = EventText::default();
            let events: Vec<Event> = stream.chunks(size).flat_map(|piece| text.feed(piece)).collect();
            let seen: Vec<_> = events
                .iter()
                .map(|event| (event.kind.as_str(), event.id.as_deref(), event.data.as_str()))
                .collect();
            assert_eq!(seen, expected, "pieces of {size}");
        }
    }

    #[test]
    fn an_unfinished_event_is_none() {
        let mut text = EventText::default();
        assert_eq!(text.feed(b"data: 1\n"), []);
        assert_eq!(text.feed(b"\n").len(), 1);
    }
}
