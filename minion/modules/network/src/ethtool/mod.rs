//! `ethtool`: settings of network devices, by the program `ethtool`. Salt's module needs a Python library.

#[cfg(test)]
mod tests;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `ethtool`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "ethtool",
    [
        show_ring,
        show_coalesce,
        show_driver,
        set_ring,
        set_coalesce,
        show_offload,
        set_offload,
        show_pause,
        set_pause,
        show_features,
        set_feature
    ]
);

/// The parameters of ring buffers: their names in Salt and in ethtool.
const RING_PARAMETERS: [(&str, &str); 4] =
    [("rx", "rx"), ("rx_mini", "rx mini"), ("rx_jumbo", "rx jumbo"), ("tx", "tx")];
/// The features of `set_feature`.
const FEATURES: [&str; 12] =
    ["rx", "tx", "sg", "tso", "ufo", "gso", "gro", "lro", "rxvlan", "txvlan", "ntuple", "rxhash"];

/// Runs ethtool on a device. The inner `Err` is its output if it fails.
fn ethtool(context: &Context, flag: &str, device: &str, more: &[String]) -> Result<Result<String, String>, CallError> {
    let mut words = vec!["ethtool".to_owned(), flag.to_owned(), argument(device)?];
    words.extend_from_slice(more);
    if context.minion.programs.find("ethtool").is_none() {
        return Err(CallError::execution("Command 'ethtool' cannot be found"));
    }
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    let all = [output.stdout.trim(), output.stderr.trim()].into_iter().filter(|text| !text.is_empty());
    let all = all.collect::<Vec<_>>().join("\n");
    Ok(if output.retcode == 0 { Ok(output.stdout) } else { Err(all) })
}

/// Runs ethtool; the inner `Err` is `otherwise`, Salt's result if the device does not support the setting.
fn query(context: &Context, flag: &str, device: &str, otherwise: &str) -> Result<Result<String, Value>, CallError> {
    Ok(ethtool(context, flag, device, &[])?.map_err(|error| {
        tracing::error!(device, "ethtool {flag} failed: {error}");
        otherwise.into()
    }))
}

/// Returns the pairs of `name: value` lines.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

/// Parses an integer; any other word is returned as a string.
fn number(word: &str) -> Value {
    word.parse::<i64>().map_or_else(|_| word.into(), Value::from)
}

/// Return the sizes of the rings of a network device, and their limits (`_max`).
///
/// CLI Example:
///
///     salt '*' ethtool.show_ring eth0
#[function]
pub fn show_ring(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    Ok(query(context, "-g", &devname, "Not supported")?.map_or_else(|word| word, |text| rings(&text).into()))
}

fn rings(text: &str) -> Map {
    let mut limits = true;
    let mut rings = Map::new();
    for (name, value) in pairs(text) {
        match (name, RING_PARAMETERS.iter().find(|(_, label)| label.eq_ignore_ascii_case(name))) {
            ("Current hardware settings", _) => limits = false,
            (_, Some((name, _))) => {
                let name = if limits { format!("{name}_max") } else { (*name).to_owned() };
                rings.insert(name.into(), number(value));
            }
            _ => {}
        }
    }
    rings
}

/// Return the interrupt coalescing settings of a network device.
///
/// CLI Example:
///
///     salt '*' ethtool.show_coalesce eth0
#[function]
pub fn show_coalesce(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    Ok(query(context, "-c", &devname, "Not supported")?.map_or_else(|word| word, |text| coalescing(&text).into()))
}

fn coalescing(text: &str) -> Map {
    let mut settings = Map::new();
    for (name, value) in pairs(text) {
        // `Adaptive RX: on  TX: off`
        if let Some((rx, tx)) = value.split_once("TX:").filter(|_| name == "Adaptive RX") {
            for (name, value) in [("adaptive_rx", rx), ("adaptive_tx", tx)] {
                settings.insert(name.into(), i64::from(value.trim() == "on").into());
            }
        } else if !value.is_empty() && !name.contains(' ') {
            settings.insert(name.replace('-', "_").into(), number(value));
        }
    }
    settings
}

/// Return the driver of a network device and its bus address.
///
/// CLI Example:
///
///     salt '*' ethtool.show_driver eth0
#[function]
pub fn show_driver(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    let text = match query(context, "-i", &devname, "Not implemented")? {
        Ok(text) => text,
        Err(word) => return Ok(word),
    };
    let get = |name: &str| pairs(&text).find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    Ok(map! {"driver" => get("driver"), "bus_info" => get("bus-info").unwrap_or_default()}.into())
}

/// Set the sizes of the rings of a network device, and return them: rx, rx_mini, rx_jumbo and tx.
///
/// CLI Example:
///
///     salt '*' ethtool.set_ring eth0 rx=512 tx=512
#[function]
pub fn set_ring(
    context: &Context,
    /// Name of the interface.
    devname: String,
    /// `rx`, `rx_mini`, `rx_jumbo` and `tx`: numbers of entries.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let current = match show_ring(context, devname.clone())? {
        Value::Map(current) => current,
        word => return Ok(word),
    };
    let words = changed_settings(&current, &kwargs, |name| name.replace('_', "-"));
    if !words.is_empty() && ethtool(context, "-G", &devname, &words)?.is_err() {
        return Ok("Invalid arguments".into());
    }
    show_ring(context, devname)
}

