//! The queues of a cluster, which all members share.
//!
//! Every change is made under the lock of the queue. Items are removed after the journal has persisted the event about
//! them. If the master dies in between, another one takes them again: items are delivered at least once.

use std::collections::HashSet;

use brine_value::{Value, msgpack};

use super::{MAX_ITEMS, MAX_QUEUE, QueueError, new_items, prefix};
use crate::cluster::Shared;

/// The queues in the values of a cluster.
pub(crate) struct SharedQueues<'a>(pub &'a Shared);

/// An item: its stream number and its packed value, which is `None` if it cannot be decrypted.
type Numbered = (u64, Option<Vec<u8>>);

impl SharedQueues<'_> {
    /// Appends items. Strings that are already in the queue are skipped and returned.
    ///
    /// # Errors
    /// If the cluster does not answer, some items may have been appended; otherwise none.
    pub async fn insert(&self, queue: &str, items: Vec<Value>) -> Result<Vec<Value>, QueueError> {
        self.locked(queue, async |is_held| {
            let last = self.0.queue_last(queue).await?;
            let known = self.all(queue).await?.into_iter().filter_map(|(_, packed)| packed).collect();
            let (new, duplicates) = new_items(queue, known, items, self.0.largest_item())?;
            if !is_held() {
                return Err(QueueError::Busy);
            }
            self.0.queue_push(queue, new, last).await?;
            Ok(duplicates)
        })
        .await
    }

    /// Removes all items that equal one of these.
    ///
    /// # Errors
    /// The cluster does not answer: some items may have been removed.
    pub async fn delete(&self, queue: &str, items: &[Value]) -> Result<(), QueueError> {
        let unwanted: HashSet<Vec<u8>> = items.iter().map(msgpack::pack).collect();
        self.locked(queue, async |_| {
            let all = self.all(queue).await?.into_iter();
            let numbers = all.filter(|(_, packed)| packed.as_ref().is_some_and(|packed| unwanted.contains(packed)));
            Ok(self.0.queue_remove(numbers.map(|(number, _)| number).collect()).await.map(drop)?)
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
            let head = self.0.queue_items(queue, limit.min(MAX_ITEMS), MAX_QUEUE).await?;
            let numbers = head.iter().map(|(number, _)| *number).collect();
            let (readable, items) = unpacked(queue, head);
            if !is_held() {
                return Err(QueueError::Busy);
            }
            before(&items).await?;
            let removed = self.0.queue_remove(numbers).await?;
            let taken = readable.into_iter().zip(items).filter(|(number, _)| removed.contains(number));
            Ok(taken.map(|(_, item)| item).collect())
        })
        .await
    }

    /// Returns the items, oldest first.
    pub async fn items(&self, queue: &str) -> Result<Vec<Value>, QueueError> {
        prefix(queue)?;
        Ok(unpacked(queue, self.all(queue).await?).1)
    }

    /// Returns the number of items.
    pub async fn len(&self, queue: &str) -> Result<usize, QueueError> {
        prefix(queue)?;
        Ok(self.0.queues().await?.into_iter().find(|(name, _)| name == queue).map_or(0, |(_, count)| count))
    }

    /// Returns the sorted names of non-empty queues.
    pub async fn names(&self) -> Result<Vec<String>, QueueError> {
        Ok(self.0.queues().await?.into_iter().map(|(name, _)| name).collect())
    }

    async fn all(&self, queue: &str) -> Result<Vec<Numbered>, QueueError> {
        Ok(self.0.queue_items(queue, MAX_ITEMS, MAX_QUEUE).await?)
    }

    /// Makes a change under the lock of a queue. `change` learns whether the lock is still held.
    async fn locked<T>(
        &self,
        queue: &str,
        change: impl AsyncFnOnce(&dyn Fn() -> bool) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        prefix(queue)?;
        let lock = self.0.lock(&format!("queue {queue}")).await?;
        let changed = change(&|| lock.is_held()).await;
        self.0.unlock(lock).await;
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
