//! `devinfo`: devices by their properties, and the hardware as the program `hwinfo` describes it.

mod report;

use std::collections::BTreeSet;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `devinfo`.
pub static FUNCTIONS: Functions<Context> = registry!("devinfo", [filter, hwinfo]);

/// Return the disks that have the given properties, sorted. A key such as `e.id_bus` is a path into the result of
/// `udev.info`, in lower case.
///
/// CLI Example:
///
///     salt '*' devinfo.filter udev_in='{"e.id_bus": "ata"}'
#[function]
pub fn filter(
    context: &Context,
    /// Properties that the disks have, with a value or a list of values.
    #[default]
    udev_in: Map,
    /// Properties that exclude disks.
    #[default]
    udev_ex: Map,
) -> CallResult {
    let mut disks = BTreeSet::new();
    for disk in context.grains().get("disks").and_then(Value::as_list).unwrap_or_default() {
        let about = context.call("udev.info", Args::positional([disk.clone()]))?;
        if matches(&about, &udev_in) && (udev_ex.is_empty() || !matches(&about, &udev_ex)) {
            disks.insert(disk.to_string());
        }
    }
    Ok(disks.into_iter().collect())
}

/// Whether a device has, for each property, one of the given values.
fn matches(about: &Value, criteria: &Map) -> bool {
    let list = |value: &Value| match value {
        Value::List(items) => items.clone(),
        one => vec![one.clone()],
    };
    criteria.iter().all(|(key, values)| {
        let key = key.to_string().to_uppercase();
        let absent = || Value::from("n/a");
        let have = key.split('.').try_fold(about, |value, part| value.get(part)).cloned().unwrap_or_else(absent);
        if matches!(have, Value::Map(_)) {
            tracing::warn!(key, "the property of udev has properties of its own: it is not compared");
            return true;
        }
        let have = list(&have);
        list(values).iter().any(|value| have.contains(value))
    })
}

/// Return a description of the hardware, as reported by `hwinfo`.
///
/// CLI Example:
///
///     salt '*' devinfo.hwinfo
///     salt '*' devinfo.hwinfo items='["disk"]' short=False devices='["/dev/sda"]'
#[function]
pub fn hwinfo(
    context: &Context,
    /// Parts of the hardware; by default `bios`, `cpu`, `disk`, `memory`, `network` and `partition`.
    #[default]
    items: Value,
    /// Whether it is a summary.
    #[default(true)]
    short: bool,
    /// Whether RAID devices are described.
    #[default(false)]
    listmd: bool,
    /// Devices to describe; all by default.
    #[default]
    devices: Value,
) -> CallResult {
    if context.minion.programs.find("hwinfo").is_none() {
        return Err(CallError::Execution("the program hwinfo is not installed: install the package 'hwinfo'".into()));
    }
    let mut items = names(&items);
    if items.is_empty() {
        items = ["bios", "cpu", "disk", "memory", "network", "partition"].map(str::to_owned).to_vec();
    }
    let mut words = vec!["hwinfo".to_owned()];
    for item in &items {
        words.push(format!("--{}", argument(item)?));
    }
    words.extend(short.then(|| "--short".to_owned()));
    words.extend(listmd.then(|| "--listmd".to_owned()));
    for device in names(&devices) {
        words.extend(["--only".to_owned(), argument(&device)?]);
    }
    let output = run(context, &words, &[])?;
    let text = &output.stdout;
    let mut result = map! {"hwinfo" => if short { report::short(text) } else { report::full(text) }};
    let grains = context.grains();
    let mut add = |item: &str, keys: &[(&str, &str)]| {
        if items.iter().any(|other| other == item) {
            let values: Map = keys
                .iter()
                .map(|(name, grain)| ((*name).into(), grains.get(*grain).cloned().unwrap_or_default()))
                .collect();
            result.insert(format!("{item} grains").into(), values.into());
        }
    };
    add("bios", &[("efi", "efi"), ("efi-secure-boot", "efi-secure-boot")]);
    add("memory", &[("mem_total", "mem_total")]);
    let network = [("fqdn", "fqdn"), ("ip_interfaces", "ip_interfaces"), ("dns", "dns")];
    add("network", if short { &network[..2] } else { &network });
    Ok(result.into())
}

#[cfg(test)]
mod tests;
