//! What this member knows of the shared queues: the numbers and digests of their items. So an insertion reads the items
//! that came since the last one, instead of the whole queue.

use std::collections::{BTreeMap, HashMap, HashSet};

use brine_value::{Value, msgpack};
use parking_lot::Mutex;

use super::{MAX_ITEMS, MAX_QUEUE, QueueError};
use crate::shared::SharedError;

/// An item: its stream number and its packed value, which is `None` if it cannot be decrypted.
pub(super) type Numbered = (u64, Option<Vec<u8>>);

/// The maximum number of items that are remembered of all queues.
const MAX_KNOWN: usize = 4 * MAX_ITEMS;

/// The items of a queue, as the servers store them.
pub(super) trait Source {
    /// Returns the number of items.
    async fn count(&self) -> Result<usize, SharedError>;

    /// Returns the items from a number on, oldest first.
    async fn items(&self, from: u64) -> Result<Vec<Numbered>, SharedError>;

    /// Returns the number of the oldest item.
    async fn first(&self) -> Result<Option<u64>, SharedError>;
}

/// The first bytes of the SHA-256 of a packed item.
type Digest = [u8; 16];

fn digest(packed: &[u8]) -> Digest {
    use sha2::Digest as _;
    let mut first = Digest::default();
    first.iter_mut().zip(sha2::Sha256::digest(packed)).for_each(|(to, from)| *to = from);
    first
}

/// An item without its content.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// `None` if the item cannot be decrypted.
    digest: Option<Digest>,
    size: usize,
}

/// The items of one queue.
#[derive(Debug, Default)]
pub(super) struct Known {
    items: BTreeMap<u64, Item>,
    digests: HashMap<Digest, usize>,
    bytes: usize,
}

impl Known {
    /// Makes this the items of the queue. Nobody else may append items meanwhile.
    pub async fn refresh(&mut self, source: &impl Source) -> Result<(), SharedError> {
        let next = self.items.last_key_value().map_or(0, |(last, _)| last + 1);
        self.extend(source.items(next).await?);
        // Nothing but removed items is missing in the queue, so that equal numbers mean equal items.
        let count = source.count().await?;
        if self.items.len() == count {
            return Ok(());
        }
        // Most items are removed at the head.
        let first = source.first().await?.unwrap_or(u64::MAX);
        let removed: Vec<u64> = self.items.range(..first).map(|(number, _)| *number).collect();
        self.remove(removed);
        if self.items.len() != count {
            *self = Known::default();
            self.extend(source.items(0).await?);
        }
        Ok(())
    }

    /// Adds items with their numbers.
    pub fn extend(&mut self, items: impl IntoIterator<Item = Numbered>) {
        for (number, packed) in items {
            let item = Item { digest: packed.as_deref().map(digest), size: packed.map_or(0, |packed| packed.len()) };
            if self.items.insert(number, item).is_none() {
                self.bytes += item.size;
                item.digest.into_iter().for_each(|digest| *self.digests.entry(digest).or_default() += 1);
            }
        }
    }

    /// Removes items by their numbers.
    pub fn remove(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for item in numbers.into_iter().filter_map(|number| self.items.remove(&number)) {
            self.bytes -= item.size;
            if let Some(digest) = item.digest
                && let Some(count) = self.digests.get_mut(&digest)
            {
                *count -= 1;
                if *count == 0 {
                    self.digests.remove(&digest);
                }
            }
        }
    }

    /// Returns the numbers of the items that equal one of these packed ones.
    pub fn numbers(&self, packed: impl Iterator<Item = Vec<u8>>) -> Vec<u64> {
        let digests: HashSet<Digest> = packed.map(|packed| digest(&packed)).collect();
        let is_wanted = |item: &Item| item.digest.is_some_and(|digest| digests.contains(&digest));
        self.items.iter().filter(|(_, item)| is_wanted(item)).map(|(number, _)| *number).collect()
    }

    /// Returns the packed items to append to the queue, and the strings that are already in it.
    pub fn new_items(
        &self,
        queue: &str,
        items: Vec<Value>,
        limit: usize,
    ) -> Result<(Vec<Vec<u8>>, Vec<Value>), QueueError> {
        let mut count = self.digests.values().sum::<usize>();
        let (mut bytes, mut added) = (self.bytes, HashSet::new());
        let (mut new, mut duplicates) = (Vec::new(), Vec::new());
        for item in items {
            let packed = msgpack::pack(&item);
            if packed.len() > limit {
                return Err(QueueError::LargeItem { size: packed.len(), limit });
            }
            let digest = digest(&packed);
            let is_known = self.digests.contains_key(&digest) || !added.insert(digest);
            if is_known && item.as_str().is_some() {
                duplicates.push(item);
                continue;
            }
            (count, bytes) = (count + 1, bytes + packed.len());
            if count > MAX_ITEMS || bytes > MAX_QUEUE {
                return Err(QueueError::Full(queue.to_owned()));
            }
            new.push(packed);
        }
        Ok((new, duplicates))
    }
}

