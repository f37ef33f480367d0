//! The known syndics (`order_masters`): masters below this one that forward its jobs.
//!
//! Only its messages distinguish a syndic from a minion, so each known syndic is recorded. As in Salt, that is a file
//! named by its id in the directory `syndics` of `cachedir`. The content of the file records whether a minion with the
//! same id returns jobs as well; only then does `salt` wait for the return of the syndic itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use brine_config::MasterConfig;
use brine_ids::MinionId;
use brine_runtime::executors::MayBlock;
use brine_system::files::{self, FileError};
use brine_text::glob::Glob;
use parking_lot::Mutex;

/// The content of the file of a syndic whose host also has a minion of that id.
const ALSO_MINION: &str = "minion\n";
/// The maximum number of syndics.
const MAX: usize = 10_000;

/// The syndics of a master.
#[derive(Debug, Default)]
pub struct Syndics {
    directory: PathBuf,
    /// The ids that may be syndics; none without `order_masters`.
    allowed: Vec<Glob>,
    /// The known syndics, with whether each is also a minion.
    known: Mutex<BTreeMap<MinionId, bool>>,
}

impl Syndics {
    /// Creates an empty list, to be stored in the configured `cachedir`. An invalid glob matches no id and is logged.
    pub fn new(config: &MasterConfig) -> Self {
        let glob = |text: &String| {
            Glob::new(text)
                .inspect_err(|error| tracing::error!(glob = text, %error, "option 'syndics': a glob is invalid"))
                .ok()
        };
        let allowed = if config.order_masters { config.syndics.iter().filter_map(glob).collect() } else { Vec::new() };
        Syndics { directory: config.cachedir.join("syndics"), allowed, known: Mutex::default() }
    }

    /// Whether a minion with this id may act as a syndic.
    pub fn allow(&self, id: &MinionId) -> bool {
        self.allowed.iter().any(|glob| glob.is_match(id.as_str()))
    }

    /// Reads the syndics that were recorded before a restart.
    pub fn read(&self, _: &MayBlock) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        let mut syndics = self.known.lock();
        for entry in entries.flatten().take(MAX) {
            let Some(Ok(id)) = entry.file_name().to_str().map(str::parse::<MinionId>) else { continue };
            if !self.allow(&id) {
                continue;
            }
            let content = files::read_if_exists(entry.path()).ok().flatten().unwrap_or_default();
            syndics.insert(id, content == ALSO_MINION);
        }
    }

    /// Whether a syndic with this id is known.
    pub fn contains(&self, id: &MinionId) -> bool {
        self.known.lock().contains_key(id)
    }

    /// Whether the id belongs to a syndic that is not also a minion.
    pub fn is_no_minion(&self, id: &str) -> bool {
        let syndics = self.known.lock();
        !syndics.is_empty() && id.parse::<MinionId>().is_ok_and(|id| syndics.get(&id) == Some(&false))
    }

    /// Returns the ids of all known syndics.
    pub fn ids(&self) -> Vec<MinionId> {
        self.known.lock().keys().cloned().collect()
    }

    /// Records a message that only a syndic sends. Returns whether the entry has changed and has to be
    /// [stored](Syndics::store).
    pub fn record(&self, id: &MinionId) -> bool {
        let mut syndics = self.known.lock();
        if syndics.contains_key(id) {
            return false;
        }
        if syndics.len() >= MAX {
            tracing::error!(syndic = %id, "more than {MAX} syndics: this one is not recorded");
            return false;
        }
        syndics.insert(id.clone(), false);
        true
    }

    /// Records a return of a minion. Returns whether it is the first one with the id of a syndic, so that the entry has
    /// to be [stored](Syndics::store).
    pub fn returned(&self, id: &MinionId) -> bool {
        let mut syndics = self.known.lock();
        syndics.get_mut(id).is_some_and(|is_minion| !std::mem::replace(is_minion, true))
    }

    /// Writes the file of a syndic. Does nothing if the id is unknown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, id: &MinionId, _: &MayBlock) -> Result<(), FileError> {
        let Some(is_minion) = self.known.lock().get(id).copied() else { return Ok(()) };
        files::create_private_dir(&self.directory)?;
        let content = if is_minion { ALSO_MINION } else { "" };
        files::write_soon(self.directory.join(id.as_str()), content.as_bytes(), 0o600)
    }

    /// Removes a syndic whose key is deleted.
    pub fn forget(&self, id: &MinionId, _: &MayBlock) {
        if self.known.lock().remove(id).is_some() {
            // The file may never have been written.
            _ = std::fs::remove_file(self.directory.join(id.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn syndics_are_known_after_a_restart_until_their_key_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let thread = MayBlock::on_dedicated_thread(tokio::runtime::Handle::current());
        let config = MasterConfig {
            cachedir: directory.path().to_owned(),
            order_masters: true,
            syndics: vec!["s*".into()],
            ..MasterConfig::default()
        };
        let open = || {
            let syndics = Syndics::new(&config);
            syndics.read(&thread);
            syndics
        };
        let ids = ["s1", "s2"].map(|id| id.parse::<MinionId>().unwrap());
        let syndics = open();
        assert!(syndics.allow(&ids[0]) && !syndics.allow(&"web1".parse().unwrap()));
        for id in &ids {
            assert!(syndics.record(id) && !syndics.record(id));
            syndics.store(id, &thread).unwrap();
        }
        assert!(syndics.returned(&ids[1]) && !syndics.returned(&ids[1]));
        assert!(!syndics.returned(&"web1".parse().unwrap()));
        syndics.store(&ids[1], &thread).unwrap();
        let syndics = open();
        assert_eq!(syndics.ids(), ids);
        let no_minion = |id: &str| syndics.is_no_minion(id);
        assert_eq!([no_minion("s1"), no_minion("s2"), no_minion("web1")], [true, false, false]);
        syndics.forget(&ids[0], &thread);
        assert_eq!(open().ids(), ids[1..]);
    }
}
