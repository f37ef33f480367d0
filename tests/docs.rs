//! Checks the documents: generated pages are up to date, and examples, tables, links and paths match the program. This
//! writes the generated pages:
//!
//!     cargo test --workspace --test docs -- --ignored
#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used)]

#[path = "docs/arguments.rs"]
mod arguments;
#[path = "docs/check.rs"]
mod check;
#[path = "docs/command_line.rs"]
mod command_line;
#[path = "docs/core_names.rs"]
mod core_names;
#[path = "docs/doctor.rs"]
mod doctor;
#[path = "docs/events.rs"]
mod events;
#[path = "docs/functions.rs"]
mod functions;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/reference.rs"]
mod reference;
#[path = "docs/schemas.rs"]
mod schemas;

use brine_function::Functions;

fn doc(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn examples_of_rules_match_their_files() {
    let text = doc("docs/rules.md");
    for name in ["logins", "reboots", "rollout"].map(|rule| format!("rules/{rule}")).iter().map(String::as_str).chain([
        "block",
        "not_back",
        "stop_rollout",
    ]) {
        let file = doc(&format!("reactor.d/{name}.sls"));
        assert!(text.contains(file.trim_end()), "docs/rules.md does not contain reactor.d/{name}.sls verbatim");
    }
}

#[test]
fn every_difference_has_a_topic_and_both_sides() {
    let text = doc("docs/differences.md");
    let escaped = text.replace("\\|", "");
    let rows: Vec<Vec<&str>> = escaped
        .lines()
        .filter_map(|line| Some(line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect()))
        .collect();
    assert!(rows.len() > 150, "{}", rows.len());
    for cells in rows {
        assert_eq!(cells.len(), 4, "{cells:?}");
        assert!(cells[..3].iter().all(|cell| !cell.trim().is_empty()), "{cells:?}");
    }
}

#[test]
fn every_explanation_of_a_command_names_a_difference() {
    let (differences, explanations) = (doc("docs/differences.md"), doc("tests/commands/differences"));
    let named = explanations.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" -> "));
    let lost: Vec<&str> = named
        .filter(|(_, topic)| !differences.lines().any(|line| line.starts_with(&format!("| {topic} | "))))
        .map(|(_, topic)| topic)
        .collect();
    assert!(lost.is_empty(), "tests/commands/differences names no row of docs/differences.md: {lost:?}");
}

#[test]
fn no_function_is_registered_twice() {
    fn names<C>(kind: &str, modules: &[&Functions<C>]) -> Vec<String> {
        let all = modules.iter().flat_map(|module| module.list());
        all.map(|function| format!("{kind} {}", function.full_name())).collect()
    }
    let mut names = [
        names("execution function", &brine_modules::MODULES.functions()),
        names("state function", &brine_modules::MODULES.states()),
        names("runner function", brine_master_runners::runner::MODULES),
        names("wheel function", brine_master_runners::wheel::MODULES),
    ]
    .concat();
    names.sort();
    let twice: Vec<&str> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].as_str()).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn the_generated_pages_are_up_to_date() {
    for (name, text) in reference::pages() {
        let is_same =
            std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).is_ok_and(|old| old == text);
        assert!(is_same, "{name} is out of date: write it with `cargo test --workspace --test docs -- --ignored`");
    }
}

#[test]
#[ignore = "writes the generated pages"]
fn write_the_generated_pages() {
    for directory in functions::directories() {
        let directory = format!("{}/{directory}", env!("CARGO_MANIFEST_DIR"));
        _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::create_dir_all(format!("{}/docs/reference/schemas", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for (name, text) in reference::pages() {
        std::fs::write(format!("{}/{name}", env!("CARGO_MANIFEST_DIR")), text).unwrap();
    }
}
