//! Filters for addresses and networks.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use brine_text::network::{self, IpNet};
use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, State};

use super::super::behaviour::Role;
use super::super::data::{raise, text, to_mutable, type_name};
use super::{Args, Defined, Options, by_name};

/// The maximum number of listed addresses of a network.
const MAX_HOSTS: u128 = 1 << 16;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    by_name(environment, "is_ip", &["options"], |value: Defined, args: Args| is_address(&value, &args, |_| true));
    by_name(environment, "is_ipv4", &["options"], |value: Defined, args: Args| {
        is_address(&value, &args, IpAddr::is_ipv4)
    });
    by_name(environment, "is_ipv6", &["options"], |value: Defined, args: Args| {
        is_address(&value, &args, IpAddr::is_ipv6)
    });
    environment.add_filter("ipwrap", |value: Defined| {
        let wrapped = |item: JinjaValue| item.as_str().map(wrap).map_or(item.clone(), JinjaValue::from);
        match type_name(&value) {
            "list" | "tuple" => to_mutable(&value.try_iter().into_iter().flatten().map(wrapped).collect()),
            _ => wrapped(value.0),
        }
    });
    by_name(environment, "ipaddr", &["options"], |value: JinjaValue, args: Args| filtered(&value, &args, |_| true));
    by_name(environment, "ipv4", &["options"], |value: JinjaValue, args: Args| {
        filtered(&value, &args, IpAddr::is_ipv4)
    });
    by_name(environment, "ipv6", &["options"], |value: JinjaValue, args: Args| {
        filtered(&value, &args, IpAddr::is_ipv6)
    });
    by_name(environment, "ip_host", &["options", "version"], |value: JinjaValue, args: Args| {
        filtered(&value, &args, of_version(&args)?)
    });
    by_name(environment, "network_hosts", &["options", "version"], |value: JinjaValue, args: Args| {
        each(&filtered(&value, &args, of_version(&args)?)?, hosts)
    });
    by_name(environment, "network_size", &["options", "version"], |value: JinjaValue, args: Args| {
        each(&filtered(&value, &args, of_version(&args)?)?, |value| Ok(of_address(value).map(|net| size(&net).into())))
    });
    by_name(environment, "filter_by_networks", &["networks"], in_networks);
    environment.add_filter("gen_mac", |prefix: Option<String>| {
        let prefix = prefix.unwrap_or_else(|| "AC:DE:48".to_owned());
        let [a, b, c] = rand::random::<[u8; 3]>();
        format!("{prefix}:{a:02X}:{b:02X}:{c:02X}")
    });
    environment.add_filter("mac_str_to_bytes", |value: JinjaValue| bytes_of_mac(&text(&value)));
    by_name(environment, "dns_check", &["port", "safe", "ipv6"], |value: JinjaValue, port: u16, args: Args| {
        let ipv6 = Options::new(&args)?.get(1, "ipv6").filter(|flag| !flag.is_nil());
        resolved(&text(&value), port, ipv6.map(|flag| flag.is_truthy()))
    });
    environment.add_filter("http_query", |state: &mut State<'_, '_>, args: Args| {
        super::globals::call(state, Role::HttpQuery, "http_query", args)
    });
}

/// The connection timeout of `dns_check`.
const CONNECT: Duration = Duration::from_secs(2);

/// Parses a MAC address, with or without separators.
fn bytes_of_mac(text: &str) -> Result<JinjaValue, Error> {
    let letters: Vec<char> = text.chars().collect();
    let digits: Vec<char> = match letters.len() {
        12 => letters,
        17 => letters.iter().filter(|c| **c != letters[2]).copied().collect(),
        _ => return Err(raise("Invalid MAC address")),
    };
    let byte = |pair: &[char]| {
        let pair: String = pair.iter().collect();
        let invalid = |_| raise(format_args!("invalid literal for int() with base 16: '{pair}'"));
        u8::from_str_radix(&pair, 16).map_err(invalid)
    };
    digits.chunks(2).map(byte).collect::<Result<Vec<_>, _>>().map(JinjaValue::from_bytes)
}

/// The maximum number of tried addresses of a host.
const MAX_TRIED: usize = 4;

/// Returns the address of a host: the first that accepts connections at a port, or else the first.
fn resolved(host: &str, port: u16, ipv6: Option<bool>) -> Result<String, Error> {
    let none = || raise(format_args!("DNS lookup or connection check of '{host}' failed."));
    let all: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|_| none())?.collect();
    let mut candidates: Vec<_> =
        all.iter().filter(|address| ipv6.is_none_or(|ipv6| address.is_ipv6() == ipv6)).collect();
    if candidates.is_empty() && ipv6 == Some(true) {
        candidates = all.iter().collect();
    }
    // Each attempt may take the whole timeout.
    let answers =
        candidates.iter().take(MAX_TRIED).find(|address| TcpStream::connect_timeout(address, CONNECT).is_ok());
    let address = answers.or(candidates.first()).ok_or_else(none)?;
    Ok(wrap(&address.ip().to_string()))
}

/// Returns the number of addresses of a network, capped at the maximum of u128 for all of IPv6.
fn size(net: &IpNet) -> u128 {
    1u128.checked_shl(u32::from(net.max_prefix_len() - net.prefix_len())).unwrap_or(u128::MAX)
}

/// Returns the host addresses.
fn hosts(value: &JinjaValue) -> Result<Option<JinjaValue>, Error> {
    let Some(net) = of_address(value) else { return Ok(None) };
    let size = size(&net);
    if size > MAX_HOSTS {
        return Err(raise(format_args!("{} has too many addresses to list them", text(value))));
    }
    // As in Python, the first address of a network is not a host address, also with IPv6.
    let skip = usize::from(net.addr().is_ipv6() && size > 2);
    let all = net.hosts().skip(skip).map(|host| JinjaValue::from(host.to_string()));
    Ok(Some(to_mutable(&JinjaValue::from(all.collect::<Vec<_>>()))))
}

