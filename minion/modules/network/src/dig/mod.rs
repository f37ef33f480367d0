//! `dig`: records of the domain name system, by the program `dig`.

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Value, list};

use crate::dnsutil::REVERSE;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `dig`, most of them also in lower case.
pub static FUNCTIONS: Functions<Context> = registry!(
    "dig",
    [
        check_ip,
        A,
        PTR,
        AAAA,
        CNAME,
        NS,
        SPF,
        MX,
        TXT,
        lower_a,
        lower_ptr,
        lower_aaaa,
        lower_cname,
        lower_ns,
        lower_spf,
        lower_mx
    ]
);

/// The maximum number of domains of an SPF record: RFC 7208 permits ten lookups.
const SPF_LOOKUPS: usize = 10;

/// Return whether a string is an IP address, which may have a prefix length.
///
/// CLI Example:
///
///     salt ns1 dig.check_ip 127.0.0.1
///     salt ns1 dig.check_ip 2001:db8::/32
#[function]
pub fn check_ip(
    _context: &Context,
    /// Text to check.
    addr: Value,
) -> CallResult {
    Ok(addr.as_str().is_some_and(is_address).into())
}

/// Return the IPv4 addresses of a host.
///
/// CLI Example:
///
///     salt ns1 dig.A www.example.com
#[function]
#[allow(non_snake_case)]
pub fn A(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    Ok(addresses(context, &host, "A", nameserver.as_deref())?.into())
}

/// Return the names of an IP address.
///
/// CLI Example:
///
///     salt ns1 dig.PTR 192.0.2.1
#[function]
#[allow(non_snake_case)]
pub fn PTR(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    Ok(query(context, &host, REVERSE, nameserver.as_deref())?.into())
}

/// Return the IPv6 addresses of a host.
///
/// CLI Example:
///
///     salt ns1 dig.AAAA www.example.com
#[function]
#[allow(non_snake_case)]
pub fn AAAA(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    Ok(addresses(context, &host, "AAAA", nameserver.as_deref())?.into())
}

/// Return the name that a host is an alias of, as a string; an empty one if it is none.
///
/// CLI Example:
///
///     salt ns1 dig.CNAME mail.example.com
#[function]
#[allow(non_snake_case)]
pub fn CNAME(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    Ok(query(context, &host, "CNAME", nameserver.as_deref())?.join("\n").into())
}

/// Return the addresses of the name servers of a domain, or without `resolve` their names.
///
/// CLI Example:
///
///     salt ns1 dig.NS example.com
///     salt ns1 dig.NS example.com resolve=False
#[function]
#[allow(non_snake_case)]
pub fn NS(
    context: &Context,
    /// Domain.
    domain: String,
    /// Whether the names in the answer are resolved to addresses.
    #[default(true)]
    resolve: bool,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    let names = query(context, &domain, "NS", nameserver.as_deref())?;
    if !resolve {
        return Ok(names.into());
    }
    let mut servers = Vec::new();
    for name in names {
        servers.extend(addresses(context, &name, "A", nameserver.as_deref())?);
    }
    Ok(servers.into())
}

/// Return the addresses and networks that the SPF record of a domain permits, with those of included domains.
///
/// CLI Example:
///
///     salt ns1 dig.SPF example.com
#[function]
#[allow(non_snake_case)]
pub fn SPF(
    context: &Context,
    /// Domain.
    domain: String,
    /// Type of the record: `SPF`, or else `TXT`, or `TXT` alone.
    #[default("SPF".into())]
    record: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    let mut spf = Spf { context, server: nameserver.as_deref(), seen: Vec::new(), ranges: Vec::new() };
    spf.add(domain, &record)?;
    Ok(spf.ranges.into())
}

/// Return the mail servers of a domain, each as a list of its priority and its name, or with `resolve` its address.
///
/// CLI Example:
///
///     salt ns1 dig.MX example.com
#[function]
#[allow(non_snake_case)]
pub fn MX(
    context: &Context,
    /// Domain.
    domain: String,
    /// Whether the names in the answer are resolved to addresses.
    #[default(false)]
    resolve: bool,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    let mut records: Vec<Value> = Vec::new();
    for line in query(context, &domain, "MX", nameserver.as_deref())? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [priority, name] if resolve => {
                // A server without an address is left out.
                let address = addresses(context, name, "A", nameserver.as_deref())?.into_iter().next();
                records.extend(address.map(|address| list![priority, address]));
            }
            _ => records.push(words.into_iter().collect()),
        }
    }
    Ok(records.into())
}

/// Return the texts of a host, each in quotes.
///
/// CLI Example:
///
///     salt ns1 dig.TXT example.com
#[function]
#[allow(non_snake_case)]
pub fn TXT(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    Ok(query(context, &host, "TXT", nameserver.as_deref())?.into())
}

