//! `dnsutil`: records of the domain name system, zone files and `/etc/hosts`.

#[cfg(test)]
mod tests;
mod zone;

use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use brine_clock::now;
use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::files;
use brine_value::{Map, Value, list, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `dnsutil`.
pub static FUNCTIONS: Functions<Context> =
    registry!("dnsutil", [parse_hosts, hosts_append, hosts_remove, parse_zone, check_ip, A, AAAA, NS, SPF, MX, serial]);

const NO_DIG: &str = "This function requires dig, which is not currently available";

/// Return the names of a hosts file by address. `hosts` is its content, instead of that of a file.
///
/// CLI Example:
///
///     salt '*' dnsutil.parse_hosts
#[function]
pub fn parse_hosts(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/hosts".into())]
    hostsfile: String,
    /// Content of a hosts file, instead of `hostsfile`.
    hosts: Option<String>,
) -> CallResult {
    let text = hosts.filter(|text| !text.is_empty()).or_else(|| files::read_to_string(Path::new(&hostsfile)).ok());
    Ok(text.map_or_else(|| "Error: hosts data was not found".into(), |text| names(&text).into()))
}

/// Add names to an address in a hosts file, in a line of their own.
///
/// CLI Example:
///
///     salt '*' dnsutil.hosts_append /etc/hosts 127.0.0.1 ad1.yuk.co,ad2.yuk.co
#[function]
pub fn hosts_append(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/hosts".into())]
    hostsfile: String,
    /// Address.
    ip_addr: String,
    /// Host names, with commas or spaces.
    entries: String,
) -> CallResult {
    let path = Path::new(&hostsfile);
    let text = files::read_if_exists(path).map_err(CallError::execution)?.unwrap_or_default();
    let names_by_address = names(&text);
    let existing = names_by_address.get(&*ip_addr).and_then(Value::as_list).unwrap_or_default();
    let new: Vec<&str> = entries.split(',').filter(|name| !existing.contains(&(*name).into())).collect();
    if new.is_empty() {
        return Ok(format!("No additional hosts were added to {hostsfile}").into());
    }
    let line = format!("{ip_addr} {}", new.join(" "));
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    files::rewrite(path, format!("{text}{gap}{line}\n").as_bytes(), 0o644).map_err(CallError::execution)?;
    Ok(format!("The following line was added to {hostsfile}:\n{line}").into())
}

/// Remove names from a hosts file; a line without further names is removed, too.
///
/// CLI Example:
///
///     salt '*' dnsutil.hosts_remove /etc/hosts ad1.yuk.co
#[function]
pub fn hosts_remove(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/hosts".into())]
    hostsfile: String,
    /// Host names, with commas or spaces.
    entries: String,
) -> CallResult {
    let path = Path::new(&hostsfile);
    let text = files::read_to_string(path).map_err(CallError::execution)?;
    let gone: Vec<&str> = entries.split(',').collect();
    let content: String = text.lines().filter_map(|line| without(line, &gone)).map(|line| line + "\n").collect();
    files::rewrite(path, content.as_bytes(), 0o644).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// Return the records of a zone file. `zone` is its content, instead of that of a file.
///
/// CLI Example:
///
///     salt ns1 dnsutil.parse_zone /var/lib/named/example.com.zone
#[function]
pub fn parse_zone(
    _context: &Context,
    /// Path of the zone file.
    zonefile: Option<String>,
    /// Name of the zone, or with `zonefile` unset the content of a zone file.
    zone: Option<String>,
) -> CallResult {
    let text = zonefile.and_then(|path| files::read_to_string(Path::new(&path)).ok()).or(zone);
    match text.filter(|text| !text.is_empty()) {
        Some(text) => Ok(zone::parse(&text)?.into()),
        None => Ok("Error: Zone data was not found".into()),
    }
}

/// Return whether a string is an IP address.
///
/// CLI Example:
///
///     salt ns1 dnsutil.check_ip 127.0.0.1
#[function]
pub fn check_ip(
    _context: &Context,
    /// Address.
    ip_addr: String,
) -> CallResult {
    Ok(ip_addr.parse::<IpAddr>().is_ok().into())
}

/// Return the IPv4 addresses of a host.
///
/// CLI Example:
///
///     salt ns1 dnsutil.A www.google.com
#[function]
#[allow(non_snake_case)]
pub fn A(
    context: &Context,
    /// Host name.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    addresses(context, &host, "A", nameserver.as_deref())
}

/// Return the IPv6 addresses of a host.
///
/// CLI Example:
///
///     salt ns1 dnsutil.AAAA www.google.com
#[function]
#[allow(non_snake_case)]
pub fn AAAA(
    context: &Context,
    /// Host name.
    host: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    addresses(context, &host, "AAAA", nameserver.as_deref())
}

/// Return the addresses of the name servers of a domain, or without `resolve` their names.
///
/// CLI Example:
///
///     salt ns1 dnsutil.NS google.com
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
    let Some(lines) = dig(context, &domain, "NS", nameserver.as_deref())? else { return Ok(NO_DIG.into()) };
    if !resolve {
        return Ok(lines.into());
    }
    let mut servers = Vec::new();
    for name in lines {
        servers.extend(dig(context, &name, "A", nameserver.as_deref())?.unwrap_or_default());
    }
    Ok(servers.into())
}

/// Return the IPv4 ranges in the SPF record of a domain, which may be a TXT record; included records count.
///
/// CLI Example:
///
///     salt ns1 dnsutil.SPF google.com
#[function]
#[allow(non_snake_case)]
pub fn SPF(
    context: &Context,
    /// Domain.
    domain: String,
    /// Type of the record: `SPF` or `TXT`.
    #[default("SPF".into())]
    record: String,
    /// Server to ask, instead of those of the host.
    nameserver: Option<String>,
) -> CallResult {
    let (mut ranges, mut open, mut seen) = (Vec::new(), vec![domain], Vec::new());
    while let Some(domain) = open.pop() {
        // RFC 7208 allows ten lookups.
        if seen.contains(&domain) || seen.len() >= 10 {
            continue;
        }
        let Some(mut lines) = dig(context, &domain, &record, nameserver.as_deref())? else { return Ok(NO_DIG.into()) };
        if lines.is_empty() && record == "SPF" {
            lines = dig(context, &domain, "TXT", nameserver.as_deref())?.unwrap_or_default();
        }
        seen.push(domain);
        let words = lines
            .iter()
            .map(|line| line.replace("\" \"", "").replace('"', ""))
            .filter(|line| line.starts_with("v=spf"));
        for line in words {
            for word in line.split_whitespace() {
                match word.split_once([':', '=']) {
                    Some(("ip4", range)) => ranges.push(range.to_owned()),
                    Some(("include" | "redirect", other)) => open.push(other.to_owned()),
                    _ => {}
                }
            }
        }
    }
    Ok(ranges.into())
}

/// Return the mail servers of a domain with their priorities, or with `resolve` an address of each.
///
/// CLI Example:
///
///     salt ns1 dnsutil.MX google.com
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
    let Some(lines) = dig(context, &domain, "MX", nameserver.as_deref())? else { return Ok(NO_DIG.into()) };
    let mut records: Vec<Value> = Vec::new();
    for line in lines {
        let Some((priority, name)) = line.split_once(' ') else { continue };
        let mut host = name.trim().to_owned();
        if resolve {
            let addresses = dig(context, &host, "A", nameserver.as_deref())?.unwrap_or_default();
            host = addresses.into_iter().next().unwrap_or_default();
        }
        records.push(list![priority, host]);
    }
    Ok(records.into())
}

