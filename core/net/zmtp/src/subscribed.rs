//! The subscriptions of a connection, which change while messages are sent to it.

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::TransportError;
use super::audience::{Audience, Delivery};
use super::connection::Incoming;
use super::subscriptions::Subscriptions;
use super::zmtp::Framing;

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
            match incoming.framing() {
                Framing::Zmtp => self.subscriptions.lock().change(&message),
                Framing::Salt => self.subscriptions.lock().identified(&message),
            }
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