/// Set interrupt coalescing of a network device, such as adaptive_rx, rx_usecs and tx_frames, and return all settings.
///
/// CLI Example:
///
///     salt '*' ethtool.set_coalesce eth0 adaptive_rx=on rx_usecs=30
#[function]
pub fn set_coalesce(
    context: &Context,
    /// Name of the interface.
    devname: String,
    /// Settings by the names that `ethtool.show_coalesce` returns; those that have this value already are left alone.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let current = match show_coalesce(context, devname.clone())? {
        Value::Map(current) => current,
        word => return Ok(word),
    };
    let words = changed_settings(&current, &kwargs, |name| name.replace('_', "-"));
    if !words.is_empty() && ethtool(context, "-C", &devname, &words)?.is_err() {
        return Ok("Invalid arguments".into());
    }
    show_coalesce(context, devname)
}

/// Returns the arguments for settings that differ from the current ones. Limits, and settings that the device does not
/// have, are ignored.
fn changed_settings(current: &Map, kwargs: &Map, option: impl Fn(&str) -> String) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in kwargs {
        let name = name.to_string();
        let Some(now) = current.get(&Value::from(name.as_str())).filter(|_| !name.ends_with("_max")) else { continue };
        let value = switch(value);
        let is_switch = name.starts_with("adaptive");
        let now = match now.as_i64() {
            Some(on) if is_switch => if on == 1 { "on" } else { "off" }.to_owned(),
            _ => now.to_string(),
        };
        if now != value && !value.starts_with('-') {
            words.extend([option(&name), value]);
        }
    }
    words
}

/// Returns a value as an argument: booleans are `on` and `off`.
fn switch(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

/// Return the protocol offload settings of a network device.
///
/// CLI Example:
///
///     salt '*' ethtool.show_offload eth0
#[function]
pub fn show_offload(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    let text = ethtool(context, "-k", &devname, &[])?.unwrap_or_default();
    let names =
        ["scatter_gather", "tcp_segmentation_offload", "udp_fragmentation_offload", "generic_segmentation_offload"];
    let get = |name: &str| {
        let pair = pairs(&text).find(|(key, _)| key.replace('-', "_") == name);
        pair.and_then(|(_, value)| value.split(' ').next()).unwrap_or("not supported").to_owned()
    };
    Ok(names.into_iter().map(|name| (Value::from(name), get(name).into())).collect::<Map>().into())
}

/// Set TCP segmentation offload of a network device (`tcp_segmentation_offload`: `on` or `off`), and return its offload
/// settings.
///
/// CLI Example:
///
///     salt '*' ethtool.set_offload eth0 tcp_segmentation_offload=on
#[function]
pub fn set_offload(
    context: &Context,
    /// Name of the interface.
    devname: String,
    /// `tcp_segmentation_offload`: `on` or `off`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if let Some(value) = kwargs.get(&Value::from("tcp_segmentation_offload")) {
        let value = if switch(value) == "on" { "on" } else { "off" };
        if ethtool(context, "-K", &devname, &["tso".to_owned(), value.to_owned()])?.is_err() {
            return Ok("Not supported".into());
        }
    }
    show_offload(context, devname)
}

/// Return the pause frame settings of a network device: whether they are negotiated, received and sent.
///
/// CLI Example:
///
///     salt '*' ethtool.show_pause eth0
#[function]
pub fn show_pause(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    let text = ethtool(context, "-a", &devname, &[])?.map_err(CallError::execution)?;
    Ok(pairs(&text).skip(1).map(|(name, value)| (name.into(), (value == "on").into())).collect::<Map>().into())
}

/// Set the pause frame settings of a network device: autoneg, rx and tx, each `on` or `off`.
///
/// CLI Example:
///
///     salt '*' ethtool.set_pause eth0 autoneg=off rx=off tx=off
#[function]
pub fn set_pause(
    context: &Context,
    /// Name of the interface.
    devname: String,
    /// `autoneg`, `rx` and `tx`, each `on` or `off`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    set(context, "-A", &devname, &["autoneg", "rx", "tx"], &kwargs)
}

/// Return the features of a network device: whether each is on, and whether that is fixed.
///
/// CLI Example:
///
///     salt '*' ethtool.show_features eth0
#[function]
pub fn show_features(
    context: &Context,
    /// Name of the interface.
    devname: String,
) -> CallResult {
    let text = ethtool(context, "-k", &devname, &[])?.map_err(CallError::execution)?;
    let feature = |(name, value): (&str, &str)| {
        let on = value.split(' ').next() == Some("on");
        (Value::from(name), map! {"on" => on, "fixed" => value.contains("fixed")}.into())
    };
    Ok(pairs(&text).skip(1).map(feature).collect::<Map>().into())
}

/// Set features of a network device: rx, tx, sg, tso, ufo, gso, gro, lro, rxvlan, txvlan, ntuple and rxhash, each `on` or
/// `off`.
///
/// CLI Example:
///
///     salt '*' ethtool.set_feature eth0 sg=off
#[function]
pub fn set_feature(
    context: &Context,
    /// Name of the interface.
    devname: String,
    /// Features, each `on` or `off`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    set(context, "-K", &devname, &FEATURES, &kwargs)
}

/// Sets switches, and returns True, or the output of ethtool if there is any.
fn set(context: &Context, flag: &str, device: &str, valid: &[&str], kwargs: &Map) -> CallResult {
    let mut words = Vec::new();
    for (name, value) in kwargs {
        let name = name.to_string().to_lowercase();
        if valid.contains(&name.as_str()) {
            let value = switch(value);
            if !["on", "off"].contains(&value.as_str()) {
                return Err(CallError::execution(format!("{name} is invalid: expected on or off, got '{value}'")));
            }
            words.extend([name, value]);
        }
    }
    if words.is_empty() {
        let valid = valid.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        return Err(CallError::execution(format!("None of the valid parameters were provided: [{valid}]")));
    }
    let text = ethtool(context, flag, device, &words)?.map_err(CallError::execution)?;
    Ok(if text.trim().is_empty() { true.into() } else { text.trim().into() })
}
