use std::sync::Arc;

use brine_config::MinionConfig;
use brine_context::Upstream;
use brine_value::list;
use parking_lot::Mutex;

use super::*;
use crate::testing;

/// Returns a master that records requests, and its records.
fn recorder() -> (Arc<dyn Upstream>, Arc<Mutex<Vec<Map>>>) {
    let records = Arc::new(Mutex::new(Vec::new()));
    let recorded = records.clone();
    let master = testing::Answering(move |load| {
        recorded.lock().push(load);
        Ok(true.into())
    });
    (Arc::new(master), records)
}

#[test]
fn update_merges_configuration_and_pillar() {
    let echo = |text: &str| list![map! {"mine_function" => "test.echo"}, text];
    for (configured, pillar, expected) in [
        (Map::new(), Map::new(), None),
        (map! {"test.ping" => list![]}, Map::new(), Some(map! {"test.ping" => true})),
        (Map::new(), map! {"test.ping" => list![]}, Some(map! {"test.ping" => true})),
        (
            map! {"a" => echo("configuration"), "b" => echo("b")},
            map! {"a" => echo("pillar"), "c" => echo("c"), "none" => list![map! {"mine_function" => "no.such"}]},
            Some(map! {"a" => "configuration", "c" => "c", "b" => "b"}),
        ),
    ] {
        let (master, records) = recorder();
        let mut minion = testing::minion_with(&[], master);
        let mut config = MinionConfig::default();
        if !configured.is_empty() {
            config.opts.insert(MINE_FUNCTIONS.into(), configured.into());
        }
        Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
        minion.set_pillar(if pillar.is_empty() {
            Map::new()
        } else {
            map! {MINE_FUNCTIONS => pillar}
        });
        let returned = testing::context_of(minion).call("mine.update", Args::default());
        assert_eq!(returned, Ok(if expected.is_some() { true.into() } else { Value::Nil }));
        let sent = records.lock().first().and_then(|load| load.get("data").cloned());
        assert_eq!(sent, expected.map(Value::from));
    }
}

#[test]
fn valid_lists_the_configured_functions_that_exist() {
    let mut minion = testing::minion_with(&[], recorder().0);
    let mut config = MinionConfig::default();
    let alias = list![map! {"mine_function" => "test.echo"}, "a", map! {"x" => 1}, map! {"allow_tgt" => "*"}];
    let configured = map! {
        "test.ping" => list![], "alias" => alias, "no.such" => list![],
        "other" => list![map! {"mine_function" => "no.such"}]
    };
    config.opts.insert(MINE_FUNCTIONS.into(), configured.into());
    Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
    minion.set_pillar(Map::new());
    assert_eq!(
        testing::context_of(minion).call("mine.valid", Args::default()),
        Ok(map! {"test.ping" => list![], "alias" => map! {"test.echo" => list!["a", map! {"x" => 1}]}}.into())
    );
}

#[test]
fn arguments_are_parsed_in_every_form() {
    for (definition, positional, keyword) in [
        (Value::Nil, vec![], map! {}),
        (list![], vec![], map! {}),
        (list!["eth0", map! {"mine_function" => "x.y"}], vec!["eth0".into()], map! {"mine_function" => "x.y"}),
        (map! {"cidr" => "10.0.0.0/8"}.into(), vec![], map! {"cidr" => "10.0.0.0/8"}),
    ] {
        assert_eq!(arguments(definition), (positional, keyword));
    }
}
