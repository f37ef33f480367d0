//! The scripts in `/etc/network/if-up.d` and `if-down.d` that add and delete routes, and the files of bonds.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use brine_function::{CallError, CallResult};
use brine_system::files;
use brine_value::{Map, Value};

/// Maximum number of routes of one interface.
const MAX_ROUTES: usize = 4096;
/// Largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longest comment of a route, in bytes.
const MAX_COMMENT_BYTES: usize = 256;

/// The network's configuration files below a root directory.
pub(super) struct Files {
    pub root: PathBuf,
}

impl Files {
    /// Returns the lines of a bond's file.
    pub fn bond(&self, iface: &str) -> CallResult {
        read_lines(&[self.root.join(format!("etc/modprobe.d/{iface}.conf"))])
    }

    /// Returns the lines of both scripts of an interface.
    pub fn routes(&self, iface: &str) -> CallResult {
        read_lines(&["up", "down"].map(|when| self.script(when, iface)))
    }

    /// Writes both scripts of an interface, unless in test mode, and returns their lines.
    pub fn build_routes(&self, iface: &str, settings: &Map, test: bool) -> CallResult {
        let routes = settings.iter().find(|(name, _)| name.to_string().eq_ignore_ascii_case("routes"));
        let Some(Value::List(routes)) = routes.map(|(_, routes)| routes) else {
            let expected = "Option: routes, Expected: [List of routes]";
            return fail(format!("Invalid option -- Route interface: {iface}, {expected}"));
        };
        if routes.len() > MAX_ROUTES {
            return fail(format!("the routes are invalid: expected at most {MAX_ROUTES}, got {}", routes.len()));
        }
        let (add, delete) = (script("add", iface, routes)?, script("del", iface, routes)?);
        if test {
            return Ok(lines(&(add + &delete)));
        }
        for (when, text) in [("up", add), ("down", delete)] {
            let path = self.script(when, iface);
            let directory = path.parent().unwrap_or(Path::new("/"));
            if !directory.is_dir() {
                let (path, directory) = (path.display(), directory.display());
                return fail(format!("{path} cannot be written. {directory}/ does not exist"));
            }
            files::write_atomic(&path, text.as_bytes(), 0o755).map_err(CallError::execution)?;
        }
        self.routes(iface)
    }

    /// Returns the path of a script. `run-parts` ignores names with dots, so they become underscores.
    fn script(&self, when: &str, iface: &str) -> PathBuf {
        self.root.join(format!("etc/network/if-{when}.d/route-{}", iface.replace('.', "_")))
    }
}

fn fail<T>(message: String) -> Result<T, CallError> {
    Err(CallError::Execution(message))
}

fn lines(text: &str) -> Value {
    Value::List(text.split_inclusive('\n').map(Value::from).collect())
}

fn read_lines(paths: &[PathBuf]) -> CallResult {
    let mut text = String::new();
    for path in paths {
        if path.metadata().is_ok_and(|about| about.len() > MAX_FILE_BYTES) {
            return fail(format!("{} is not read: expected at most {MAX_FILE_BYTES} bytes", path.display()));
        }
        text += &files::read_if_exists(path).map_err(CallError::execution)?.unwrap_or_default();
    }
    Ok(if text.is_empty() { "".into() } else { lines(&text) })
}

/// Renders a script. It runs as root, so each value is parsed before it becomes a part of it.
fn script(action: &str, iface: &str, routes: &[Value]) -> Result<String, CallError> {
    let mut text = format!("#!/bin/sh\n# {action}\ntest \"${{IFACE}}\" = \"{iface}\" || exit 0\n");
    for route in routes {
        let Value::Map(route) = route else { return fail("a route is invalid: expected a mapping".into()) };
        let option = |name: &str, expected: &str, valid: fn(&str) -> bool| match route.get(name) {
            Some(value) if value.is_truthy() => {
                let value = value.to_string();
                if valid(&value) {
                    return Ok(Some(value));
                }
                fail(format!("Invalid option -- Route interface: {iface}, Option: {name}, Expected: [{expected}]"))
            }
            _ => Ok(None),
        };
        if let Some(name) = option("name", "one line of text", comment)? {
            text += &format!("# {name}\n");
        }
        let address = option("ipaddr", "IP address or default", destination)?.unwrap_or_default();
        let netmask = option("netmask", "dotted quad or integer CIDR", netmask)?;
        if netmask.as_deref().is_some_and(|mask| address.contains('/') || !fits(&address, mask)) {
            return fail(format!(
                "Invalid option -- Route interface: {iface}, Option: netmask, of the address {address}"
            ));
        }
        let netmask = netmask.map(|mask| format!("/{mask}"));
        let via = option("gateway", "IP address", |word| word.parse::<IpAddr>().is_ok())?;
        let via = via.map(|gateway| format!("via {gateway}")).unwrap_or_default();
        let metric = option("metric", "integer", |word| word.parse::<u32>().is_ok())?;
        let metric = metric.map(|metric| format!(" metric {metric}")).unwrap_or_default();
        text += &format!("ip route {action} {address}{} {via} dev {iface}{metric}\n", netmask.unwrap_or_default());
    }
    Ok(text)
}

fn comment(text: &str) -> bool {
    text.len() <= MAX_COMMENT_BYTES && !text.chars().any(char::is_control)
}

fn destination(word: &str) -> bool {
    let (address, prefix) = word.split_once('/').unwrap_or((word, "0"));
    word == "default" || (address.parse::<IpAddr>().is_ok() && netmask(prefix) && fits(address, prefix))
}

/// Whether a netmask is one of the address's family.
fn fits(address: &str, mask: &str) -> bool {
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => mask.parse::<u8>().is_ok(),
        Ok(IpAddr::V4(_)) => mask.parse::<u8>().map_or(true, |prefix| prefix <= 32),
        Err(_) => false,
    }
}

fn netmask(word: &str) -> bool {
    word.parse::<u8>().is_ok_and(|prefix| prefix <= 128) || word.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests;
