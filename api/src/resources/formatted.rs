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
}

impl Formatted {
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

    fn shown_jobs(&self) -> String {
        json::to_json(&map! {"jobs" => self.jobs.clone()}.into())
    }

    fn shown_minions(&self) -> String {
        let minions: Value = self.minions.values().cloned().collect();
        json::to_json(&map! {"minions" => minions}.into())
    }
}

fn put(map: &mut Map, name: &str, value: Value) {
    map.insert(name.into(), value);
    while map.len() > MAX_ENTRIES {
        map.shift_remove_index(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::list;

    fn update(state: &mut Formatted, tag: &str, data: Map) -> Option<Value> {
        let event = Event::from_map(tag, &data).unwrap();
        state.update(&event).map(|text| json::from_json(&text).unwrap())
    }

    #[test]
    fn jobs_are_running_until_all_minions_have_returned() {
        let mut state = Formatted::default();
        let new = map! {"minions" => list!["a", "b"], "fun" => "test.ping", "tgt" => "*", "tgt_type" => "glob", "_stamp" => "t"};
        let shown = update(&mut state, "salt/job/1/new", new).unwrap();
        let of = |shown: &Value| shown.get("jobs").unwrap().get("1").unwrap().get("state").unwrap().to_string();
        assert_eq!(of(&shown), "running");
        let ret = map! {"return" => true, "retcode" => 0, "success" => true};
        assert_eq!(of(&update(&mut state, "salt/job/1/ret/a", ret.clone()).unwrap()), "running");
        assert_eq!(of(&update(&mut state, "salt/job/1/ret/b", ret).unwrap()), "complete");
        assert_eq!(update(&mut state, "my/tag", Map::new()), None);
    }

    #[test]
    fn minions_follow_keys_and_presence() {
        let mut state = Formatted::default();
        let ids = |shown: Option<Value>| shown.map(|shown| shown.get("minions").unwrap().as_list().unwrap().len());
        assert_eq!(ids(update(&mut state, "salt/key", map! {"id" => "a", "act" => "accept"})), Some(1));
        let present = map! {"present" => list!["a", "b"]};
        assert_eq!(ids(update(&mut state, "salt/presence/present", present.clone())), Some(2));
        assert_eq!(ids(update(&mut state, "salt/presence/present", present)), None);
        assert_eq!(ids(update(&mut state, "salt/key", map! {"id" => "a", "act" => "delete"})), Some(1));
    }

    #[test]
    fn the_state_is_bounded() {
        let mut map = Map::new();
        for number in 0..MAX_ENTRIES + 5 {
            put(&mut map, &number.to_string(), Value::Nil);
        }
        assert_eq!((map.len(), map.contains_key("4"), map.contains_key("5")), (MAX_ENTRIES, false, true));
    }
}
