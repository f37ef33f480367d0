//! The planned changes of one minion: the states of a dry run that would change something, without what differs from run
//! to run (durations, start times, the job id, names of temporary files), and the digest of them.

use std::borrow::Cow;

use brine_digest::{Digest, hex};
use brine_value::{Map, Value, map};

use crate::trim::TRIMMED;

/// The argument of a dry run that is planned: minions then say what the results depend on. Minions that do not know it,
/// such as those of Salt, ignore it, as they do all arguments of this form.
pub const PLANNING: &str = "__pub_plan";
/// The field of a state's result with the digest of what it depends on.
pub const BASIS: &str = "__plan__";
/// The separator of the parts of a state's key.
const SEPARATOR: &str = "_|-";
/// The starts of the names of temporary files, as minions form them: six or more random characters follow.
const TEMPORARY: [&str; 3] = ["__salt.tmp.", "/tmp/tmp", "/tmp/.brine."];
/// What takes the place of a random part.
const RANDOM: &str = "...";

/// The result of a dry run of states on one minion.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<'a> {
    /// The states that would change something, maybe none.
    Planned(PlannedStates<'a>),
    /// The dry run failed: messages, or the states that failed.
    Failed(Vec<String>),
}

/// The states that would change something, in the order of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStates<'a> {
    states: Vec<(&'a str, &'a Map)>,
    jid: &'a str,
}

impl<'a> Outcome<'a> {
    /// Reads the return of a dry run. `jid` is the id of its job, which does not count as a difference.
    pub fn read(returned: &'a Value, jid: &'a str) -> Self {
        let messages = match returned {
            Value::Map(results) => match states(results) {
                Some(states) => return Self::of_states(states, jid),
                None => vec![short(returned)],
            },
            Value::List(messages) => messages.iter().map(ToString::to_string).collect(),
            Value::Str(text) if text == TRIMMED => {
                vec!["the return is larger than an event may be: raise max_event_size to plan it".to_owned()]
            }
            other => vec![short(other)],
        };
        Outcome::Failed(messages)
    }

    fn of_states(mut states: Vec<(&'a str, &'a Map)>, jid: &'a str) -> Self {
        let failed = states.iter().filter(|(_, result)| result.get("result") == Some(&Value::Bool(false)));
        let messages: Vec<String> = failed.map(|(key, result)| failure(key, result, jid)).collect();
        if !messages.is_empty() {
            return Outcome::Failed(messages);
        }
        if states.iter().any(|(_, result)| result.get("changes").is_some_and(is_trimmed)) {
            return Outcome::Failed(vec![
                "the changes are larger than an event may be: raise max_event_size to plan them".to_owned(),
            ]);
        }
        states.retain(|(_, result)| is_change(result));
        states.sort_by_key(|(_, result)| result.get("__run_num__").and_then(Value::as_i64).unwrap_or_default());
        Outcome::Planned(PlannedStates { states, jid })
    }
}

/// Returns the states of a return; `None` if it is none of states.
fn states(results: &Map) -> Option<Vec<(&str, &Map)>> {
    let one = |(key, result): (&'_ Value, &'_ Value)| -> Option<()> {
        let is_state = key.as_str()?.split(SEPARATOR).count() >= 4 && result.get("result").is_some();
        is_state.then_some(())
    };
    if results.is_empty() || !results.iter().all(|entry| one(entry).is_some()) {
        return None;
    }
    Some(results.iter().filter_map(|(key, result)| Some((key.as_str()?, result.as_map()?))).collect())
}

fn is_trimmed(value: &Value) -> bool {
    match value {
        Value::Str(text) => text == TRIMMED,
        Value::List(items) => items.iter().any(is_trimmed),
        Value::Map(map) => map.values().any(is_trimmed),
        _ => false,
    }
}

/// Returns the function, id and name of a state's key.
fn parts(key: &str) -> (String, &str, &str) {
    let mut parts = key.splitn(3, SEPARATOR);
    let (module, id, rest) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (name, function) = rest.rsplit_once(SEPARATOR).unwrap_or((rest, ""));
    (format!("{module}.{function}"), id, name)
}

fn failure(key: &str, result: &Map, jid: &str) -> String {
    let (function, id, _) = parts(key);
    let comment = result.get("comment").map(ToString::to_string).unwrap_or_default();
    format!("{id} ({function}): {}", constant(&comment, jid))
}

/// Returns a value as a message of bounded length.
fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(4000) {
        text.truncate(end);
        text.push_str(RANDOM);
    }
    text
}

