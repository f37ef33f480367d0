//! `network`: host name, TCP connections and ring buffers of this host; ARP table, traceroute and Wake-on-LAN.

use std::collections::BTreeSet;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::files;
use brine_system::wake_on_lan::wake;
use brine_value::{Map, Value, map};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::sockets::host_name;

/// Execution functions of `network`.
pub static FUNCTIONS: Functions<Context> =
    registry!("network", [active_tcp, arp, fqdns, get_bufsize, mod_bufsize, mod_hostname, traceroute, wol]);

/// Return the established TCP connections: local and remote address and port, numbered from 0.
///
/// CLI Example:
///
///     salt '*' network.active_tcp
#[function]
pub fn active_tcp(_context: &Context) -> CallResult {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let connections = tables.iter().flat_map(|table| table.lines()).filter_map(parse_established);
    Ok(connections.enumerate().map(|(number, about)| (number.into(), about.into())).collect::<Map>().into())
}

/// Return the ARP table: IP addresses by MAC address.
///
/// CLI Example:
///
///     salt '*' network.arp
#[function]
pub fn arp(context: &Context) -> CallResult {
    let output = run(context, &["arp".into(), "-an".into()], &[("LC_ALL", "C")])?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, address, _, mac, ..] = words[..] else { return None };
        Some((mac.into(), address.trim_matches(['(', ')']).into()))
    };
    Ok(output.stdout.lines().filter_map(row).collect::<Map>().into())
}

/// Return the fully qualified names of this host's addresses, from name servers and `/etc/hosts`.
///
/// CLI Example:
///
///     salt '*' network.fqdns
#[function]
pub fn fqdns(context: &Context) -> CallResult {
    let mut names = BTreeSet::new();
    for address in addresses()? {
        let output = run(context, &["getent".into(), "hosts".into(), argument(&address)?], &[])?;
        names.extend(output.stdout.lines().filter_map(qualified));
    }
    Ok(map! {"fqdns" => names.into_iter().collect::<Value>()}.into())
}

/// Return the sizes of a network device's ring buffers, as `ethtool -g` reports them.
///
/// CLI Example:
///
///     salt '*' network.get_bufsize eth0
#[function]
pub fn get_bufsize(
    context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    if context.minion.programs.find("ethtool").is_none() {
        return Ok(map! {}.into());
    }
    let output = run(context, &["ethtool".into(), "-g".into(), argument(&iface)?], &[("LC_ALL", "C")])?;
    let mut report = map! {"result" => false};
    report.extend(buffers(&output.stdout));
    if report.len() == 1 {
        report.insert("comment".into(), format!("{}{}", output.stdout, output.stderr).trim().into());
    } else {
        report.insert("result".into(), true.into());
    }
    Ok(report.into())
}

/// Change the sizes of a network device's ring buffers: `rx`, `tx`, `rx-mini` and `rx-jumbo`.
///
/// CLI Example:
///
///     salt '*' network.mod_bufsize eth0 tx=256 rx=256
#[function]
pub fn mod_bufsize(
    context: &Context,
    /// Name of the interface.
    iface: String,
    /// Refused: the sizes are keyword arguments.
    #[rest]
    args: Vec<Value>,
    /// `rx`, `tx`, `rx-mini` and `rx-jumbo`: numbers of entries.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if context.minion.programs.find("ethtool").is_none() {
        return Ok(false.into());
    }
    let reported = |result: bool, comment: String| Ok(map! {"result" => result, "comment" => comment}.into());
    if !args.is_empty() {
        let all: Vec<String> = args.iter().map(ToString::to_string).collect();
        return reported(false, format!("Unknown arguments: {}", all.join(" ")));
    }
    let mut sizes = Vec::new();
    for name in ["rx", "tx", "rx-mini", "rx-jumbo"] {
        if let Some(size) = kwargs.get(name).filter(|size| **size != Value::Nil) {
            let size = size.to_string();
            if !size.bytes().all(|byte| byte.is_ascii_digit()) {
                return reported(false, format!("{name} must be a number, not '{size}'"));
            }
            sizes.extend([name.to_owned(), size]);
        }
    }
    if sizes.is_empty() {
        return reported(false, "Requires rx=<val> tx==<val> rx-mini=<val> and/or rx-jumbo=<val>".into());
    }
    let mut words = vec!["ethtool".to_owned(), "-G".to_owned(), argument(&iface)?];
    words.extend(sizes.iter().cloned());
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    let answer = format!("{}{}", output.stdout, output.stderr);
    if answer.trim().is_empty() && output.retcode == 0 {
        reported(true, sizes.join(" "))
    } else {
        reported(false, answer.trim().to_owned())
    }
}

/// Change this host's name, also in `/etc/hosts`, and in `/etc/hostname` or `/etc/sysconfig/network`.
///
/// CLI Example:
///
///     salt '*' network.mod_hostname web1.example.com
#[function]
pub fn mod_hostname(
    context: &Context,
    /// New host name.
    hostname: String,
) -> CallResult {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    if hostname.is_empty() || hostname.len() > 253 || hostname.starts_with('-') || !hostname.chars().all(is_part) {
        return Err(CallError::Execution(format!(
            "the host name '{hostname}' is invalid: expected letters, digits, '-' and '.', at most 253 of them"
        )));
    }
    let old = nix::unistd::gethostname().map_err(CallError::execution)?.to_string_lossy().into_owned();
    let words = if context.minion.programs.find("hostnamectl").is_some() {
        ["hostnamectl", "set-hostname", &hostname].map(str::to_owned).to_vec()
    } else {
        ["hostname", &hostname].map(str::to_owned).to_vec()
    };
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        tracing::error!("setting the host name failed: {}", output.stderr);
        return Ok(false.into());
    }
    let edit = |path: &str, edit: &dyn Fn(&str) -> String| -> Result<(), CallError> {
        if let Some(text) = files::read_if_exists(path).map_err(CallError::execution)? {
            files::rewrite(path, edit(&text).as_bytes(), 0o644).map_err(CallError::execution)?;
        }
        Ok(())
    };
    edit("/etc/hosts", &|text| renamed(text, &old, &hostname))?;
    edit("/etc/sysconfig/network", &|text| with_host_name(text, &hostname))?;
    if context.grains().get("os_family").and_then(Value::as_str) == Some("Debian")
        || Path::new("/etc/hostname").exists()
    {
        files::rewrite("/etc/hostname", format!("{hostname}\n").as_bytes(), 0o644).map_err(CallError::execution)?;
    }
    Ok(true.into())
}

