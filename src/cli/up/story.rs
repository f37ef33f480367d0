//! What goes over the bus, one readable line an event, and what came of it.

use brine_core::event::{Event, SEQ, STAMP};
use brine_core::value::json;
use brine_core::{Map, Value};
use indexmap::IndexMap;

use super::system::System;
use crate::escape::{escape_control, escape_json, escape_line};
use crate::ui::{Colour, Colours};

/// Tells events, and remembers what the highstates changed.
pub(super) struct Story {
    colours: Colours,
    verbose: bool,
    /// By minion: the return of its highstate.
    highstates: IndexMap<String, Option<Map>>,
}

/// What is shown first.
pub(super) fn heading(system: &System, colours: Colours) -> String {
    let (publish, ret) = system.ports();
    let count = system.minions().len();
    let line = format!(
        "brine up: one master on 127.0.0.1:{ret} and :{publish}, {count} minions, all below {}",
        system.shown_folder()
    );
    format!("{}\nThe event bus, live:\n", colours.paint(Colour::LightGreen, &line))
}

impl Story {
    pub fn new(minions: &[String], colours: Colours, verbose: bool) -> Self {
        Story { colours, verbose, highstates: minions.iter().map(|id| (id.clone(), None)).collect() }
    }

    /// The lines for an event.
    pub fn tell(&mut self, event: &Event) -> Vec<String> {
        let mut data = event.data();
        if let Some((_, id)) = event.tag().split_once("/ret/")
            && data.get("fun").and_then(Value::as_str) == Some("state.highstate")
            && let Some(slot) = self.highstates.get_mut(id)
        {
            slot.get_or_insert_with(|| data.clone());
        }
        let stamp = data.get(STAMP).map(ToString::to_string).unwrap_or_default();
        let time = stamp.get(11..23).unwrap_or_default();
        let (colour, what) = describe(event.tag(), &data);
        let tag = self.colours.paint(colour, &escape_line(event.tag()));
        let mut lines = vec![format!("{time}  {tag}  {}", escape_line(&what)).trim_end().to_owned()];
        if self.verbose {
            data.shift_remove(SEQ);
            data.shift_remove(STAMP);
            let body = json::to_json_pretty(&data.into(), 2);
            lines.extend(escape_json(&body).lines().map(|line| format!("              {line}")));
        }
        lines
    }

    /// Whether every minion has returned its highstate.
    pub fn is_complete(&self) -> bool {
        self.highstates.values().all(Option::is_some)
    }

