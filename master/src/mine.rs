//! The mine: what minions tell of themselves for other minions to know.

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_function::CallError;
use brine_ids::MinionId;
use brine_target::{Pcre, Target, TargetError, TargetKind};
use brine_value::{Map, Value, msgpack};
use brine_wire::MineQuery;
use parking_lot::Mutex;

use crate::Shared;
use crate::disk::Disk;

const MINE: Table = Table("mine");

/// A result with this field in it says itself who may have it.
const ACL: &str = "__saltmine_acl__";
/// The result proper of such a one.
const DATA: &str = "__data__";

/// The most bytes that the mine of one minion may have.
const MAX_MINE: usize = 16 << 20;

/// Why a mine is not changed.
#[derive(Debug, thiserror::Error)]
pub enum MineError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The mine would be too large.
    #[error("mine is too large: expected at most {MAX_MINE} bytes, got {0}; let mine_functions return less")]
    TooLarge(usize),
}

/// The mines in the store: by minion, a map of function (or alias) to result.
pub struct Mines {
    store: BlockingStore,
    /// A mine is read, changed and written as a whole: one at a time.
    changing: Mutex<()>,
}

impl Mines {
    /// The mines in this store.
    pub fn new(store: BlockingStore) -> Self {
        Mines { store, changing: Mutex::default() }
    }

    /// What a minion has put into its mine.
    pub fn get(&self, id: &str) -> Result<Map, StoreError> {
        let packed = self.store.get(MINE, id.as_bytes())?;
        Ok(packed.and_then(|packed| msgpack::unpack_map(&packed).ok()).unwrap_or_default())
    }

    /// Adds to a minion's mine; `clear` takes away what was there before.
    pub fn add(&self, id: &MinionId, data: Map, clear: bool) -> Result<(), MineError> {
        let _one_at_a_time = self.changing.lock();
        let mut mine = if clear { Map::new() } else { self.get(id.as_str())? };
        mine.extend(data);
        self.put(id, &mine)
    }

    /// Takes one function out of a minion's mine.
    pub fn delete(&self, id: &MinionId, fun: &str) -> Result<(), MineError> {
        let _one_at_a_time = self.changing.lock();
        let mut mine = self.get(id.as_str())?;
        if mine.shift_remove(fun).is_none() { Ok(()) } else { self.put(id, &mine) }
    }

    /// Takes away a minion's mine.
    pub fn flush(&self, id: &str) -> Result<(), MineError> {
        let _one_at_a_time = self.changing.lock();
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

impl Shared {
    /// What the mines of the targeted minions hold of these functions, as far as `asker` may know it. Pillar
    /// in the target is compared without wildcards.
    pub(crate) fn mine_get(&self, disk: &Disk, asker: &MinionId, query: &MineQuery) -> Result<Map, CallError> {
        let mut found = Map::new();
        let functions = self.mine_functions(asker, &query.functions);
        if functions.is_empty() {
            return Ok(found);
        }
        let target = self.mine_target(query.tgt.clone(), &query.tgt_type).map_err(CallError::execution)?;
        for id in disk.accepted().map_err(CallError::execution)? {
            if !target.matches(&disk.minion_data.facts(&id)) {
                continue;
            }
            let mut mine = disk.mines.get(&id).map_err(CallError::execution)?;
            for function in &functions {
                let Some(entry) = mine.shift_remove(function.as_str()) else { continue };
                let Some(value) = self.mine_value(disk, asker, entry) else { continue };
                if !query.by_function {
                    found.insert(id.as_str().into(), value);
                } else if let Value::Map(of_function) = found.entry(function.as_str().into()).or_insert_with(Value::map)
                {
                    of_function.insert(id.as_str().into(), value);
                }
            }
        }
        Ok(found)
    }

    /// Those functions that `mine_get` of the configuration lets a minion ask for; all if it is not given.
    fn mine_functions<'a>(&self, asker: &MinionId, functions: &'a [String]) -> Vec<&'a String> {
        let Some(rules) = &self.config.mine_get else { return functions.iter().collect() };
        let allowed = crate::peer::rules_for(rules, asker);
        let allowed: Vec<Pcre> = allowed.iter().filter_map(|rule| Pcre::parse(rule.as_str()?).ok()).collect();
        functions.iter().filter(|function| allowed.iter().any(|rule| rule.is_match(function))).collect()
    }

    fn mine_target(&self, tgt: Value, tgt_type: &str) -> Result<Target, TargetError> {
        let kind: TargetKind = tgt_type.to_lowercase().parse()?;
        Ok(Target::parse(kind, tgt, ":", &self.config.nodegroups)?.with_exact_pillar())
    }

    /// A result without its list of who may have it; nothing if that does not name `asker`.
    fn mine_value(&self, disk: &Disk, asker: &MinionId, entry: Value) -> Option<Value> {
        let Value::Map(mut fields) = entry else { return Some(entry) };
        if !fields.contains_key(ACL) {
            return Some(fields.into());
        }
        if let Some(allowed) = fields.get("allow_tgt").filter(|allowed| !allowed.is_nil()) {
            let kind = fields.get("allow_tgt_type").and_then(Value::as_str).unwrap_or("glob");
            let target = self.mine_target(allowed.clone(), kind).ok()?;
            if !target.matches(&disk.minion_data.facts(asker.as_str())) {
                tracing::debug!(minion = %asker, "a minion asks for what another one's mine does not give it");
                return None;
            }
        }
        fields.swap_remove(DATA)
    }
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;
    use brine_value::map;

    use super::*;

    fn mines(folder: &tempfile::TempDir) -> Mines {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, _) = Store::open(&folder.path().join("store"), 1 << 20).unwrap();
        Mines::new(store.blocking(&MayBlock::own_thread(runtime.handle().clone())))
    }

    #[test]
    fn a_mine_grows_and_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let (mines, web1): (_, MinionId) = (mines(&folder), "web1".parse().unwrap());
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
