//! `network`: wakes hosts by magic packets (Wake-on-LAN).

use std::path::PathBuf;

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::wake_on_lan::{octets, wake};
use brine_target::TargetFacts;
use brine_value::{Value, map};

use super::RunnerContext;

/// Runner functions of `network`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("network", [wol, wollist, wolmatch]);

/// The maximum size of a list of addresses, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// Wake a host by a magic packet.
///
/// CLI Example:
///
///     salt-run network.wol 08-00-27-13-69-77
///     salt-run network.wol 080027136977 255.255.255.255 7
#[function]
pub fn wol(
    _context: &RunnerContext,
    /// Its MAC address.
    mac: String,
    /// The broadcast address (255.255.255.255).
    #[default("255.255.255.255".into())]
    bcast: String,
    /// The UDP port (9).
    #[default(9)]
    destport: u16,
) -> CallResult {
    wake(&mac, &bcast, destport).map_err(CallError::execution)?;
    Ok(true.into())
}

/// Wake the hosts of a list, a file of the master with one MAC address on each line, and return the addresses.
///
/// CLI Example:
///
///     salt-run network.wollist '/path/to/maclist'
#[function]
pub fn wollist(
    context: &RunnerContext,
    /// The path of the file.
    maclist: PathBuf,
    /// The broadcast address (255.255.255.255).
    #[default("255.255.255.255".into())]
    bcast: String,
    /// The UDP port (9).
    #[default(9)]
    destport: u16,
) -> CallResult {
    let failed = |error: &dyn std::fmt::Display| {
        // As in Salt, a failure returns an empty list, and publishes the error as an event.
        let text = format!("reading the list of MAC addresses {} failed: {error}", maclist.display());
        context.progress_event(&map! {"error" => text});
        Ok(Value::List(Vec::new()))
    };
    match std::fs::metadata(&maclist) {
        Ok(status) if !status.is_file() => return failed(&"it is not a regular file"),
        Ok(status) if status.len() > MAX_LIST => return failed(&format!("expected at most {MAX_LIST} bytes")),
        Ok(_) => {}
        Err(error) => return failed(&error),
    }
    let text = match std::fs::read_to_string(&maclist) {
        Ok(text) => text,
        Err(error) => return failed(&error),
    };
    let mut woken = Vec::new();
    for mac in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Err(error) = wake(mac, &bcast, destport) {
            return failed(&error);
        }
        woken.push(Value::from(mac));
    }
    Ok(woken.into())
}

/// Wake the hosts of minions, at the MAC addresses in their stored grains, and return the addresses.
///
/// CLI Example:
///
///     salt-run network.wolmatch minion_id
///     salt-run network.wolmatch 192.168.0.0/16 tgt_type='ipcidr' bcast=255.255.255.255 destport=7
#[function]
pub fn wolmatch(
    context: &RunnerContext,
    /// The minions.
    tgt: Value,
    /// The minions.
    #[default("glob".into())]
    tgt_type: String,
    /// The broadcast address (255.255.255.255).
    #[default("255.255.255.255".into())]
    bcast: String,
    /// The UDP port (9).
    #[default(9)]
    destport: u16,
) -> CallResult {
    let mut woken = Vec::new();
    for id in context.minions(tgt, tgt_type)? {
        let facts = context.storage().minion_data.facts(&id);
        let interfaces = facts.grains().and_then(|grains| grains.get("hwaddr_interfaces")).and_then(Value::as_map);
        for (name, mac) in interfaces.into_iter().flatten() {
            let mac = mac.to_string();
            // Loopback and tunnels have no hardware address.
            if name.as_str() == Some("lo") || octets(mac.trim()).is_none_or(|octets| octets == [0; 6]) {
                continue;
            }
            wake(mac.trim(), &bcast, destport).map_err(CallError::execution)?;
            woken.push(Value::from(mac.trim()));
        }
    }
    Ok(woken.into())
}
