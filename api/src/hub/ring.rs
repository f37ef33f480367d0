//! The ring of recent events, each serialized once for all subscribers.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use brine_event::Event;
use brine_value::{json, map};
use bytes::Bytes;

use crate::visibility::Subject;

/// The maximum number of events in the ring.
pub(super) const MAX_RING_EVENTS: usize = 4096;
/// The maximum total size of the events in the ring, in bytes.
pub(super) const MAX_RING_BYTES: usize = 4 << 20;

/// An event shared by all subscribers.
pub(crate) struct Item {
    pub seq: u64,
    pub event: Event,
    /// What decides who may see the event.
    pub subject: Subject,
    text: OnceLock<Text>,
}

/// The serialized event: one buffer from which all formats are sliced.
struct Text {
    /// An HTTP chunk with the lines `id: N`, `tag: T` and `data: JSON`, and an empty line.
    whole: Bytes,
    /// The offset of `id: `.
    head: usize,
    /// The offset of `data: `.
    data: usize,
}

/// The end of an HTTP chunk.
const CHUNK_END: &str = "\r\n";

impl Item {
    pub fn new(seq: u64, event: Event, subject: Subject) -> Self {
        Item { seq, event, subject, text: OnceLock::new() }
    }

    fn text(&self) -> &Text {
        self.text.get_or_init(|| {
            let tag = self.event.tag();
            let body = json::to_json(&map! {"tag" => tag, "data" => self.event.data()}.into());
            // A carriage return would also end a line of a server-sent event.
            let printable_tag: String = tag.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
            let head = format!("id: {}\ntag: {printable_tag}\n", self.seq);
            let event = format!("{head}data: {body}\n\n");
            let size = format!("{:x}\r\n", event.len());
            let data = size.len() + head.len();
            Text { head: size.len(), data, whole: format!("{size}{event}{CHUNK_END}").into() }
        })
    }

    /// Returns the server-sent event as an HTTP chunk.
    pub fn chunk(&self) -> Bytes {
        self.text().whole.clone()
    }

    /// Returns the server-sent event.
    pub fn server_sent(&self) -> Bytes {
        let text = self.text();
        text.whole.slice(text.head..text.whole.len() - CHUNK_END.len())
    }

    /// Returns the text of a web socket message: `data: JSON` and an empty line.
    pub fn data_line(&self) -> Bytes {
        let text = self.text();
        text.whole.slice(text.data..text.whole.len() - CHUNK_END.len())
    }

    /// Returns the data as JSON.
    pub fn json(&self) -> Bytes {
        let line = self.data_line();
        line.slice("data: ".len()..line.len() - 2)
    }
}

/// The last events, in the order of their sequence numbers.
#[derive(Default)]
pub(super) struct Ring {
    pub items: VecDeque<Arc<Item>>,
    pub bytes: usize,
    /// The number of times that the sequence numbers have restarted.
    pub epoch: u64,
}

impl Ring {
    pub fn first(&self) -> Option<u64> {
        self.items.front().map(|item| item.seq)
    }

    pub fn last(&self) -> Option<u64> {
        self.items.back().map(|item| item.seq)
    }

    pub fn push(&mut self, item: Arc<Item>) {
        self.bytes += item.event.frame().len();
        self.items.push_back(item);
        while self.items.len() > MAX_RING_EVENTS || (self.bytes > MAX_RING_BYTES && self.items.len() > 1) {
            let Some(oldest) = self.items.pop_front() else { break };
            self.bytes -= oldest.event.frame().len();
        }
    }

    pub fn after(&self, cursor: u64) -> impl Iterator<Item = &Arc<Item>> {
        let start = self.items.partition_point(|item| item.seq <= cursor);
        self.items.range(start..)
    }
}
