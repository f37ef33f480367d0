//! The prefixes that a subscriber subscribes to, which change while messages are sent to it.

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::TransportError;
use super::audience::{Audience, Delivery};
use super::connection::Incoming;
use super::zmtp::Message;

/// The subscriptions of one connection.
#[derive(Debug, Default)]
pub struct Subscribed {
    subscriptions: Mutex<Subscriptions>,
    changed: Notify,
}

impl Subscribed {
    /// Applies changes from the peer until the connection ends.
    pub async fn follow(&self, mut incoming: Incoming) -> TransportError {
        loop {
            let message = match incoming.read().await {
                Ok(message) => message,
                Err(error) => return error,
            };
            self.subscriptions.lock().change(&message);
            self.changed.notify_one();
        }
    }

    /// Waits until the subscriptions change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.lock().0.is_empty()
    }

    /// Returns the prefixes.
    pub fn prefixes(&self) -> Vec<Bytes> {
        self.subscriptions.lock().0.clone()
    }

    /// Returns the form in which the peer receives a message; see [`Audience::delivery`].
    pub(super) fn delivery<'a>(&self, audience: &'a Audience) -> Delivery<'a> {
        audience.delivery(&self.subscriptions.lock())
    }
}

/// The prefixes that a subscriber subscribes to.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(pub Vec<Bytes>);

impl Subscriptions {
    /// The maximum number of prefixes of one subscriber.
    const MAX: usize = 1024;

    /// Applies a subscription or its cancellation, as a message or as a command of ZMTP; ignores other messages.
    fn change(&mut self, message: &Message) {
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

    /// Whether the subscriber wants a message with this topic. `by_name` ignores subscriptions to everything.
    pub fn wants(&self, topic: &[u8], by_name: bool) -> bool {
        self.0.iter().any(|prefix| topic.starts_with(prefix) && !(by_name && prefix.is_empty()))
    }
}
