//! `ipset`: sets of addresses, networks and ports for rules of firewalls, with the program `ipset`.

mod element;
mod program;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod types;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{FromValue, Map, Value};

use self::program::{Set, change, exists, one_line, run, word};
use self::types::{SetType, element_options, required_by};
use crate::firewalls::IpVersion;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `ipset`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "ipset",
    [version, new_set, delete_set, rename_set, list_sets, check_set, add, delete, check, test_, flush]
);

/// Return the version of ipset.
///
/// CLI Example:
///
///     salt '*' ipset.version
#[function]
pub fn version(context: &Context) -> CallResult {
    let output = run(context, &["--version".to_owned()])?;
    let unknown = || CallError::Execution(format!("the version of ipset is unknown: {}", output.stderr));
    // `ipset v7.17, protocol version: 7`
    Ok(output.stdout.split_whitespace().nth(1).ok_or_else(unknown)?.trim_end_matches(',').into())
}

/// Create a set, and return true or the error output.
///
/// CLI Example:
///
///     salt '*' ipset.new_set custom_set list:set comment=True
///     salt '*' ipset.new_set custom_set hash:net family=ipv6
#[function]
pub fn new_set(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Type of the set, such as `hash:ip`.
    set_type: Option<String>,
    /// `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Whether elements can have comments.
    #[default(false.into())]
    comment: Value,
    /// Options of the type: `range`, `netmask`, `markmask`, `hashsize`, `maxelem`, `size`, `timeout`, `counters`,
    /// `skbinfo`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let version = IpVersion::parse(&family)
        .ok_or_else(|| CallError::Execution(format!("family '{family}' is invalid: expected ipv4 or ipv6")))?;
    let Some(name) = given(name) else { return Ok("Error: Set Name needs to be specified".into()) };
    let Some(set_type) = given(set_type) else { return Ok("Error: Set Type needs to be specified".into()) };
    let Some(set_type) = SetType::parse(&set_type) else { return Ok("Error: Set Type is invalid".into()) };
    if let Some(option) = set_type.missing(&kwargs) {
        return Ok(format!("Error: {option} is a required argument").into());
    }
    let mut words = vec!["create".to_owned(), word("set", &name)?, set_type.name().to_owned()];
    words.extend(set_type.words(&kwargs)?);
    if set_type.has_family() {
        words.extend(["family", if version == IpVersion::V4 { "inet" } else { "inet6" }].map(str::to_owned));
    }
    // As in Salt, any text is true, too.
    words.extend(comment.is_truthy().then(|| "comment".to_owned()));
    changed(context, &words)
}

/// Delete a set, and return true or the error output. `family` is without effect: names are unique.
///
/// CLI Example:
///
///     salt '*' ipset.delete_set custom_set
#[function]
pub fn delete_set(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Without effect: names are unique.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let Some(name) = given(name) else { return Ok(needed("Set").into()) };
    changed(context, &["destroy".to_owned(), word("set", &name)?])
}

/// Rename a set, and return true or the error output. `family` is without effect: names are unique.
///
/// CLI Example:
///
///     salt '*' ipset.rename_set custom_set new_set=new_set_name
#[function]
pub fn rename_set(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// New name of the set.
    new_set: Option<String>,
    /// Without effect: names are unique.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let Some(name) = given(name) else { return Ok(needed("Set").into()) };
    let Some(new_set) = given(new_set) else { return Ok(needed("New name for set").into()) };
    if !exists(context, &name)? {
        return Ok("Error: Set does not exist".into());
    }
    if exists(context, &new_set)? {
        return Ok("Error: New Set already exists".into());
    }
    changed(context, &["rename".to_owned(), word("set", &name)?, word("set", &new_set)?])
}

/// Return all sets, without their elements. `family` is without effect: names are unique.
///
/// CLI Example:
///
///     salt '*' ipset.list_sets
#[function]
pub fn list_sets(
    context: &Context,
    /// Without effect: names are unique.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let output = run(context, &["list", "-t"].map(str::to_owned))?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("listing the sets failed: {}", output.stderr)));
    }
    let field = |line: &str| line.split_once(':').map(|(name, value)| (name.into(), value.trim_start().into()));
    let sets = output.stdout.split("\n\n").map(|set| set.lines().filter_map(field).collect::<Map>());
    Ok(sets.filter(|set| !set.is_empty()).map(Value::from).collect())
}

/// Return whether a set exists. `family` is without effect: names are unique.
///
/// CLI Example:
///
///     salt '*' ipset.check_set name
#[function]
pub fn check_set(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Without effect: names are unique.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let Some(name) = given(name) else { return Ok(needed("Set").into()) };
    Ok(exists(context, &name)?.into())
}

/// Add an entry to a set, and return `Success`, or a message that begins with `Error` or `Warn`.
///
/// CLI Example:
///
///     salt '*' ipset.add name 192.168.1.26
///     salt '*' ipset.add name 192.168.0.3,AA:BB:CC:DD:EE:FF
#[function]
pub fn add(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Entry: an address, network, range or port, with options after a blank.
    entry: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Options of the entry, which it can also have after a blank: `timeout`, `packets`, `bytes`, `comment`, `skbmark`,
    /// `skbprio`, `skbqueue`, `nomatch`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = family;
    let Some(name) = given(name) else { return Ok(needed("Set").into()) };
    let Some(entry) = given(entry) else { return Ok(needed("Entry").into()) };
    Ok(add_entry(context, &name, &entry, &kwargs)?.into())
}

