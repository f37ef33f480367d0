//! Queues shared by all members: one stream with a subject for each queue, items in the order of the stream.
//!
//! Changes are made under the lock of the queue ([`Shared::lock`]). A member that was paused until its lock expired appends
//! nothing, and takes no item that another one has taken.

use std::collections::HashSet;

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use futures::{StreamExt, TryStreamExt};

use crate::clock::server_time;
use crate::link::{name_of, token};
use crate::message::MAX_PAYLOAD;
use crate::metrics;
use crate::shared::{Shared, SharedError};

/// An item of a queue: its stream number, and its content unless it cannot be decrypted.
pub type QueueItem = (u64, Option<Vec<u8>>);

impl Shared {
    /// Returns the largest size of an item, in bytes.
    pub fn largest_item(&self) -> usize {
        MAX_PAYLOAD
    }

    fn queue_subject(&self, queue: &str) -> String {
        format!("brine.{}.queues.{}", self.link.settings.name, token(queue))
    }

    /// Returns the sorted names of non-empty queues, each with its number of items.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn queues(&self) -> Result<Vec<(String, usize)>, SharedError> {
        let (resources, subject) =
            (self.link.resources().await?, format!("brine.{}.queues.>", self.link.settings.name));
        let info = resources.queues.info_with_subjects(&subject).await.map_err(|error| self.unavailable(error))?;
        let subjects: Vec<(String, usize)> = info.try_collect().await.map_err(|error| self.unavailable(error))?;
        let prefix = subject.trim_end_matches('>');
        let name = |subject: &str| String::from_utf8(name_of(subject.strip_prefix(prefix)?)?).ok();
        let mut queues: Vec<(String, usize)> =
            subjects.into_iter().filter_map(|(subject, count)| Some((name(&subject)?, count))).collect();
        queues.sort();
        Ok(queues)
    }

    /// Returns at most `limit` items of a queue with at most `bytes` bytes, oldest first.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn queue_items(&self, queue: &str, limit: usize, bytes: usize) -> Result<Vec<QueueItem>, SharedError> {
        let (resources, subject) = (self.link.resources().await?, self.queue_subject(queue));
        let config = OrderedConfig { filter_subject: subject.clone(), ..OrderedConfig::default() };
        let consumer = resources.queues.create_consumer(config).await.map_err(|error| self.unavailable(error))?;
        let mut left = consumer.cached_info().num_pending;
        let mut messages = consumer.messages().await.map_err(|error| self.unavailable(error))?;
        let (mut items, mut size) = (Vec::new(), 0);
        while left > 0 && items.len() < limit && size <= bytes {
            let message = tokio::time::timeout(self.lease(), messages.next()).await;
            let message = message.ok().flatten().ok_or_else(|| self.unavailable("the server sends no items"))?;
            let message = message.map_err(|error| self.unavailable(error))?;
            let info = message.info().map_err(|error| self.unavailable(error))?;
            (left, size) = (info.pending, size + message.payload.len());
            let stored = server_time(info.published.unix_timestamp_nanos());
            let item = self.link.open_new(&subject, &message.payload, stored).ok().map(|opened| opened.plain);
            if item.is_none() {
                metrics::VALUES_REFUSED.add(1);
                tracing::error!(
                    queue,
                    "queue item refused: it is old or cannot be decrypted; the masters of a cluster need the same secret"
                );
            }
            items.push((info.stream_sequence, item));
        }
        Ok(items)
    }

    /// Appends items to a queue whose last item has the number `last`; 0 for an empty queue. So a member whose lock has
    /// expired in the meantime appends nothing.
    ///
    /// # Errors
    /// Another member has changed the queue, the servers do not answer, or the space for all queues is full. Some of the
    /// items may have been appended.
    pub async fn queue_push(&self, queue: &str, items: Vec<Vec<u8>>, mut last: u64) -> Result<(), SharedError> {
        let subject = self.queue_subject(queue);
        self.link.resources().await?;
        for item in items {
            if item.len() > MAX_PAYLOAD {
                return Err(SharedError::TooLarge { size: item.len(), limit: MAX_PAYLOAD });
            }
            let message = PublishMessage::build().payload(self.link.seal(&subject, &item));
            let message = message.expected_last_subject_sequence(last);
            let stored = self.link.context().send_publish(subject.clone(), message).await;
            last = match stored.map_err(|error| self.unavailable(error))?.await {
                Ok(stored) => stored.sequence,
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Err(SharedError::Changed),
                Err(error) => return Err(self.unavailable(error)),
            };
        }
        Ok(())
    }

    /// Removes items from a queue. Returns the numbers of those that this call removed: of several members that try, one
    /// succeeds.
    ///
    /// # Errors
    /// The servers do not answer. Some of the items may still be in the queue.
    pub async fn queue_remove(&self, items: Vec<u64>) -> Result<HashSet<u64>, SharedError> {
        let resources = self.link.resources().await?;
        let mut removed = HashSet::new();
        for number in items {
            if self.delete_message(&resources.queues, number).await? {
                removed.insert(number);
            }
        }
        Ok(removed)
    }
}