/// Return the hosts on the way to another one, with three times in milliseconds, as the program `traceroute` reports
/// them.
///
/// CLI Example:
///
///     salt '*' network.traceroute archlinux.org
#[function]
pub fn traceroute(
    context: &Context,
    /// Host name or address.
    host: String,
) -> CallResult {
    let output = run(context, &["traceroute".into(), argument(&host_name(host))?], &[("LC_ALL", "C")])?;
    Ok(output
        .stdout
        .lines()
        .filter(|line| line.contains(' ') && !line.starts_with("traceroute"))
        .map(parse_hop)
        .collect())
}

/// Wake a host by a magic packet (Wake-on-LAN).
///
/// CLI Example:
///
///     salt '*' network.wol 08-00-27-13-69-77
///     salt '*' network.wol 080027136977 255.255.255.255 7
#[function]
pub fn wol(
    _context: &Context,
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

/// Returns the addresses of this host, except for those of the loopback interface.
fn addresses() -> Result<BTreeSet<String>, CallError> {
    let interfaces = getifaddrs().map_err(CallError::execution)?;
    let others = interfaces.filter(|interface| !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK));
    let addresses = others.filter_map(|interface| {
        let address = interface.address?;
        address
            .as_sockaddr_in()
            .map(|address| address.ip().to_string())
            .or_else(|| address.as_sockaddr_in6().map(|address| address.ip().to_string()))
    });
    Ok(addresses.collect())
}

/// Returns the first name with a dot of a line of `getent hosts`, or else the first one.
fn qualified(line: &str) -> Option<String> {
    let names: Vec<&str> = line.split_whitespace().skip(1).collect();
    names.iter().find(|name| name.contains('.')).or(names.first()).map(|name| (*name).to_owned())
}

/// Parses a line of `/proc/net/tcp` or `tcp6` about an established connection.
fn parse_established(line: &str) -> Option<Map> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, local, remote, "01", ..] = words[..] else { return None };
    let (local_addr, local_port) = parse_endpoint(local)?;
    let (remote_addr, remote_port) = parse_endpoint(remote)?;
    Some(map! {
        "local_addr" => local_addr, "local_port" => local_port, "remote_addr" => remote_addr, "remote_port" => remote_port,
    })
}

/// Parses an address and a port in hexadecimal digits. The kernel writes each 32 bits of the address as an integer in
/// host byte order.
fn parse_endpoint(text: &str) -> Option<(String, u16)> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for word in address.as_bytes().chunks(8) {
        bytes.extend(u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => std::net::Ipv4Addr::from(four).to_string(),
        Err(_) => std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_string(),
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

/// Parses `ethtool -g`. The names of maximums get the suffix `-max`.
fn buffers(text: &str) -> Map {
    let (mut sizes, mut suffix) = (Map::new(), "max-");
    for line in text.lines() {
        if let Some((name, size)) = line.split_once(':').filter(|(name, _)| !name.is_empty())
            && let Ok(size) = size.trim().parse::<i64>()
        {
            sizes.insert(format!("{}{suffix}", name.to_lowercase().replace(' ', "-")).into(), size.into());
        } else if line.ends_with("maximums:") {
            suffix = "-max";
        } else if line.ends_with("settings:") {
            suffix = "";
        }
    }
    sizes
}

/// Parses a line of traceroute 2.0 or newer: a number, a host with its address, and three times.
fn parse_hop(line: &str) -> Value {
    let parts: Vec<&str> = line.split("  ").map(str::trim).collect();
    let [count, host, times @ ..] = &parts[..] else { return map! {}.into() };
    let Ok(count) = count.parse::<i64>() else { return map! {}.into() };
    if *host == "* * *" {
        return map! {"count" => count, "hostname" => "*"}.into();
    }
    let time = |text: &&str| text.split(' ').next()?.parse::<f64>().ok();
    let (Some((name, address)), [first, second, third, ..]) = (host.split_once(' '), times) else {
        return map! {}.into();
    };
    let address = address.split(' ').next().unwrap_or_default().trim_matches(['(', ')']);
    map! {
        "count" => count, "hostname" => name, "ip" => address, "ms1" => time(first), "ms2" => time(second),
        "ms3" => time(third),
    }
    .into()
}

/// Returns the text of `/etc/hosts` with another host name. Other lines stay as they are.
fn renamed(text: &str, old: &str, new: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') || !words.iter().skip(1).any(|word| *word == old) {
            return format!("{line}\n");
        }
        let words: Vec<&str> = words.into_iter().map(|word| if word == old { new } else { word }).collect();
        format!("{}\n", words.join("\t"))
    };
    text.lines().map(line).collect()
}

/// Returns the text of `/etc/sysconfig/network` with another host name.
fn with_host_name(text: &str, name: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some(("HOSTNAME", value)) => {
            let quote =
                value.trim_end().chars().last().filter(|c| "\"'".contains(*c)).map(String::from).unwrap_or_default();
            format!("HOSTNAME={quote}{name}{quote}\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests;
