//! Parses `/etc/network/interfaces` and the files in `interfaces.d`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brine_function::CallError;
use brine_system::files;
use brine_value::{Map, Value};

use super::adapter::{Adapters, Stanza};
use super::options::{checked, is_known};
use super::routes::MAX_FILE_BYTES;

/// Maximum number of files that are read in `interfaces.d`.
const MAX_FILES: usize = 1024;
/// Options of the device (ethtool), by their names in the file.
const ETHTOOL: &[&str] = &[
    "link-speed",
    "link-duplex",
    "ethernet-autoneg",
    "ethernet-port",
    "ethernet-wol",
    "driver-message-level",
    "ethernet-pause-rx",
    "ethernet-pause-tx",
    "ethernet-pause-autoneg",
    "offload-rx",
    "offload-tx",
    "offload-sg",
    "offload-tso",
    "offload-ufo",
    "offload-gso",
    "offload-gro",
    "offload-lro",
    "hardware-irq-coalesce-adaptive-rx",
    "hardware-irq-coalesce-adaptive-tx",
    "hardware-irq-coalesce-rx-usecs",
    "hardware-irq-coalesce-rx-frames",
    "hardware-dma-ring-rx",
    "hardware-dma-ring-rx-mini",
    "hardware-dma-ring-rx-jumbo",
    "hardware-dma-ring-tx",
];

/// Reads `/etc/network/interfaces` and the files in `interfaces.d` below a root directory.
pub(super) fn adapters(root: &Path) -> Result<Adapters, CallError> {
    let mut adapters = Adapters::new();
    for path in paths(root)? {
        if path.metadata().is_ok_and(|about| about.len() > MAX_FILE_BYTES) {
            let path = path.display();
            return Err(CallError::Execution(format!("{path} is not read: expected at most {MAX_FILE_BYTES} bytes")));
        }
        let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
        read(&text, &mut adapters)?;
    }
    adapters.retain(|name, adapter| {
        let keeps = adapter.is_defined();
        if !keeps {
            tracing::error!(interface = name, "ignoring an interface that is started but not defined");
        }
        keeps
    });
    Ok(adapters)
}

fn paths(root: &Path) -> Result<Vec<PathBuf>, CallError> {
    let first = root.join("etc/network/interfaces");
    let mut more = Vec::new();
    if let Ok(entries) = std::fs::read_dir(root.join("etc/network/interfaces.d")) {
        more.extend(entries.take(MAX_FILES).flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    more.sort();
    Ok(first.is_file().then_some(first).into_iter().chain(more).collect())
}

/// Adds the interfaces of one file.
fn read(text: &str, adapters: &mut Adapters) -> Result<(), CallError> {
    // The interface and family of the current stanza.
    let mut current: Option<(String, String)> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(first), false) = (words.first(), line.trim_start().starts_with('#')) else { continue };
        if line.starts_with("iface") {
            let [_, name, family, proto] = words[..] else { return malformed(&words) };
            let adapter = adapters.entry(name.to_owned()).or_default();
            let stanza = adapter.families.entry(family.to_owned()).or_default();
            stanza.options.insert("proto".into(), proto.into());
            current = Some((name.to_owned(), family.to_owned()));
        } else if line.starts_with(char::is_whitespace) {
            let Some((name, family)) = &current else { return malformed(&words) };
            let value = line.trim().split_once(char::is_whitespace).map(|(_, value)| value.trim_start());
            let Some(value) = value else { return malformed(&words) };
            if let Some(stanza) = adapters.get_mut(name).and_then(|adapter| adapter.families.get_mut(family)) {
                add_option(stanza, family, first, value);
            }
        } else if line.starts_with("auto") {
            for name in &words[1..] {
                adapters.entry((*name).to_owned()).or_default().enabled = true;
            }
        } else if line.starts_with("allow-hotplug") {
            for name in &words[1..] {
                adapters.entry((*name).to_owned()).or_default().hotplug = true;
            }
        } else if line.starts_with("source") {
            let [_, path, ..] = words[..] else { return malformed(&words) };
            adapters.entry("source".to_owned()).or_default().sources.push(path.to_owned());
        }
    }
    Ok(())
}

/// Adds an option to a stanza.
fn add_option(stanza: &mut Stanza, family: &str, option: &str, text: &str) {
    let value = Value::from(text);
    let name = option.replace('-', "_");
    if is_known(option) {
        let value = checked(option, &value, family).map_or(value, |(_, value)| value);
        if name == "address" && stanza.options.contains_key("address") {
            // A file that was merged before has the same address again.
            if stanza.options.get("address") != Some(&value) {
                append(&mut stanza.options, "addresses", value);
            }
        } else {
            stanza.options.insert(name.into(), value);
        }
    } else if ETHTOOL.contains(&option) {
        stanza.ethtool.insert(option.to_owned(), value);
    } else if let Some(name) = part(option, "bond") {
        insert(&mut stanza.bonding, name, value);
    } else if let Some(name) = part(option, "bridge") {
        insert(&mut stanza.bridging, name, value);
    } else if ["up", "pre-up", "post-up", "down", "pre-down", "post-down"].contains(&option) {
        append(&mut stanza.options, &format!("{name}_cmds"), value);
    }
}

/// Returns the name of an option of a bond or a bridge without its prefix.
fn part<'a>(option: &'a str, prefix: &str) -> Option<&'a str> {
    option.starts_with(prefix).then(|| option.split_once(['_', '-']))?.map(|(_, name)| name)
}

fn insert(options: &mut BTreeMap<String, Value>, name: &str, value: Value) {
    options.insert(name.to_owned(), value);
}

/// Adds an item to a list, unless the list contains it.
fn append(options: &mut Map, name: &str, value: Value) {
    let list = options.entry(name.into()).or_insert_with(|| Value::List(Vec::new()));
    if let Value::List(items) = list
        && !items.contains(&value)
    {
        items.push(value);
    }
}

fn malformed<T>(words: &[&str]) -> Result<T, CallError> {
    let words: Value = words.iter().copied().collect();
    Err(CallError::Execution(format!("Interface file malformed: {words}.")))
}
