//! The send buffer of a publisher: each message is kept once, until all subscribers have written it, bounded in
//! messages and bytes. The oldest messages are dropped at the bound; the cursor of a subscriber that lags further
//! behind returns [`Lagged`].

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::audience::Audience;

/// The maximum lag of a subscriber, in messages.
const MESSAGES: usize = 1024;
/// The maximum size of all unwritten messages, in bytes.
const BYTES: usize = 64 << 20;

/// An encoded message.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub audience: Audience,
    pub frames: Bytes,
}

impl Published {
    fn size(&self) -> usize {
        self.frames.len() + self.audience.size()
    }
}

/// The messages that some subscriber has not written yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    kept: Mutex<Buffer>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Buffer {
    messages: VecDeque<Message>,
    /// The sequence number of the first message.
    first: u64,
    bytes: usize,
    /// The number of cursors.
    cursors: usize,
}

#[derive(Debug)]
struct Message {
    published: Published,
    /// The number of cursors that have not passed it.
    waiting: usize,
}

impl Backlog {
    /// Appends a message for all cursors and returns their number.
    pub fn push(&self, published: Published) -> usize {
        let mut buffer = self.kept.lock();
        if buffer.cursors == 0 {
            buffer.first += 1;
            return 0;
        }
        buffer.bytes += published.size();
        let waiting = buffer.cursors;
        buffer.messages.push_back(Message { published, waiting });
        while buffer.messages.len() > MESSAGES || (buffer.bytes > BYTES && buffer.messages.len() > 1) {
            buffer.pop_first();
        }
        drop(buffer);
        self.changed.notify_waiters();
        waiting
    }

    /// Returns the number of cursors.
    pub fn cursors(&self) -> usize {
        self.kept.lock().cursors
    }

    /// Opens a cursor behind all messages.
    pub fn open_cursor(self: &Arc<Self>) -> Cursor {
        let mut buffer = self.kept.lock();
        buffer.cursors += 1;
        Cursor { backlog: Arc::clone(self), at: buffer.first + buffer.messages.len() as u64 }
    }
}

impl Buffer {
    fn pop_first(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.bytes -= message.published.size();
            self.first += 1;
        }
    }

    /// Releases the messages that one cursor has passed.
    fn release(&mut self, from: u64, to: u64) {
        let skipped = messages(from.saturating_sub(self.first));
        let count = messages(to.saturating_sub(from.max(self.first)));
        for message in self.messages.iter_mut().skip(skipped).take(count) {
            message.waiting -= 1;
        }
        while self.messages.front().is_some_and(|message| message.waiting == 0) {
            self.pop_first();
        }
        if self.messages.is_empty() {
            self.messages = VecDeque::new();
        }
    }
}

/// Returns a distance between numbers of messages as an index.
fn messages(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}

/// The cursor of one subscriber: the first message that it has not written.
#[derive(Debug)]
pub struct Cursor {
    backlog: Arc<Backlog>,
    at: u64,
}

/// The lag, in messages, of a cursor whose next message was dropped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lagged(pub u64);

impl Cursor {
    /// Waits for the message at the cursor. It stays in the buffer until [`Cursor::advance`], or until the bound is
    /// reached.
    pub(super) async fn message(&self) -> Result<Published, Lagged> {
        loop {
            let changed = self.backlog.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let buffer = self.backlog.kept.lock();
                if let Some(count) = self.behind(&buffer) {
                    return Err(Lagged(count));
                }
                if let Some(message) = buffer.messages.get(messages(self.at - buffer.first)) {
                    return Ok(message.published.clone());
                }
            }
            changed.await;
        }
    }

    /// Advances to the next message.
    pub fn advance(&mut self) {
        self.backlog.kept.lock().release(self.at, self.at + 1);
        self.at += 1;
    }

    /// Skips all messages.
    pub fn skip_all(&mut self) {
        let mut buffer = self.backlog.kept.lock();
        let end = buffer.first + buffer.messages.len() as u64;
        buffer.release(self.at, end);
        self.at = end;
    }

    /// Waits until the message at the cursor is dropped because the bound was reached.
    pub(super) async fn dropped(&self) -> Lagged {
        loop {
            let changed = self.backlog.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(count) = self.behind(&self.backlog.kept.lock()) {
                return Lagged(count);
            }
            changed.await;
        }
    }

    fn behind(&self, buffer: &Buffer) -> Option<u64> {
        buffer.first.checked_sub(self.at).filter(|count| *count > 0)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let mut buffer = self.backlog.kept.lock();
        buffer.cursors -= 1;
        let end = buffer.first + buffer.messages.len() as u64;
        buffer.release(self.at, end);
    }
}

#[cfg(test)]
mod tests;
