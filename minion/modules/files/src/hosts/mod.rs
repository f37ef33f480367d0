//! `hosts`: host names in the file of the option `hosts.file` (`/etc/hosts`).

pub(crate) mod state;

use std::path::PathBuf;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files::{self, FileError};
use brine_system::user_files;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `hosts`.
pub static FUNCTIONS: Functions<Context> =
    registry!("hosts", [list_hosts, get_ip, get_alias, has_pair, set_host, rm_host, add_host, set_comment]);

/// Return all addresses with their host names and comments.
///
/// CLI Example:
///
///     salt '*' hosts.list_hosts
#[function]
pub fn list_hosts(context: &Context) -> CallResult {
    Ok(Hosts::read(context)?.describe().into())
}

/// Return the first address of a host name; an empty string if it has none.
///
/// CLI Example:
///
///     salt '*' hosts.get_ip <hostname>
#[function]
pub fn get_ip(
    context: &Context,
    /// Host name.
    host: String,
) -> CallResult {
    let hosts = Hosts::read(context)?;
    let entry = hosts.addresses.iter().find(|(_, entry)| entry.aliases.contains(&host));
    Ok(entry.map(|(address, _)| address.as_str()).unwrap_or_default().into())
}

/// Return the host names of an address.
///
/// CLI Example:
///
///     salt '*' hosts.get_alias <ip addr>
#[function]
pub fn get_alias(
    context: &Context,
    /// Address.
    ip: String,
) -> CallResult {
    Ok(Hosts::read(context)?.aliases(&ip).to_vec().into())
}

/// Return whether an address has a host name, or all of a list.
///
/// CLI Example:
///
///     salt '*' hosts.has_pair <ip> <alias>
#[function]
pub fn has_pair(
    context: &Context,
    /// Address.
    ip: String,
    /// Host name, or list of them.
    alias: Vec<String>,
) -> CallResult {
    let hosts = Hosts::read(context)?;
    let entry = hosts.addresses.get(&ip);
    Ok(entry.is_some_and(|entry| alias.iter().all(|alias| entry.aliases.contains(alias))).into())
}

/// Set the host names of an address, separated by blanks; without a name the address is removed.
///
/// CLI Example:
///
///     salt '*' hosts.set_host <ip> <alias>
#[function]
pub fn set_host(
    context: &Context,
    /// Address.
    ip: String,
    /// Host name, or list of them.
    alias: String,
    /// Comment at the end of the line.
    comment: Option<String>,
) -> CallResult {
    Ok(edit(context, |text| Some(with_line(text, &ip, &alias, comment.as_deref())))?.into())
}

/// Remove a host name from an address.
///
/// CLI Example:
///
///     salt '*' hosts.rm_host <ip> <alias>
#[function]
pub fn rm_host(
    context: &Context,
    /// Address.
    ip: String,
    /// Host name, or list of them.
    alias: String,
) -> CallResult {
    if Hosts::read(context)?.has(&ip, &alias) {
        edit(context, |text| Some(without_alias(text, &ip, &alias)))?;
    }
    Ok(true.into())
}

/// Add a host name to an address.
///
/// CLI Example:
///
///     salt '*' hosts.add_host <ip> <alias>
#[function]
pub fn add_host(
    context: &Context,
    /// Address.
    ip: String,
    /// Host name, or list of them.
    alias: String,
) -> CallResult {
    let add = |text: &str| {
        let mut hosts = Hosts::parse(text);
        if hosts.has(&ip, &alias) {
            return None;
        }
        hosts.addresses.entry(ip.clone()).or_default().aliases.push(alias.clone());
        Some(hosts.render())
    };
    Ok(edit(context, add)?.into())
}

/// Set the comment of an address; False if the address is not in the file.
///
/// CLI Example:
///
///     salt '*' hosts.set_comment <ip> <comment>
#[function]
pub fn set_comment(
    context: &Context,
    /// Address.
    ip: String,
    /// Comment at the end of the line.
    comment: String,
) -> CallResult {
    if !Hosts::read(context)?.addresses.contains_key(&ip) {
        return Ok(false.into());
    }
    let set = |text: &str| {
        let mut hosts = Hosts::parse(text);
        let entry = hosts.addresses.get_mut(&ip).filter(|entry| entry.comment.as_ref() != Some(&comment))?;
        entry.comment = Some(comment.clone());
        Some(hosts.render())
    };
    Ok(edit(context, set)?.into())
}

/// Entry of an address. A comment line is an entry with only a comment, under the key `comment-` and a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Host names.
    pub aliases: Vec<String>,
    /// Comment after a `#`.
    pub comment: Option<String>,
    /// Whether the entry is a comment line.
    line: bool,
}

/// Content of the file; several lines of an address are merged.
#[derive(Debug, Default)]
pub struct Hosts {
    /// Entries by address, in the order of the file.
    pub addresses: IndexMap<String, Entry>,
}

impl Hosts {
    /// Reads the hosts file; a missing file is empty.
    pub fn read(context: &Context) -> Result<Self, CallError> {
        let text = files::read_if_exists(file(context)).map_err(CallError::execution)?;
        Ok(Self::parse(&text.unwrap_or_default()))
    }

