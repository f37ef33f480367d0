//! The schedule of a minion: the mine job, and the file of saved changes.

use std::path::PathBuf;

use brine_config::MinionConfig;
use brine_system::files::{self, FileError};
use brine_value::{Map, map};
use brine_yaml::Style;

/// Salt's name for the mine job.
pub const MINE: &str = "__mine_interval";

/// Salt's name for the job of `grains_refresh_every`.
pub const GRAINS: &str = "__update_grains";

/// Returns the file with the saved schedule.
pub fn file(config: &MinionConfig) -> PathBuf {
    config.config_dir.join("minion.d/_schedule.conf")
}

/// Writes a schedule to its file.
///
/// # Errors
/// The directory cannot be created, or the file not written.
pub fn write(config: &MinionConfig, schedule: &Map) -> Result<(), FileError> {
    let path = file(config);
    let text = brine_yaml::dump(&map! {"schedule" => schedule.clone()}.into(), Style::BLOCK);
    let directory = path.parent().unwrap_or(&path);
    std::fs::create_dir_all(directory).map_err(FileError::at("create", directory))?;
    files::write_atomic(&path, text.as_bytes(), 0o600)
}
