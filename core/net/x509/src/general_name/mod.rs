//! General names, as in alternative names, name constraints and distribution points.

use std::net::IpAddr;

use brine_value::Value;

use crate::der::{self, Item, Reader};
use crate::name::Name;
use crate::{Result, invalid};

/// Encodes a general name of this type in DER.
pub(crate) fn build(kind: &str, value: &Value) -> Result<Vec<u8>> {
    let kind = kind.to_lowercase();
    let text = || match value {
        Value::Str(text) => Ok(text.as_str()),
        other => Err(invalid(format!("Expected string value, got {}: `{other}`", other.type_name()))),
    };
    Ok(match &kind[..] {
        "email" => {
            let text = text()?;
            let text = match text.rsplit_once('@') {
                Some((user, domain)) => format!("{user}@{}", domain_name(domain, false, false)?),
                None => domain_name(text, true, false)?,
            };
            der::item(der::context(1), ascii(&text)?.as_bytes())
        }
        "dns" => der::item(der::context(2), domain_name(text()?, true, true)?.as_bytes()),
        "dirname" => der::item(der::explicit(4), Name::of(value)?.der()),
        "uri" => der::item(der::context(6), ascii(text()?)?.as_bytes()),
        "ip" => der::item(der::context(7), &address(text()?)?),
        "rid" => {
            let oid = oid(text()?)?;
            let content = der::only(&oid, der::OID).map(|item| item.content).unwrap_or_default();
            der::item(der::context(8), content)
        }
        "othername" => return Err(invalid("otherName is currently not implemented")),
        _ => return Err(invalid(format!("GeneralName type {kind} is invalid"))),
    })
}

/// Encodes the concatenation of general names from pairs of type and value.
pub(crate) fn build_all(pairs: &[(String, Value)]) -> Result<Vec<u8>> {
    let names = pairs.iter().map(|(kind, value)| build(kind, value)).collect::<Result<Vec<_>>>()?;
    Ok(names.concat())
}

/// Encodes a general name from `type:value`.
pub(crate) fn build_text(text: &str) -> Result<Vec<u8>> {
    let (kind, value) = pair(text)?;
    build(&kind, &value)
}

/// Splits `type:value`.
pub(crate) fn pair(text: &str) -> Result<(String, Value)> {
    let (kind, value) =
        text.split_once(':').ok_or_else(|| invalid(format!("'{text}' is invalid: expected type:value")))?;
    Ok((kind.trim().to_owned(), value.trim().into()))
}

/// Parses and encodes an object identifier.
pub(crate) fn oid(text: &str) -> Result<Vec<u8>> {
    der::oid(text).ok_or_else(|| invalid(format!("Invalid oid: {text}")))
}

fn ascii(text: &str) -> Result<&str> {
    if text.is_ascii() {
        return Ok(text);
    }
    Err(invalid(format!("'{text}' is invalid: expected ASCII, with domains in their encoded form (xn--)")))
}

/// Validates a domain name.
fn domain_name(text: &str, leading_dot: bool, wildcard: bool) -> Result<String> {
    let mut rest = ascii(text)?;
    let has_dot = rest.starts_with('.');
    if has_dot {
        if !leading_dot {
            return Err(invalid("Leading dots are not allowed in this context"));
        }
        rest = rest.trim_start_matches('.');
    }
    if let Some(behind) = rest.strip_prefix("*.") {
        if !wildcard {
            return Err(invalid("Wildcards are not allowed in this context"));
        }
        if has_dot {
            return Err(invalid("Wildcards and leading dots cannot be present together"));
        }
        rest = behind;
    }
    if rest.is_empty() {
        return Err(invalid("Empty domain"));
    }
    for label in rest.strip_suffix('.').unwrap_or(rest).split('.') {
        if label.is_empty() {
            return Err(invalid("Empty Label"));
        }
        if let Some((at, bad)) = label.char_indices().find(|(_, c)| !c.is_ascii_alphanumeric() && *c != '-') {
            let code = u32::from(bad);
            return Err(invalid(format!("Codepoint U+{code:04X} at position {} of '{label}' not allowed", at + 1)));
        }
    }
    Ok(text.to_owned())
}

/// Returns the bytes of an address, or of a network address and its mask.
fn address(text: &str) -> Result<Vec<u8>> {
    let wrong = || invalid(format!("Provided value {text} does not seem to be an IP address or network range."));
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let Some((network, mask)) = text.split_once('/') else {
        return Ok(bytes(text.parse().map_err(|_| wrong())?));
    };
    let network = bytes(network.parse().map_err(|_| wrong())?);
    let mask = match mask.parse::<usize>() {
        Ok(length) if length <= network.len() * 8 => (0..network.len())
            .map(|at| length.saturating_sub(at * 8).min(8))
            .map(|ones| !(0xff_u16 >> ones) as u8)
            .collect(),
        Ok(_) => return Err(wrong()),
        Err(_) => bytes(mask.parse().map_err(|_| wrong())?),
    };
    let has_host_bits = network.iter().zip(&mask).any(|(byte, mask)| byte & !mask != 0);
    if network.len() != mask.len() || has_host_bits || prefix(&mask).is_none() {
        return Err(wrong());
    }
    Ok([network, mask].concat())
}

/// Returns the prefix length of a mask; `None` if its bits are not contiguous.
fn prefix(mask: &[u8]) -> Option<u32> {
    let ones = mask.iter().map(|byte| byte.leading_ones()).sum::<u32>();
    (mask.iter().map(|byte| byte.count_ones()).sum::<u32>() == ones
        && mask.windows(2).all(|pair| pair[0] == 0xff || pair[1] == 0))
    .then_some(ones)
}

/// Formats a general name, such as `DNS:example.com`.
pub(crate) fn show(item: &Item<'_>) -> String {
    let text = || der_text(item.content);
    match item.tag & 0x1f {
        1 => format!("mail:{}", text()),
        2 => format!("DNS:{}", text()),
        4 => {
            let name = item.inside().next().and_then(|name| Name::read(&name));
            format!("dirName:{}", name.map(|name| name.show()).unwrap_or_default())
        }
        6 => format!("URI:{}", text()),
        7 => format!("IP:{}", show_address(item.content)),
        8 => format!("RID:{}", der::dotted(item.content).unwrap_or_default()),
        kind => format!("<unsupported general name {kind}>"),
    }
}

/// Formats all general names in the content of a value.
pub(crate) fn show_all(content: &[u8]) -> Option<Value> {
    Some(Reader(content).all()?.iter().map(|item| Value::from(show(item))).collect())
}

fn der_text(content: &[u8]) -> String {
    String::from_utf8_lossy(content).into_owned()
}

fn show_address(bytes: &[u8]) -> String {
    let v6 = |bytes: &[u8]| {
        let words = bytes.chunks_exact(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
        words.collect::<Vec<_>>().join(":")
    };
    let v4 = |bytes: &[u8]| bytes.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    let with = |address: String, mask: &[u8]| match prefix(mask) {
        Some(length) => format!("{address}/{length}"),
        None => format!("{address}/{}", if mask.len() == 4 { v4(mask) } else { v6(mask) }),
    };
    match bytes.len() {
        4 => v4(bytes),
        8 => with(v4(&bytes[..4]), &bytes[4..]),
        16 => v6(bytes),
        32 => with(v6(&bytes[..16]), &bytes[16..]),
        _ => "invalid".to_owned(),
    }
}

#[cfg(test)]
mod tests;
