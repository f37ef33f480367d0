//! Options of bonds, by mode.

use brine_function::CallError;
use brine_value::{Map, Value};

use super::adapter::refused;
use super::options::{SWITCH, integer, switch};

const MODES: [&str; 7] =
    ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];
const HASH_POLICIES: [&str; 3] = ["layer2", "layer2+3", "layer3+4"];

/// Returns the options of a bond, in order: those of its mode, from the settings or by default.
pub(super) fn options(settings: &Map, iface: &str, omits_use_carrier: bool) -> Result<Map, CallError> {
    let chosen = settings.get("mode").and_then(Value::as_str).unwrap_or_default();
    let mode = (0..MODES.len()).find(|mode| chosen == MODES[*mode] || chosen == mode.to_string());
    let Some(mode) = mode else {
        return Err(refused(iface, "mode", &format!("0|1|2|3|4|5|6|{}", MODES.join("|"))));
    };
    let mut bond = Map::from_iter([("mode".into(), mode.to_string().into())]);
    if mode == 0 || mode == 2 {
        bond.insert("arp_ip_target".into(), arp_targets(settings, iface)?);
        number(&mut bond, settings, iface, ("arp_interval", "250"))?;
    } else {
        for option in [("miimon", "100"), ("downdelay", "200"), ("updelay", "0")] {
            number(&mut bond, settings, iface, option)?;
        }
    }
    if mode == 4 {
        let rate = match settings.get("lacp_rate").map(|rate| (rate, rate.as_str())) {
            None | Some((_, Some("slow"))) => "0".into(),
            Some((_, Some("fast"))) => "1".into(),
            Some((rate, _)) if matches!(integer(rate), Ok(Some(_))) => rate.clone(),
            Some(_) => return Err(refused(iface, "lacp_rate", "fast|1|slow|0")),
        };
        bond.insert("lacp_rate".into(), rate);
        number(&mut bond, settings, iface, ("ad_select", "0"))?;
    }
    let primary = settings.get("primary").cloned();
    if let (1, Some(primary)) = (mode, &primary) {
        bond.insert("primary".into(), primary.clone());
    }
    if mode == 1 && !omits_use_carrier || mode >= 3 {
        let carrier = match settings.get("use_carrier") {
            None => "on",
            Some(value) => match switch(value) {
                Some(true) => "1",
                Some(false) => "0",
                None => return Err(refused(iface, "use_carrier", SWITCH)),
            },
        };
        bond.insert("use_carrier".into(), carrier.into());
    }
    if let (5 | 6, Some(primary)) = (mode, primary) {
        bond.insert("primary".into(), primary);
    }
    if let (2 | 4, Some(hash)) = (mode, settings.get("hashing-algorithm")) {
        if !hash.as_str().is_some_and(|hash| HASH_POLICIES.contains(&hash)) {
            return Err(refused(iface, "hashing-algorithm", &HASH_POLICIES.join("|")));
        }
        bond.insert("xmit_hash_policy".into(), hash.clone());
    }
    Ok(bond)
}

/// Returns the file in `modprobe.d` of a bond.
pub(super) fn text(iface: &str, bond: &Map) -> Result<String, CallError> {
    let mut text = format!("alias {iface} bonding\noptions {iface} ");
    for (option, value) in bond {
        let (option, value) = (option.to_string(), value.to_string());
        // A second word would be another option, and a second line a command that modprobe runs.
        if value.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(refused(iface, &option, "one word"));
        }
        text += &format!("{option}={value} ");
    }
    Ok(text)
}

fn number(bond: &mut Map, settings: &Map, iface: &str, (option, default): (&str, &str)) -> Result<(), CallError> {
    let value = settings.get(option).cloned().unwrap_or_else(|| default.into());
    if !matches!(integer(&value), Ok(Some(_))) {
        return Err(refused(iface, option, "integer"));
    }
    bond.insert(option.into(), value);
    Ok(())
}

fn arp_targets(settings: &Map, iface: &str) -> Result<Value, CallError> {
    match settings.get("arp_ip_target") {
        Some(Value::List(targets)) if (1..=16).contains(&targets.len()) => {
            Ok(targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",").into())
        }
        _ => Err(refused(iface, "arp_ip_target", "list of ips (up to 16)")),
    }
}