/// Return the serial number of a zone that is stored in a grain, or that of today; with `update` store the next one.
///
/// CLI Example:
///
///     salt ns1 dnsutil.serial example.com
#[function]
pub fn serial(
    context: &Context,
    /// Name of the zone, or with `zonefile` unset the content of a zone file.
    #[default]
    zone: String,
    /// Whether the serial number is increased and stored.
    #[default(false)]
    update: bool,
) -> CallResult {
    let key = if zone.is_empty() { "dnsserial".to_owned() } else { format!("dnsserial_{zone}") };
    let stored = context.call("grains.get", Args::positional([key.as_str().into()]))?.to_string();
    let today = now().strftime("%Y%m%d01").to_string();
    if !update {
        return Ok(if stored.is_empty() { today } else { stored }.into());
    }
    let next = next_serial(&stored, today);
    context.call("grains.setval", Args { keyword: map! {"key" => key, "val" => next.as_str()}, ..Args::default() })?;
    Ok(next.into())
}

fn next_serial(stored: &str, today: String) -> String {
    match stored.parse::<u64>() {
        Ok(number) if stored >= &*today => (number + 1).to_string(),
        _ => today,
    }
}

/// The kind of records of [`dig`] that are the names of an address.
pub(crate) const REVERSE: &str = "-x";

/// Returns the lines of `dig +short`; `None` if dig is not installed.
pub(crate) fn dig(
    context: &Context,
    name: &str,
    kind: &str,
    server: Option<&str>,
) -> Result<Option<Vec<String>>, CallError> {
    if context.minion.programs.find("dig").is_none() {
        return Ok(None);
    }
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
    let mut words = vec!["dig".to_owned(), "+short".to_owned()];
    if let Some(server) = server {
        words.push(format!("@{}", argument(server)?));
    }
    let name_word = argument(name)?;
    words.extend(if kind == REVERSE { [kind.to_owned(), name_word] } else { [name_word, kind.to_owned()] });
    // `@`, `+` and `-` begin options of dig.
    if let Some(odd) = [name, kind].into_iter().chain(server).find(|word| !is_plain(word)) {
        return Err(CallError::Execution(format!("{odd:?} is not a valid domain name")));
    }
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        tracing::warn!(name, status = output.retcode, "dig failed: {}", output.stderr);
        return Ok(Some(Vec::new()));
    }
    Ok(Some(output.stdout.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()))
}

fn addresses(context: &Context, host: &str, kind: &str, server: Option<&str>) -> CallResult {
    let is_kind = |address: &IpAddr| address.is_ipv4() == (kind == "A");
    if let Some(lines) = dig(context, host, kind, server)? {
        // The answer may have aliases, too.
        return Ok(lines.into_iter().filter(|line| line.parse().is_ok_and(|address| is_kind(&address))).collect());
    }
    if server.is_some() {
        return Ok(NO_DIG.into());
    }
    let Ok(sockets) = (host, 0).to_socket_addrs() else { return Ok(format!("Unable to resolve {host}").into()) };
    Ok(sockets.map(|socket| socket.ip()).filter(is_kind).map(|address| address.to_string()).collect())
}

/// Parses a hosts file: names by address.
fn names(text: &str) -> Map {
    let mut names_by_address = Map::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(address) = words.next() else { continue };
        let names = names_by_address.entry(address.into()).or_insert_with(|| list![]);
        if let Value::List(names) = names {
            names.extend(words.map(Value::from));
        }
    }
    names_by_address
}

/// Returns a line without these names; `None` if nothing but the address is left.
fn without(line: &str, gone: &[&str]) -> Option<String> {
    if line.trim().is_empty() || line.trim_start().starts_with('#') {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = line
        .split_whitespace()
        .enumerate()
        .filter(|(at, word)| *at == 0 || !gone.contains(word))
        .map(|(_, word)| word)
        .collect();
    (words.len() > 1).then(|| words.join(" "))
}
