//! The limits of entries: `reactor_rate_limit`, `reactor_cooldown` and `reactor_debounce`.
//!
//! Each option is a mapping of an entry's pattern to its limit, so that `reactor` itself stays as Salt reads it. Limits
//! apply to each sender: the authenticated minion, and for other events the id in their data. `by` names another field,
//! or `tag`. All times are bus time (`clock.rs`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use brine_value::{FromValue, Map, Value};

use crate::metrics;
use crate::routing_fields::FROM;
use brine_rules::duration::{self, micros};

/// The maximum number of keys; beyond it expired ones are dropped, then all.
const KEYS: usize = 100_000;

/// The limits of one entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Limits {
    rate: Option<Rate>,
    /// The time after a reaction for which events are skipped.
    cooldown: Option<Duration>,
    /// The quiet time after which the last event of a burst has its reaction.
    debounce: Option<Duration>,
    by: LimitKey,
}

#[derive(Debug, Clone, PartialEq)]
struct Rate {
    count: usize,
    within: Duration,
}

/// The field that the limits of an entry count by.
#[derive(Debug, Clone, Default, PartialEq)]
enum LimitKey {
    #[default]
    Id,
    Tag,
    Field(String),
}

/// An invalid limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{option}': {reason}")]
pub struct LimitsError {
    option: &'static str,
    reason: String,
}

/// The decision about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// React.
    Now,
    /// React at this bus time, in microseconds, unless a later event replaces it.
    At(u64),
    /// Skip the event.
    Never {
        /// The option of the limit.
        option: &'static str,
        /// The bus time until which events are skipped, in microseconds.
        until: u64,
    },
}

impl Limits {
    /// Parses the options and sets the limits of the entries, each given by its pattern. Returns the errors of invalid
    /// ones.
    pub fn bind(opts: &Map, entries: &mut [(&str, &mut Option<Limits>)]) -> Vec<LimitsError> {
        type Set = fn(&mut Limits, &Value) -> Result<(), String>;
        let options: [(&'static str, Set); 3] = [
            ("reactor_rate_limit", |limits, value| {
                limits.rate = Some(rate(value)?);
                Ok(())
            }),
            ("reactor_cooldown", |limits, value| {
                limits.cooldown = Some(seconds(plain(value, "within"))?);
                Ok(())
            }),
            ("reactor_debounce", |limits, value| {
                limits.debounce = Some(seconds(plain(value, "within"))?);
                Ok(())
            }),
        ];
        let mut errors = Vec::new();
        for (option, set) in options {
            let limits = match opts.get(option) {
                None | Some(Value::Nil) => continue,
                Some(Value::Map(limits)) => limits,
                Some(other) => {
                    let got = other.type_name();
                    let reason = format!("expected a mapping of an entry's pattern to its limit, got {got}");
                    errors.push(LimitsError { option, reason });
                    continue;
                }
            };
            for (pattern, value) in limits {
                let bound = bind_one((option, &pattern.to_string()), value, entries, set);
                errors
                    .extend(bound.err().map(|reason| LimitsError { option, reason: format!("'{pattern}': {reason}") }));
            }
        }
        errors
    }

    /// Returns the key of an event: limits apply to each key.
    pub fn key(&self, tag: &str, data: &Map) -> String {
        let field = match &self.by {
            LimitKey::Tag => return tag.to_owned(),
            // The id in the data is not authenticated.
            LimitKey::Id if data.contains_key(FROM) => FROM,
            LimitKey::Id => "id",
            LimitKey::Field(field) => field,
        };
        let mut at = data.get(field);
        if at.is_none() {
            let mut parts = field.split(if field.contains(':') { ':' } else { '.' });
            at = parts.next().and_then(|part| data.get(part));
            at = parts.fold(at, |at, part| at.and_then(|value| value.get(part)));
        }
        at.map(ToString::to_string).unwrap_or_default()
    }
}

/// Sets a limit of the entries with a pattern. An invalid limit changes nothing.
fn bind_one(
    (option, pattern): (&'static str, &str),
    value: &Value,
    entries: &mut [(&str, &mut Option<Limits>)],
    set: fn(&mut Limits, &Value) -> Result<(), String>,
) -> Result<(), String> {
    let mut of_pattern = entries.iter_mut().filter(|(own, _)| *own == pattern).peekable();
    if of_pattern.peek().is_none() {
        // An entry that was removed must not stop the master: an invalid limit is an error all the same.
        set(&mut Limits::default(), value)?;
        tracing::warn!(
            option,
            pattern,
            "a limit has no effect: no entry of 'reactor' has this pattern; write the pattern as there, or remove the limit"
        );
    }
    for (_, own) in of_pattern {
        let mut limits = own.clone().unwrap_or_default();
        set(&mut limits, value)?;
        if let Some(by) = value.get("by") {
            limits.by = match by.as_str() {
                Some("id") => LimitKey::Id,
                Some("tag") => LimitKey::Tag,
                Some(field) => LimitKey::Field(field.to_owned()),
                None => return Err("'by' is invalid: expected the name of a field in the data, or tag".into()),
            };
        }
        **own = Some(limits);
    }
    Ok(())
}

/// Returns the limit: the value itself, or the item `key` of a mapping that also has `by`.
fn plain<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(value)
}

/// Parses `10/1m`, or `{count: 10, within: 60}`.
fn rate(value: &Value) -> Result<Rate, String> {
    let wrong = || "expected 10/1m, or {count: 10, within: 1m}".to_owned();
    let (count, within) = match value {
        Value::Map(map) => match (map.get("rate").and_then(Value::as_str), map.get("count"), map.get("within")) {
            (Some(text), ..) => return rate(&text.into()),
            (None, Some(count), Some(within)) => (count.clone(), within.clone()),
            _ => return Err(wrong()),
        },
        text => {
            let (count, within) = text.as_str().and_then(|text| text.split_once('/')).ok_or_else(wrong)?;
            // `10/m` means `10/1m`.
            let bare = within.starts_with(|first: char| first.is_alphabetic());
            let within = if bare { format!("1{within}") } else { within.to_owned() };
            (count.trim().into(), within.into())
        }
    };
    let count = usize::from_value(&count).filter(|count| *count > 0).ok_or_else(wrong)?;
    Ok(Rate { count, within: seconds(&within)? })
}

fn seconds(value: &Value) -> Result<Duration, String> {
    duration::read(value).map_err(|error| error.to_string())
}

/// The counters of all limits, in memory: they are reset with the process.
#[derive(Default)]
pub(crate) struct Limiter {
    seen: HashMap<(Arc<str>, String), Seen>,
}

#[derive(Default)]
struct Seen {
    /// The times of the reactions within the rate's window.
    reacted: VecDeque<u64>,
    /// The end of the cooldown.
    cool_until: u64,
}

impl Limiter {
    /// Decides on an event at a bus time, in microseconds.
    pub fn judge(&mut self, pattern: &Arc<str>, limits: &Limits, key: &str, now: u64) -> Verdict {
        if let Some(quiet) = limits.debounce {
            return Verdict::At(now + micros(quiet));
        }
        self.judge_now(pattern, limits, key, now)
    }

