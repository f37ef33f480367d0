//! What the outputters print, compared with what Salt's own outputters printed for the same values.
//!
//! `tests/golden/output/cases` lists the cases; `tests/golden/output/record` records them anew.

#![allow(clippy::unwrap_used, reason = "a broken case must end the test")]

use std::fs;
use std::path::PathBuf;

use brine::output::{OutputOptions, Outputter, display};
use brine::ui::Colours;
use brine_core::value::json::from_json;
use brine_core::{Map, Value};

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
fn every_case_prints_what_salt_prints() {
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