/// Return the IPv4 addresses of a host, as `dig.A`.
///
/// CLI Example:
///
///     salt ns1 dig.a www.example.com
#[function(name = "a")]
pub fn lower_a(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    A(context, host, nameserver)
}

/// Return the names of an IP address, as `dig.PTR`.
///
/// CLI Example:
///
///     salt ns1 dig.ptr 192.0.2.1
#[function(name = "ptr")]
pub fn lower_ptr(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    PTR(context, host, nameserver)
}

/// Return the IPv6 addresses of a host, as `dig.AAAA`.
///
/// CLI Example:
///
///     salt ns1 dig.aaaa www.example.com
#[function(name = "aaaa")]
pub fn lower_aaaa(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    AAAA(context, host, nameserver)
}

/// Return the name that a host is an alias of, as `dig.CNAME`.
///
/// CLI Example:
///
///     salt ns1 dig.cname mail.example.com
#[function(name = "cname")]
pub fn lower_cname(
    context: &Context,
    /// Host name, or address.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    CNAME(context, host, nameserver)
}

/// Return the name servers of a domain, as `dig.NS`.
///
/// CLI Example:
///
///     salt ns1 dig.ns example.com
#[function(name = "ns")]
pub fn lower_ns(
    context: &Context,
    /// Domain.
    domain: String,
    /// Whether the names in the answer are resolved to addresses.
    #[default(true)]
    resolve: bool,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    NS(context, domain, resolve, nameserver)
}

/// Return the addresses that the SPF record of a domain permits, as `dig.SPF`.
///
/// CLI Example:
///
///     salt ns1 dig.spf example.com
#[function(name = "spf")]
pub fn lower_spf(
    context: &Context,
    /// Domain.
    domain: String,
    /// Type of the record: `SPF` or `TXT`.
    #[default("SPF".into())]
    record: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    SPF(context, domain, record, nameserver)
}

/// Return the mail servers of a domain, as `dig.MX`.
///
/// CLI Example:
///
///     salt ns1 dig.mx example.com
#[function(name = "mx")]
pub fn lower_mx(
    context: &Context,
    /// Domain.
    domain: String,
    /// Whether the names in the answer are resolved to addresses.
    #[default(false)]
    resolve: bool,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    MX(context, domain, resolve, nameserver)
}

/// Returns the lines of `dig +short`; none after a failure, which is logged.
fn query(context: &Context, name: &str, kind: &str, server: Option<&str>) -> Result<Vec<String>, CallError> {
    let lines = crate::dnsutil::dig(context, name, kind, server)?;
    lines.ok_or_else(|| CallError::execution("Command 'dig' cannot be found: install it, as with the package dnsutils"))
}

/// Returns the addresses of a host. The answer may also contain the canonical name of an alias.
fn addresses(context: &Context, host: &str, kind: &str, server: Option<&str>) -> Result<Vec<String>, CallError> {
    Ok(query(context, host, kind, server)?.into_iter().filter(|line| is_address(line)).collect())
}

/// Whether a string is an IP address, which may have the prefix length of a network.
fn is_address(text: &str) -> bool {
    let (address, length) = match text.rsplit_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let lengths = match address.parse() {
        Ok(IpAddr::V4(_)) => 1..=32,
        Ok(IpAddr::V6(_)) => 8..=128,
        Err(_) => return false,
    };
    length.is_none_or(|length| length.parse().is_ok_and(|length: u8| lengths.contains(&length)))
}

/// The lookups of an SPF record.
struct Spf<'c> {
    context: &'c Context,
    server: Option<&'c str>,
    seen: Vec<String>,
    ranges: Vec<String>,
}

impl Spf<'_> {
    /// Adds the addresses of a domain and of included domains.
    fn add(&mut self, domain: String, record: &str) -> Result<(), CallError> {
        if self.seen.contains(&domain) || self.seen.len() >= SPF_LOOKUPS {
            return Ok(());
        }
        let mut lines = query(self.context, &domain, record, self.server)?;
        if lines.is_empty() && record == "SPF" {
            lines = query(self.context, &domain, "TXT", self.server)?;
        }
        self.seen.push(domain);
        for line in lines {
            // A long text is several strings.
            let line = line.replace("\" \"", "").replace('"', "");
            let mut words = line.split_whitespace();
            if words.next() != Some("v=spf1") {
                continue;
            }
            for word in words {
                let word = word.strip_prefix(['+', '~']).unwrap_or(word);
                match word.split_once([':', '=']) {
                    Some(("ip4" | "ip6", network)) if is_address(network) => self.ranges.push(network.to_owned()),
                    Some(("include" | "redirect", other)) => self.add(other.to_owned(), "SPF")?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
