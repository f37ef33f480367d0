//! Mutations of the golden cases: what does not compile has an error at the changed line or the next one.

use std::path::{Path, PathBuf};

use brine_authoring_model::{Catalogue, Tree};
use brine_jinja::{Context, Host, Template};
use brine_sls::compile::{HighData, Target, compile};
use brine_value::Map;

use crate::{Options, Severity, check};

/// The least part of the mutations that must be found at their line, in percent.
const FOUND: usize = 95;

fn files(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, paths);
        } else if !path.ends_with("top.sls") && path.extension().is_some_and(|extension| extension == "sls") {
            paths.push(path);
        }
    }
}

/// Whether a text compiles, as far as a file alone shows it.
fn compiles(text: &str) -> bool {
    let mut context = Context::new("base");
    for name in ["grains", "pillar", "opts"] {
        context.set(name, &Map::new().into());
    }
    let Ok(template) = Template::compile("a", text) else { return false };
    let Ok(rendered) = template.render(&context, &Host::new()) else { return false };
    let Ok(data) = brine_yaml::load(&rendered) else { return false };
    if data.get("include").is_some() || data.get("extend").is_some() {
        return false;
    }
    let (high, errors) = HighData::from_data(&data, "a", "base");
    errors.is_empty() && compile(high, &Target { acts_on_watch: &|_| true, disabled_requisites: &[] }).is_ok()
}

/// Returns the lines of all errors.
fn errors(catalogue: &Catalogue, text: &str) -> Vec<usize> {
    let tree = Tree::of_texts([("a.sls", text)]);
    let findings = check(&tree, catalogue, &Options::default());
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| tree.file("a.sls").unwrap().position(finding.span.start).line).collect()
}

/// Returns a text without a part of a line, in all ways.
fn mutations(text: &str) -> Vec<(usize, String)> {
    let mut mutations = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let bare = line.trim();
        let without = |from: usize, to: usize| format!("{}{}", &text[..from], &text[to..]);
        if !bare.is_empty() && !bare.starts_with('#') && !bare.starts_with('{') {
            for quote in ['\'', '"'] {
                mutations.extend(line.find(quote).map(|at| (number + 1, without(start + at, start + at + 1))));
                mutations.extend(line.rfind(quote).map(|at| (number + 1, without(start + at, start + at + 1))));
            }
            mutations.extend(line.find(':').map(|at| (number + 1, without(start + at, start + at + 1))));
            // An argument, or an id.
            mutations.push((number + 1, without(start, start + line.len())));
        }
        start += line.len();
    }
    mutations
}

#[test]
fn what_does_not_compile_has_an_error_at_its_line() {
    let catalogue = super::tests::catalogue();
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cases"), &mut all);
    all.sort();
    let (mut broken, mut missed, mut clean) = (0, Vec::new(), 0);
    for path in &all {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        if text.len() > 3000 || text.starts_with("#!") || !compiles(&text) {
            continue;
        }
        if !errors(&catalogue, &text).is_empty() {
            continue;
        }
        clean += 1;
        // Some of each file: all of them take minutes.
        let mutations = mutations(&text);
        let step = (mutations.len() / 8).max(1);
        for (line, mutated) in mutations.into_iter().step_by(step).filter(|(_, mutated)| !compiles(mutated)) {
            broken += 1;
            let lines = errors(&catalogue, &mutated);
            // What a deleted line has left is above it.
            let is_deletion = mutated.lines().count() < text.lines().count();
            let first = if is_deletion { line.saturating_sub(1) } else { line };
            if !lines.iter().any(|at| (first..=line + 1).contains(at)) {
                missed.push(format!("{}:{line} {lines:?}", path.display()));
            }
        }
    }
    assert!(clean > 100 && broken > 500, "{clean} files, {broken} mutations");
    assert!(missed.len() * 100 <= broken * (100 - FOUND), "{} of {broken} are missed: {missed:#?}", missed.len());
}
