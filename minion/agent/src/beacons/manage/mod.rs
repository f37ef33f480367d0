//! Handles the events of the execution module `beacons`, which query and change the configured beacons.

use std::sync::Arc;

use brine_context::Minion;
use brine_context::beacons::of_pillar;
use brine_value::{Map, Value, map};

/// Handles an event `manage_beacons`. Returns Salt's tag and fields of the reply; `None` for an unknown request.
pub fn answer(minion: &Arc<Minion>, data: &Map) -> Option<(String, Map)> {
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| data.get(name).is_none_or(|value| value.is_nil() || value.is_truthy());
    let (func, name) = (text("func"), text("name"));
    let config = || data.get("beacon_data").cloned().unwrap_or_default();
    let beacons = &minion.beacons;
    let pillar = of_pillar(&minion.pillar.read());
    // Beacons of the pillar must be changed there.
    let unless_in_pillar = |verb: &str, act: &dyn Fn() -> (bool, String)| {
        let refused = || (false, format!("Cannot {verb} beacon item {name}, it is configured in pillar."));
        let (complete, comment) = if pillar.contains_key(name) { refused() } else { act() };
        map! {"complete" => complete, "comment" => comment, "beacons" => beacons.own()}
    };
    let put = |comment: String| {
        beacons.change(|beacons| _ = beacons.insert(name.into(), config()));
        (true, comment)
    };
    let all = || map! {"complete" => true, "beacons" => beacons.own()};
    let (tag, fields) = match func {
        "list" => {
            let mut listed = if flag("include_pillar") { pillar } else { Map::new() };
            if flag("include_opts") {
                listed.extend(beacons.own());
            }
            ("beacons_list", map! {"complete" => true, "beacons" => listed})
        }
        "list_available" => {
            let mut names: Vec<String> = super::available().map(str::to_owned).collect();
            names.extend(super::custom::names(minion));
            names.sort();
            names.dedup();
            ("beacons_list_available", map! {"complete" => true, "beacons" => names})
        }
        "validate_beacon" => {
            let config = config();
            // As by the check of a configuration: an option that the beacon lacks is misspelt.
            let unknown = (!super::is_custom(minion, name, &config)).then(|| super::unknown_options(name, &config));
            let unknown = unknown.and_then(|unknown| unknown.into_iter().next());
            let (valid, comment) = match unknown.map_or_else(|| super::check_on(minion, name, &config), Err) {
                Ok(()) => (true, "Valid beacon configuration".to_owned()),
                Err(error) => (false, error),
            };
            ("beacon_validation", map! {"complete" => true, "vcomment" => comment, "valid" => valid})
        }
        "add" => {
            let act = || {
                let is_new = !beacons.own().contains_key(name);
                put(format!(
                    "{}: {name}",
                    if is_new { "Added new beacon item" } else { "Updating settings for beacon item" }
                ))
            };
            ("beacon_add", unless_in_pillar("update", &act))
        }
        "modify" => {
            ("beacon_modify", unless_in_pillar("modify", &|| put(format!("Updating settings for beacon item: {name}"))))
        }
        "delete" => {
            let act = || {
                let gone = beacons.change(|beacons| beacons.shift_remove(name));
                (
                    true,
                    gone.map_or(format!("Beacon item {name} not found."), |_| format!("Deleting beacon item: {name}")),
                )
            };
            ("beacon_delete", unless_in_pillar("delete", &act))
        }
        "enable" | "disable" => {
            beacons.change(|beacons| _ = beacons.insert("enabled".into(), (func == "enable").into()));
            (if func == "enable" { "beacons_enabled" } else { "beacons_disabled" }, all())
        }
        "enable_beacon" | "disable_beacon" => {
            let enabled = func == "enable_beacon";
            let (tag, verb, doing) = if enabled {
                ("beacon_enabled", "enable", "Enabling")
            } else {
                ("beacon_disabled", "disable", "Disabling")
            };
            let act = || (beacons.set_enabled(name, enabled), format!("{doing} beacon item {name}"));
            (tag, unless_in_pillar(verb, &act))
        }
        "reset" => {
            beacons.replace(Map::new());
            let mut fields = all();
            fields.insert("comment".into(), "Beacons have been reset".into());
            ("beacon_reset", fields)
        }
        _ => {
            tracing::error!(func, "the request in an event manage_beacons is unknown");
            return None;
        }
    };
    Some((format!("/salt/minion/minion_{tag}_complete"), fields))
}

#[cfg(test)]
mod tests;
