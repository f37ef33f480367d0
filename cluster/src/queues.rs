//! Queues shared by all members: one stream with a subject for each queue, items in the order of the stream.
//!
//! Changes are made under the lock of the queue ([`Shared::lock`]). A member that was paused until its lock expired
//! appends nothing, and takes no item that another one has taken.

use std::collections::HashSet;
use std::ops::Range;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::Stream;
use futures::TryStreamExt;

use crate::clock::server_time;
use crate::link::{name_of, token};
use crate::message::MAX_PAYLOAD;
use crate::metrics;
use crate::shared::{Shared, SharedError};

/// The number of places at which a long queue is read at once.
const READS: u64 = 16;

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
        let subject = format!("brine.{}.queues.>", self.link.settings.name);
        let subjects = self.counts(&subject).await?;
        let prefix = subject.trim_end_matches('>');
        let name = |subject: &str| String::from_utf8(name_of(subject.strip_prefix(prefix)?)?).ok();
        let mut queues: Vec<(String, usize)> =
            subjects.into_iter().filter_map(|(subject, count)| Some((name(&subject)?, count))).collect();
        queues.sort();
        Ok(queues)
    }

    /// Returns the number of items of a queue.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn queue_len(&self, queue: &str) -> Result<usize, SharedError> {
        Ok(self.counts(&self.queue_subject(queue)).await?.first().map_or(0, |(_, count)| *count))
    }

    /// Returns the numbers of items by subject, of the subjects that match.
    async fn counts(&self, subject: &str) -> Result<Vec<(String, usize)>, SharedError> {
        let resources = self.link.resources().await?;
        let info = resources.queues.info_with_subjects(subject).await.map_err(|error| self.unavailable(error))?;
        info.try_collect().await.map_err(|error| self.unavailable(error))
    }

    /// Returns at most `limit` items of a queue from the number `from` on, with at most `bytes` bytes, oldest first.
    /// They are read from the leader of the stream, which knows all changes; another server may be behind.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn queue_items(
        &self,
        queue: &str,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<QueueItem>, SharedError> {
        let (resources, subject) = (self.link.resources().await?, self.queue_subject(queue));
        let Some(first) = self.next_item(&resources.queues, &subject, from).await? else { return Ok(Vec::new()) };
        let info = resources.queues.get_info().await.map_err(|error| self.unavailable(error))?;
        // A long queue is read in several places at once.
        let (first, last) = (first.sequence, info.state.last_sequence.max(first.sequence));
        let places = if limit > READS as usize { READS } else { 1 };
        let step = (last - first) / places + 1;
        let reads = (0..places).map(|at| {
            let range = first + at * step..(first + (at + 1) * step).min(last + 1);
            self.queue_range(queue, &resources.queues, range, limit, bytes)
        });
        let read = futures::future::try_join_all(reads).await?;
        let mut size = 0;
        let fits = |message: &StreamMessage| {
            let fits = size <= bytes;
            size += message.payload.len();
            fits
        };
        let items = read.into_iter().flatten().take(limit).take_while(fits);
        Ok(items.map(|message| (message.sequence, self.open_item(queue, &message))).collect())
    }

    /// Returns at most `limit` items of a queue with numbers in `range`, and stops after `bytes` bytes.
    async fn queue_range(
        &self,
        queue: &str,
        stream: &Stream,
        mut range: Range<u64>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StreamMessage>, SharedError> {
        let (subject, mut items, mut size) = (self.queue_subject(queue), Vec::new(), 0);
        while !range.is_empty() && items.len() < limit && size <= bytes {
            let Some(message) = self.next_item(stream, &subject, range.start).await? else { break };
            if message.sequence >= range.end {
                break;
            }
            range.start = message.sequence + 1;
            size += message.payload.len();
            items.push(message);
        }
        Ok(items)
    }

    /// Returns the first item with at least this number.
    async fn next_item(
        &self,
        stream: &Stream,
        subject: &str,
        number: u64,
    ) -> Result<Option<StreamMessage>, SharedError> {
        self.found(stream.get_first_raw_message_by_subject(subject, number).await)
    }

    /// Decrypts an item.
    fn open_item(&self, queue: &str, message: &StreamMessage) -> Option<Vec<u8>> {
        let stored = server_time(message.time.unix_timestamp_nanos());
        let opened = self.link.open_new(&self.queue_subject(queue), &message.payload, stored);
        if opened.is_err() {
            metrics::VALUES_REFUSED.add(1);
            tracing::error!(
                queue,
                "queue item refused: it is old or cannot be decrypted; the masters of a cluster need the same secret"
            );
        }
        opened.ok().map(|opened| opened.plain)
    }

    /// Returns the number that the servers take for that of the last item; 0 if there is none. After the last item was
    /// removed, servers before 2.10 take the queue for empty.
    ///
    /// # Errors
    /// The servers do not answer.
    pub async fn queue_last(&self, queue: &str) -> Result<u64, SharedError> {
        let resources = self.link.resources().await?;
        let last = resources.queues.get_last_raw_message_by_subject(&self.queue_subject(queue)).await;
        Ok(self.found(last)?.map_or(0, |last| last.sequence))
    }

    /// Appends items and returns their numbers, to a queue whose last item has the number `last`, see
    /// [`queue_last`](Self::queue_last). So a member whose lock has expired in the meantime appends nothing.
    ///
    /// # Errors
    /// Another member has changed the queue, the servers do not answer, or the space for all queues is full. Some of
    /// the items may have been appended.
    pub async fn queue_push(&self, queue: &str, items: &[Vec<u8>], mut last: u64) -> Result<Vec<u64>, SharedError> {
        let (subject, mut numbers) = (self.queue_subject(queue), Vec::with_capacity(items.len()));
        self.link.resources().await?;
        for item in items {
            if item.len() > MAX_PAYLOAD {
                return Err(SharedError::TooLarge { size: item.len(), limit: MAX_PAYLOAD });
            }
            let message = PublishMessage::build().payload(self.link.seal(&subject, item));
            let message = message.expected_last_subject_sequence(last);
            let stored = self.link.context().send_publish(subject.clone(), message).await;
            last = match stored.map_err(|error| self.unavailable(error))?.await {
                Ok(stored) => stored.sequence,
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Err(SharedError::Changed),
                Err(error) => return Err(self.unavailable(error)),
            };
            numbers.push(last);
        }
        Ok(numbers)
    }

    /// Removes items from a queue. Returns the numbers of those that this call removed: of several members that try,
    /// one succeeds.
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
