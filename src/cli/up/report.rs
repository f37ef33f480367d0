//! Formats the events of the bus and the results of the first highstates.

use std::collections::HashSet;

use brine_event::{Event, SEQ, STAMP};
use brine_value::{Map, Value, json};
use indexmap::IndexMap;

use super::super::event_line;
use super::system::System;
use crate::escape::{escape_control, escape_json, escape_line};
use crate::ui::{Colour, Colours};

/// Formats events and collects the returns of the first highstates.
pub(super) struct Report {
    colours: Colours,
    verbose: bool,
    /// The return of the highstate, by minion.
    highstates: IndexMap<String, Option<Map>>,
    /// The ids of the jobs published since this start: a minion that was stopped before its return was acknowledged
    /// sends the return of an earlier start again.
    jobs: HashSet<String>,
}

/// Returns the heading.
pub(super) fn heading(system: &System, colours: Colours) -> String {
    let (publish, ret) = system.ports();
    let count = system.minions().len();
    let line = format!(
        "brine up: one master on 127.0.0.1:{ret} and :{publish}, {count} minions, all below {}",
        system.shown_directory()
    );
    format!("{}\nThe event bus, live:\n", colours.paint(Colour::LightGreen, &line))
}

impl Report {
    pub fn new(minions: &[String], colours: Colours, verbose: bool) -> Self {
        Report {
            colours,
            verbose,
            highstates: minions.iter().map(|id| (id.clone(), None)).collect(),
            jobs: HashSet::new(),
        }
    }

    /// Returns the lines of an event.
    pub fn lines(&mut self, event: &Event) -> Vec<String> {
        let mut data = event.data();
        let job = event.tag().strip_prefix("salt/job/");
        if let Some(jid) = job.and_then(|job| job.strip_suffix("/new")) {
            self.jobs.insert(jid.to_owned());
        }
        if let Some((jid, id)) = job.and_then(|job| job.split_once("/ret/"))
            && self.jobs.contains(jid)
            && data.get("fun").and_then(Value::as_str) == Some("state.highstate")
            && let Some(slot) = self.highstates.get_mut(id)
        {
            slot.get_or_insert_with(|| data.clone());
        }
        let mut lines = vec![event_line::line(event.tag(), &data, None, &brine_clock::zone(), self.colours)];
        if self.verbose {
            data.shift_remove(SEQ);
            data.shift_remove(STAMP);
            let body = json::to_json_pretty(&data.into(), 2);
            lines.extend(escape_json(&body).lines().map(|line| format!("              {line}")));
        }
        lines
    }

    /// Returns whether every minion has returned its highstate.
    pub fn is_complete(&self) -> bool {
        self.highstates.values().all(Option::is_some)
    }

    /// Returns the minions that have not returned their highstate.
    pub fn missing(&self) -> String {
        let missing = self.highstates.iter().filter(|(_, result)| result.is_none());
        missing.map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns a message about failed highstates, if any.
    pub fn failure(&self) -> Option<String> {
        let failed: Vec<&str> = self
            .highstates
            .iter()
            .filter(|(_, result)| result.as_ref().is_some_and(|result| result.get("retcode") != Some(&Value::Int(0))))
            .map(|(id, _)| id.as_str())
            .collect();
        (!failed.is_empty()).then(|| format!("the highstate failed on {}", failed.join(", ")))
    }

    /// Returns the changes of each minion, and commands to try next.
    pub fn summary(&self, system: &System) -> String {
        let mut out = String::from("\n");
        for (id, result) in &self.highstates {
            let states = result.as_ref().and_then(|result| result.get("return")).cloned().unwrap_or_default();
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
        let etc = format!("{}/etc", system.shown_directory());
        let first = self.highstates.keys().next().cloned().unwrap_or_default();
        out.push_str(&format!(
            "\nTry in another terminal:\n  brine salt -c {etc} '*' test.ping\n  brine salt -c {etc} '{first}' cmd.run 'uptime'\n  brine salt -c {etc} '*' state.apply test=True\n  brine key -c {etc} -L\n  brine run -c {etc} jobs.list_jobs\n  brine run -c {etc} state.event --follow\nThe states are in {}/srv/salt, their files in {}/minions/*/home.",
            system.shown_directory(),
            system.shown_directory()
        ));
        if let Ok(program) = std::env::current_exe()
            && !std::env::var_os("PATH")
                .is_some_and(|paths| std::env::split_paths(&paths).any(|directory| directory.join("brine").exists()))
        {
            let here = std::env::current_dir().unwrap_or_default();
            let program = program.strip_prefix(&here).unwrap_or(&program);
            out.push_str(&format!("\n(brine is {})", program.display()));
        }
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn returns_of_an_earlier_start_are_ignored() {
        let minions = ["web1".to_owned()];
        let mut report = Report::new(&minions, Colours::default(), false);
        let data = brine_value::map! {"fun" => "state.highstate", "retcode" => 0};
        let event = |tag: &str| Event::from_map(tag, &data).unwrap();
        for (tag, complete) in [
            ("salt/job/1/ret/web1", false),
            ("salt/job/2/new", false),
            ("salt/job/1/ret/web1", false),
            ("salt/job/2/ret/web1", true),
        ] {
            report.lines(&event(tag));
            assert_eq!(report.is_complete(), complete, "after {tag}");
        }
    }
}
