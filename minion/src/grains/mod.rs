//! Facts about this host.

use brine_core::config::MinionConfig;
use brine_core::{Map, map};

/// All grains of this host.
pub fn collect(config: &MinionConfig, id: &str) -> Map {
    let mut grains = map! {"id" => id};
    grains.extend(config.grains.clone());
    grains
}
