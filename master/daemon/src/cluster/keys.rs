//! The minions' keys as a replicated table: for each id the state of its key, the key, and a denied key.

use std::sync::Arc;

use brine_cluster::{Table, TableError};
use brine_ids::MinionId;
use brine_master_store::keys::{Act, Key, KeyError, KeyState, KeyStore};
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value, map, msgpack};

/// The key store of this master as a table.
pub(super) struct Keys(pub Arc<KeyStore>);

impl Table for Keys {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn keys(&self, _: &MayBlock) -> Result<Vec<Vec<u8>>, TableError> {
        let mut ids = Vec::new();
        for state in KeyState::ALL {
            ids.extend(self.0.list(state).map_err(unavailable)?.into_iter().map(String::into_bytes));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn get(&self, _: &MayBlock, key: &[u8]) -> Result<Option<Vec<u8>>, TableError> {
        let id = id(key)?;
        let mut fields = Map::new();
        let _unchanged = self.0.lock(&id);
        if let Some((state, pem)) = self.0.current(&id).map_err(unavailable)? {
            fields = map! {"state" => state.directory(), "key" => pem};
        }
        if let Some(pem) = self.0.get(KeyState::Denied, &id).map_err(unavailable)? {
            fields.insert("denied".into(), pem.into());
        }
        Ok((!fields.is_empty()).then(|| msgpack::pack_map(&fields)))
    }

    fn set(&self, _: &MayBlock, key: &[u8], value: Option<&[u8]>) -> Result<(), TableError> {
        let id = id(key)?;
        let fields = value.map(msgpack::unpack_map).transpose().map_err(invalid)?.unwrap_or_default();
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let store = |state, pem: &str| {
            self.0.set(&id, state, pem).map_err(|error| match error {
                KeyError::File(_) => unavailable(error),
                _ => invalid(error),
            })
        };
        let state = text("state").and_then(KeyState::of_directory);
        let _changing = self.0.lock(&id);
        let entries = [state.zip(text("key")), text("denied").map(|pem| (KeyState::Denied, pem))];
        for (state, pem) in entries.iter().flatten() {
            store(*state, pem)?;
        }
        let is_kept = |state: KeyState| entries.iter().flatten().any(|(other, _)| *other == state);
        let gone: Vec<Key> = KeyState::ALL
            .into_iter()
            .filter(|state| !is_kept(*state))
            .map(|state| Key { id: id.clone(), state })
            .collect();
        for (key, removed) in self.0.apply(Act::Delete, &gone) {
            match removed {
                Ok(()) | Err(KeyError::Gone { .. }) => {}
                Err(error) => return Err(TableError::Unavailable(format!("the {} key: {error}", key.state.word()))),
            }
        }
        Ok(())
    }

    /// The stricter state wins: a minion that was rejected on one side is not accepted by the other.
    fn prefers(&self, local: Option<&[u8]>, cluster: Option<&[u8]>) -> bool {
        strictness(local) > strictness(cluster)
    }
}

fn id(key: &[u8]) -> Result<MinionId, TableError> {
    std::str::from_utf8(key).map_err(invalid)?.parse().map_err(|error: brine_ids::InvalidMinionId| invalid(error))
}

fn invalid(error: impl std::fmt::Display) -> TableError {
    TableError::Invalid(error.to_string())
}

fn unavailable(error: impl std::fmt::Display) -> TableError {
    TableError::Unavailable(error.to_string())
}

fn strictness(value: Option<&[u8]>) -> u8 {
    let fields = value.and_then(|value| msgpack::unpack_map(value).ok()).unwrap_or_default();
    match fields.get("state").and_then(Value::as_str).and_then(KeyState::of_directory) {
        Some(KeyState::Rejected) => 3,
        None => 2,
        Some(KeyState::Pending | KeyState::Denied) => 1,
        Some(KeyState::Accepted) => 0,
    }
}

#[cfg(test)]
mod tests {
    use brine_crypt::PrivateKey;
    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test]
    async fn keys_never_disappear_while_an_operator_and_the_cluster_move_them() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(KeyStore::open(directory.path()).unwrap());
        let keys = Keys(Arc::clone(&store));
        let thread = MayBlock::on_dedicated_thread(Handle::current());
        let pem = PrivateKey::generate(2048).unwrap().public().to_pem();
        let value = |state: KeyState| msgpack::pack_map(&map! {"state" => state.directory(), "key" => pem.as_str()});
        keys.set(&thread, b"web1", Some(&value(KeyState::Pending))).unwrap();
        let moves = |act| {
            // As another process has it.
            let store = KeyStore::open(directory.path()).unwrap();
            std::thread::spawn(move || {
                for _ in 0..300 {
                    store.apply(act, &store.select("web1", &KeyState::ALL).unwrap());
                }
            })
        };
        let operators = [moves(Act::Accept), moves(Act::Reject)];
        while !operators.iter().all(std::thread::JoinHandle::is_finished) {
            for state in [KeyState::Accepted, KeyState::Rejected] {
                keys.set(&thread, b"web1", Some(&value(state))).unwrap();
                assert!(keys.get(&thread, b"web1").unwrap().is_some());
            }
        }
        assert!(store.current(&"web1".parse().unwrap()).unwrap().is_some());
    }

    #[tokio::test]
    async fn keys_take_the_state_of_the_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let thread = MayBlock::on_dedicated_thread(Handle::current());
        let keys = Keys(Arc::new(KeyStore::open(directory.path()).unwrap()));
        let pem = PrivateKey::generate(2048).unwrap().public().to_pem();
        let value = |state: &str| msgpack::pack_map(&map! {"state" => state, "key" => pem.as_str()});
        assert_eq!(keys.get(&thread, b"web1").unwrap(), None);
        for state in ["minions_pre", "minions", "minions_rejected", "minions_pre"] {
            keys.set(&thread, b"web1", Some(&value(state))).unwrap();
            assert_eq!(keys.get(&thread, b"web1").unwrap(), Some(value(state)));
            assert_eq!(keys.keys(&thread).unwrap(), [b"web1"]);
        }
        assert!(keys.prefers(Some(&value("minions_rejected")), Some(&value("minions"))));
        assert!(keys.prefers(None, Some(&value("minions"))) && !keys.prefers(Some(&value("minions")), None));
        keys.set(&thread, b"web1", None).unwrap();
        assert!(keys.get(&thread, b"web1").unwrap().is_none() && keys.keys(&thread).unwrap().is_empty());
        let no_key = msgpack::pack_map(&map! {"state" => "minions", "key" => "junk"});
        for (id, value) in [(&b"../x"[..], value("minions")), (b"web1", b"junk".to_vec()), (b"web1", no_key)] {
            assert!(matches!(keys.set(&thread, id, Some(&value)), Err(TableError::Invalid(_))));
        }
        assert!(keys.keys(&thread).unwrap().is_empty());
        // A directory that takes no files is a matter of the disk, as is a full one.
        std::fs::remove_dir_all(directory.path().join("minions")).unwrap();
        std::fs::write(directory.path().join("minions"), "").unwrap();
        assert!(matches!(keys.set(&thread, b"web1", Some(&value("minions"))), Err(TableError::Unavailable(_))));
    }
}
