//! What the master knows of its minions: the grains and pillar that each had when it last asked for
//! its pillar. Targets that look at them are resolved with it.

use std::cell::OnceCell;

use brine_bus::store::{Batch, BlockingStore, Table, Ticket};
use brine_ids::MinionId;
use brine_target::Facts;
use brine_value::{Map, map, msgpack};

/// The most bytes of grains that a minion may have stored.
const MAX_GRAINS: usize = 4 << 20;

const MINIONS: Table = Table("minion_data");

/// The minions' data in the store.
#[derive(Debug, Clone)]
pub struct MinionData {
    store: BlockingStore,
}

impl MinionData {
    /// The data in this store.
    pub fn new(store: BlockingStore) -> Self {
        MinionData { store }
    }

    /// Stores what a minion is now. Grains of more than [`MAX_GRAINS`] are left out: targets cannot look at them.
    pub fn put(&self, id: &MinionId, grains: Map, pillar: Map) -> Ticket {
        let mut batch = Batch::new();
        let size = msgpack::pack_map(&grains).len();
        let grains = if size <= MAX_GRAINS {
            grains
        } else {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!(minion = %id, size, "grains not stored: expected at most {MAX_GRAINS} bytes");
            map! {"id" => id}
        };
        let packed = msgpack::pack_map(&map! {"grains" => grains, "pillar" => pillar});
        batch.put(MINIONS, id.as_str().as_bytes(), packed);
        self.store.write(batch)
    }

    /// Forgets a minion.
    pub fn delete(&self, id: &str) -> Ticket {
        let mut batch = Batch::new();
        batch.delete(MINIONS, id.as_bytes());
        self.store.write(batch)
    }

    /// What a target can look at. Read from the store only if it does.
    pub fn facts<'a>(&'a self, id: &'a str) -> impl Facts + 'a {
        StoredFacts { data: self, id, read: OnceCell::new() }
    }

    /// The grains that a minion had when it last asked for its pillar.
    pub fn grains(&self, id: &str) -> Option<Map> {
        self.read(id)?.get("grains")?.as_map().cloned()
    }

    fn read(&self, id: &str) -> Option<Map> {
        match self.store.get(MINIONS, id.as_bytes()) {
            Ok(packed) => msgpack::unpack_map(&packed?).ok(),
            Err(error) => {
                tracing::error!(minion = id, %error, "a minion's data cannot be read");
                None
            }
        }
    }
}

struct StoredFacts<'a> {
    data: &'a MinionData,
    id: &'a str,
    read: OnceCell<Option<Map>>,
}

impl StoredFacts<'_> {
    fn part(&self, name: &str) -> Option<&Map> {
        self.read.get_or_init(|| self.data.read(self.id)).as_ref()?.get(name)?.as_map()
    }
}

impl Facts for StoredFacts<'_> {
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
