//! The files of interfaces: `/etc/network/interfaces`, and the files of bonds and PPP peers.

use std::path::{Path, PathBuf};

use brine_function::{CallError, CallResult};
use brine_system::files;
use brine_value::{Map, Value};

use super::adapter::{Adapter, Stanza, one_line, refused};
use super::routes::Files;
use super::{bond, parse};

impl Files {
    /// Returns the lines of an interface, or an empty list if the files do not contain it.
    pub fn interface(&self, iface: &str) -> CallResult {
        let adapters = parse::adapters(&self.root)?;
        let Some(adapter) = adapters.get(iface) else { return Ok(Value::List(Vec::new())) };
        Ok(lines(&if iface == "source" { adapter.source_text(iface)? } else { adapter.text(iface)? }))
    }

    /// Writes an interface, and returns its lines. Without `filename`, `/etc/network/interfaces` is rewritten with all
    /// interfaces.
    pub fn write_interface(&self, iface: &str, adapter: Adapter, filename: Option<&str>) -> CallResult {
        let own = if adapter.is_source { adapter.source_text(iface)? } else { adapter.text(iface)? };
        let path = match filename {
            Some(name) => self.named(iface, name)?,
            None => self.root.join("etc/network/interfaces"),
        };
        let directory = path.parent().unwrap_or(Path::new("/"));
        if !directory.exists() {
            return Err(CallError::Execution(format!("{} cannot be written.", directory.display())));
        }
        let mut text = own.clone();
        if filename.is_none() {
            let mut adapters = parse::adapters(&self.root)?;
            adapters.insert(iface.to_owned(), adapter);
            text.clear();
            for (name, adapter) in &adapters {
                // Files in interfaces.d have been merged: if still included, they would define their interfaces twice.
                let merged = |source: &str| source.contains("/interfaces.d");
                text += &match name.as_str() {
                    _ if adapter.is_source => adapter.source_text(name)?,
                    "source" => {
                        let sources = adapter.sources.iter().filter(|source| !merged(source)).cloned().collect();
                        Adapter { sources, ..Adapter::default() }.source_text(name)?
                    }
                    _ => adapter.text(name)?,
                };
            }
        }
        files::rewrite(&path, text.as_bytes(), 0o644).map_err(CallError::execution)?;
        Ok(lines(&own))
    }

    /// Returns the path for the setting `filename`: absolute, or relative to `interfaces.d`.
    fn named(&self, iface: &str, name: &str) -> Result<PathBuf, CallError> {
        let (base, relative) = match name.strip_prefix('/') {
            Some(below) => ("", below),
            None => ("etc/network/interfaces.d", name),
        };
        let relative = files::relative_path(relative);
        let relative = relative.ok_or_else(|| refused(iface, "filename", "path of a file without '..'"))?;
        Ok(self.root.join(base).join(relative))
    }

    /// Writes the file of a bond, and returns its lines.
    pub fn write_bond(&self, iface: &str, options: &Map) -> CallResult {
        let text = bond::text(iface, options)?;
        let directory = self.root.join("etc/modprobe.d");
        if !directory.exists() {
            return Err(CallError::Execution(format!(
                "/etc/modprobe.d/{iface}.conf cannot be written. /etc/modprobe.d/ does not exist"
            )));
        }
        files::rewrite(directory.join(format!("{iface}.conf")), text.as_bytes(), 0o644)
            .map_err(CallError::execution)?;
        self.bond(iface)
    }

    /// Returns the path of the file of a PPP peer.
    pub fn peer(&self, iface: &str, adapter: &Adapter) -> Result<PathBuf, CallError> {
        let provider = adapter.families.get("inet").and_then(|stanza| stanza.options.get("provider"));
        let provider = provider.map(ToString::to_string).unwrap_or_default();
        if provider.is_empty() || provider.starts_with('.') || provider.contains(['/', '\0', '\n']) {
            return Err(refused(iface, "provider", "name of a file in /etc/ppp/peers"));
        }
        let directory = self.root.join("etc/ppp/peers");
        if !directory.exists() {
            return Err(CallError::Execution("/etc/ppp/peers/ cannot be written.".into()));
        }
        Ok(directory.join(provider))
    }
}

/// Returns the options of a PPP peer, a line each.
pub(super) fn peer_text(iface: &str, adapter: &Adapter) -> Result<String, CallError> {
    let Some(stanza) = adapter.families.get("inet") else { return Ok(String::new()) };
    let Stanza { options, .. } = stanza;
    if !options.get("user").is_some_and(Value::is_truthy) {
        return Ok(String::new());
    }
    for option in options.keys().map(ToString::to_string) {
        let value = options.get(option.as_str()).map(ToString::to_string).unwrap_or_default();
        one_line(iface, &option, &value)?;
    }
    let value = |option: &str, default: &str| options.get(option).map_or(default.to_owned(), ToString::to_string);
    // Some lines end with a blank, as in Salt, so that files written by Salt are left unchanged.
    let flag = |option: &str, end: &str| match value(option, "True").as_str() {
        "False" => "\n".to_owned(),
        _ => format!("{option}{end}\n"),
    };
    let setting = |option: &str, default: &str, end: &str| match value(option, default).as_str() {
        "" => "\n".to_owned(),
        value => format!("{option} {value}{end}\n"),
    };
    let password = options.get("password").filter(|password| password.is_truthy());
    let linkname = options.get("linkname").map_or(String::new(), |name| format!("\nlinkname {name}\n"));
    Ok([
        format!("user {}\n", value("user", "")),
        password.map_or("\n".to_owned(), |password| format!("password {password} \n")),
        format!("plugin rp-pppoe.so {}\n\n", value("pppoe_iface", "eth0")),
        flag("noipdefault", ""),
        flag("usepeerdns", " "),
        flag("defaultroute", ""),
        "\n".to_owned(),
        setting("holdoff", "15", ""),
        setting("maxfail", "0", ""),
        "\n".to_owned(),
        flag("hide-password", ""),
        setting("lcp-echo-interval", "20", " "),
        setting("lcp-echo-failure", "3", " "),
        "\n".to_owned(),
        flag("noauth", ""),
        flag("persist", ""),
        setting("mtu", "1492", " "),
        flag("noaccomp", ""),
        "\n".to_owned(),
        linkname,
        "\n".to_owned(),
    ]
    .concat())
}

/// Returns the lines of a text as Salt compares them: each with its line end, and an empty one at the end.
pub(super) fn lines(text: &str) -> Value {
    text.split('\n').map(|line| format!("{line}\n")).collect()
}
