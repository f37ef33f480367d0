//! What the docs say of the program is so. `docs/modules.md` and `docs/jinja.md` are written by it:
//!
//!     cargo test --test docs -- --ignored
#![allow(clippy::unwrap_used)]

use brine_function::{Function, ParamKind, Registry};
use brine_jinja::reference::{self, Entry};
use brine_value::python::repr;

fn doc(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn every_metric_is_in_its_table() {
    let (text, shown) = (doc("docs/metrics.md"), brine_metrics::prometheus());
    let names: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() > 30, "{shown}");
    for name in names {
        assert!(text.contains(&format!("| `{name}` |")), "{name} is not in docs/metrics.md");
    }
}

#[test]
fn the_worked_examples_are_shown_as_they_are() {
    let text = doc("docs/rules.md");
    for name in ["logins", "reboots", "rollout"].map(|rule| format!("rules/{rule}")).iter().map(String::as_str).chain([
        "block",
        "not_back",
        "stop_rollout",
    ]) {
        let file = doc(&format!("reactor.d/{name}.sls"));
        let shown: Vec<String> = file.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
        assert!(text.contains(&shown.join("\n")), "reactor.d/{name}.sls is not shown as it is");
    }
}

#[test]
fn each_difference_from_salt_has_a_topic_and_both_sides() {
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
fn the_generated_docs_are_up_to_date() {
    for (name, text) in generated() {
        let same = doc(name) == text;
        assert!(same, "{name} is not what the program has now: write it with `cargo test --test docs -- --ignored`");
    }
}

#[test]
#[ignore = "writes the generated docs"]
fn write_the_generated_docs() {
    for (name, text) in generated() {
        std::fs::write(format!("{}/{name}", env!("CARGO_MANIFEST_DIR")), text).unwrap();
    }
}

fn generated() -> [(&'static str, String); 2] {
    [("docs/modules.md", modules()), ("docs/jinja.md", jinja())]
}

const WRITTEN: &str = "<!-- Written by `cargo test --test docs -- --ignored`. -->\n";

fn modules() -> String {
    let sections = [
        functions(
            "Execution",
            "what `salt` and `salt-call` call, and `salt[...]` in templates",
            brine_minion::modules::MODULES,
        ),
        functions("State", "what SLS files name", brine_minion::states::MODULES),
        functions("Runner", "what `salt-run` calls", brine_master::runner::MODULES),
        functions("Wheel", "what `wheel.` in reactions and `salt-key` call", brine_master::wheel::MODULES),
    ];
    format!(
        "# Functions\n\n{WRITTEN}\n`sys.doc` tells more of each. An argument with `=` may be left out.\n\n{}",
        sections.join("\n")
    )
}

fn functions<C>(kind: &str, about: &str, modules: &[&'static [Function<C>]]) -> String {
    let mut text = format!("## {kind} functions\n\n{kind} functions are {about}.\n\n| function | |\n|---|---|\n");
    for function in Registry::new(modules).iter() {
        let params: Vec<String> = function
            .params
            .iter()
            .map(|param| match param.kind {
                ParamKind::Required => param.name.to_owned(),
                ParamKind::Optional(default) => format!("{}={}", param.name, repr(&default())),
                ParamKind::Rest => format!("*{}", param.name),
                ParamKind::Keywords => format!("**{}", param.name),
            })
            .collect();
        let usage = format!("{}({})", function.full_name(), params.join(", "));
        let doc = function.docstring();
        text.push_str(&row(&usage, &doc.split("\n\n").next().unwrap().replace('\n', " ")));
    }
    text
}

fn jinja() -> String {
    let tables = [
        ("Tags", reference::TAGS),
        ("Functions", reference::GLOBALS),
        ("Variables", reference::VARIABLES),
        ("Filters", reference::FILTERS),
        ("Tests", reference::TESTS),
    ];
    let table = |(title, entries): (&str, &[Entry])| {
        let rows: String = entries.iter().map(|(usage, text)| row(usage, text)).collect();
        format!("\n## {title}\n\n| | |\n|---|---|\n{rows}")
    };
    format!(
        "# Jinja\n\n{WRITTEN}\nWhat templates have: SLS and pillar files, top files, reactor files, and files with `template: jinja`.\n{}{LIMITS}",
        tables.map(table).concat()
    )
}

/// What a template may use.
const LIMITS: &str = "
## Limits

A render counts against these options of the master's and the minion's configuration, together with all templates that it
imports or renders through functions. One that exceeds a limit fails with an error that names the file, the line and
the option, and `brine_template_limits_exceeded_total` rises.

| option | default | |
|---|---|---|
| `template_fuel` | 200000000 | Steps: instructions, and one for each 64 bytes that operators and filters work on. |
| `template_memory` | 67108864 | Bytes of memory that the template holds at a time, with what its functions return. |
| `template_output` | 67108864 | Bytes that it renders to. |

The defaults are far above what formulas need. A template that reads the mine of thousands of minions may need more
memory. 0 stands for no limit.
";

/// A row of a table; a bar would end its column.
fn row(usage: &str, text: &str) -> String {
    format!("| `{}` | {} |\n", usage.replace('|', "\\|"), text.replace('|', "\\|"))
}
