//! No text and no position ends the server.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use crate::{findings, requests};

const REQUESTS: [&str; 12] = [
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/completion",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/codeAction",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/semanticTokens/full",
];

const SAMPLE: &str = "{% from 'web/map.jinja' import port as p with context %}\n{% set é = salt['pillar.get']('web:name', {}) %}\n\
                      include:\n  - db\n{% if grains['os'] == 'Dèbian' %}\nüber:\n  pkg:\n    - installed\n    - require:\n      \
                      - service: database\n{% else %}\n'x y': pkg.installed\n{% endif %}\nextend:\n  database:\n    \
                      service.running:\n      - watch:\n        - file: /etc/web\n/a: &b\n  file.managed:\n    - source: \
                      salt://web/files/web.conf\n    - contents: |\n        {{ p | upper }}\n        {# note #}\n    - \
                      mode: 0644\n";

/// Asks everything about a position.
fn ask(fixture: &Fixture, path: &str, line: u32, character: u32) {
    let position = json!({"line": line, "character": character});
    let params = json!({
        "textDocument": {"uri": fixture.uri(path)}, "position": position, "newName": "neu: é",
        "context": {"includeDeclaration": true, "diagnostics": [], "triggerKind": 1}, "options": {"tabSize": 2, "insertSpaces": true},
        "range": {"start": position, "end": {"line": line, "character": character.saturating_add(5)}},
    });
    for method in REQUESTS {
        if let Err((code, message)) = requests::answer(&fixture.workspace, method, params.clone()) {
            let is_refused = method == "textDocument/rename";
            assert!(is_refused, "{method} {line}:{character}: {code:?} {message}");
        }
    }
    if let Some(here) = fixture.workspace.here(&fixture.uri(path)) {
        findings::diagnostics(&here);
    }
}

/// Returns the last position of a text.
fn end(text: &str) -> (u32, u32) {
    let line = text.matches('\n').count();
    (line as u32, text.rsplit('\n').next().unwrap_or_default().encode_utf16().count() as u32)
}

#[test]
fn a_text_that_ends_anywhere_is_answered() {
    let mut fixture = Fixture::new();
    for (number, at) in SAMPLE.char_indices().map(|(at, _)| at).enumerate() {
        let text = &SAMPLE[..at];
        let path = ["salt/x.sls", "pillar/x.sls", "reactor/x.sls", "salt/top.sls", "salt/x.jinja"][number % 5];
        fixture.open(path, &text.replace('|', "\u{2502}"));
        let (line, character) = end(text);
        ask(&fixture, path, line, character);
        // The whole text with a hole in it.
        let hole = format!("{}{}", &SAMPLE[..at], SAMPLE[at..].chars().skip(3).collect::<String>());
        fixture.workspace.open(fixture.uri("salt/x.sls"), 1, hole);
        ask(&fixture, "salt/x.sls", line, character);
    }
}

#[test]
fn positions_outside_of_a_text_and_odd_parameters_are_answered() {
    let mut fixture = Fixture::new();
    fixture.workspace.open(fixture.uri("salt/x.sls"), 1, SAMPLE.to_owned());
    for (line, character) in [(0, u32::MAX), (u32::MAX, 0), (u32::MAX, u32::MAX), (1, 9), (500, 500)] {
        ask(&fixture, "salt/x.sls", line, character);
        ask(&fixture, "salt/none.sls", line, character);
    }
    for params in [Value::Null, json!([]), json!({"textDocument": 5}), json!({"textDocument": {"uri": "a b"}})] {
        for method in REQUESTS.into_iter().chain(["completionItem/resolve", "workspace/symbol", "none"]) {
            assert!(requests::answer(&fixture.workspace, method, params.clone()).is_err(), "{method} {params}");
        }
        for method in ["textDocument/didOpen", "textDocument/didChange", "workspace/didChangeWatchedFiles", "x"] {
            requests::notified(&mut fixture.workspace, method, params.clone(), true);
        }
    }
    for uri in ["untitled:Untitled-1", "file:///etc/passwd", "file:///a/../../etc/shadow", "http://x/a.sls"] {
        fixture.workspace.open(uri.to_owned(), 1, SAMPLE.to_owned());
        let here = fixture.workspace.here(uri).unwrap();
        assert!(here.root.is_none());
        findings::diagnostics(&here);
    }
    let large = "a: b\n".repeat(300_000);
    fixture.workspace.open(fixture.uri("salt/large.sls"), 1, large);
    ask(&fixture, "salt/large.sls", 3, 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn mutated_texts_are_answered(
        cuts in proptest::collection::vec((0_usize..SAMPLE.len(), 0_usize..12, "[ -~\u{e9}\u{1F600}\n\t{}%#'\":|\\[\\]-]{0,6}"), 1..5),
        line in 0_u32..30,
        character in 0_u32..40,
    ) {
        let mut fixture = Fixture::new();
        let mut text = SAMPLE.to_owned();
        for (at, length, new) in cuts {
            let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (start, end) = (floor(at), floor(at + length));
            text.replace_range(start..end.max(start), &new);
        }
        fixture.workspace.open(fixture.uri("salt/x.sls"), 1, text);
        ask(&fixture, "salt/x.sls", line, character);
    }

    #[test]
    fn changes_at_any_range_are_applied(
        ranges in proptest::collection::vec((0_u32..30, 0_u32..50, 0_u32..30, 0_u32..50, "[a-z\n\u{1F600}]{0,4}"), 1..6),
    ) {
        let mut fixture = Fixture::new();
        let uri = fixture.uri("salt/x.sls");
        fixture.workspace.open(uri.clone(), 1, SAMPLE.to_owned());
        for (line, character, end_line, end_character, text) in ranges {
            let change = json!([{"range": {"start": {"line": line, "character": character},
                "end": {"line": end_line, "character": end_character}}, "text": text}]);
            fixture.workspace.change(&uri, 2, serde_json::from_value(change).unwrap());
        }
        prop_assert!(fixture.workspace.text(&uri).is_some());
    }
}
