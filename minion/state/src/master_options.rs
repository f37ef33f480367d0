//! The options of a state run that its master sets: those of `_master_opts`, which override the minion's own.

use brine_context::Context;
use brine_value::{Map, Value};

/// Options that a run takes from the master. The minion's value applies if the master does not send an option.
const OF_THE_MASTER: [&str; 14] = [
    "renderer",
    "failhard",
    "state_top",
    "state_top_saltenv",
    "nodegroups",
    "state_auto_order",
    "file_roots",
    "top_file_merging_strategy",
    "env_order",
    "default_top",
    "jinja_env",
    "jinja_sls_env",
    "jinja_lstrip_blocks",
    "jinja_trim_blocks",
];
/// Options that a run takes from the master unless the minion has set them.
const OF_EITHER: [&str; 2] = ["state_events", "state_aggregate"];

/// Overrides `opts` with the master's options, as Salt does for each run of SLS files. A minion with its own files
/// (`file_client: local`) keeps its own options, and so does a run whose master does not reply. Returns the
/// environments of the master, if it sent them.
pub(crate) fn take(context: &Context, opts: &mut Map) -> Option<Vec<String>> {
    if context.config().file_client == "local" {
        return None;
    }
    match context.minion.files.master_opts() {
        Ok(masters) => overlay(opts, &masters),
        Err(error) => {
            tracing::warn!(%error, "requesting the master's options failed: the state run uses the minion's own");
            None
        }
    }
}

/// Overrides `opts` with the master's options. Returns the environments of the master, if it sent them.
fn overlay(opts: &mut Map, masters: &Map) -> Option<Vec<String>> {
    for name in OF_THE_MASTER {
        if let Some(value) = masters.get(name) {
            opts.insert(name.into(), value.clone());
        }
    }
    for name in OF_EITHER {
        if let Some(value) = masters.get(name).filter(|_| !opts.get(name).is_some_and(Value::is_truthy)) {
            opts.insert(name.into(), value.clone());
        }
    }
    // As in Salt, templates see the top file as a URL.
    if let Some(top) = masters.get("state_top").and_then(Value::as_str).filter(|top| !top.contains("://")) {
        opts.insert("state_top".into(), format!("salt://{}", top.trim_start_matches('/')).into());
    }
    let roots = masters.get("file_roots").and_then(Value::as_map)?;
    Some(roots.keys().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn options_come_from_the_master_or_from_either() {
        for (own, masters, expected) in [
            (map! {"failhard" => true}, map! {"failhard" => false}, map! {"failhard" => false}),
            (map! {"failhard" => true}, map! {}, map! {"failhard" => true}),
            (
                map! {"state_top" => "salt://top.sls"},
                map! {"state_top" => "/a.sls"},
                map! {"state_top" => "salt://a.sls"},
            ),
            (map! {}, map! {"state_top" => "salt://b.sls"}, map! {"state_top" => "salt://b.sls"}),
            (map! {"state_events" => true}, map! {"state_events" => false}, map! {"state_events" => true}),
            (map! {"state_events" => false}, map! {"state_events" => true}, map! {"state_events" => true}),
            (
                map! {"state_aggregate" => list!["pkg"]},
                map! {"state_aggregate" => true},
                map! {"state_aggregate" => list!["pkg"]},
            ),
            (map! {"id" => "web1"}, map! {"id" => "db1", "interface" => "0.0.0.0"}, map! {"id" => "web1"}),
        ] {
            let mut opts = own.clone();
            assert_eq!((overlay(&mut opts, &masters), opts), (None, expected), "{own:?} {masters:?}");
        }
        let environments = overlay(&mut Map::new(), &map! {"file_roots" => map! {"base" => list![], "dev" => list![]}});
        assert_eq!(environments, Some(vec!["base".to_owned(), "dev".to_owned()]));
    }
}
