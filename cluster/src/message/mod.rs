//! The format of messages in the stream of events, and their division into parts that a server accepts.

use brine_value::{FromValue, Map, Value, list, map, msgpack};
use bytes::Bytes;

/// The maximum size of the events in one message, in bytes: half of NATS's default message limit.
pub(crate) const MAX_PAYLOAD: usize = 512 << 10;
/// The maximum number of parts of one event: events have 1 MiB by default, and never more than 128 MiB.
const MAX_PARTS: u64 = 256;

/// The position of an event: the member that published it first, and its sequence number there.
pub(crate) type EventPosition = (String, u64);

/// An event as it is sent to other members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The sequence number on the bus of its member.
    pub seq: u64,
    /// The event in the encoding of the event socket.
    pub frame: Bytes,
    /// The event that caused it, if its field `_cause` names one.
    pub cause: Option<EventPosition>,
}

/// A message of a member.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Message {
    /// An identifier that changes when the member has lost its store, and its sequence numbers start anew.
    pub incarnation: String,
    pub items: Vec<Item>,
    /// For a part of a large event: the index of this part, and the number of parts.
    pub part: Option<(u64, u64)>,
    /// The positions up to which reactions are completed, by member.
    pub handled: Vec<EventPosition>,
}

impl Message {
    /// Packs the message.
    pub fn pack(&self) -> Vec<u8> {
        let position = |(member, seq): &EventPosition| list![member.as_str(), *seq];
        let item = |item: &Item| {
            let cause = item.cause.as_ref().map(position).unwrap_or_default();
            list![item.seq, Value::Bytes(item.frame.to_vec()), cause]
        };
        let mut fields = map! {
            "incarnation" => self.incarnation.as_str(),
            "items" => self.items.iter().map(item).collect::<Vec<_>>(),
            "handled" => self.handled.iter().map(position).collect::<Vec<_>>(),
        };
        if let Some((part, of)) = self.part {
            fields.insert("part".into(), list![part, of]);
        }
        msgpack::pack_map(&fields)
    }

    /// Unpacks a message; `None` if it is malformed.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let mut fields = msgpack::unpack_map(packed).ok()?;
        let items = take_list(&mut fields, "items")?.into_iter().map(item_of).collect::<Option<_>>()?;
        let handled = take_list(&mut fields, "handled")?.iter().map(position_of).collect::<Option<_>>()?;
        let part = match fields.get("part").and_then(Value::as_list) {
            None => None,
            Some([part, of]) => {
                let (part, of) = (u64::from_value(part)?, u64::from_value(of)?);
                (part < of && of <= MAX_PARTS).then_some(())?;
                Some((part, of))
            }
            Some(_) => return None,
        };
        let incarnation = fields.get("incarnation")?.as_str()?.to_owned();
        Some(Message { incarnation, items, part, handled })
    }
}

fn take_list(fields: &mut Map, name: &str) -> Option<Vec<Value>> {
    match fields.shift_remove(name)? {
        Value::List(list) => Some(list),
        _ => None,
    }
}

fn position_of(value: &Value) -> Option<EventPosition> {
    match value.as_list()? {
        [member, seq] => Some((member.as_str()?.to_owned(), u64::from_value(seq)?)),
        _ => None,
    }
}

fn item_of(value: Value) -> Option<Item> {
    let Value::List(fields) = value else { return None };
    let [seq, Value::Bytes(frame), cause] = <[Value; 3]>::try_from(fields).ok()? else { return None };
    let cause = if cause.is_nil() { None } else { Some(position_of(&cause)?) };
    Some(Item { seq: u64::from_value(&seq)?, frame: frame.into(), cause })
}

/// Groups items into messages of at most [`MAX_PAYLOAD`] bytes; a larger event is split into several.
pub(crate) fn messages(incarnation: &str, items: Vec<Item>) -> Vec<Message> {
    let message = |items, part| Message { incarnation: incarnation.to_owned(), items, part, handled: Vec::new() };
    let (mut all, mut open, mut size) = (Vec::new(), Vec::new(), 0);
    for item in items {
        if size + item.frame.len() > MAX_PAYLOAD && !open.is_empty() {
            all.push(message(std::mem::take(&mut open), None));
            size = 0;
        }
        if item.frame.len() <= MAX_PAYLOAD {
            size += item.frame.len();
            open.push(item);
            continue;
        }
        let of = item.frame.len().div_ceil(MAX_PAYLOAD);
        for (part, start) in (0..item.frame.len()).step_by(MAX_PAYLOAD).enumerate() {
            let frame = item.frame.slice(start..item.frame.len().min(start + MAX_PAYLOAD));
            let cause = item.cause.clone();
            all.push(message(vec![Item { seq: item.seq, frame, cause }], Some((part as u64, of as u64))));
        }
    }
    if !open.is_empty() {
        all.push(message(open, None));
    }
    all
}

/// Reassembles the parts of large events, one event at a time.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    seq: u64,
    next: u64,
    frame: Vec<u8>,
    /// The stream's number of the first part.
    first: u64,
}

impl Parts {
    /// Returns the stream number of the first part of an incomplete event.
    pub fn incomplete(&self) -> Option<u64> {
        (self.next > 0).then_some(self.first)
    }

    /// Returns the items of the message with this stream number, once they are complete. A part that is out of order
    /// discards its event; a repeated one is skipped.
    pub fn reassemble(&mut self, number: u64, items: Vec<Item>, part: Option<(u64, u64)>) -> Vec<Item> {
        if items.is_empty() {
            return items;
        }
        let Some((part, of)) = part else {
            *self = Parts::default();
            return items;
        };
        let Some(item) = items.into_iter().next() else { return Vec::new() };
        if item.seq == self.seq && part < self.next {
            return Vec::new();
        }
        if part == 0 {
            *self = Parts { seq: item.seq, next: 0, frame: Vec::new(), first: number };
        }
        if item.seq != self.seq || part != self.next {
            *self = Parts::default();
            return Vec::new();
        }
        self.frame.extend_from_slice(&item.frame);
        self.next += 1;
        if self.next < of {
            return Vec::new();
        }
        let frame = std::mem::take(self).frame.into();
        vec![Item { frame, ..item }]
    }
}

#[cfg(test)]
mod tests;
