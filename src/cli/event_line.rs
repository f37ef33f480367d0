//! An event on one line of a terminal: time, number, tag in the colour of its kind, and what matters of it.

use brine_core::event::{SEQ, STAMP};
use brine_core::value::json;
use brine_core::{Map, Value};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::escape::escape_line;
use crate::ui::{Colour, Colours};

/// How wide the column of tags is, and how wide on terminals narrower than [`NARROW`], where job ids are cut.
const TAG: usize = 44;
const SHORT_TAG: usize = 30;
const NARROW: usize = 100;

/// One event in at most so many columns, times in this zone.
pub(super) fn line(tag: &str, data: &Map, width: usize, zone: &TimeZone, colours: Colours) -> String {
    let seq = data.get(SEQ).map(ToString::to_string).unwrap_or_default();
    let front = format!("{} {seq:>7} ", time(data, zone));
    let (shown, column) = if width < NARROW { (short(tag), SHORT_TAG) } else { (tag.to_owned(), TAG) };
    let shown = cut(&shown, width.saturating_sub(front.len()));
    let used = front.chars().count() + shown.chars().count().max(column) + 1;
    let rest = cut(&summary(tag, data), width.saturating_sub(used));
    let padding = " ".repeat(column.saturating_sub(shown.chars().count()) + 1);
    let painted = match colour(tag, data) {
        Some(colour) => colours.paint(colour, &shown),
        None => shown,
    };
    format!("{front}{painted}{padding}{rest}").trim_end().to_owned()
}

/// A tag with the end of its job id alone.
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

/// The kinds of events, as their tags tell them.
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
        ["salt", "auth" | "key", ..] => format!("{} {}", text("id"), text("act")),
        ["salt", "job", _, "new"] => {
            let minions = data.get("minions").and_then(Value::as_list).map_or(0, <[_]>::len);
            let plural = if minions == 1 { "" } else { "s" };
            format!("{} -> {} ({minions} minion{plural}) {}", text("fun"), text("tgt"), text("user"))
        }
        ["salt", "job", _, "ret", id] => {
            let result = if is_good(data) { String::new() } else { format!(" failed, retcode {}", text("retcode")) };
            format!("{id} {}{result}", text("fun"))
        }
        ["salt", "run" | "wheel", _, "new"] => format!("{} {}", text("fun"), text("user")),
        ["salt", "run" | "wheel", _, "ret"] => {
            let result = if is_good(data) { "" } else { " failed: " };
            let said = if is_good(data) { String::new() } else { text("return") };
            format!("{}{result}{said}", text("fun"))
        }
        ["salt", "reactor", "error"] => text("message"),
        ["salt", "minion", id, "start"] => id.to_owned(),
        _ => {
            let rest = data.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with('_')));
            json::to_json(&Value::Map(rest.map(|(name, value)| (name.clone(), value.clone())).collect()))
        }
    }
}

/// The text on one line of at most so many characters.
fn cut(text: &str, width: usize) -> String {
    let one_line = text.replace(['\n', '\r', '\t'], " ");
    let one_line = escape_line(&one_line);
    if one_line.chars().count() <= width {
        return one_line.into_owned();
    }
    let kept: String = one_line.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { String::new() } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use brine_core::{list, map};

    use super::*;

    fn lines(width: usize) -> String {
        let events = [
            ("salt/auth", map! {"id" => "web1", "act" => "pend", "pub" => "x"}),
            (
                "salt/job/20261120235852025555/new",
                map! {"fun" => "state.apply", "tgt" => "web*", "minions" => list!["web1", "web2"], "user" => "root"},
            ),
            (
                "salt/job/20261120235852025555/ret/web1",
                map! {"fun" => "state.apply", "success" => true, "retcode" => 0},
            ),
            (
                "salt/job/20261120235852025555/ret/web2",
                map! {"fun" => "state.apply", "success" => true, "retcode" => 2},
            ),
            (
                "salt/run/20261120235852025555/ret",
                map! {"fun" => "runner.x.y", "success" => false, "return" => "it\nbroke"},
            ),
            ("salt/beacon/web1/load/", map! {"id" => "web1", "1m" => 3.5, "_x" => 1}),
            ("salt/reactor/error", map! {"message" => "/srv/reactor/a.sls:3: Jinja variable 'nothing' is undefined"}),
            ("my/own/tag/that/is/longer/than/the/column/of/all/tags/is/wide/and/than/the/line", map! {"n" => 1}),
        ];
        let mut out = String::new();
        for (place, (tag, mut data)) in events.into_iter().enumerate() {
            data.insert(SEQ.into(), (place as u64 + 98).into());
            data.insert(STAMP.into(), "2026-11-21T10:00:00.123456".into());
            let line = line(tag, &data, width, &TimeZone::UTC, Colours::OFF);
            assert!(line.chars().count() <= width, "{line}");
            out += &line;
            out.push('\n');
        }
        out
    }

    #[test]
    fn events_stand_in_columns() {
        insta::assert_snapshot!(lines(80));
        insta::assert_snapshot!(lines(120));
    }

    #[test]
    fn tags_have_the_colour_of_their_kind() {
        for (tag, data, expected) in [
            ("salt/auth", Map::new(), Some(Colour::LightYellow)),
            ("salt/job/1/ret/m", map! {"retcode" => 1}, Some(Colour::Red)),
            ("salt/job/1/ret/m", map! {"retcode" => 0}, Some(Colour::Green)),
            ("salt/run/1/ret", map! {"success" => false}, Some(Colour::Red)),
            ("my/tag", Map::new(), None),
        ] {
            assert_eq!(colour(tag, &data), expected, "{tag}");
        }
    }
}
