//! Batches: changes of the store that are applied together or not at all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::{Bound, Range};

use bytes::Bytes;
use redb::{ReadableTable, WriteTransaction};

use super::Table;

/// Changes that are applied atomically.
#[derive(Debug, Default)]
pub struct Batch {
    changes: Vec<Change>,
    bytes: usize,
}

#[derive(Debug)]
enum Change {
    Put(Table, Vec<u8>, Bytes),
    PutNew(Table, Vec<u8>, Bytes),
    Delete(Table, Vec<u8>),
    DeleteBelow(Table, Vec<u8>),
    DeletePrefix(Table, Vec<u8>),
    /// The first keys of a range, up to this number of keys.
    DeleteFirst(Table, Range<Vec<u8>>, usize),
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) -> &mut Self {
        self.add(Change::Put(table, key.into(), value.into()))
    }

    /// Sets a key that does not exist yet; an existing one keeps its value.
    pub fn put_new(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) -> &mut Self {
        self.add(Change::PutNew(table, key.into(), value.into()))
    }

    /// Removes a key.
    pub fn delete(&mut self, table: Table, key: impl Into<Vec<u8>>) -> &mut Self {
        self.add(Change::Delete(table, key.into()))
    }

    /// Removes all keys that sort before this one.
    pub fn delete_below(&mut self, table: Table, key: impl Into<Vec<u8>>) -> &mut Self {
        self.add(Change::DeleteBelow(table, key.into()))
    }

    /// Removes all keys with this prefix.
    pub fn delete_prefix(&mut self, table: Table, prefix: impl Into<Vec<u8>>) -> &mut Self {
        self.add(Change::DeletePrefix(table, prefix.into()))
    }

    /// Removes the first keys of a range, at most `limit`. A large range is removed in several batches, so that other
    /// batches are committed in between.
    pub fn delete_first(&mut self, table: Table, range: Range<impl Into<Vec<u8>>>, limit: usize) -> &mut Self {
        self.add(Change::DeleteFirst(table, range.start.into()..range.end.into(), limit))
    }

    /// Adds the changes of another batch.
    pub fn append(&mut self, mut other: Batch) {
        self.changes.append(&mut other.changes);
        self.bytes += other.bytes;
    }

    /// Whether the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the size of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the table of each change, with its key if it is a single one.
    pub(super) fn touched(&self) -> impl Iterator<Item = (Table, Option<&[u8]>)> {
        self.changes.iter().map(|change| match change {
            Change::Put(table, key, _) | Change::PutNew(table, key, _) | Change::Delete(table, key) => {
                (*table, Some(&**key))
            }
            Change::DeleteBelow(table, _) | Change::DeletePrefix(table, _) | Change::DeleteFirst(table, ..) => {
                (*table, None)
            }
        })
    }

    fn add(&mut self, change: Change) -> &mut Self {
        self.bytes += match &change {
            Change::Put(_, key, value) | Change::PutNew(_, key, value) => key.len() + value.len(),
            Change::Delete(_, key) | Change::DeleteBelow(_, key) | Change::DeletePrefix(_, key) => key.len(),
            Change::DeleteFirst(_, range, _) => range.start.len() + range.end.len(),
        };
        self.changes.push(change);
        self
    }
}

/// Applies batches, in their order, within one transaction.
pub(super) fn apply(transaction: &WriteTransaction, batches: &[Batch]) -> Result<(), redb::Error> {
    let mut tables = HashMap::new();
    for change in batches.iter().flat_map(|batch| &batch.changes) {
        let table = match change {
            Change::Put(table, ..)
            | Change::PutNew(table, ..)
            | Change::Delete(table, _)
            | Change::DeleteBelow(table, _)
            | Change::DeletePrefix(table, _)
            | Change::DeleteFirst(table, ..) => *table,
        };
        let open = match tables.entry(table) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(transaction.open_table(table.definition())?),
        };
        match change {
            Change::Put(_, key, value) => _ = open.insert(&**key, &**value)?,
            Change::PutNew(_, key, value) => {
                if open.get(&**key)?.is_none() {
                    open.insert(&**key, &**value)?;
                }
            }
            Change::Delete(_, key) => _ = open.remove(&**key)?,
            Change::DeleteBelow(_, key) => open.retain_in::<&[u8], _>(..&**key, |_, _| false)?,
            Change::DeletePrefix(_, prefix) => {
                let keys: Vec<Vec<u8>> = open
                    .range::<&[u8]>(&**prefix..)?
                    .map(|pair| pair.map(|(key, _)| key.value().to_vec()))
                    .take_while(|key| key.as_ref().map_or(true, |key| key.starts_with(prefix)))
                    .collect::<Result<_, _>>()?;
                for key in keys {
                    open.remove(&*key)?;
                }
            }
            Change::DeleteFirst(_, range, limit) => {
                // redb panics on a range whose end is before its start.
                if *limit == 0 || range.start >= range.end {
                    continue;
                }
                let within = (Bound::Included(&*range.start), Bound::Excluded(&*range.end));
                // An iterator that is dropped leaves the rest in place; its next row would be removed already.
                for pair in open.extract_from_if::<&[u8], _>(within, |_, _| true)?.take(*limit) {
                    pair?;
                }
            }
        }
    }
    Ok(())
}
