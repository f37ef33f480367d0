//! `B208`, `B315`, `B318`, `B406` and calls: configuration files of masters and minions, which are no SLS of the tree.

use std::path::Path;

use brine_authoring_model::layout::is_of_master;
use brine_authoring_model::{Catalogue, File, FileKind, Tree, reactions};
use brine_yaml::SourceNode;

use crate::{Check, Finding, Options, reactor};

/// Checks the configuration files of a tree. Those that are rendered first are not checked.
pub(crate) fn check(tree: &Tree, catalogue: &Catalogue, options: &Options) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.configurations().filter(|file| options.includes(&file.path)) {
        let Some(is_master) = is_of_master(&file.path) else { continue };
        if file.text.contains("{{") || file.text.contains("{%") {
            continue;
        }
        let mut own = of_file(tree, catalogue, file, is_master);
        let mut calls = Check::new(tree, catalogue, options, file);
        calls.calls_of_configuration();
        own.extend(calls.found);
        options.retain(file, &mut own);
        findings.extend(own);
    }
    findings
}

fn of_file(tree: &Tree, catalogue: &Catalogue, file: &File, is_master: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = brine_yaml::load(&file.text) {
        findings.push(Finding::new("B102", &file.path, file.line(error.line), error.message));
        return findings;
    }
    let entries = || file.documents.iter().flat_map(|document| document.map().unwrap_or_default());
    let key = |name: &str| entries().find(|(key, _)| key.text() == Some(name)).map(|(key, _)| key.span.clone());
    for mistake in catalogue.examine_options.map(|examine| examine(&file.text, is_master)).unwrap_or_default() {
        let code = if mistake.is_error { "B406" } else { "B208" };
        findings.push(Finding::new(code, &file.path, key(&mistake.option).unwrap_or(0..0), mistake.message));
    }
    if is_master {
        findings.extend(reactions(file).filter_map(|(pattern, _)| reactor::pattern(file, pattern)));
    }
    // Without reactor files, the tree is not the one that has them.
    if tree.files().any(|file| file.kind == FileKind::Reactor) {
        let reactors = entries().filter(|(key, _)| key.text() == Some("reactor"));
        for node in reactors.flat_map(|(_, entries)| reactor_files(entries)) {
            let path = node.text().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or(path);
            let has_file = |have: &String| have.rsplit('/').next() == Some(name);
            // Globs name all files of a directory.
            if !name.contains('*') && !tree.paths().iter().any(has_file) {
                let message = format!("no file of the tree has the name of the reactor file '{path}'");
                findings.push(Finding::new("B315", &file.path, node.span.clone(), message));
            }
        }
    }
    findings
}

/// Returns the files of reactor entries: a list of mappings of globs to a file or a list of files.
fn reactor_files(entries: &SourceNode) -> Vec<&SourceNode> {
    let maps = entries.list().unwrap_or_default().iter().filter_map(SourceNode::map).flatten();
    let files = maps.flat_map(|(_, files)| files.list().unwrap_or_else(|| std::slice::from_ref(files)));
    files
        .filter(|file| file.text().is_some_and(|text| Path::new(text).extension().is_some_and(|end| end == "sls")))
        .collect()
}
