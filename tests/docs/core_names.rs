//! The crates in `core` name no function of Salt: data about functions is passed in by the crate that defines them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_function::{Function, Functions};

fn full_names<C>(modules: &[&Functions<C>]) -> Vec<String> {
    modules.iter().flat_map(|module| module.list()).map(Function::full_name).collect()
}

/// Returns the sources below a directory except for tests and benches.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !["tests", "benches"].contains(&name.as_str()) {
            paths.extend(sources(&entry));
        } else if entry.extension().is_some_and(|ending| ending == "rs") && !name.ends_with("tests.rs") {
            paths.push(entry);
        }
    }
    paths
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
        full_names(&brine_modules::MODULES.functions()),
        full_names(brine_master_runners::runner::MODULES),
        full_names(brine_master_runners::wheel::MODULES),
    ]
    .concat()
    .into_iter()
    .collect();
    assert!(functions.len() > 500, "{}", functions.len());
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("core");
    let mut names = BTreeSet::new();
    for file in sources(&core) {
        let literals = literals(&std::fs::read_to_string(&file).unwrap());
        let named = literals.intersection(&functions);
        names.extend(named.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(names.is_empty(), "core names functions of Salt; let their crate hand the names down: {names:#?}");
}
