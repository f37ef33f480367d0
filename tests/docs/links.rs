//! Links between documents, and paths named in them, exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Returns the documents: those in the root directory, and all below docs/.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("reactor.d/README.md")];
    let mut directories = vec![root(), root().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|extension| extension == "md") {
                documents.push(entry);
            } else if entry.is_dir() && directory != root() {
                directories.push(entry);
            }
        }
    }
    documents
}

/// Returns the text of a document without its code blocks.
fn prose(document: &Path) -> String {
    let text = std::fs::read_to_string(document).unwrap();
    let mut in_code = false;
    let outside = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// Returns the anchors of a document's headings, as GitHub makes them.
fn anchors(document: &Path) -> BTreeSet<String> {
    let slug = |heading: &str| -> String {
        let text = heading.trim().to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    prose(document)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| slug(line.trim_start_matches('#')))
        .collect()
}

#[test]
fn links_refer_to_existing_documents_and_headings() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = prose(&document);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { document.clone() } else { document.parent().unwrap().join(path) };
            if !file.exists() || (!anchor.is_empty() && !anchors(&file).contains(anchor)) {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn paths_in_the_documents_exist() {
    let top: BTreeSet<String> =
        std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    // `target` is written by builds and tests.
    let is_ours = |name: &str| top.contains(name) && name != "target";
    let mut missing = Vec::new();
    for name in ["README.md", "CONTRIBUTING.md"] {
        let text = prose(&root().join(name));
        for code in text.split('`').skip(1).step_by(2) {
            let path = code.trim_end_matches('/');
            let is_pattern = path.contains(['*', '<', ' ', '{', '(']) || path.contains("NAME");
            if path.split_once('/').is_some_and(|(first, _)| is_ours(first))
                && !is_pattern
                && !root().join(path).exists()
            {
                missing.push(format!("{name}: {path}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_page_is_in_the_navigation_of_the_site() {
    let navigation = std::fs::read_to_string(root().join("mkdocs.yml")).unwrap();
    let docs = root().join("docs");
    let missing: Vec<String> = documents()
        .iter()
        .filter_map(|page| Some(page.strip_prefix(&docs).ok()?.display().to_string()))
        // The pages of single modules are reached from their list.
        // Their indexes are.
        .filter(|page| {
            !["modules", "runners", "states", "wheel"]
                .iter()
                .any(|kind| page.starts_with(&format!("reference/{kind}/")))
        })
        .filter(|page| !navigation.lines().any(|line| line.ends_with(&format!(" {page}"))))
        .collect();
    assert_eq!(missing, [""; 0], "add them to `nav` of mkdocs.yml");
}
