//! The module `beacons` and the states of `beacon`.

use std::sync::Arc;

use brine_context::StateContext;
use brine_function::Args;
use brine_value::{Map, Value, list, map};

use crate::testing;

fn outcome(result: bool, comment: impl Into<String>) -> Map {
    map! {"comment" => comment.into(), "result" => result}
}
#[tokio::test(flavor = "multi_thread")]
async fn beacons_are_listed_added_changed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let minion = testing::answering(directory.path());
    *minion.pillar.write() = Arc::new(map! {"beacons" => map! {"load" => list![]}});
    let five = || list![map! {"percent" => 5}];
    let six = || list![map! {"percent" => 6}];
    let with = |data: Value| map! {"beacon_data" => data};
    let steps = [
        (
            "add",
            "memusage",
            with(list![]),
            false,
            "Beacon memusage configuration invalid, not adding.\noption 'percent' is missing",
        ),
        ("add", "memusage", map! {"beacon_data" => five(), "test" => true}, true, "Beacon: memusage would be added."),
        ("add", "memusage", with(five()), true, "Added beacon: memusage."),
        ("add", "memusage", with(five()), true, "Beacon memusage is already configured."),
        ("add", "load", with(five()), true, "Beacon load is already configured."),
        ("add", "dance", with(five()), false, "Beacon \"dance\" is not available."),
        (
            "add",
            "other",
            with(list![map! {"beacon_module" => "memusage"}, map! {"percent" => 7}]),
            true,
            "Added beacon: other.",
        ),
        ("modify", "memusage", with(five()), true, "Job memusage in correct state"),
        ("modify", "none", with(five()), true, "Beacon none is not configured."),
        ("disable_beacon", "other", map! {}, true, "Disabled beacon other on minion."),
        ("enable_beacon", "none", map! {}, false, "Beacon none is not currently configured."),
        ("enable_beacon", "load", map! {}, false, "Cannot enable beacon item load, it is configured in pillar."),
        ("delete", "other", map! {}, true, "Deleted beacon: other."),
        ("delete", "load", map! {}, false, "Cannot delete beacon item load, it is configured in pillar."),
    ];
    let called = tokio::task::spawn_blocking(move || {
        let context = testing::context_of(minion);
        let call = |fun: &str, keyword: Map| context.call(&format!("beacons.{fun}"), Args::keyword(keyword)).unwrap();
        for (fun, name, mut keyword, result, comment) in steps {
            keyword.insert("name".into(), name.into());
            assert_eq!(call(fun, keyword), outcome(result, comment).into(), "{fun} {name}");
        }
        let report = call("modify", map! {"name" => "memusage", "beacon_data" => six()});
        assert_eq!(report.get("comment"), Some(&"Modified beacon: memusage.".into()));
        let diff = report.get("changes").unwrap().get("diff").unwrap().to_string();
        insta::assert_snapshot!(diff, @r"
        --- 
        +++ 
        @@ -1 +1 @@
        -percent:5
        +percent:6
        ");
        assert_eq!(call("disable", map! {}), outcome(true, "Disabled beacons on minion.").into());
        let listed = call("list", map! {});
        insta::assert_snapshot!(listed, @r"
        beacons:
          enabled: false
          load: []
          memusage:
          - percent: 6
        ");
        assert!(call("list_available", map! {"return_yaml" => false}).as_list().unwrap().contains(&"load".into()));
        let saved = call("save", map! {});
        assert_eq!(saved, outcome(true, format!("Beacons saved to {path}/minion.d/beacons.conf.")).into());
        let text = std::fs::read_to_string(format!("{path}/minion.d/beacons.conf")).unwrap();
        assert_eq!(text, "beacons:\n  enabled: false\n  memusage:\n  - percent: 6\n");
        assert_eq!(call("reset", map! {}), outcome(true, "Beacon configuration reset.").into());
        assert_eq!(call("list", map! {"return_yaml" => false, "include_pillar" => false}), map! {}.into());
    });
    called.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn beacon_states_are_enforced() {
    let directory = tempfile::tempdir().unwrap();
    let minion = testing::answering(directory.path());
    let steps: Vec<(&str, bool, Map, bool, &str)> = vec![
        ("absent", false, map! {}, true, "memusage not configured in beacons"),
        ("enabled", false, map! {}, true, "memusage not a configured beacon"),
        ("disabled", false, map! {}, true, "Job memusage is not configured."),
        ("present", true, map! {"percent" => 5}, true, "Beacon: memusage would be added."),
        (
            "present",
            false,
            map! {"interval" => 5},
            false,
            "Beacon memusage configuration invalid, not adding.\noption 'percent' is missing",
        ),
        (
            "present",
            false,
            map! {"percent" => 5, "save" => true},
            true,
            "Adding memusage to beacons\nBeacon memusage saved",
        ),
        ("present", false, map! {"percent" => 5}, true, "Job memusage in correct state"),
        (
            "present",
            true,
            map! {"percent" => 6, "save" => true},
            true,
            "Beacon: memusage would be modified.\nBeacon memusage would be saved",
        ),
        ("present", false, map! {"percent" => 6}, true, "Modifying memusage in beacons"),
        ("disabled", false, map! {}, true, "Disabled beacon memusage."),
        ("enabled", false, map! {}, true, "Enabled memusage from beacons"),
        ("absent", true, map! {}, true, "Beacon: memusage would be deleted."),
        ("absent", false, map! {}, true, "Removed memusage from beacons"),
    ];
    let called = tokio::task::spawn_blocking(move || {
        for (fun, test, mut options, result, comment) in steps {
            options.insert("name".into(), "memusage".into());
            let context =
                StateContext { call: testing::context_of(minion.clone()), ..testing::state_context(test, &[]) };
            let outcome =
                context.call.minion.states.call(&context, &format!("beacon.{fun}"), Args::keyword(options)).unwrap();
            let report = (outcome.get("result").cloned(), outcome.get("comment").cloned());
            assert_eq!(report, (Some(result.into()), Some(comment.into())), "{fun}");
            let changed = comment.starts_with("Modifying");
            assert_eq!(outcome.get("changes").unwrap().is_truthy(), changed, "{fun}");
        }
    });
    called.await.unwrap();
    let saved = std::fs::read_to_string(directory.path().join("minion.d/beacons.conf")).unwrap();
    assert_eq!(
        brine_yaml::load(&saved).unwrap(),
        map! {"beacons" => map! {"memusage" => list![map! {"percent" => 5}]}}.into()
    );
}
