use brine_value::{list, map};

use super::*;

#[test]
fn options_are_a_list_of_mappings_or_a_mapping() {
    for config in [
        list![map! {"file" => "/x"}, map! {"interval" => 2}, map! {"_beacon_name" => "x"}, map! {"run_once" => true}],
        map! {"file" => "/x", "interval" => "2", "run_once" => true}.into(),
    ] {
        let settings = Settings::read("mine", &config).unwrap();
        assert_eq!((&*settings.module, settings.interval), ("mine", Some(Duration::from_secs(2))));
        assert_eq!((settings.once, settings.enabled, settings.is_paused_during_states), (true, true, false));
        assert_eq!(settings.own, [("file".to_owned(), Value::from("/x"))]);
    }
    let other = list![map! {"beacon_module" => "load"}, map! {"enabled" => false}, map! {"interval" => 0}];
    let other = Settings::read("mine", &other).unwrap();
    assert_eq!((&*other.module, other.enabled, other.interval), ("load", false, None));
    assert!(Settings::read("mine", &Value::Nil).is_ok());
}

#[test]
fn invalid_options_are_errors() {
    for (config, error) in [
        (list!["word"], "an entry is not a mapping: write '- option: value'"),
        (Value::from(5), "expected a list of options, got int"),
        (list![map! {"interval" => "often"}], "option 'interval': expected a number, got often"),
        (list![map! {"interval" => -1}], "option 'interval': expected seconds, got -1"),
        (list![map! {"beacon_module" => 1}], "option 'beacon_module': expected a string, got 1"),
    ] {
        assert_eq!(Settings::read("mine", &config).unwrap_err(), error);
    }
}

#[test]
fn percentages_have_one_digit() {
    for (part, whole, expected) in [(1, 3, 33.3), (2, 3, 66.7), (0, 0, 0.0), (5, 5, 100.0)] {
        assert!((percent(part, whole) - expected).abs() < 1e-9);
    }
}
