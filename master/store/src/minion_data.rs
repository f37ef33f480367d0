//! The stored grains and pillar of minions, as of their last pillar request, for targets.

use std::cell::OnceCell;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table, Ticket};
use brine_ids::MinionId;
use brine_target::{Match, Target, TargetFacts};
use brine_value::{Map, map, msgpack};
use parking_lot::Mutex;

/// The maximum size of one minion's stored grains, in bytes.
const MAX_GRAINS: usize = 4 << 20;

/// Grains and pillars by id.
pub const MINIONS: Table = Table("minion_data");

/// The data of the minions in the store.
pub struct MinionData {
    store: BlockingStore,
    /// `minion_data_cache`: otherwise nothing is stored, and data stored before is not used.
    is_kept: bool,
    /// Serializes changes that read before they write.
    changing: Mutex<()>,
}

impl MinionData {
    /// Creates the data of a store.
    pub fn new(store: BlockingStore, is_kept: bool) -> Self {
        MinionData { store, is_kept, changing: Mutex::default() }
    }

    /// Stores a minion's grains and pillar. Without a pillar, the stored one is kept. Grains larger than [`MAX_GRAINS`]
    /// are not stored, so that targets cannot match them.
    pub fn put(&self, id: &MinionId, grains: Map, pillar: Option<Map>) -> Ticket {
        let mut batch = Batch::new();
        if !self.is_kept {
            return self.store.write(batch);
        }
        let size = msgpack::pack_map(&grains).len();
        let grains = if size <= MAX_GRAINS {
            grains
        } else {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, size, "grains not stored: expected at most {MAX_GRAINS} bytes");
            map! {"id" => id}
        };
        let packed = |grains: Map, pillar: Option<Map>| {
            let mut data = map! {"grains" => grains};
            data.extend(pillar.map(|pillar| ("pillar".into(), pillar.into())));
            msgpack::pack_map(&data)
        };
        let (row, _changing) = if pillar.is_some() {
            (packed(grains, pillar), self.changing.lock())
        } else {
            let changing = self.changing.lock();
            let stored = self.read(id.as_str()).and_then(|data| data.get("pillar")?.as_map().cloned());
            (packed(grains, stored), changing)
        };
        batch.put(MINIONS, id.as_str().as_bytes(), row);
        self.store.write(batch)
    }

    /// Removes a minion's grains, its pillar, or both.
    pub fn clear(&self, id: &MinionId, grains: bool, pillar: bool) -> Result<(), StoreError> {
        let changing = self.changing.lock();
        let Some(packed) = self.store.get(MINIONS, id.as_str().as_bytes())? else { return Ok(()) };
        let mut data = msgpack::unpack_map(&packed).unwrap_or_default();
        for (name, is_cleared) in [("grains", grains), ("pillar", pillar)] {
            if is_cleared {
                data.shift_remove(name);
            }
        }
        let mut batch = Batch::new();
        if data.is_empty() {
            batch.delete(MINIONS, id.as_str().as_bytes());
        } else {
            batch.put(MINIONS, id.as_str().as_bytes(), msgpack::pack_map(&data));
        }
        let ticket = self.store.write(batch);
        drop(changing);
        ticket.durable_blocking()
    }

    /// Removes all data of a minion.
    pub fn delete(&self, id: &str) -> Ticket {
        let mut batch = Batch::new();
        batch.delete(MINIONS, id.as_bytes());
        self.store.write(batch)
    }

    /// Returns the facts of a minion for target matching. They are read from the store on first use.
    pub fn facts<'a>(&'a self, id: &'a str) -> impl TargetFacts + 'a {
        StoredFacts { data: self, id, read: OnceCell::new(), missing: None }
    }

    /// Returns the facts of a minion for the target of a job. As in Salt, terms by grains and pillar do not match a minion
    /// without stored data: it may have been away for years, and each job would wait for it.
    pub fn facts_for_job<'a>(&'a self, id: &'a str) -> impl TargetFacts + 'a {
        StoredFacts { data: self, id, read: OnceCell::new(), missing: self.is_kept.then(Map::new) }
    }

    /// Whether a target in a permission includes a minion. Without stored facts the minion counts as included, since it
    /// may be new; but not if no facts are ever stored: a target by grains would then permit every minion.
    pub fn is_permitted(&self, target: &Target, id: &str) -> bool {
        match target.check(&self.facts(id)) {
            Match::Yes => true,
            Match::Unknown => self.is_kept,
            Match::No => false,
        }
    }

    /// Returns the stored grains of a minion.
    pub fn grains(&self, id: &str) -> Option<Map> {
        self.read(id)?.get("grains")?.as_map().cloned()
    }

    fn read(&self, id: &str) -> Option<Map> {
        if !self.is_kept {
            return None;
        }
        match self.store.get(MINIONS, id.as_bytes()) {
            Ok(packed) => msgpack::unpack_map(&packed?).ok(),
            Err(error) => {
                tracing::error!(minion = id, %error, "reading the data of a minion failed");
                None
            }
        }
    }
}

struct StoredFacts<'a> {
    data: &'a MinionData,
    id: &'a str,
    read: OnceCell<Option<Map>>,
    /// The data of a minion whose grains and pillar are not stored.
    missing: Option<Map>,
}

impl StoredFacts<'_> {
    fn part(&self, name: &str) -> Option<&Map> {
        let stored = self.read.get_or_init(|| self.data.read(self.id)).as_ref();
        stored.and_then(|data| data.get(name)?.as_map()).or(self.missing.as_ref())
    }
}

impl TargetFacts for StoredFacts<'_> {
    fn id(&self) -> &str {
        self.id
    }

    fn grains(&self) -> Option<&Map> {
        self.part("grains")
    }

    fn pillar(&self) -> Option<&Map> {
        self.part("pillar")
    }
}
