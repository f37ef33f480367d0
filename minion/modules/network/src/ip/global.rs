//! Global network settings: `/etc/default/networking`, `/etc/hostname` and `/etc/resolv.conf`.

use brine_function::CallError;
use brine_host::lines::{self, Missing};
use brine_system::files;
use brine_value::{Map, Value};

use super::options::{SWITCH, switch};
use super::routes::Files;

/// Global network settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Global {
    /// `yes` or `no`: whether interfaces are configured at boot. Empty if the file does not set it.
    pub networking: String,
    /// The name of the host.
    pub hostname: String,
    /// Its domain, in `/etc/resolv.conf`.
    pub domain: String,
    /// Domains to search, in `/etc/resolv.conf`.
    pub search: String,
}

impl Global {
    /// Returns the settings as lines.
    pub fn lines(&self) -> Value {
        let all = [
            ("NETWORKING", &self.networking),
            ("HOSTNAME", &self.hostname),
            ("DOMAIN", &self.domain),
            ("SEARCH", &self.search),
        ];
        all.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    /// Returns the settings with these changes.
    pub fn with(&self, settings: &Map) -> Result<Global, CallError> {
        let setting = |key: &str| {
            let entry = settings.iter().find(|(name, _)| name.to_string().eq_ignore_ascii_case(key));
            entry.map(|(_, value)| value.clone())
        };
        let networking = setting("enabled").unwrap_or_else(|| self.networking.as_str().into());
        let networking = switch(&networking).ok_or_else(|| refused("networking", SWITCH))?;
        let networking = if networking { "yes" } else { "no" }.to_owned();
        let named = setting("hostname").unwrap_or_else(|| self.hostname.as_str().into());
        let named = checked("hostname", &named, "server1.example.com")?;
        let (hostname, domain) = named.split_once('.').map_or((named.as_str(), None), |(name, of)| (name, Some(of)));
        if hostname.is_empty() {
            return Err(refused("hostname", "server1.example.com"));
        }
        let search = match setting("search") {
            None => self.search.clone(),
            Some(Value::List(domains)) => {
                let domains = domains.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                checked("search", &domains.into(), "domains")?
            }
            Some(domains) => checked("search", &domains, "domains")?,
        };
        let domain = domain.map_or_else(|| self.domain.clone(), str::to_owned);
        Ok(Global { networking, hostname: hostname.to_owned(), domain, search })
    }
}

impl Files {
    /// Reads the settings.
    pub fn global(&self) -> Result<Global, CallError> {
        let text = |path: &str| files::read_if_exists(self.root.join(path)).map_err(CallError::execution);
        let networking = text("etc/default/networking")?.unwrap_or_default();
        let networking = networking.lines().filter(|line| line.starts_with("CONFIGURE_INTERFACES"));
        let networking = networking.filter_map(|line| line.split_once('=')).next_back();
        let resolv = text("etc/resolv.conf")?.unwrap_or_default();
        let of = |name: &str| {
            let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let directive = resolv.lines().map(words).rfind(|words| words.first().is_some_and(|word| is(word, name)));
            let values = directive.into_iter().flatten().skip(1).take_while(|word| !word.starts_with(['#', ';']));
            values.collect::<Vec<_>>()
        };
        Ok(Global {
            networking: networking.map(|(_, value)| value.trim().to_owned()).unwrap_or_default(),
            hostname: text("etc/hostname")?.unwrap_or_default().lines().next().unwrap_or_default().to_owned(),
            domain: of("domain").into_iter().next().unwrap_or_default(),
            search: of("search").join(" "),
        })
    }

    /// Writes whether interfaces are configured at boot.
    pub fn write_networking(&self, networking: &str) -> Result<(), CallError> {
        let line = format!("CONFIGURE_INTERFACES={networking}");
        lines::set(self.root.join("etc/default/networking"), "CONFIGURE_INTERFACES", &line, Missing::Append)
    }

    /// Checks that `/etc/resolv.conf` exists if its settings change.
    pub fn check_resolv(&self, old: &Global, new: &Global) -> Result<(), CallError> {
        if (&old.domain, &old.search) == (&new.domain, &new.search) || self.root.join("etc/resolv.conf").exists() {
            return Ok(());
        }
        Err(CallError::Execution("/etc/resolv.conf cannot be written. /etc/resolv.conf does not exist".into()))
    }

    /// Writes the domain and the search domains to `/etc/resolv.conf`; all other lines are kept.
    pub fn write_resolv(&self, old: &Global, new: &Global) -> Result<(), CallError> {
        let path = self.root.join("etc/resolv.conf");
        let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (name, old, new) in [("search", &old.search, &new.search), ("domain", &old.domain, &new.domain)] {
            if old == new {
                continue;
            }
            let names = |line: &String| line.split_whitespace().next().is_some_and(|word| is(word, name));
            let place = lines.iter().position(names).unwrap_or(0);
            lines.retain(|line| !names(line));
            if !new.is_empty() {
                lines.insert(place.min(lines.len()), format!("{name} {new}"));
            }
        }
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        files::rewrite(&path, text.as_bytes(), 0o644).map_err(CallError::execution)
    }
}

fn is(word: &str, name: &str) -> bool {
    word.eq_ignore_ascii_case(name)
}

/// Checks that a value is not empty and has no line break.
fn checked(option: &str, value: &Value, expected: &str) -> Result<String, CallError> {
    let text = value.to_string();
    if !value.is_truthy() || text.chars().any(char::is_control) {
        return Err(refused(option, expected));
    }
    Ok(text)
}

fn refused(option: &str, expected: &str) -> CallError {
    CallError::Execution(format!("Invalid network setting -- Setting: {option}, Expected: [{expected}]"))
}