/// Delete an entry from a set, and return `Success`, or a message that begins with `Error`.
///
/// CLI Example:
///
///     salt '*' ipset.delete name 192.168.0.3,AA:BB:CC:DD:EE:FF
#[function]
pub fn delete(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Entry: an address, network, range or port, with options after a blank.
    entry: Option<String>,
    /// Without effect.
    #[default("ipv4".into())]
    family: String,
    /// Without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = (family, kwargs);
    Ok(match entry_command(context, "del", name, entry)? {
        Ok(words) => success_or(change(context, &words)?).into(),
        Err(reason) => reason.into(),
    })
}

/// Return whether a set lists an entry: any element of a range of addresses or ports, or any of several entries.
///
/// CLI Example:
///
///     salt '*' ipset.check name '192.168.0.1 comment "Hello"'
#[function]
pub fn check(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Entry: an address, network, range or port, with options after a blank.
    #[default]
    entry: Value,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let Some(name) = given(name) else { return Ok(needed("Set").into()) };
    let entries = entries_of(&entry)?;
    if entries.is_empty() {
        return Ok(needed("Entry").into());
    }
    let Some(set) = Set::load(context, &name)? else { return Ok(format!("Error: Set {name} does not exist").into()) };
    let elements = set.elements();
    Ok(entries.iter().any(|entry| set.element(entry).is_in(&elements)).into())
}

/// Return whether the kernel finds an entry in a set.
///
/// CLI Example:
///
///     salt '*' ipset.test name 192.168.0.2
#[function(name = "test")]
pub fn test_(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Entry: an address, network, range or port, with options after a blank.
    entry: Option<String>,
    /// Without effect.
    #[default("ipv4".into())]
    family: String,
    /// Without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = (family, kwargs);
    Ok(match entry_command(context, "test", name, entry)? {
        Ok(words) => (run(context, &words)?.retcode == 0).into(),
        Err(reason) => reason.into(),
    })
}

/// Delete all entries of a set, or of all sets, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' ipset.flush set
#[function]
pub fn flush(
    context: &Context,
    /// Name of the set.
    name: Option<String>,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
) -> CallResult {
    _ = family;
    let mut words = vec!["flush".to_owned()];
    words.extend(given(name).map(|name| word("set", &name)).transpose()?);
    Ok(change(context, &words)?.is_none().into())
}

/// Adds an entry to a set, and returns Salt's message.
fn add_entry(context: &Context, name: &str, entry: &str, arguments: &Map) -> Result<String, CallError> {
    let Some(set) = Set::load(context, name)? else { return Ok(format!("Error: Set {name} does not exist")) };
    one_line("entry", entry)?;
    let mut words = vec!["add".to_owned(), "-exist".into(), word("set", name)?];
    for part in element::words(entry) {
        words.push(word("entry", &part)?);
    }
    let mut element = set.element(entry);
    for (option, value) in element_options(arguments, &set.kind)? {
        if element.options.iter().any(|(own, _)| *own == option) {
            continue;
        }
        words.push(option.clone());
        words.extend((!value.is_empty()).then(|| value.clone()));
        element.options.push((option, value));
    }
    let required = element.options.iter().filter_map(|(option, _)| required_by(option));
    if let Some(missing) = required.into_iter().find(|option| !set.has(option)) {
        return Ok(format!("Error: Set {name} not created with {missing} support"));
    }
    if element.is_listed(set.elements()) {
        return Ok(format!("Warn: Entry {entry} already exists in set {name}"));
    }
    // An entry that exists gets the new options.
    Ok(success_or(change(context, &words)?))
}

/// Returns one or several entries.
fn entries_of(entry: &Value) -> Result<Vec<String>, CallError> {
    if !entry.is_truthy() {
        return Ok(Vec::new());
    }
    Vec::try_from_value(entry).map_err(|error| CallError::Execution(format!("entry is invalid: {error}")))
}

/// Returns an argument that is not empty.
/// Returns the command on an entry of an existing set; the inner error is the result of a function without one.
fn entry_command(
    context: &Context,
    command: &str,
    name: Option<String>,
    entry: Option<String>,
) -> Result<Result<[String; 3], String>, CallError> {
    let Some(name) = given(name) else { return Ok(Err(needed("Set"))) };
    let Some(entry) = given(entry) else { return Ok(Err(needed("Entry"))) };
    if !exists(context, &name)? {
        return Ok(Err(format!("Error: Set {name} does not exist")));
    }
    Ok(Ok([command.to_owned(), word("set", &name)?, word("entry", &entry)?]))
}

fn given(argument: Option<String>) -> Option<String> {
    argument.filter(|argument| !argument.is_empty())
}

fn needed(what: &str) -> String {
    format!("Error: {what} needs to be specified")
}

/// Runs a command that changes something, and returns true or the error output.
fn changed(context: &Context, words: &[String]) -> CallResult {
    Ok(change(context, words)?.map_or(true.into(), Value::from))
}

fn success_or(refused: Option<String>) -> String {
    refused.map_or("Success".into(), |reason| format!("Error: {reason}"))
}
