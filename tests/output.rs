//! Compares the outputters with the recorded output of Salt's for the same values.
//!
//! `tests/golden/output/cases` lists the cases; `tests/golden/output/record` records them again.

use std::fs;
use std::path::PathBuf;

use brine::escape::escape_control;
use brine::output::{OutputOptions, Outputter, display};
use brine::ui::Colours;
use brine_value::json::from_json;
use brine_value::{Map, Value};
use proptest::prelude::*;

fn golden(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/output").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn options(words: &[&str]) -> OutputOptions {
    let pairs = words.iter().map(|word| word.split_once('=').unwrap());
    let config: Map = pairs.map(|(key, text)| (Value::from(key), from_json(text).unwrap())).collect();
    let mut options = OutputOptions::default();
    options.set_all(&config);
    if config.get("color") == Some(&Value::from(true)) {
        options.colours = Colours::ON;
    }
    if let Some(retcode) = config.get("retcode").and_then(Value::as_i64) {
        options.retcode = retcode;
    }
    options
}

#[test]
fn output_matches_salt_in_every_case() {
    let cases = golden("cases");
    let mut wrong = Vec::new();
    let mut run = 0;
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, outputter, value, options_words @ ..] = words.as_slice() else { panic!("{line}") };
        let value = from_json(&golden(&format!("{value}.json"))).unwrap();
        let text = display(&value, outputter.parse::<Outputter>().unwrap(), &options(options_words)) + "\n";
        let expected = golden(&format!("{name}.txt"));
        if text != expected {
            wrong.push(format!("{name}\n--- Salt\n{expected}--- Brine\n{text}"));
        }
        run += 1;
    }
    assert!(run > 20, "only {run} cases were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Generates data, some of it with control characters.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::from),
        Just(Value::from("\x1b[2J")),
        Just(Value::from("\u{7}\u{8}\u{b}\u{e}\u{7f}\u{85}\u{9b}2J\u{2028}\u{202a}\u{202e}\u{2069}")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((inner.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Map(pairs.into_iter().collect())),
        ]
    })
}

/// Generates a run of one state with every field, each with arbitrary data.
fn any_run() -> impl Strategy<Value = Value> {
    const FIELDS: [&str; 8] =
        ["result", "changes", "comment", "warnings", "start_time", "duration", "data", "__parallel__"];
    (prop::collection::vec(any_value(), FIELDS.len()), "[a\x1b\u{7}\u{9b}\u{202e}|_-]{1,9}").prop_map(
        |(values, name)| {
            let mut state: Map = FIELDS.iter().map(|field| Value::from(*field)).zip(values).collect();
            state.insert(Value::from("__run_num__"), Value::from(0));
            let key = Value::from(format!("{name}_|-{name}_|-{name}_|-{name}"));
            let run = Value::Map([(key, Value::Map(state))].into_iter().collect());
            Value::Map([(Value::from("m"), run)].into_iter().collect())
        },
    )
}

proptest! {
    #[test]
    fn every_value_is_displayed_without_control_characters(value in prop_oneof![any_value(), any_run()]) {
        for name in ["nested", "highstate", "json", "yaml", "raw", "pprint", "txt", "key", "no_return"] {
            for mode in ["full", "terse"] {
                let mode = format!("state_output=\"{mode}\"");
                let text = display(&value, name.parse().unwrap(), &options(&["state_compress_ids=true", &mode]));
                prop_assert_eq!(escape_control(&text), text.as_str(), "{}", name);
                prop_assert_eq!(text.trim_end(), &text);
            }
        }
    }
}
