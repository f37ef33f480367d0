//! What `editors/` has for the editors, with the real program.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::write;
use crate::support::BRINE;

fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs the extension of Visual Studio Code in a stand-in of the editor, and returns what a user would have seen.
fn run_extension(program: &str, tree: &Path) -> Value {
    let target =
        std::env::var("CARGO_TARGET_DIR").map_or_else(|_| of_repository("target"), PathBuf::from).join("test-node");
    let modules = target.join("node_modules");
    assert!(modules.join("vscode-languageclient").exists(), "vscode-languageclient is missing: tests/run installs it");
    let mut node = Command::new("timeout");
    node.args(["120", "node"]).arg(of_repository("tests/lsp/vscode.js")).arg(of_repository("editors/vscode"));
    let output = node.arg(program).arg(tree).env("NODE_PATH", modules).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_extension_starts_the_server_and_starts_it_again() {
    let tree = tempfile::tempdir().unwrap();
    write(tree.path(), &[("web.sls", "nginx:\n  pkg.installed:\n    - require:\n      - pkg: ngnix\n")]);
    let report = run_extension(BRINE, tree.path());
    assert_eq!(report["messages"], json!([]));
    let finding = report["findings"]["web.sls"][0].as_str().unwrap();
    assert!(finding.starts_with("B301: 'require' matches nothing"), "{finding}");
    assert!(report["hover"].as_str().unwrap().contains("pkg.installed(name, ...)"), "{report}");
    let formats = "registerDocumentFormattingEditProvider";
    assert_eq!(report["providers"].as_array().unwrap().iter().filter(|one| *one == formats).count(), 2, "{report}");
}

#[test]
fn the_extension_says_that_the_program_is_missing() {
    let tree = tempfile::tempdir().unwrap();
    let report = run_extension("/nonexistent/brine", tree.path());
    let expected = "starting '/nonexistent/brine lsp' failed: there is no such program: install Brine, or set \
                    'brine.path'";
    assert_eq!(report["messages"], json!([expected]));
    assert_eq!(report["commands"][1], json!(["workbench.action.openSettings", "brine.path"]));
}

#[test]
fn the_page_of_helix_has_the_settings_of_the_directory() {
    let page = std::fs::read_to_string(of_repository("docs/editors/helix.md")).unwrap();
    let (_, rest) = page.split_once("    ```toml\n").unwrap();
    let (block, _) = rest.split_once("    ```\n").unwrap();
    let lines: Vec<&str> = block.lines().map(|line| line.strip_prefix("    ").unwrap_or_default()).collect();
    let settings = std::fs::read_to_string(of_repository("editors/helix/languages.toml")).unwrap();
    assert_eq!(lines, settings.lines().skip(2).collect::<Vec<_>>());
}