    /// The minions that have not returned their highstate.
    pub fn missing(&self) -> String {
        let missing = self.highstates.iter().filter(|(_, done)| done.is_none());
        missing.map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What went wrong in the highstates, if something did.
    pub fn failure(&self) -> Option<String> {
        let failed: Vec<&str> = self
            .highstates
            .iter()
            .filter(|(_, done)| done.as_ref().is_some_and(|done| done.get("retcode") != Some(&Value::Int(0))))
            .map(|(id, _)| id.as_str())
            .collect();
        (!failed.is_empty()).then(|| format!("the highstate failed on {}", failed.join(", ")))
    }

    /// What each minion changed, and what to try next.
    pub fn summary(&self, system: &System) -> String {
        let mut out = String::from("\n");
        for (id, done) in &self.highstates {
            let states = done.as_ref().and_then(|done| done.get("return")).cloned().unwrap_or_default();
            let Some(states) = states.as_map() else {
                let states = states.to_string();
                out.push_str(&format!("{}: {}\n", self.colours.paint(Colour::LightRed, id), escape_control(&states)));
                continue;
            };
            let changed: Vec<&Value> =
                states.values().filter(|state| state.get("changes").is_some_and(Value::is_truthy)).collect();
            let line = format!("{id}: {} states, {} changed", states.len(), changed.len());
            out.push_str(&format!("{}\n", self.colours.paint(Colour::LightGreen, &line)));
            for state in changed {
                let text = |key| state.get(key).map(ToString::to_string).unwrap_or_default();
                out.push_str(&format!(
                    "  {}  {}\n",
                    escape_line(&text("name")),
                    escape_line(text("comment").lines().next().unwrap_or_default())
                ));
            }
        }
        let etc = format!("{}/etc", system.shown_folder());
        let first = self.highstates.keys().next().cloned().unwrap_or_default();
        out.push_str(&format!(
            "\nTry, in another terminal:\n  brine salt -c {etc} '*' test.ping\n  brine salt -c {etc} '{first}' cmd.run 'uptime'\n  brine salt -c {etc} '*' state.apply test=True\n  brine key -c {etc} -L\n  brine run -c {etc} jobs.list_jobs\n  brine run -c {etc} state.event pretty=True\nand look at {}/minions/*/home and {}/srv/salt.",
            system.shown_folder(),
            system.shown_folder()
        ));
        if let Ok(program) = std::env::current_exe()
            && !std::env::var_os("PATH")
                .is_some_and(|paths| std::env::split_paths(&paths).any(|folder| folder.join("brine").exists()))
        {
            let here = std::env::current_dir().unwrap_or_default();
            let program = program.strip_prefix(&here).unwrap_or(&program);
            out.push_str(&format!("\n(brine is {})", program.display()));
        }
        out
    }
}

/// The colour of an event and what is worth saying of it.
fn describe(tag: &str, data: &Map) -> (Colour, String) {
    let text = |key: &str| data.get(key).map(ToString::to_string).unwrap_or_default();
    let parts: Vec<&str> = tag.split('/').collect();
    match parts[..] {
        ["salt", "auth"] => {
            let colour = if text("act") == "accept" { Colour::Green } else { Colour::LightYellow };
            (colour, format!("act {}, id {}", text("act"), text("id")))
        }
        ["salt", "key"] => (Colour::Green, format!("act {}, id {}", text("act"), text("id"))),
        ["salt", "wheel" | "run", _, "new"] => {
            (Colour::Magenta, format!("{} {} by {}{}", text("fun"), arguments(data), text("user"), reaction(data)))
        }
        ["salt", "wheel" | "run", _, "ret"] => {
            let word = if data.get("success").is_some_and(Value::is_truthy) { "done" } else { "failed" };
            (Colour::Magenta, format!("{} {word}", text("fun")))
        }
        ["salt", "job", _, "new"] => {
            let minions = data.get("minions").and_then(Value::as_list).unwrap_or_default();
            let minions: Vec<String> = minions.iter().map(ToString::to_string).collect();
            (
                Colour::Cyan,
                format!(
                    "{} {}for {} by {}{}",
                    text("fun"),
                    spaced(&arguments(data)),
                    minions.join(", "),
                    text("user"),
                    reaction(data)
                ),
            )
        }
        ["salt", "job", _, "publish"] => (Colour::Cyan, format!("{} goes out", text("fun"))),
        ["salt", "job", _, "ret", _] => {
            let retcode = text("retcode");
            let colour = if retcode == "0" { Colour::Cyan } else { Colour::LightRed };
            let states = data.get("return").and_then(Value::as_map).filter(|_| text("fun").starts_with("state."));
            let what = states.map_or(String::new(), |states| format!(", {} states", states.len()));
            (colour, format!("{} returned, retcode {retcode}{what}", text("fun")))
        }
        ["minion_start"] | ["salt", "minion", _, "start"] => (Colour::LightGreen, text("data")),
        ["salt", "reactor", "error"] => (Colour::LightRed, text("message")),
        _ => (Colour::LightBlue, String::new()),
    }
}

/// The reactor file that led to an event, by its folder and name.
fn reaction(data: &Map) -> String {
    let Some(file) = data.get("_sls").and_then(Value::as_str) else { return String::new() };
    let parts: Vec<&str> = file.rsplit('/').take(2).collect();
    format!(", who rendered {}", parts.into_iter().rev().collect::<Vec<_>>().join("/"))
}

fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text} ") }
}

/// The arguments of a call, short.
fn arguments(data: &Map) -> String {
    let list = data.get("fun_args").or(data.get("arg")).and_then(Value::as_list).unwrap_or_default();
    let words = list.iter().flat_map(|item| match item {
        // The keyword arguments: marked as such in what minions get, and simply the last in calls on the master.
        Value::Map(map) => map
            .iter()
            .filter(|(key, _)| key.as_str() != Some("__kwarg__"))
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
        other => vec![other.to_string()],
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_core::{list, map};

    #[test]
    fn events_are_told_in_a_line() {
        for (tag, data, line) in [
            ("salt/auth", map! {"act" => "pend", "id" => "web1"}, "act pend, id web1"),
            (
                "salt/wheel/1/new",
                map! {"fun" => "wheel.key.accept", "fun_args" => list![map! {"match" => "web1"}], "user" => "Reactor"},
                "wheel.key.accept match=web1 by Reactor",
            ),
            (
                "salt/job/1/new",
                map! {"fun" => "state.highstate", "arg" => list![], "minions" => list!["a", "b"], "user" => "Reactor"},
                "state.highstate for a, b by Reactor",
            ),
            (
                "salt/job/1/ret/a",
                map! {"fun" => "state.apply", "retcode" => 2, "return" => map! {"x" => 1}},
                "state.apply returned, retcode 2, 1 states",
            ),
            ("my/tag", map! {"x" => 1}, ""),
        ] {
            assert_eq!(describe(tag, &data).1, line);
        }
    }
}