    fn parse(text: &str) -> Self {
        let mut hosts = Hosts::default();
        let mut comments = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                let entry = Entry { comment: Some(line.to_owned()), line: true, ..Entry::default() };
                hosts.addresses.insert(format!("comment-{comments}"), entry);
                comments += 1;
                continue;
            }
            let (names, comment) =
                line.split_once('#').map_or((line, ""), |(names, reported)| (names, reported.trim_start()));
            let mut words = names.split_whitespace();
            let Some(address) = words.next() else { continue };
            let entry = hosts.addresses.entry(address.to_owned()).or_default();
            entry.aliases.extend(words.map(str::to_owned));
            if !comment.is_empty() {
                entry.comment = Some(comment.to_owned());
            }
        }
        hosts
    }

    fn render(&self) -> String {
        let line = |(address, entry): (&String, &Entry)| match &entry.comment {
            Some(comment) if entry.line => format!("{comment}\n"),
            Some(comment) => format!("{address}\t\t{}\t\t# {comment}\n", entry.aliases.join(" ")),
            None => format!("{}\n", format!("{address}\t\t{}", entry.aliases.join(" ")).trim_end()),
        };
        self.addresses.iter().map(line).collect()
    }

    fn describe(&self) -> Map {
        let report = |(address, entry): (&String, &Entry)| {
            let report = match &entry.comment {
                Some(comment) if entry.line => Value::from(vec![comment.clone()]),
                Some(comment) => map! {"aliases" => entry.aliases.clone(), "comment" => comment}.into(),
                None => map! {"aliases" => entry.aliases.clone()}.into(),
            };
            (address.as_str().into(), report)
        };
        self.addresses.iter().map(report).collect()
    }

    /// Returns the host names of an address.
    pub fn aliases(&self, address: &str) -> &[String] {
        self.addresses.get(address).map(|entry| entry.aliases.as_slice()).unwrap_or_default()
    }

    /// Whether an address has a host name.
    pub fn has(&self, address: &str, alias: &str) -> bool {
        self.aliases(address).iter().any(|have| have == alias)
    }
}

fn file(context: &Context) -> PathBuf {
    brine_config::opts::modules::hosts_file(&context.config().opts)
}

/// Edits the text of the hosts file. Returns false if the path is not a file. In containers the
/// file is often a mount point, which is written in place.
fn edit(context: &Context, change: impl FnOnce(&str) -> Option<String>) -> Result<bool, CallError> {
    let path = file(context);
    if path.exists() && !path.is_file() {
        return Ok(false);
    }
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    if let Some(text) = change(&text) {
        user_files::write(&path, text).map_err(FileError::at("write", &path)).map_err(CallError::execution)?;
    }
    Ok(true)
}

/// Whether a line is an entry of an address.
fn has_address(line: &str, address: &str) -> bool {
    line.split_whitespace().next() == Some(address)
}

/// Returns the text with one line for an address, in place of its first one or at the end.
fn with_line(text: &str, address: &str, alias: &str, comment: Option<&str>) -> String {
    let comment = comment.filter(|comment| !comment.is_empty()).map(|comment| format!("\t\t# {comment}"));
    let mut line = Some(match alias.trim() {
        "" => String::new(),
        _ => format!("{address}\t\t{alias}{}\n", comment.unwrap_or_default()),
    });
    let mut edited = String::new();
    for have in text.split_inclusive('\n') {
        if has_address(have, address) {
            edited.push_str(&line.take().unwrap_or_default());
        } else {
            edited.push_str(have);
        }
    }
    if let Some(line) = line {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push_str(&line);
    }
    edited
}

/// Returns the text without a host name of an address; lines without any other name are removed.
fn without_alias(text: &str, address: &str, alias: &str) -> String {
    let mut edited = String::new();
    for line in text.split_inclusive('\n') {
        if !has_address(line, address) {
            edited.push_str(line);
            continue;
        }
        let (names, comment) =
            line.trim().split_once('#').map_or((line, ""), |(names, reported)| (names, reported.trim_start()));
        let left: Vec<&str> = names.split_whitespace().skip(1).filter(|name| *name != alias).collect();
        if left.is_empty() {
            continue;
        }
        let comment = if comment.is_empty() { String::new() } else { format!("# {comment}") };
        edited = format!("{edited}{address}\t\t{} {comment}\n", left.join(" "));
    }
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# top\n127.0.0.1 localhost here  # self\n\n10.0.0.1\ta b\n10.0.0.1 c # why\n::1 ip6";

    #[test]
    fn lines_of_one_address_are_merged() {
        let hosts = Hosts::parse(TEXT);
        assert_eq!(hosts.aliases("10.0.0.1"), ["a", "b", "c"]);
        assert!(hosts.has("::1", "ip6") && !hosts.has("::1", "a") && !hosts.has("10.0.0.9", "a"));
        insta::assert_snapshot!(hosts.render().replace('\t', "<tab>"), @r"
        # top
        127.0.0.1<tab><tab>localhost here<tab><tab># self
        10.0.0.1<tab><tab>a b c<tab><tab># why
        ::1<tab><tab>ip6
        ");
    }

    #[test]
    fn only_lines_of_the_address_are_changed() {
        let start = "# top\n127.0.0.1 localhost here  # self\n\n";
        for (edited, end) in [
            (with_line(TEXT, "10.0.0.1", "x y", Some("z")), "10.0.0.1\t\tx y\t\t# z\n::1 ip6"),
            (with_line(TEXT, "10.0.0.1", " ", None), "::1 ip6"),
            (with_line(TEXT, "10.0.0.2", "x", None), "10.0.0.1\ta b\n10.0.0.1 c # why\n::1 ip6\n10.0.0.2\t\tx\n"),
            (without_alias(TEXT, "10.0.0.1", "c"), "10.0.0.1\t\ta b \n::1 ip6"),
            (without_alias(TEXT, "10.0.0.1", "a"), "10.0.0.1\t\tb \n10.0.0.1\t\tc # why\n::1 ip6"),
        ] {
            assert_eq!(edited, format!("{start}{end}"));
        }
    }
}