/// What is known of all queues, by name. A queue that is being changed is not in it.
#[derive(Debug, Default)]
pub struct KnownQueues(Mutex<HashMap<String, Known>>);

impl KnownQueues {
    /// Removes and returns what is known of a queue. It is put back when a change of the queue has succeeded.
    pub(super) fn take(&self, queue: &str) -> Known {
        self.0.lock().remove(queue).unwrap_or_default()
    }

    /// Puts back what is known of a queue. Others are forgotten beyond the maximum.
    pub(super) fn put(&self, queue: &str, contents: Known) {
        let mut all = self.0.lock();
        if all.values().map(|contents| contents.items.len().max(1)).sum::<usize>() + contents.items.len() > MAX_KNOWN {
            all.clear();
        }
        all.insert(queue.to_owned(), contents);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A queue that counts the items which are read.
    #[derive(Default)]
    struct Counting {
        items: RefCell<BTreeMap<u64, Vec<u8>>>,
        read: Cell<usize>,
        requests: Cell<usize>,
    }

    impl Source for Counting {
        async fn count(&self) -> Result<usize, SharedError> {
            self.requests.set(self.requests.get() + 1);
            Ok(self.items.borrow().len())
        }

        async fn items(&self, from: u64) -> Result<Vec<Numbered>, SharedError> {
            self.requests.set(self.requests.get() + 1);
            let items: Vec<_> =
                self.items.borrow().range(from..).map(|(number, item)| (*number, Some(item.clone()))).collect();
            self.read.set(self.read.get() + items.len());
            Ok(items)
        }

        async fn first(&self) -> Result<Option<u64>, SharedError> {
            self.requests.set(self.requests.get() + 1);
            Ok(self.items.borrow().keys().next().copied())
        }
    }

    impl Counting {
        fn push(&self, number: u64) {
            self.items.borrow_mut().insert(number, msgpack::pack(&number.to_string().into()));
        }

        /// Returns the strings among `0..end` that are in the queue according to `contents`.
        async fn strings(&self, contents: &mut Known, end: u64) -> Vec<String> {
            contents.refresh(self).await.unwrap();
            let all = (0..end).map(|number| number.to_string().into()).collect();
            let (_, duplicates) = contents.new_items("q", all, 1000).unwrap();
            duplicates.iter().map(ToString::to_string).collect()
        }

        fn expected(&self) -> Vec<String> {
            self.items.borrow().keys().map(ToString::to_string).collect()
        }
    }

    #[tokio::test]
    async fn each_item_is_read_once_however_many_insertions_there_are() {
        let (source, mut contents) = (Counting::default(), Known::default());
        for number in 0..1000 {
            source.push(number);
            contents.refresh(&source).await.unwrap();
            // Another member takes from the head.
            if number % 3 == 0 {
                source.items.borrow_mut().pop_first();
            }
        }
        assert_eq!(source.read.get(), 1000);
        assert!(source.requests.get() <= 3 * 1000, "{}", source.requests.get());
        assert_eq!(source.strings(&mut contents, 1000).await, source.expected());
    }

    #[tokio::test]
    async fn changes_of_other_members_are_noticed() {
        let (source, mut contents) = (Counting::default(), Known::default());
        (0..10).for_each(|number| source.push(number));
        assert_eq!(source.strings(&mut contents, 20).await, source.expected());
        for (removed, next) in [(&[0, 1][..], 10), (&[5], 11), (&[11], 12), (&[2, 3, 4, 6, 7, 8], 13)] {
            for number in removed {
                source.items.borrow_mut().remove(number);
            }
            assert_eq!(source.strings(&mut contents, 20).await, source.expected(), "without {removed:?}");
            source.push(next);
            assert_eq!(source.strings(&mut contents, 20).await, source.expected(), "after {removed:?}");
        }
    }

    #[test]
    fn equal_items_count_one_by_one() {
        let mut contents = Known::default();
        let packed = || Some(msgpack::pack(&"a".into()));
        contents.extend([(1, packed()), (2, packed()), (3, None)]);
        assert_eq!(contents.numbers([msgpack::pack(&"a".into())].into_iter()), [1, 2]);
        contents.remove([1]);
        assert_eq!(contents.new_items("q", vec!["a".into()], 10).unwrap(), (vec![], vec!["a".into()]));
        contents.remove([2, 3]);
        assert!(contents.items.is_empty() && contents.digests.is_empty() && contents.bytes == 0);
    }

    #[test]
    fn memory_of_all_queues_is_bounded() {
        let all = KnownQueues::default();
        for number in 0..10 {
            let mut contents = Known::default();
            contents.extend((0..MAX_ITEMS as u64).map(|number| (number, None)));
            all.put(&number.to_string(), contents);
            assert!(all.0.lock().values().map(|contents| contents.items.len()).sum::<usize>() <= MAX_KNOWN);
        }
        assert!(all.0.lock().contains_key("9"));
    }
}
