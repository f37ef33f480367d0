//! The options of an interface by address family: their accepted values, and the conversion of these.

use std::net::{Ipv4Addr, Ipv6Addr};

use brine_value::Value;

/// The accepted values of a switch, as Salt lists them in messages.
pub(super) const SWITCH: &str = "yes|on|true|1|True|no|off|false|0|False";

/// The values that an option accepts.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Anything,
    Address4,
    Address6,
    Netmask4,
    Netmask6,
    Mac,
    Integer,
    Float,
    /// A list, or words with blanks between them.
    Words,
    OneOf(&'static [&'static str]),
    Number(&'static [i64]),
}

const PROTO4: &[&str] = &["bootp", "dhcp", "static", "manual", "loopback", "ppp"];
const PROTO6: &[&str] = &["auto", "loopback", "static", "manual", "dhcp", "v4tunnel", "6to4"];
/// Options of both families with any value.
const UNCHECKED: &[&str] = &[
    "addresses",
    "slaves",
    "vlan-raw-device",
    "test",
    "enable_ipv4",
    "enable_ipv6",
    "wireless-essid",
    "wireless-mode",
    "wpa-conf",
    "wpa-driver",
    "wpa-group",
    "wpa-key-mgmt",
    "wpa-pairwise",
    "wpa-psk",
    "wpa-proto",
    "wpa-roam",
    "wpa-ssid",
];
/// Options of IPv4 with any value.
const UNCHECKED4: &[&str] = &["hostname", "vendor", "client", "bootfile", "provider", "options", "network"];
/// Options of IPv6 with any value.
const UNCHECKED6: &[&str] = &["media"];
const MODES: &[&str] = &["gre", "GRE", "ipip", "IPIP", "802.3ad"];

/// Returns the values that an option accepts in a family; `None` if the family has no such option.
fn kind(option: &str, family: &str) -> Option<Kind> {
    let v6 = family == "inet6";
    Some(match (option, family) {
        (_, other) if other != "inet" && other != "inet6" => return None,
        ("proto", _) => Kind::OneOf(if v6 { PROTO6 } else { PROTO4 }),
        ("address" | "broadcast" | "gateway", _) if v6 => Kind::Address6,
        ("address" | "broadcast" | "gateway" | "endpoint" | "local", _)
        | ("pointopoint" | "server" | "dstaddr", "inet") => Kind::Address4,
        ("netmask", "inet") => Kind::Netmask4,
        ("netmask", _) => Kind::Netmask6,
        ("scope", _) => Kind::OneOf(if v6 { &["global", "site", "link", "host"] } else { &["global", "link", "host"] }),
        ("mode", _) => Kind::OneOf(MODES),
        ("hwaddress", _) | ("hwaddr", "inet") => Kind::Mac,
        ("mtu" | "ttl", _)
        | ("metric" | "leasehours" | "leasetime" | "unit", "inet")
        | ("preferred-lifetime" | "dad-attempts", "inet6") => Kind::Integer,
        ("dad-interval", "inet6") => Kind::Float,
        ("privext" | "accept_ra", "inet6") | ("wpa-ap-scan", _) => Kind::Number(&[0, 1, 2]),
        ("dhcp" | "autoconf", "inet6") => Kind::Number(&[0, 1]),
        ("dns-nameservers" | "dns-search", _) => Kind::Words,
        _ if UNCHECKED.contains(&option) || (if v6 { UNCHECKED6 } else { UNCHECKED4 }).contains(&option) => {
            Kind::Anything
        }
        _ => return None,
    })
}

/// Whether an option belongs to one of the families.
pub(super) fn is_known(option: &str) -> bool {
    kind(option, "inet").is_some() || kind(option, "inet6").is_some()
}

/// Whether the family accepts the value of an option, and the value as it is written.
pub(super) type Checked = (bool, Value);