fn wrap(text: &str) -> String {
    let bare = text.split_once(['/', '%']).map_or(text, |(ip, _)| ip);
    if bare.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{text}]") } else { text.to_owned() }
}

/// Applies the function to a value or to each item of a list, without empty results.
fn each(
    value: &JinjaValue,
    what: impl Fn(&JinjaValue) -> Result<Option<JinjaValue>, Error>,
) -> Result<JinjaValue, Error> {
    match type_name(value) {
        "list" | "tuple" => {}
        "str" => return Ok(what(value)?.unwrap_or_else(|| JinjaValue::from(()))),
        _ => return Ok(JinjaValue::from(())),
    }
    let all = value.try_iter()?.filter_map(|item| what(&item).transpose()).collect::<Result<Vec<_>, _>>()?;
    Ok(to_mutable(&JinjaValue::from(all)))
}

/// Splits the scope off an address: `fe80::1%lo`, with or without the length of a network.
fn unscoped(text: &str) -> Option<(String, &str)> {
    let (address, rest) = text.split_once('%')?;
    let (scope, mask) = rest.split_once('/').map_or((rest, None), |(scope, mask)| (scope, Some(mask)));
    let is_scope = !scope.is_empty() && !scope.contains('%') && address.contains(':');
    is_scope.then(|| (mask.map_or_else(|| address.to_owned(), |mask| format!("{address}/{mask}")), scope))
}

/// Parses an address: a string or its integer.
fn of_address(value: &JinjaValue) -> Option<IpNet> {
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str()?;
            unscoped(text).map_or_else(|| network::interface(text), |(bare, _)| network::interface(&bare))
        }
        ValueKind::Number if value.is_integer() => Some(IpAddr::V4(u32::try_from(value.clone()).ok()?.into()).into()),
        _ => None,
    }
}

/// Whether the IETF has reserved an address, as in Python: neither assigned nor of a special purpose.
fn is_reserved(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] >= 240,
        // All but 2000::/3 (global), fc00::/7 (local) and fe80::/9 and ff00::/8 (links and multicast).
        IpAddr::V6(ip) => match ip.segments()[0] {
            0x2000..=0x3fff | 0xfc00..=0xfdff => false,
            segment => segment < 0xfe80,
        },
    }
}

/// Whether a value is an address of the kind that has all `options`.
fn is_address(value: &JinjaValue, args: &Args, kind: fn(&IpAddr) -> bool) -> Result<bool, Error> {
    if !matches!(value.kind(), ValueKind::String | ValueKind::Number) {
        return Ok(false);
    }
    filtered(value, args, kind).map(|address| !address.is_none())
}

/// Returns the condition for the addresses of the argument `version`, 4 or 6; without it, for all.
fn of_version(args: &Args) -> Result<fn(&IpAddr) -> bool, Error> {
    Ok(match Options::new(args)?.get(1, "version").and_then(|version| version.as_i64()) {
        Some(4) => IpAddr::is_ipv4,
        Some(6) => IpAddr::is_ipv6,
        _ => |_| true,
    })
}

/// Returns the addresses that match the kind and all `options`: comma-separated words such as `private`.
fn filtered(value: &JinjaValue, args: &Args, kind: impl Fn(&IpAddr) -> bool) -> Result<JinjaValue, Error> {
    let options = Options::new(args)?.get(0, "options").filter(brine_value::Value::is_truthy);
    let options = options.map(|options| options.to_string()).unwrap_or_default();
    let has = |ip: &IpAddr, option: &str| match option {
        "private" => network::is_private(*ip),
        "public" | "global" => {
            !network::is_private(*ip) && !ip.is_loopback() && !ip.is_multicast() && !ip.is_unspecified()
        }
        "loopback" | "lo" => ip.is_loopback(),
        "reserved" => is_reserved(ip),
        "site-local" | "site_local" | "sl" => matches!(ip, IpAddr::V6(ip) if ip.segments()[0] & 0xffc0 == 0xfec0),
        "multicast" => ip.is_multicast(),
        "unspecified" => ip.is_unspecified(),
        "link_local" | "link-local" | "linklocal" | "ll" => network::is_link_local(*ip),
        // As in Salt, other words have no effect.
        _ => true,
    };
    each(value, |value| {
        let Some(ip) = of_address(value).map(|net| net.addr()) else { return Ok(None) };
        let all = options.split(',').map(str::trim).filter(|word| !word.is_empty()).all(|word| has(&ip, word));
        let address = value.as_str().unwrap_or_default();
        let report = match unscoped(address) {
            _ if address.contains('/') => text(value),
            Some((_, scope)) => format!("{ip}%{scope}"),
            None => ip.to_string(),
        };
        Ok((kind(&ip) && all).then(|| JinjaValue::from(report)))
    })
}

/// Returns the addresses in one of the networks.
fn in_networks(value: JinjaValue, networks: JinjaValue) -> Result<JinjaValue, Error> {
    let parse = |item: JinjaValue| {
        let text = text(&item);
        network::interface(&text).ok_or_else(|| raise(format_args!("'{text}' is no network")))
    };
    let networks: Vec<IpNet> = networks.try_iter()?.map(parse).collect::<Result<_, _>>()?;
    each(&value, |value| {
        let Some(ip) = of_address(value).map(|net| net.addr()) else { return Ok(None) };
        Ok(networks.iter().any(|net| net.contains(&ip)).then(|| value.clone()))
    })
}
