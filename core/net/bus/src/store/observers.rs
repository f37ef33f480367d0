//! Observers of tables: they receive the keys that were committed, to update copies of the tables elsewhere.

use parking_lot::Mutex;
use tokio::sync::watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Batch, Table};

/// The maximum number of pending keys of an observer. Beyond it, the observer must compare whole tables.
const KEYS: usize = 65_536;

/// The changes of some tables since they were last taken.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The tables and keys that were set or removed.
    pub keys: BTreeSet<(&'static str, Vec<u8>)>,
    /// Whether further keys were set or removed, so that whole tables must be compared.
    pub more: bool,
}

impl Touched {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.more
    }
}

#[derive(Debug)]
struct Shared {
    tables: Vec<Table>,
    touched: Mutex<Touched>,
    arrived: watch::Sender<()>,
}

/// Observes some tables of a store.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    arrived: watch::Receiver<()>,
}

impl Observer {
    /// Waits for changes and returns them. Cancel safe.
    pub async fn changed(&mut self) -> Touched {
        loop {
            self.arrived.mark_unchanged();
            let touched = std::mem::take(&mut *self.shared.touched.lock());
            if !touched.is_empty() {
                return touched;
            }
            if self.arrived.changed().await.is_err() {
                // The sender lives as long as `shared`.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The observers of a store.
#[derive(Debug, Default)]
pub(super) struct Observers(Mutex<Vec<Arc<Shared>>>);

impl Observers {
    /// Adds an observer of these tables.
    pub fn add(&self, tables: &[Table]) -> Observer {
        let (arrived, receiver) = watch::channel(());
        let shared = Arc::new(Shared { tables: tables.to_vec(), touched: Mutex::default(), arrived });
        self.0.lock().push(Arc::clone(&shared));
        Observer { shared, arrived: receiver }
    }

    /// Records committed batches.
    pub fn committed(&self, batches: &[Batch]) {
        let mut observers = self.0.lock();
        // Only the list still holds an observer that its owner has dropped.
        observers.retain(|shared| Arc::strong_count(shared) > 1);
        for shared in observers.iter() {
            let mut touched = shared.touched.lock();
            for change in batches.iter().flat_map(Batch::touched) {
                let (table, key) = change;
                if !shared.tables.contains(&table) {
                    continue;
                }
                match key {
                    Some(key) if touched.keys.len() < KEYS => _ = touched.keys.insert((table.0, key.to_vec())),
                    _ => touched.more = true,
                }
            }
            if !touched.is_empty() {
                shared.arrived.send_replace(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Table = Table("a");
    const B: Table = Table("b");

    #[tokio::test]
    async fn observers_receive_the_keys_of_their_tables() {
        let observers = Observers::default();
        let mut observer = observers.add(&[A]);
        let mut batch = Batch::new();
        batch.put(A, *b"1", &b"x"[..]).delete(A, *b"2").put(B, *b"3", &b"x"[..]);
        observers.committed(&[batch]);
        let keys = [("a", b"1".to_vec()), ("a", b"2".to_vec())];
        assert_eq!(observer.changed().await, Touched { keys: keys.into(), more: false });
        let mut batch = Batch::new();
        batch.delete_prefix(A, *b"1");
        observers.committed(&[batch]);
        assert_eq!(observer.changed().await, Touched { keys: BTreeSet::new(), more: true });
        drop(observer);
        observers.committed(&[]);
        assert!(observers.0.lock().is_empty());
    }
}
