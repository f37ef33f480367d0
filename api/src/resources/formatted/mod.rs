//! The state of jobs and minions, built from events, as Salt's web sockets send it with `format_events`.

use brine_event::Event;
use brine_value::{Map, Value, json, map};

/// The maximum number of jobs and of minions; the oldest are evicted.
const MAX_ENTRIES: usize = 1000;

/// The state of one subscriber.
#[derive(Default)]
pub(crate) struct Formatted {
    jobs: Map,
    minions: Map,
    /// The sizes of both as JSON, in bytes.
    shown: [usize; 2],
}

/// The memory of a value as a multiple of its size as JSON.
const MEMORY_OF_JSON: usize = 6;

impl Formatted {
    /// Returns the memory of the state, in bytes.
    pub fn memory(&self) -> usize {
        MEMORY_OF_JSON * (self.shown[0] + self.shown[1])
    }

    /// Applies an event. Returns the changed part of the state as JSON, if any.
    pub fn update(&mut self, event: &Event) -> Option<String> {
        let data = event.data();
        let parts: Vec<&str> = event.tag().split('/').collect();
        match parts[..] {
            ["salt", "job", jid, "new"] => {
                self.begin(jid, &data);
                Some(self.shown_jobs())
            }
            ["salt", "job", jid, "ret", id] => {
                self.returned(jid, id, &data);
                if data.get("fun").and_then(Value::as_str) == Some("grains.items") {
                    let grains = data.get("return").cloned().unwrap_or_default();
                    self.shown[1] += json::to_json(&grains).len();
                    put(&mut self.minions, id, map! {"id" => id, "grains" => grains}.into());
                }
                Some(self.shown_jobs())
            }
            ["salt", "key"] => {
                let id = data.get("id")?.as_str()?;
                match data.get("act").and_then(Value::as_str) {
                    Some("delete") => _ = self.minions.shift_remove(id),
                    Some("accept" | "accepted") if !self.minions.contains_key(id) => {
                        put(&mut self.minions, id, map! {"id" => id}.into());
                    }
                    _ => {}
                }
                Some(self.shown_minions())
            }
            ["salt", "presence", "present"] => {
                let present = data.get("present")?.as_list()?;
                let before = self.minions.len();
                self.minions.retain(|id, _| present.contains(id));
                let mut changed = self.minions.len() != before;
                for id in present.iter().filter_map(Value::as_str) {
                    if !self.minions.contains_key(id) {
                        put(&mut self.minions, id, map! {"id" => id}.into());
                        changed = true;
                    }
                }
                changed.then(|| self.shown_minions())
            }
            _ => None,
        }
    }

    fn begin(&mut self, jid: &str, data: &Map) {
        let field = |name: &str| data.get(name).cloned().unwrap_or_default();
        let ids = data.get("minions").and_then(Value::as_list).unwrap_or_default();
        let minions: Map = ids.iter().map(|id| (id.clone(), map! {"success" => false}.into())).collect();
        let job = map! {
            "jid" => jid,
            "start_time" => field("_stamp"),
            "minions" => minions,
            "fun" => field("fun"),
            "tgt" => field("tgt"),
            "tgt_type" => field("tgt_type"),
            "state" => "running",
        };
        put(&mut self.jobs, jid, job.into());
    }

    fn returned(&mut self, jid: &str, id: &str, data: &Map) {
        if !self.jobs.contains_key(jid) {
            put(&mut self.jobs, jid, Value::map());
        }
        let Some(job) = self.jobs.get_mut(jid).and_then(Value::as_map_mut) else { return };
        let minions = job.entry("minions".into()).or_insert_with(Value::map);
        let Some(minions) = minions.as_map_mut() else { return };
        let field = |name: &str| data.get(name).cloned().unwrap_or_default();
        let one = map! {"return" => field("return"), "retcode" => field("retcode"), "success" => field("success")};
        minions.insert(id.into(), one.into());
        let is_complete = minions.values().all(|one| one.get("success").is_some_and(Value::is_truthy));
        if is_complete {
            job.insert("state".into(), "complete".into());
        }
    }

    fn shown_jobs(&mut self) -> String {
        let text = json::to_json(&map! {"jobs" => self.jobs.clone()}.into());
        self.shown[0] = text.len();
        text
    }

    fn shown_minions(&mut self) -> String {
        let minions: Value = self.minions.values().cloned().collect();
        let text = json::to_json(&map! {"minions" => minions}.into());
        self.shown[1] = text.len();
        text
    }
}

fn put(map: &mut Map, name: &str, value: Value) {
    map.insert(name.into(), value);
    while map.len() > MAX_ENTRIES {
        map.shift_remove_index(0);
    }
}

#[cfg(test)]
mod tests;
