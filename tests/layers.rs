//! The crates depend on each other exactly as drawn in ARCHITECTURE.md, and the modules of a crate without circles;
//! options are read by typed functions; every file of tests is compiled.
#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "layers/modules.rs"]
mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The dependencies of each crate.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns the name of a crate in the diagram: its package's without `brine-`; the root package is `src`.
fn short(package: &str) -> String {
    package.strip_prefix("brine-").unwrap_or("src").to_owned()
}

fn metadata() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Returns the dependencies between the crates of the workspace, without dev-dependencies.
fn edges(packages: &[Value]) -> Edges {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|one| one["path"].is_string() && one["kind"] != "dev")
            .map(|one| short(&text(&one["name"])))
            .collect()
    };
    packages.iter().map(|package| (short(&text(&package["name"])), used(package))).collect()
}

/// Reads the diagram: the crates from top to bottom, each with its dependencies.
fn diagram() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let block = text.split("```crates\n").nth(1).expect("ARCHITECTURE.md has a block of crates");
    let mut drawn: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in block.split("```").next().unwrap().lines().filter(|line| !line.trim().is_empty()) {
        let (name, used) = line.split_once("->").unwrap_or(if line.starts_with(' ') { ("", line) } else { (line, "") });
        if !name.trim().is_empty() {
            drawn.push((name.trim().to_owned(), BTreeSet::new()));
        }
        let used = used.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned);
        drawn.last_mut().unwrap().1.extend(used);
    }
    drawn
}

#[test]
fn diagram_has_exactly_the_dependencies_between_the_crates() {
    let (drawn, real) = (diagram(), edges(&metadata()));
    let drawn_edges: Edges = drawn.iter().cloned().collect();
    assert_eq!(drawn_edges.len(), drawn.len(), "a crate is drawn twice");
    let flat = |edges: &Edges| -> BTreeSet<String> {
        let pairs = edges.iter().flat_map(|(from, to)| to.iter().map(move |to| format!("{from} -> {to}")));
        pairs.chain(edges.keys().cloned()).collect()
    };
    let (drawn_edges, real_edges) = (flat(&drawn_edges), flat(&real));
    let missing: Vec<_> = real_edges.difference(&drawn_edges).collect();
    let surplus: Vec<_> = drawn_edges.difference(&real_edges).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "ARCHITECTURE.md draws other crates than there are\nnot drawn: {missing:#?}\ndrawn only: {surplus:#?}\nAn edge \
         that should not exist is removed from its Cargo.toml, a new one is drawn"
    );
}

#[test]
fn crates_use_only_crates_below_them() {
    let drawn = diagram();
    for (at, (name, used)) in drawn.iter().enumerate() {
        let below: BTreeSet<_> = drawn[at + 1..].iter().map(|(name, _)| name).collect();
        let above: Vec<_> = used.iter().filter(|one| !below.contains(one)).collect();
        assert!(above.is_empty(), "{name} is drawn above {above:?}, which it uses");
    }
}

/// The groups of `core`, from the bottom up.
const GROUPS: &[&str] = &["base", "lang", "net", "salt"];

#[test]
fn core_uses_only_groups_below_and_nothing_outside() {
    let packages = metadata();
    let group = |package: &Value| {
        let (_, path) = package["manifest_path"].as_str().unwrap().rsplit_once("/core/")?;
        GROUPS.iter().position(|group| path.split('/').next() == Some(group))
    };
    let core: BTreeMap<String, usize> = packages
        .iter()
        .filter_map(|package| Some((short(package["name"].as_str().unwrap()), group(package)?)))
        .collect();
    let core_directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("core");
    let entries = |directory: &Path| std::fs::read_dir(directory).unwrap().count();
    assert_eq!(entries(&core_directory), GROUPS.len(), "core holds something else than its groups");
    let directories: usize = GROUPS.iter().map(|group| entries(&core_directory.join(group))).sum();
    assert_eq!(directories, core.len(), "core holds something that is no crate of the workspace");
    for (name, used) in edges(&packages) {
        let Some(own) = core.get(&name) else { continue };
        let above: Vec<_> = used.iter().filter(|one| core.get(*one).is_none_or(|group| group > own)).collect();
        assert!(above.is_empty(), "core/{}/{name} uses {above:?}", GROUPS[*own]);
    }
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries.flat_map(|entry| match entry {
        entry if entry.is_dir() && !entry.ends_with("tests") => sources(&entry),
        entry if entry.extension().is_some_and(|ending| ending == "rs") && !entry.ends_with("tests.rs") => vec![entry],
        _ => Vec::new(),
    });
    paths.collect()
}

