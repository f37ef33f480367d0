//! `ipset`: states of sets and their entries.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::program::{Set, change, exists, word};
use super::{add_entry, entries_of, success_or};
use crate::firewalls::done;

/// State functions of `ipset`.
pub static FUNCTIONS: Functions<StateContext> = registry!("ipset", [set_present, set_absent, present, absent, flush]);

/// Ensure that a set is present. All other arguments are options of the set, as of `ipset.new_set`.
///
/// SLS Example:
///
///     blocked:
///       ipset.set_present:
///         - set_type: hash:net
///         - comment: True
#[function]
pub fn set_present(
    context: &StateContext,
    /// Name of the set.
    name: String,
    /// Type of the set, such as `hash:ip`.
    set_type: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Options of the set, as of `ipset.new_set`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if exists(&context.call, &name)? {
        return Ok(StateReturn::ok(&name, format!("ipset set {name} already exists for {family}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("ipset set {name} would be added for {family}")).into());
    }
    let mut args = map! {"name" => &name, "set_type" => set_type, "family" => &family};
    args.extend(kwargs);
    Ok(match context.call.call("ipset.new_set", Args::keyword(args))? {
        Value::Bool(true) => done(&name, format!("ipset set {name} created successfully for {family}")),
        refused => {
            let reason = refused.to_string();
            StateReturn::failed(&name, format!("Failed to create set {name} for {family}: {}", reason.trim()))
        }
    }
    .into())
}

/// Ensure that a set is absent, with all its entries.
///
/// SLS Example:
///
///     blocked:
///       ipset.set_absent: []
#[function]
pub fn set_absent(
    context: &StateContext,
    /// Name of the set.
    name: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    if !exists(&context.call, &name)? {
        return Ok(StateReturn::ok(&name, format!("ipset set {name} for {family} is already absent")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("ipset set {name} for {family} would be removed")).into());
    }
    for (command, verb) in [("flush", "flush"), ("destroy", "delete")] {
        if let Some(reason) = change(&context.call, &[command.to_owned(), word("set", &name)?])? {
            let message = format!("Failed to {verb} set {name} for {family}: {}", reason.trim());
            return Ok(StateReturn::failed(&name, message).into());
        }
    }
    Ok(done(&name, format!("ipset set {name} deleted successfully for family {family}")).into())
}

/// The arguments of states of entries.
#[derive(Args)]
pub struct EntryArgs {
    /// Name of the state.
    name: String,
    /// Entry, or a list of entries: addresses, networks, ranges, ports, with options after a blank.
    #[default]
    entry: Value,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    /// Name of the set.
    set_name: String,
    /// Options of the entries, as of `ipset.add`.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a set has an entry, or several, with these options.
///
/// SLS Example:
///
///     block_networks:
///       ipset.present:
///         - set_name: blocked
///         - entry:
///           - 192.0.2.0/24
///           - 198.51.100.7
#[function]
pub fn present(context: &StateContext, #[args] args: EntryArgs) -> CallResult {
    let family = &args.family;
    each_entry(context, &args, |Entry { entry, full, place, is_covered, .. }| {
        if is_covered {
            return Ok(Outcome::Unchanged(format!("entry for {entry} already in {place} for {family}")));
        }
        if context.test {
            return Ok(Outcome::Predicted(format!("entry {entry} would be added to {place} for family {family}")));
        }
        let answer = add_entry(&context.call, &args.set_name, &full, &args.kwargs)?;
        Ok(if answer.starts_with("Error") {
            Outcome::Failed(format!("Failed to add to entry {full} to {place} for family {family}.\n{answer}"))
        } else {
            Outcome::Changed(format!("entry {full} added to {place} for family {family}"))
        })
    })
}

/// Ensure that a set does not have an entry, or several.
///
/// SLS Example:
///
///     unblock_host:
///       ipset.absent:
///         - set_name: blocked
///         - entry: 198.51.100.7
#[function]
pub fn absent(context: &StateContext, #[args] args: EntryArgs) -> CallResult {
    let family = &args.family;
    each_entry(context, &args, |Entry { entry, full, place, is_listed, .. }| {
        if !is_listed {
            return Ok(Outcome::Unchanged(format!("ipset entry for {full} not present in {place} for {family}")));
        }
        if context.test {
            return Ok(Outcome::Predicted(format!("ipset entry {entry} would be removed from {place} for {family}")));
        }
        // Not all addresses of a range need to be in the set.
        let words = ["del".to_owned(), "-exist".into(), word("set", &args.set_name)?, word("entry", &entry)?];
        let answer = success_or(change(&context.call, &words)?);
        Ok(if answer.starts_with("Error") {
            Outcome::Failed(format!(
                "Failed to delete ipset entry from {place} for {family}. Attempted entry was {full}.\n{answer}\n"
            ))
        } else {
            Outcome::Changed(format!("ipset entry {full} removed from {place} for {family}"))
        })
    })
}

/// An entry of a state.
struct Entry {
    /// The entry without options.
    entry: String,
    /// The entry with its options.
    full: String,
    /// The set, as comments name it.
    place: String,
    /// Whether the set has the whole entry with these options.
    is_covered: bool,
    /// Whether the set lists an element of the entry.
    is_listed: bool,
}

/// The result of a state for one entry: a line of the comment, or a failure that replaces it.
enum Outcome {
    Unchanged(String),
    Predicted(String),
    Changed(String),
    Failed(String),
}

/// Ensures the state of each entry, and joins the outcomes.
fn each_entry(
    context: &StateContext,
    args: &EntryArgs,
    ensure: impl Fn(Entry) -> Result<Outcome, CallError>,
) -> CallResult {
    let EntryArgs { name, entry, set_name, kwargs, .. } = args;
    let entries = entries_of(entry)?;
    if entries.is_empty() {
        return Ok(StateReturn::failed(name, "ipset entry must be specified").into());
    }
    let set = Set::load(&context.call, set_name)?;
    let elements = set.as_ref().map(Set::elements).unwrap_or_default();
    let (mut report, mut comment) = (StateReturn::ok(name, ""), String::new());
    for text in entries {
        let (entry, full) = with_options(&text, kwargs)?;
        let element = set.as_ref().map(|set| set.element(&full));
        let outcome = ensure(Entry {
            entry,
            full,
            place: format!("set {set_name}"),
            is_covered: element.as_ref().is_some_and(|element| element.is_covered(&elements)),
            is_listed: element.is_some_and(|element| element.is_in(&elements)),
        })?;
        let line = match outcome {
            Outcome::Unchanged(line) => line,
            Outcome::Predicted(line) => {
                report.result = None;
                line
            }
            Outcome::Changed(line) => {
                report.changes = map! {"locale" => name};
                line
            }
            Outcome::Failed(message) => {
                report.result = Some(false);
                comment = message;
                continue;
            }
        };
        comment.push_str(&line);
        comment.push('\n');
    }
    Ok(StateReturn { comment, ..report }.into())
}

/// Delete all entries of a set.
///
/// SLS Example:
///
///     blocked:
///       ipset.flush: []
#[function]
pub fn flush(
    context: &StateContext,
    /// Name of the set.
    name: String,
    /// Address family: `ipv4` or `ipv6`.
    #[default("ipv4".into())]
    family: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    Ok(if !exists(&context.call, &name)? {
        StateReturn::failed(&name, format!("ipset set {name} does not exist for {family}"))
    } else if context.test {
        StateReturn::predicted(&name, format!("ipset entries in set {name} for {family} would be flushed"))
    } else if change(&context.call, &["flush".to_owned(), word("set", &name)?])?.is_none() {
        done(&name, format!("Flushed ipset entries from set {name} for {family}"))
    } else {
        StateReturn::failed(&name, format!("Failed to flush ipset entries from set {name} for {family}"))
    }
    .into())
}

/// Returns an entry without its options, and with them and the given timeout and comment.
fn with_options(text: &str, arguments: &Map) -> Result<(String, String), CallError> {
    let (entry, own) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let mut parts = vec![entry.to_owned()];
    let is_own = |name: &str| own.split_whitespace().any(|word| word == name);
    let option =
        |name: &str| arguments.get(name).filter(|value| !value.is_nil() && !is_own(name)).map(ToString::to_string);
    parts.extend(option("timeout").map(|timeout| format!("timeout {timeout}")));
    parts.extend((!own.is_empty()).then(|| own.trim().to_owned()));
    if let Some(comment) = option("comment").filter(|comment| !comment.is_empty()) {
        let comment = word("comment", &comment)?;
        let is_one = !comment.contains(char::is_whitespace);
        parts.push(if is_one { format!("comment {comment}") } else { format!("comment \"{comment}\"") });
    }
    Ok((entry.to_owned(), parts.join(" ")))
}
