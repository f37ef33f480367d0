//! The prefixes that a subscriber subscribes to.

use brine_value::{Map, Value, map, msgpack};
use bytes::Bytes;

use super::zmtp::Message;

/// The prefixes that a subscriber subscribes to.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(pub Vec<Bytes>);

impl Subscriptions {
    /// The maximum number of prefixes of one subscriber.
    const MAX: usize = 1024;

    /// Applies a subscription or its cancellation, as a message or as a command of ZMTP; ignores other messages.
    pub fn change(&mut self, message: &Message) {
        let (add, prefix) = match message {
            Message::Frames(frames) => {
                match frames.first().and_then(|frame| frame.split_first().map(|split| (frame, split))) {
                    Some((frame, (1, prefix))) => (true, frame.slice_ref(prefix)),
                    Some((frame, (0, prefix))) => (false, frame.slice_ref(prefix)),
                    _ => return,
                }
            }
            Message::Command(command) => {
                if let Some(prefix) = command.strip_prefix(b"\x09SUBSCRIBE") {
                    (true, command.slice_ref(prefix))
                } else if let Some(prefix) = command.strip_prefix(b"\x06CANCEL") {
                    (false, command.slice_ref(prefix))
                } else {
                    return;
                }
            }
            Message::Dropped(_) => return,
        };
        if add && self.0.len() < Self::MAX {
            // A slice would keep the whole receive buffer alive.
            self.0.push(Bytes::copy_from_slice(&prefix));
        } else if let (false, Some(at)) = (add, self.0.iter().position(|have| *have == prefix)) {
            self.0.swap_remove(at);
        }
    }

    /// Subscribes a peer with Salt's framing, which has identified itself: to the topics in its message, or to
    /// everything if it has none, as the messages of Salt's minions.
    pub fn identified(&mut self, message: &Message) {
        let Message::Frames(frames) = message else { return };
        let Some(body) = frames.last() else { return };
        self.0 = topics_in(body).unwrap_or_else(|| vec![Bytes::new()]);
        self.0.truncate(Self::MAX);
    }

    /// Whether the subscriber wants a message with this topic. `by_name` ignores subscriptions to everything.
    pub fn wants(&self, topic: &[u8], by_name: bool) -> bool {
        self.0.iter().any(|prefix| topic.starts_with(prefix) && !(by_name && prefix.is_empty()))
    }
}

/// The field of a message with the topics of a Brine subscriber.
const TOPICS: &str = "topics";

/// Encodes the message with which a Brine subscriber with Salt's framing subscribes to topics. Its envelope is not
/// encrypted: Salt's masters ignore such a message.
pub(super) fn topics_message(topics: &[impl AsRef<[u8]>]) -> Bytes {
    let topics: Vec<Value> = topics.iter().map(|topic| Value::Bytes(topic.as_ref().to_vec())).collect();
    msgpack::pack_map(&map! {"enc" => "clear", "load" => map! {TOPICS => topics}}).into()
}

/// Returns the topics in a message of a subscriber; `None` if it has none.
fn topics_in(body: &[u8]) -> Option<Vec<Bytes>> {
    let message: Map = msgpack::unpack_map(body).ok()?;
    let topics = message.get("load")?.get(TOPICS)?.as_list()?;
    topics.iter().map(|topic| Some(Bytes::copy_from_slice(topic.as_bytes()?))).collect()
}
