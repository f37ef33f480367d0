//! Formats an event on one line: time, sequence number, tag in the colour of its kind, and a summary of its data. On a
//! terminal the lines have columns and are truncated to its width.

use brine_event::{SEQ, STAMP};
use brine_value::{Map, Value, json};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::escape::escape_line;
use crate::ui::{Colour, Colours};

/// The width of the column of tags, and its width on terminals narrower than [`NARROW_TERMINAL`], where job ids are
/// truncated.
const TAG_WIDTH: usize = 44;
const SHORT_TAG_WIDTH: usize = 30;
const NARROW_TERMINAL: usize = 100;
/// The maximum length of a summary without a terminal.
const MAX_SUMMARY: usize = 400;
/// The maximum number of minions of a job that are named.
const MAX_NAMED_MINIONS: usize = 3;

/// Formats an event with its time in this zone: in columns for a terminal of this width, or with the whole tag and two
/// spaces between the parts.
pub(super) fn line(tag: &str, data: &Map, width: Option<usize>, zone: &TimeZone, colours: Colours) -> String {
    let seq = data.get(SEQ).map(ToString::to_string).unwrap_or_default();
    let paint = |text: String| match colour(tag, data) {
        Some(colour) => colours.paint(colour, &text),
        None => text,
    };
    let Some(width) = width else {
        let (tag, summary) = (paint(escape_line(tag).into_owned()), cut(&summary(tag, data), MAX_SUMMARY));
        return format!("{}  {seq}  {tag}  {summary}", time(data, zone)).trim_end().to_owned();
    };
    let front = format!("{} {seq:>7} ", time(data, zone));
    let (label, column) =
        if width < NARROW_TERMINAL { (short(tag), SHORT_TAG_WIDTH) } else { (tag.to_owned(), TAG_WIDTH) };
    let label = cut(&label, width.saturating_sub(front.len()));
    let used = front.chars().count() + label.chars().count().max(column) + 1;
    let rest = cut(&summary(tag, data), width.saturating_sub(used));
    let padding = " ".repeat(column.saturating_sub(label.chars().count()) + 1);
    format!("{front}{}{padding}{rest}", paint(label)).trim_end().to_owned()
}

/// Abbreviates the job id in a tag to its last digits.
fn short(tag: &str) -> String {
    let is_jid = |part: &str| part.len() == 20 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = tag.split('/').map(|part| if is_jid(part) { format!("…{}", &part[13..]) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("/")
}

fn time(data: &Map, zone: &TimeZone) -> String {
    let stamp = data.get(STAMP).and_then(Value::as_str).and_then(|stamp| stamp.parse::<DateTime>().ok());
    let local =
        stamp.and_then(|stamp| stamp.to_zoned(TimeZone::UTC).ok()).map(|time| time.with_time_zone(zone.clone()));
    local.map_or_else(|| "--:--:--.---".to_owned(), |time| time.strftime("%H:%M:%S.%3f").to_string())
}

/// Returns the colour of an event's kind.
fn colour(tag: &str, data: &Map) -> Option<Colour> {
    let parts: Vec<_> = tag.split('/').collect();
    Some(match parts[..] {
        ["salt", "auth" | "key", ..] => Colour::LightYellow,
        ["salt", "job", _, "new", ..] => Colour::Cyan,
        ["salt", "job", _, "ret", ..] if is_good(data) => Colour::Green,
        ["salt", "job", _, "ret", ..] => Colour::Red,
        ["salt", "run" | "wheel", _, "ret"] if !is_good(data) => Colour::Red,
        ["salt", "run" | "wheel", ..] => Colour::Magenta,
        ["salt", "beacon", ..] => Colour::Blue,
        ["salt", "reactor", "error"] => Colour::LightRed,
        ["salt", "minion" | "presence", ..] | ["minion_start"] => Colour::LightGreen,
        _ => return None,
    })
}

fn is_good(data: &Map) -> bool {
    data.get("success").and_then(Value::as_bool).unwrap_or(true)
        && data.get("retcode").and_then(Value::as_i64).unwrap_or(0) == 0
}

fn summary(tag: &str, data: &Map) -> String {
    let text = |name: &str| data.get(name).map(ToString::to_string).unwrap_or_default();
    let parts: Vec<_> = tag.split('/').collect();
    match parts[..] {
        ["salt", "auth" | "key", ..] => format!("act {}, id {}", text("act"), text("id")),
        ["salt", "job", _, "new"] => {
            let minions = data.get("minions").and_then(Value::as_list).unwrap_or_default();
            let names: Vec<_> = minions.iter().map(ToString::to_string).collect();
            let minions =
                if names.len() > MAX_NAMED_MINIONS { format!("{} minions", names.len()) } else { names.join(", ") };
            format!("{}for {minions} by {}{}", call(data), text("user"), reaction(data))
        }
        ["salt", "job", _, "publish"] => format!("{} published", text("fun")),
        ["salt", "job", _, "ret", _] => {
            let states = data.get("return").and_then(Value::as_map).filter(|_| text("fun").starts_with("state."));
            let states = states.map_or_else(String::new, |states| format!(", {} states", states.len()));
            format!("{} returned, retcode {}{states}", text("fun"), text("retcode"))
        }
        ["salt", "run" | "wheel", _, "new"] => format!("{}by {}{}", call(data), text("user"), reaction(data)),
        ["salt", "run" | "wheel", _, "ret"] if is_good(data) => format!("{} done", text("fun")),
        ["salt", "run" | "wheel", _, "ret"] => format!("{} failed: {}", text("fun"), text("return")),
        ["salt", "reactor", "error"] => text("message"),
        ["minion_start"] | ["salt", "minion", _, "start"] => text("data"),
        _ => {
            let rest = data.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with('_')));
            json::to_json(&Value::Map(rest.map(|(name, value)| (name.clone(), value.clone())).collect()))
        }
    }
}

/// Formats a function and its arguments, each followed by a space.
fn call(data: &Map) -> String {
    let list = data.get("fun_args").or(data.get("arg")).and_then(Value::as_list).unwrap_or_default();
    let words = list.iter().flat_map(|item| match item {
        // Keyword arguments: marked in jobs, and the last item in calls of the master.
        Value::Map(map) => map
            .iter()
            .filter(|(key, _)| key.as_str() != Some("__kwarg__"))
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
        other => vec![other.to_string()],
    });
    let fun = data.get("fun").map(ToString::to_string).unwrap_or_default();
    std::iter::once(fun).chain(words).map(|word| word + " ").collect()
}

/// Formats the reactor file that caused an event, as its directory and name.
fn reaction(data: &Map) -> String {
    let Some(file) = data.get("_sls").and_then(Value::as_str) else { return String::new() };
    let parts: Vec<&str> = file.rsplit('/').take(2).collect();
    format!(", who rendered {}", parts.into_iter().rev().collect::<Vec<_>>().join("/"))
}

/// Returns the text on one line, truncated to `width` characters.
fn cut(text: &str, width: usize) -> String {
    let one_line = text.replace(['\n', '\r', '\t'], " ");
    let one_line = escape_line(&one_line);
    if one_line.chars().count() <= width {
        return one_line.into_owned();
    }
    let prefix: String = one_line.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { String::new() } else { format!("{prefix}…") }
}

#[cfg(test)]
mod tests;
