use brine_value::{list, map};

use super::*;

fn load(more: Map) -> Load {
    let number = |name: &str| more.get(name).and_then(Value::as_bool);
    Load {
        ranges: [Some((0.5, 2.0)), None, None],
        on_change: number("on_change").unwrap_or(false),
        at_start: number("at_start").unwrap_or(true),
        last: None,
    }
}

/// Returns whether each of these values is reported.
fn polled(mut load: Load, values: &[f64]) -> Vec<bool> {
    values.iter().map(|value| !load.events([*value, 9.0, 9.0]).is_empty()).collect()
}

#[test]
fn every_value_outside_its_range_or_only_its_crossing_is_reported() {
    let values = [3.0, 1.0, 3.0, 4.0, 0.1, 0.2];
    assert_eq!(polled(load(map! {}), &values), [true, false, true, true, true, true]);
    assert_eq!(polled(load(map! {"on_change" => true}), &values), [false, false, true, false, true, false]);
    let quiet = load(map! {"on_change" => true, "at_start" => false});
    assert_eq!(polled(quiet, &[3.0, 1.0, 3.0]), [false, false, true]);
    let all = map! {"1m" => 3.0, "5m" => 0.1, "15m" => 0.2};
    assert_eq!(load(map! {}).events([3.0, 0.1, 0.2]), [all]);
}

#[test]
fn options_are_checked() {
    for (config, error) in [
        (list![], "option 'averages' is missing"),
        (list![map! {"averages" => map! {}}], "option 'averages': expected at least one of 1m, 5m, 15m"),
        (
            list![map! {"averages" => map! {"1m" => 2}}],
            "averages of 1m: expected a list of the lowest and highest value, got 2",
        ),
        (
            list![map! {"averages" => map! {"5m" => list![0, 2]}}, map! {"onchangeonly" => "x"}],
            "option 'onchangeonly': expected True or False, got x",
        ),
    ] {
        assert_eq!(super::super::tests::wrong("load", &config), error);
    }
}
