//! `network`: wakes hosts by magic packets (Wake-on-LAN).

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;

use brine_function::{CallError, CallResult, Function, function, registry};
use brine_target::Facts;
use brine_value::Value;

use super::RunnerContext;

/// Runner functions of `network`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("network", [wol, wollist, wolmatch]);

/// The maximum size of a list of addresses, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// Wake a host by a magic packet.
///
/// mac: its MAC address. bcast: the broadcast address (255.255.255.255). destport: the UDP port (9).
///
/// CLI Example:
///
///     salt-run network.wol 08-00-27-13-69-77
///     salt-run network.wol 080027136977 255.255.255.255 7
#[function]
pub fn wol(
    _context: &RunnerContext,
    mac: String,
    #[default("255.255.255.255".into())] bcast: String,
    #[default(9)] destport: u16,
) -> CallResult {
    wake(&mac, &bcast, destport)?;
    Ok(true.into())
}

/// Wake the hosts of a list, a file of the master with one MAC address on each line, and return the addresses.
///
/// maclist: the path of the file. bcast: the broadcast address (255.255.255.255). destport: the UDP port (9).
///
/// CLI Example:
///
///     salt-run network.wollist '/path/to/maclist'
#[function]
pub fn wollist(
    context: &RunnerContext,
    maclist: PathBuf,
    #[default("255.255.255.255".into())] bcast: String,
    #[default(9)] destport: u16,
) -> CallResult {
    let failed = |error: &dyn std::fmt::Display| {
        // As in Salt, the result of a failure is an empty list, and the error an event.
        context.progress(&format!("reading the list of MAC addresses {} failed: {error}", maclist.display()));
        Ok(Value::List(Vec::new()))
    };
    match std::fs::metadata(&maclist) {
        Ok(found) if !found.is_file() => return failed(&"it is not a regular file"),
        Ok(found) if found.len() > MAX_LIST => return failed(&format!("expected at most {MAX_LIST} bytes")),
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
/// tgt, tgt_type: the minions. bcast: the broadcast address (255.255.255.255). destport: the UDP port (9).
///
/// CLI Example:
///
///     salt-run network.wolmatch minion_id
///     salt-run network.wolmatch 192.168.0.0/16 tgt_type='ipcidr' bcast=255.255.255.255 destport=7
#[function]
pub fn wolmatch(
    context: &RunnerContext,
    tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default("255.255.255.255".into())] bcast: String,
    #[default(9)] destport: u16,
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
            wake(mac.trim(), &bcast, destport)?;
            woken.push(Value::from(mac.trim()));
        }
    }
    Ok(woken.into())
}

/// Sends the magic packet: six bytes of ones, and sixteen times the address.
fn wake(mac: &str, bcast: &str, port: u16) -> Result<(), CallError> {
    let octets = octets(mac).ok_or_else(|| {
        CallError::execution(format!("MAC address '{mac}' is invalid: expected a form such as 08:00:27:13:69:77"))
    })?;
    let address: Ipv4Addr = bcast.parse().map_err(|_| {
        CallError::execution(format!("broadcast address '{bcast}' is invalid: expected one such as 192.168.1.255"))
    })?;
    let send = || -> std::io::Result<usize> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_broadcast(true)?;
        socket.send_to(&packet(octets), (address, port))
    };
    send().map_err(|error| CallError::execution(format!("sending the packet to {bcast}:{port} failed: {error}")))?;
    Ok(())
}

fn packet(octets: [u8; 6]) -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    packet.extend(octets.repeat(16));
    packet
}

/// Parses a MAC address of twelve digits, with or without one separator between the pairs.
fn octets(mac: &str) -> Option<[u8; 6]> {
    let bytes = mac.as_bytes();
    let digits: Vec<u8> = match bytes.len() {
        12 => bytes.to_vec(),
        17 => {
            let separator = bytes[2];
            let pairs: Vec<&[u8]> = bytes.split(|byte| *byte == separator).collect();
            (pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)).then(|| pairs.concat())?
        }
        _ => return None,
    };
    let mut octets = [0; 6];
    for (octet, pair) in octets.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *octet = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_parsed_with_and_without_separators() {
        let expected = Some([0x08, 0x00, 0x27, 0x13, 0x69, 0x77]);
        for mac in ["08:00:27:13:69:77", "08-00-27-13-69-77", "080027136977", "08.00.27.13.69.77"] {
            assert_eq!(octets(mac), expected, "{mac}");
        }
        for mac in ["", "08:00:27:13:69", "0800271369zz", "08:00-27:13:69:77", "+80027136977", "é8:00:27:13:69:77"] {
            assert_eq!(octets(mac), None, "{mac}");
        }
    }

    #[test]
    fn a_magic_packet_reaches_its_port() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        wake("080027136977", "127.0.0.1", receiver.local_addr().unwrap().port()).unwrap();
        let mut buffer = [0; 200];
        let size = receiver.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..size], packet([0x08, 0x00, 0x27, 0x13, 0x69, 0x77]));
        assert!(wake("080027136977", "nowhere", 9).is_err());
    }
}
