//! Facts about this host: read from files and the kernel, without child processes, in milliseconds.
//!
//! `os.rs` owns the distribution, `hardware/` processors, memory, disks and virtualization, `network/` names and
//! addresses, `environment.rs` the minion's process.

mod environment;
mod hardware;
mod network;
mod os;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use brine_config::{MinionConfig, SALT_VERSION};
use brine_system::files;
use brine_target::matches_expression;
use brine_value::{Map, Value, map, merge};
use brine_yaml::Data;
use sha2::{Digest, Sha256};

/// Returns all grains of this host, without those of custom modules.
pub fn collect(config: &MinionConfig, id: &str) -> Map {
    let mut grains = of_host(config, id);
    add(config, &mut grains, Map::new());
    grains
}

/// Adds the grains of custom modules, over them those of the file `grains` in the configuration directory, and over
/// both `grains:` of the configuration.
pub fn add(config: &MinionConfig, grains: &mut Map, custom: Map) {
    for mut more in [custom, file_grains(&config.config_dir.join("grains"))] {
        apply_blacklist(&mut more, &config.grains_blacklist);
        if config.grains_deep_merge { merge(grains, &more) } else { grains.extend(more) }
    }
    grains.extend(config.grains.clone());
}

/// Returns the grains that are read from this host.
pub fn of_host(config: &MinionConfig, id: &str) -> Map {
    let mut grains = os::grains();
    grains.extend(hardware::grains());
    grains.extend(network::grains());
    grains.extend(environment::grains());
    grains.extend(map! {
        "id" => id,
        "server_id" => server_id(id),
        "master" => match &config.master[..] {
            [one] => one.into(),
            several => several.iter().collect::<Value>(),
        },
        "saltversion" => SALT_VERSION,
        "saltversioninfo" => SALT_VERSION.split('.').filter_map(|part| part.parse::<i64>().ok()).collect::<Value>(),
        "pythonversion" => environment::python_version(),
        "brineversion" => brine_config::VERSION,
        "package" => Value::Nil,
    });
    apply_blacklist(&mut grains, &config.grains_blacklist);
    grains
}

/// Removes the grains that `grains_blacklist` names.
fn apply_blacklist(grains: &mut Map, blacklist: &[String]) {
    if !blacklist.is_empty() {
        grains.retain(|name, _| !blacklist.iter().any(|one| matches_expression(one, &name.to_string())));
    }
}

/// Returns the grains of a file. An unreadable file is logged and skipped: a minion without some grains is better
/// than none.
fn file_grains(path: &Path) -> Map {
    let read = files::read_if_exists(path).map_err(|error| error.to_string());
    match read.and_then(|text| brine_yaml::load_data(&text.unwrap_or_default()).map_err(|error| error.to_string())) {
        Ok(Data { value: Value::Map(own), .. }) => own,
        Ok(Data { value: Value::Nil, .. }) => Map::new(),
        Ok(Data { value: other, .. }) => {
            let got = other.type_name();
            tracing::error!(path = %path.display(), "the grains file is invalid: expected a mapping, got {got}");
            Map::new()
        }
        Err(error) => {
            tracing::error!(path = %path.display(), error, "reading the grains file failed");
            Map::new()
        }
    }
}

/// Returns a number derived from the id, the same on every start.
fn server_id(id: &str) -> i64 {
    let digest = Sha256::digest(id);
    let tail = digest.iter().skip(28).fold(0, |number, byte| number << 8 | i64::from(*byte));
    tail & 0x7fff_ffff
}

/// Returns the content of a system file, at most 16 MiB of it; `None` if it cannot be read.
fn read(path: &str) -> Option<String> {
    // Files of the kernel have no size: without a buffer of a page, reading would begin with 32 bytes.
    let mut bytes = Vec::with_capacity(4096);
    File::open(path).ok()?.take(16 << 20).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

#[cfg(test)]
mod tests;