impl PlannedStates<'_> {
    /// Returns whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the digest: equal for minions that would change in the same way, and at another time as long as the
    /// minion would change in the same way.
    pub fn digest(&self) -> String {
        let mut bytes = Vec::with_capacity(1024);
        for (key, result) in &self.states {
            for text in [Cow::Borrowed(*key), comment(result, self.jid)] {
                write_text(constant(&text, self.jid).as_bytes(), &mut bytes);
            }
            for field in ["result", "changes", BASIS] {
                write(result.get(field).unwrap_or(&Value::Nil), self.jid, &mut bytes);
            }
        }
        hex(Digest::Sha256.of(&bytes))
    }

    /// Returns the states for display and for the file of a plan: `state`, `id`, `name`, `sls`, `comment`, `changes`.
    pub fn to_value(&self) -> Value {
        let one = |(key, result): &(&str, &Map)| {
            let (function, id, name) = parts(key);
            let mut entry = map! {"state" => function, "id" => id, "name" => name};
            if let Some(sls) = result.get("__sls__").filter(|sls| sls.is_truthy()) {
                entry.insert("sls".into(), sls.clone());
            }
            entry.insert("comment".into(), comment(result, self.jid).into_owned().into());
            entry.insert("changes".into(), result.get("changes").map(|all| fixed(all, self.jid)).unwrap_or_default());
            Value::from(entry)
        };
        self.states.iter().map(one).collect()
    }
}

/// Returns the digest of what a dry run returned, or the reasons why it failed.
///
/// # Errors
/// The dry run failed: its messages, or those of the states that failed.
pub fn digest_of(returned: &Value, jid: &str) -> Result<String, Vec<String>> {
    match Outcome::read(returned, jid) {
        Outcome::Planned(states) => Ok(states.digest()),
        Outcome::Failed(messages) => Err(messages),
    }
}

/// Returns the digest of a value: equal for equal values, whatever the order of their keys.
pub fn digest_of_value(value: &Value) -> String {
    let mut bytes = Vec::with_capacity(1024);
    write(value, "", &mut bytes);
    hex(Digest::Sha256.of(&bytes))
}

/// Returns whether the result of a state's dry run says that it would change something.
pub fn is_change(result: &Map) -> bool {
    result.get("result").is_none_or(Value::is_nil) || result.get("changes").is_some_and(Value::is_truthy)
}

fn comment(result: &Map, jid: &str) -> Cow<'static, str> {
    let text = result.get("comment").map(ToString::to_string).unwrap_or_default();
    Cow::Owned(constant(&text, jid).into_owned())
}

/// Returns a value with its texts as in [`constant`].
fn fixed(value: &Value, jid: &str) -> Value {
    match value {
        Value::Str(text) => constant(text, jid).into_owned().into(),
        Value::List(items) => items.iter().map(|item| fixed(item, jid)).collect(),
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (fixed(key, jid), fixed(value, jid))).collect()),
        other => other.clone(),
    }
}

/// Returns text without what differs from run to run: the id of the job, and the random part of the names of temporary
/// files.
fn constant<'a>(text: &'a str, jid: &str) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    if !jid.is_empty() && text.contains(jid) {
        text = Cow::Owned(text.replace(jid, RANDOM));
    }
    for start in TEMPORARY {
        if text.contains(start) {
            text = Cow::Owned(without_random(&text, start));
        }
    }
    text
}

fn without_random(text: &str, start: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let after = at + start.len();
        out.push_str(&rest[..after]);
        rest = &rest[after..];
        let random = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if (6..=16).contains(&random) {
            out.push_str(RANDOM);
            rest = &rest[random..];
        }
    }
    out + rest
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b's');
    out.extend(text.len().to_le_bytes());
    out.extend(text);
}

/// Writes a value in a form that is the same for equal values, whatever the order of their keys and however they have
/// travelled.
fn write(value: &Value, jid: &str, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.push(b'n'),
        Value::Bool(yes) => out.push(if *yes { b't' } else { b'f' }),
        Value::Str(text) => write_text(constant(text, jid).as_bytes(), out),
        Value::Bytes(bytes) => write_text(bytes, out),
        Value::List(items) => {
            out.push(b'l');
            out.extend(items.len().to_le_bytes());
            for item in items {
                write(item, jid, out);
            }
        }
        Value::Map(map) => {
            out.push(b'm');
            out.extend(map.len().to_le_bytes());
            let key = |key: &Value| {
                let mut bytes = Vec::new();
                write(key, jid, &mut bytes);
                bytes
            };
            let mut entries: Vec<(Vec<u8>, &Value)> = map.iter().map(|(name, value)| (key(name), value)).collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (name, value) in entries {
                out.extend(name);
                write(value, jid, out);
            }
        }
        // Large integers are strings on the wire.
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Big(_) => {
            write_text(value.to_string().as_bytes(), out);
        }
    }
}
