use std::collections::BTreeSet;

use super::*;
use crate::environment::ENVIRONMENT;

/// Returns the names of all entries, including those after `also`.
fn names(table: &[Entry]) -> BTreeSet<String> {
    let also = |text: &str| {
        let rest = text.split_once("lso `").map_or("", |(_, rest)| rest);
        rest.split("` and `").filter_map(|name| name.split('`').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    let first = |usage: &str| usage.split('(').next().unwrap_or_default().to_owned();
    let names = table.iter().flat_map(|(usage, text)| also(text).into_iter().chain([first(usage)]));
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns the names of the tests and filters that the environment has.
pub(super) fn registered() -> (BTreeSet<String>, BTreeSet<String>) {
    // Only the debug output of the environment lists them.
    let environment = format!("{:?}", *ENVIRONMENT);
    let (_, rest) = environment.split_once(", tests: [").unwrap();
    let (tests, rest) = rest.split_once("], filters: [").unwrap();
    let (filters, _) = rest.split_once("], templates").unwrap();
    let parse_names = |list: &str| -> BTreeSet<String> {
        let names = list.split(", ").map(|name| name.trim_matches('"').to_owned());
        names.filter(|name| !name.starts_with("__")).collect()
    };
    (parse_names(tests), parse_names(filters))
}

#[test]
fn every_filter_test_and_global_is_documented() {
    let (tests, filters) = registered();
    assert_eq!(names(FILTERS), filters);
    assert_eq!(names(TESTS), tests);
    let globals = ENVIRONMENT.globals().map(|(name, _)| name.to_owned());
    assert_eq!(names(GLOBALS), globals.filter(|name| !name.starts_with("__")).collect());
}

#[test]
fn documented_tags_compile() {
    for (usage, _) in TAGS {
        let source = format!("{{% {} %}}", usage.replace("` `", " %}{% "));
        let error = super::super::Template::compile("t", &source).err();
        let message = error.map(|error| error.message).unwrap_or_default();
        assert!(!message.contains("unknown"), "{source}: {message}");
    }
}