#[test]
fn options_are_read_by_their_functions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for directory in ["api", "core", "master", "minion", "reactor", "returners", "src"] {
        for file in sources(&root.join(directory)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
            let by_name = ["opts.get(\"", "opts().get(\""].iter().any(|form| code.contains(form));
            let file = file.strip_prefix(root).unwrap().display().to_string();
            if by_name && !file.starts_with("core/salt/config/") {
                files.push(file);
            }
        }
    }
    assert!(
        files.is_empty(),
        "options are read by the functions in `brine_config::opts`, typed and with their default: {files:?}"
    );
}

/// Without `mod` in `main.rs`, the compiler does not read a file, and its tests would never fail.
#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (directory, programs) in [("tests", &["docs", "layers", "main"][..]), ("returners/tests", &["main"])] {
        let main = std::fs::read_to_string(root.join(directory).join("main.rs")).unwrap();
        let named = |name: &str| programs.contains(&name) || main.lines().any(|line| line == format!("mod {name};"));
        let files = std::fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path());
        let left: Vec<PathBuf> = files
            .filter(|file| file.extension().is_some_and(|ending| ending == "rs"))
            .filter(|file| !named(file.file_stem().unwrap().to_str().unwrap()))
            .collect();
        assert!(left.is_empty(), "{directory}/main.rs has no `mod` for {left:?}");
    }
}

#[test]
fn modules_have_the_disallowed_methods_of_the_workspace() {
    // Clippy reads the nearest file alone.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (all, modules) = (read("clippy.toml"), read("minion/modules/clippy.toml"));
    for line in all.lines() {
        assert!(modules.lines().any(|have| have == line), "minion/modules/clippy.toml lacks: {line}");
    }
}

/// A write that the store refuses is handled, or its loss is named: `write_unchecked` takes what is lost.
#[test]
fn refused_writes_of_the_store_are_not_silenced() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let writes = [
        "store.write(",
        "table.write(",
        ".write(batch",
        ".write_when_room(",
        ".write_blocking(",
        ".durable()",
        ".durable_blocking()",
    ];
    let mut statements = Vec::new();
    for directory in ["api", "cluster", "core", "master", "minion", "reactor", "returners", "src", "syndic"] {
        for file in sources(&root.join(directory)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for statement in code.split([';', '{', '}']) {
                let statement: String = statement.split_whitespace().collect();
                let is_silenced = ["drop(", "_=", "let_="].iter().any(|form| statement.starts_with(form));
                if is_silenced && writes.iter().any(|write| statement.contains(write)) {
                    statements.push(format!("{}: {statement}", file.strip_prefix(root).unwrap().display()));
                }
            }
        }
    }
    assert!(statements.is_empty(), "handle the error, or use `write_unchecked`: {statements:#?}");
}

/// The blocking threads of tokio are shared and hardly bounded, and a call that blocks in place takes a thread of the
/// runtime away: one slow caller delays all others.
#[test]
fn blocking_work_runs_on_executors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let forms = ["spawn_blocking(", "block_in_place(", "tokio::fs::"];
    // Its callers are threads of executors, which are in the runtime while they wait for a future.
    let nested = ("master/calls/src/runner_calls/mod.rs", "block_in_place(");
    // salt-ssh is a program of one user, and stops with what it waits for.
    let client =
        ["ssh/src/multiplexing.rs", "ssh/src/program/mod.rs", "ssh/src/session.rs"].map(|file| (file, "tokio::fs::"));
    let expected: BTreeSet<_> =
        client.into_iter().chain([nested]).map(|(file, form)| format!("{file}: {form}")).collect();
    let mut actual = BTreeSet::new();
    for directory in ["api", "cluster", "core", "master", "minion", "reactor", "returners", "src", "ssh", "syndic"] {
        for file in sources(&root.join(directory)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let file = file.strip_prefix(root).unwrap().display();
            actual.extend(forms.iter().filter(|form| code.contains(**form)).map(|form| format!("{file}: {form}")));
        }
    }
    assert_eq!(
        actual, expected,
        "use brine_runtime::executors, or for work as long as the daemon brine_runtime::threads"
    );
}
