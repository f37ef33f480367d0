//! Generates the reference of the command lines from the tools' own `--help`.

use std::process::{Command, Stdio};

use super::reference::page;

const TOOLS: &[&[&str]] = &[
    &[],
    &["salt"],
    &["api"],
    &["call"],
    &["key"],
    &["run"],
    &["cp"],
    &["ssh"],
    &["master"],
    &["minion"],
    &["syndic"],
    &["up"],
    &["swarm"],
    &["backup"],
    &["restore"],
    &["doctor"],
    &["test"],
    &["check"],
    &["schema"],
    &["docs"],
    &["lsp"],
    &["fmt"],
    &["link"],
    &["completion"],
    &["man"],
];

/// Returns the page.
pub fn page_of_tools() -> String {
    let introduction = "`brine` contains all tools: `brine salt` is `salt`, `brine key` is `salt-key` and so on. Called by the \
                        name of one of Salt's tools, it is that tool; `brine link DIR` creates such links.";
    let section = |words: &&[&str]| {
        let name = std::iter::once("brine").chain(words.iter().copied()).collect::<Vec<_>>().join(" ");
        format!("## {name}\n\n```text\n{}\n```\n\n", help(words))
    };
    page("Command lines", introduction, &TOOLS.iter().map(section).collect::<String>())
}

/// Returns the help of a tool, wrapped as without a terminal.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_brine"))
        .args(words)
        .arg("--help")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}
