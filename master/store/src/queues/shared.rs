//! The queues of a cluster, which all members share.
//!
//! Every change is made under the lock of the queue. Items are removed after the journal has persisted the event about
//! them. If the master dies in between, another one takes them again: items are delivered at least once.

use brine_value::{Value, msgpack};

use super::known::{Known, KnownQueues, Numbered, Source};
use super::{MAX_ITEMS, MAX_QUEUE, QueueError, prefix};
use crate::shared::{Shared, SharedError};

/// The queues in the values of a cluster.
pub struct SharedQueues<'a> {
    /// The values of the cluster.
    pub shared: &'a Shared,
    /// What this member knows about the queues.
    pub known: &'a KnownQueues,
}

/// One of the queues.
struct Queue<'a>(&'a Shared, &'a str);

impl Source for Queue<'_> {
    async fn count(&self) -> Result<usize, SharedError> {
        self.0.queue_len(self.1).await
    }

    async fn items(&self, from: u64) -> Result<Vec<Numbered>, SharedError> {
        self.0.queue_items(self.1, from, MAX_ITEMS, MAX_QUEUE).await
    }

    async fn first(&self) -> Result<Option<u64>, SharedError> {
        Ok(self.0.queue_items(self.1, 0, 1, MAX_QUEUE).await?.first().map(|(number, _)| *number))
    }
}

impl SharedQueues<'_> {
    /// Appends items. Strings that are already in the queue are skipped and returned.
    ///
    /// # Errors
    /// If the cluster does not answer, some items may have been appended; otherwise none.
    pub async fn insert(&self, queue: &str, items: Vec<Value>) -> Result<Vec<Value>, QueueError> {
        self.locked(queue, async |is_held| {
            let last = self.shared.queue_last(queue).await?;
            let mut contents = self.refreshed(queue).await?;
            let (new, duplicates) = contents.new_items(queue, items, self.shared.largest_item())?;
            if !is_held() {
                return Err(QueueError::Busy);
            }
            let numbers = self.shared.queue_push(queue, &new, last).await?;
            contents.extend(numbers.into_iter().zip(new.into_iter().map(Some)));
            self.known.put(queue, contents);
            Ok(duplicates)
        })
        .await
    }

    /// Removes all items that equal one of these.
    ///
    /// # Errors
    /// The cluster does not answer: some items may have been removed.
    pub async fn delete(&self, queue: &str, items: &[Value]) -> Result<(), QueueError> {
        self.locked(queue, async |_| {
            let mut contents = self.refreshed(queue).await?;
            let numbers = contents.numbers(items.iter().map(msgpack::pack));
            self.shared.queue_remove(numbers.clone()).await?;
            contents.remove(numbers);
            self.known.put(queue, contents);
            Ok(())
        })
        .await
    }

    /// Removes at most `limit` items, oldest first, after `before` has succeeded with them. Returns those that no other
    /// member has removed meanwhile, because it took this one for dead.
    ///
    /// # Errors
    /// The cluster does not answer, or `before` failed: nothing was removed.
    pub async fn take(
        &self,
        queue: &str,
        limit: usize,
        before: impl AsyncFnOnce(&[Value]) -> Result<(), QueueError>,
    ) -> Result<Vec<Value>, QueueError> {
        self.locked(queue, async |is_held| {
            let head = self.shared.queue_items(queue, 0, limit.min(MAX_ITEMS), MAX_QUEUE).await?;
            let numbers = head.iter().map(|(number, _)| *number).collect();
            let (readable, items) = unpacked(queue, head);
            if !is_held() {
                return Err(QueueError::Busy);
            }
            before(&items).await?;
            let removed = self.shared.queue_remove(numbers).await?;
            let taken = readable.into_iter().zip(items).filter(|(number, _)| removed.contains(number));
            Ok(taken.map(|(_, item)| item).collect())
        })
        .await
    }

    /// Returns the items, oldest first.
    pub async fn items(&self, queue: &str) -> Result<Vec<Value>, QueueError> {
        prefix(queue)?;
        Ok(unpacked(queue, Queue(self.shared, queue).items(0).await?).1)
    }

    /// Returns the number of items.
    pub async fn len(&self, queue: &str) -> Result<usize, QueueError> {
        prefix(queue)?;
        Ok(self.shared.queue_len(queue).await?)
    }

    /// Returns the sorted names of non-empty queues.
    pub async fn names(&self) -> Result<Vec<String>, QueueError> {
        Ok(self.shared.queues().await?.into_iter().map(|(name, _)| name).collect())
    }

    /// Returns what is known of a queue, under its lock.
    async fn refreshed(&self, queue: &str) -> Result<Known, QueueError> {
        let mut contents = self.known.take(queue);
        contents.refresh(&Queue(self.shared, queue)).await?;
        Ok(contents)
    }

    /// Makes a change under the lock of a queue. `change` learns whether the lock is still held.
    async fn locked<T>(
        &self,
        queue: &str,
        change: impl AsyncFnOnce(&dyn Fn() -> bool) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        prefix(queue)?;
        let lock = self.shared.lock(&format!("queue {queue}")).await?;
        let changed = change(&|| lock.is_held()).await;
        self.shared.unlock(lock).await;
        changed
    }
}

/// Returns the numbers and the values of the readable items.
fn unpacked(queue: &str, head: Vec<Numbered>) -> (Vec<u64>, Vec<Value>) {
    let (mut numbers, mut items) = (Vec::new(), Vec::new());
    for (number, packed) in head {
        match packed.as_deref().map(msgpack::unpack) {
            Some(Ok(item)) => {
                numbers.push(number);
                items.push(item);
            }
            // Already logged when it was rejected.
            None => {}
            Some(Err(error)) => tracing::error!(queue, %error, "an item of a queue is damaged and is left out"),
        }
    }
    (numbers, items)
}
