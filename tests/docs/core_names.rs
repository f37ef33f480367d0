//! The crates in `core` name no function of Salt: data about functions is passed in by the crate that has them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_function::Function;

/// The functions that a crate still names, by crate. The list may only become shorter.
const REMAINING: &[(&str, &[&str])] = &[
    (
        "jinja",
        &[
            "config.get",
            "config.option",
            "defaults.deepcopy",
            "defaults.merge",
            "defaults.update",
            "environ.get",
            "grains.filter_by",
            "grains.get",
            "grains.set",
            "http.query",
            "match.ifelse",
            "pillar.get",
            "pillar.item",
            "pillar.items",
            "pillar.raw",
            "slsutil.merge",
            "slsutil.renderer",
            "slsutil.update",
            "test.arg",
            "test.echo",
            "test.kwarg",
        ],
    ),
    // The query whether a job is still running, part of Salt's protocol.
    ("job", &["saltutil.find_job"]),
    ("sls", &["cmd.run", "cmd.run_stdout", "grains.get", "http.query", "pillar.get"]),
];

fn full_names<C>(modules: &[&[Function<C>]]) -> Vec<String> {
    modules.iter().flat_map(|module| module.iter()).map(Function::full_name).collect()
}

/// Returns the sources below a directory except for tests and benches.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !["tests", "benches"].contains(&name.as_str()) {
            found.extend(sources(&entry));
        } else if entry.extension().is_some_and(|ending| ending == "rs") && !name.ends_with("tests.rs") {
            found.push(entry);
        }
    }
    found
}

/// Returns the string literals of a source, without comments and without its tests at the end.
fn literals(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn core_names_no_salt_function() {
    let functions: BTreeSet<String> = [
        full_names(&brine_modules::ROOMS.functions()),
        full_names(brine_master::runner::MODULES),
        full_names(brine_master::wheel::MODULES),
    ]
    .concat()
    .into_iter()
    .collect();
    assert!(functions.len() > 500, "{}", functions.len());
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("core");
    let mut new = BTreeSet::new();
    for file in sources(&core) {
        let owner = file.strip_prefix(&core).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
        let literals = literals(&std::fs::read_to_string(&file).unwrap());
        let remaining = REMAINING.iter().find(|(name, _)| *name == owner).map_or(&[][..], |(_, names)| *names);
        let named = literals.intersection(&functions).filter(|name| !remaining.contains(&name.as_str()));
        new.extend(named.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(new.is_empty(), "core names functions of Salt; let their crate hand down what is to be known: {new:#?}");
}
