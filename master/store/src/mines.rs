//! The mines in the store: data that minions publish for other minions.

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_ids::MinionId;
use brine_value::{Map, msgpack};
use parking_lot::Mutex;

/// Mines by id.
pub const MINE: Table = Table("mine");

/// The maximum size of one minion's mine, in bytes.
const MAX_MINE: usize = 16 << 20;

/// The error of a change to a mine.
#[derive(Debug, thiserror::Error)]
pub enum MineError {
    /// Writing to the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The mine would exceed its maximum size. The value is its size in bytes.
    #[error("mine is too large: expected at most {MAX_MINE} bytes, got {0}; let mine_functions return less")]
    TooLarge(usize),
}

/// The mines in the store: for each minion a map of function or alias to result.
pub struct Mines {
    store: BlockingStore,
    /// `minion_data_cache` or `enforce_mine_cache`: otherwise mines are empty, and changes have no effect.
    is_kept: bool,
    /// Serializes changes: a mine is read, changed and written as a whole.
    changing: Mutex<()>,
}

impl Mines {
    /// Creates the mines of a store.
    pub fn new(store: BlockingStore, is_kept: bool) -> Self {
        Mines { store, is_kept, changing: Mutex::default() }
    }

    /// Returns the mine of a minion.
    pub fn get(&self, id: &str) -> Result<Map, StoreError> {
        if !self.is_kept {
            return Ok(Map::new());
        }
        let packed = self.store.get(MINE, id.as_bytes())?;
        Ok(packed.and_then(|packed| msgpack::unpack_map(&packed).ok()).unwrap_or_default())
    }

    /// Adds data to a minion's mine. `clear` removes the old data first.
    pub fn add(&self, id: &MinionId, data: Map, clear: bool) -> Result<(), MineError> {
        if !self.is_kept {
            return Ok(());
        }
        let _guard = self.changing.lock();
        let mut mine = if clear { Map::new() } else { self.get(id.as_str())? };
        mine.extend(data);
        self.put(id, &mine)
    }

    /// Removes one function from a minion's mine.
    pub fn delete(&self, id: &MinionId, fun: &str) -> Result<(), MineError> {
        let _guard = self.changing.lock();
        let mut mine = self.get(id.as_str())?;
        if mine.shift_remove(fun).is_none() { Ok(()) } else { self.put(id, &mine) }
    }

    /// Removes a minion's mine.
    pub fn flush(&self, id: &str) -> Result<(), MineError> {
        let _guard = self.changing.lock();
        let mut batch = Batch::new();
        batch.delete(MINE, id.as_bytes());
        Ok(self.store.write(batch).durable_blocking()?)
    }

    fn put(&self, id: &MinionId, mine: &Map) -> Result<(), MineError> {
        let packed = msgpack::pack_map(mine);
        if packed.len() > MAX_MINE {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            return Err(MineError::TooLarge(packed.len()));
        }
        let mut batch = Batch::new();
        batch.put(MINE, id.as_str().as_bytes(), packed);
        Ok(self.store.write(batch).durable_blocking()?)
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;
    use brine_value::map;

    use super::*;

    fn mines(directory: &tempfile::TempDir) -> Mines {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        Mines::new(store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone())), true)
    }

    #[test]
    fn functions_are_added_to_and_removed_from_a_mine() {
        let directory = tempfile::tempdir().unwrap();
        let (mines, web1): (_, MinionId) = (mines(&directory), "web1".parse().unwrap());
        assert_eq!(mines.get("web1").unwrap(), Map::new());
        mines.add(&web1, map! {"a" => 1, "b" => 2}, false).unwrap();
        mines.add(&web1, map! {"b" => 3}, false).unwrap();
        assert_eq!(mines.get("web1").unwrap(), map! {"a" => 1, "b" => 3});
        mines.delete(&web1, "a").unwrap();
        mines.delete(&web1, "none").unwrap();
        assert_eq!(mines.get("web1").unwrap(), map! {"b" => 3});
        mines.add(&web1, map! {"c" => 4}, true).unwrap();
        assert_eq!(mines.get("web1").unwrap(), map! {"c" => 4});
        assert_eq!(mines.get("web10").unwrap(), Map::new());
        mines.flush("web1").unwrap();
        assert_eq!(mines.get("web1").unwrap(), Map::new());
    }
}