    /// Decides on a debounced event that is due.
    pub fn judge_now(&mut self, pattern: &Arc<str>, limits: &Limits, key: &str, now: u64) -> Verdict {
        if limits.rate.is_none() && limits.cooldown.is_none() {
            return Verdict::Now;
        }
        self.evict(now);
        let seen = self.seen.entry((Arc::clone(pattern), key.to_owned())).or_default();
        if now < seen.cool_until {
            metrics::REACTIONS_LIMITED.add(1);
            return Verdict::Never { option: "reactor_cooldown", until: seen.cool_until };
        }
        if let Some(rate) = &limits.rate {
            let within = micros(rate.within);
            let oldest = now.saturating_sub(within);
            while seen.reacted.front().is_some_and(|time| *time <= oldest) {
                seen.reacted.pop_front();
            }
            if seen.reacted.len() >= rate.count {
                metrics::REACTIONS_LIMITED.add(1);
                let until = seen.reacted.front().map_or(now, |first| first + within);
                return Verdict::Never { option: "reactor_rate_limit", until };
            }
            seen.reacted.push_back(now);
        }
        if let Some(cooldown) = limits.cooldown {
            seen.cool_until = now + micros(cooldown);
        }
        Verdict::Now
    }

    fn evict(&mut self, now: u64) {
        if self.seen.len() < KEYS {
            return;
        }
        let day = micros(Duration::from_secs(86_400));
        self.seen.retain(|_, seen| seen.cool_until > now || seen.reacted.back().is_some_and(|last| last + day > now));
        if self.seen.len() >= KEYS {
            tracing::warn!(
                keys = self.seen.len(),
                "limits of reactor entries have too many keys: their counters are reset"
            );
            self.seen.clear();
        }
    }
}

#[cfg(test)]
mod tests;