/// Checks a value, and converts it as Salt does. Unknown options are not accepted.
///
/// # Errors
/// A description of the expected value, for types that cannot be converted: Salt raises an exception.
pub(super) fn checked(option: &str, value: &Value, family: &str) -> Result<Checked, &'static str> {
    let same = |accepted: bool| Ok((accepted, value.clone()));
    let text = value.as_str();
    match kind(option, family) {
        None => same(false),
        Some(Kind::Anything) => same(true),
        Some(Kind::Address4) => same(text.is_some_and(|text| is_address(text, 32))),
        Some(Kind::Address6) => same(text.is_some_and(|text| is_address(text, 128))),
        Some(Kind::Mac) => text.map_or(Err("MAC address"), |text| same(is_mac(text))),
        Some(Kind::Integer) => Ok(integer(value)?.map_or((false, value.clone()), |number| (true, number.into()))),
        Some(Kind::Float) => same(float(value)?),
        Some(Kind::Netmask6) => Ok(match integer(value)? {
            Some(number) => ((0..=128).contains(&number), number.into()),
            None => (false, value.clone()),
        }),
        Some(Kind::Netmask4) => Ok(match integer(value)? {
            Some(number) => ((0..=32).contains(&number), number.into()),
            None => (text.is_some_and(is_netmask), value.clone()),
        }),
        Some(Kind::Words) => Ok(match value {
            Value::Str(text) => {
                let words: Value = text.split_whitespace().collect();
                (words.is_truthy(), words)
            }
            Value::List(_) | Value::Map(_) => (*value != Value::List(Vec::new()), value.clone()),
            _ => (false, value.clone()),
        }),
        Some(Kind::OneOf(words)) => {
            let word = value.to_string();
            Ok((words.contains(&word.as_str()), word.into()))
        }
        Some(Kind::Number(numbers)) => Ok(match integer(value)? {
            Some(number) => (numbers.contains(&number), number.into()),
            None => (false, value.clone()),
        }),
    }
}

/// Converts a value as Python's `int` does; `None` for a string that is not an integer.
pub(super) fn integer(value: &Value) -> Result<Option<i64>, &'static str> {
    match value {
        Value::Bool(on) => Ok(Some(i64::from(*on))),
        Value::Int(number) => Ok(Some(*number)),
        Value::Float(number) if number.is_finite() => Ok(Some(*number as i64)),
        Value::Str(text) => Ok(text.trim().parse().ok()),
        _ => Err("integer"),
    }
}

/// Whether Python's `float` accepts a value.
pub(super) fn float(value: &Value) -> Result<bool, &'static str> {
    match value {
        Value::Bool(_) => Ok(true),
        Value::Str(text) => Ok(text.trim().parse::<f64>().is_ok()),
        other => other.as_f64().map(|_| true).ok_or("float"),
    }
}

/// Parses a switch; `None` if the value is not one of [`SWITCH`].
pub(super) fn switch(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(on) => Some(*on),
        Value::Int(1) => Some(true),
        Value::Int(0) => Some(false),
        Value::Str(text) => match text.as_str() {
            "yes" | "on" | "true" | "1" => Some(true),
            "no" | "off" | "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether this is an address, perhaps with a prefix length, which is not 0.
fn is_address(text: &str, longest: u8) -> bool {
    let (address, prefix) = text.rsplit_once('/').unwrap_or((text, "1"));
    let parsed = if longest == 32 { address.parse::<Ipv4Addr>().is_ok() } else { address.parse::<Ipv6Addr>().is_ok() };
    parsed && prefix.trim().parse::<u8>().is_ok_and(|prefix| (1..=longest).contains(&prefix))
}

/// Whether this is a dotted netmask, or its inverse.
fn is_netmask(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok_and(|mask| {
        let bits = mask.to_bits();
        bits.leading_ones() + bits.trailing_zeros() >= 32 || bits.leading_zeros() + bits.trailing_ones() >= 32
    })
}

/// Whether these are six pairs of hexadecimal digits with the same separator between all.
pub(super) fn is_mac(text: &str) -> bool {
    let is_pair = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    ['-', ':', '.'].iter().any(|separator| {
        let parts: Vec<&str> = text.split(*separator).collect();
        parts.len() == 6 && parts.into_iter().all(is_pair)
    })
}
