//! `sdb://` in the configuration: options whose values are in databases (`minion/modules/salt/src/sdb`).
//!
//! A configuration is read, its URIs are resolved with the profiles in it, and it is read again with their values. Only
//! options that are strings can therefore be URIs.

use std::path::Path;

use anyhow::Context;
use brine_config::{ConfigError, Loaded, MasterConfig, MinionConfig};
use brine_function::Args;
use brine_master_custom::HostFunctions;
use brine_value::{Map, Value};

use super::host::MasterHost;
use super::saltfile;

/// The beginning of every URI.
const SCHEME: &str = "sdb://";

/// Reads the master's configuration, and the values of its URIs.
///
/// # Errors
/// The configuration is invalid, or a value cannot be read.
pub fn master_config(directory: &Path, overrides: &Map) -> anyhow::Result<Loaded<MasterConfig>> {
    let host = |config: &MasterConfig| MasterHost::new(config);
    load(overrides, |options| MasterConfig::load(directory, options), |config| &config.opts, host)
}

/// Reads the minion's configuration, and the values of its URIs.
///
/// # Errors
/// The configuration is invalid, or a value cannot be read.
pub fn minion_config(directory: &Path, overrides: &Map) -> anyhow::Result<Loaded<MinionConfig>> {
    load(overrides, |options| MinionConfig::load(directory, options), |config| &config.opts, MasterHost::of_minion)
}

fn load<C>(
    overrides: &Map,
    read: impl Fn(&Map) -> Result<Loaded<C>, ConfigError>,
    opts: impl Fn(&C) -> &Map,
    host: impl Fn(&C) -> MasterHost,
) -> anyhow::Result<Loaded<C>> {
    let overrides = &saltfile::overridden(overrides);
    let loaded = read(overrides)?;
    let with_uris: Map =
        opts(&loaded.config).iter().filter(|(_, value)| has_uri(value)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if with_uris.is_empty() {
        return Ok(loaded);
    }
    let functions = host(&loaded.config).functions(None);
    let mut options = overrides.clone();
    for (name, value) in with_uris {
        let get = |uri: &str| functions.call("sdb.get", Args::positional([uri.into()]));
        let value =
            resolved(value, &get).with_context(|| format!("reading the value of the option '{name}' failed"))?;
        options.insert(name, value);
    }
    Ok(read(&options)?)
}

fn has_uri(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.starts_with(SCHEME),
        Value::List(all) => all.iter().any(has_uri),
        Value::Map(map) => map.values().any(has_uri),
        _ => false,
    }
}

/// Returns a value with all URIs in it replaced by their values.
fn resolved<E>(value: Value, get: &impl Fn(&str) -> Result<Value, E>) -> Result<Value, E> {
    Ok(match value {
        Value::Str(text) if text.starts_with(SCHEME) => get(&text)?,
        Value::List(all) => all.into_iter().map(|one| resolved(one, get)).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Map(map) => {
            let pairs = map.into_iter().map(|(name, value)| Ok((name, resolved(value, get)?)));
            Value::Map(pairs.collect::<Result<Map, E>>()?)
        }
        other => other,
    })
}

#[cfg(test)]
mod tests;
