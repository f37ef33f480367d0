//! What can be said of a master before it starts: whether its keys can be read, and whom it would know.

use std::io::ErrorKind;

use brine_core::config::MasterConfig;
use brine_core::files::FileError;

use crate::StartError;
use crate::identity::Identity;
use crate::keys::KeyState;

/// Looks at what a master with this configuration would start on, and changes nothing: a line for each finding.
pub fn check(config: &MasterConfig) -> Result<Vec<String>, StartError> {
    let key = Identity::look(config)?;
    let mut counts = Vec::new();
    for state in KeyState::ALL {
        let folder = config.pki_dir.join(state.folder());
        let count = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.count(),
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(FileError::at("read", folder)(error).into()),
        };
        counts.push(format!("{count} {}", state.word()));
    }
    let pki_dir = config.pki_dir.display();
    let key = key.map_or_else(
        || "no master key; the first start makes one, which minions that are enrolled will refuse".to_owned(),
        |key| format!("the master key {}", key.public().fingerprint()),
    );
    let mut lines = vec![format!("{pki_dir}: {key}"), format!("{pki_dir}: keys of minions: {}", counts.join(", "))];
    for (option, roots) in [("file_roots", &config.file_roots), ("pillar_roots", &config.pillar_roots)] {
        let missing = roots.values().flatten().filter(|folder| !folder.is_dir());
        lines.extend(
            missing.map(|folder| format!("{}: {option} names this folder, which is not there", folder.display())),
        );
    }
    Ok(lines)
}
