//! `B5`: dangerous and deprecated forms.

use brine_authoring_model::{FileKind, State};
use brine_jinja::view::is_dynamic;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use crate::{Check, Finding};

/// Arguments that decide whether a command runs.
const CONDITIONS: [&str; 17] = [
    "unless",
    "onlyif",
    "creates",
    "onchanges",
    "onchanges_any",
    "onfail",
    "onfail_any",
    "onfail_all",
    "prereq",
    "listen",
    "watch",
    "watch_any",
    "stateful",
    "check_cmd",
    "onchanges_in",
    "use",
    "if_missing",
];

/// Parts of names of secrets.
const SECRETS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "secret_key", "private_key", "api_key", "token"];

impl Check<'_> {
    pub(crate) fn danger(&mut self) {
        match self.file.kind {
            FileKind::State => {
                for state in &self.file.states {
                    self.command(state);
                    self.deprecated(state);
                    for argument in &state.arguments {
                        self.secret("B503", &argument.name, &argument.value);
                    }
                }
            }
            // Examples have example secrets.
            FileKind::Pillar if !self.file.path.contains("example") => {
                for document in &self.file.documents {
                    self.secret("B506", "", document);
                }
            }
            FileKind::Reactor => self.input(),
            _ => {}
        }
    }

    fn command(&mut self, state: &State) {
        let runs = state.module == "cmd" && matches!(state.function.as_str(), "run" | "script");
        if !runs || state.is_extension {
            return;
        }
        let has_condition = state.arguments.iter().any(|argument| CONDITIONS.contains(&argument.name.as_str()));
        if !has_condition && !state.is_open && !self.file.is_open {
            let message =
                format!("{} runs at each run: add 'unless', 'onlyif', 'creates' or 'onchanges'", state.full_name());
            self.report("B501", state.span.clone(), message);
        }
        let name =
            state.argument("name").map(|argument| (&argument.value.span, argument.value.text().unwrap_or_default()));
        let (span, text) = name.unwrap_or((&state.id_span, &state.id));
        let quiet = text.replace("||", "").replace("|&", "|");
        let is_piped = quiet.match_indices('|').any(|(at, _)| is_outside_quotes(&quiet[..at]));
        if state.function == "run" && is_piped && !text.contains("pipefail") {
            let span = span.clone();
            let first = self.file.text.get(span.clone()).and_then(|text| text.lines().next()).map_or(0, str::len);
            self.report(
                "B502",
                span.start..span.start + first,
                "a pipe hides failures of all but its last command: write 'set -o pipefail;' before it, with 'shell: /bin/bash'",
            );
        }
    }

    fn deprecated(&mut self, state: &State) {
        if let Some(quiet) = state.argument("quiet").filter(|_| state.module == "cmd") {
            let message = "the argument 'quiet' is deprecated: write 'output_loglevel: quiet'";
            self.report("B505", quiet.span.clone(), message);
        }
        let instead = match (state.module.as_str(), state.function.as_str()) {
            ("cmd", "wait") => "cmd.run with 'onchanges'",
            ("cmd", "wait_script") => "cmd.script with 'onchanges'",
            ("module", "wait") => "module.run with 'onchanges'",
            _ => return,
        };
        let message = format!("{} is deprecated: write {instead}", state.full_name());
        self.report("B505", state.span.clone(), message);
    }

    fn secret(&mut self, code: &'static str, name: &str, value: &SourceNode) {
        match &value.content {
            Content::Map(entries) => {
                for (key, value) in entries {
                    self.secret(code, key.text().unwrap_or_default(), value);
                }
            }
            Content::List(items) => items.iter().for_each(|item| {
                for (key, value) in item.map().unwrap_or_default() {
                    self.secret(code, key.text().unwrap_or_default(), value);
                }
            }),
            Content::Scalar { text, value: scalar, .. } => {
                let lower = name.to_ascii_lowercase();
                let is_secret = SECRETS.iter().any(|secret| lower == *secret || lower.ends_with(&format!("_{secret}")));
                let is_word = scalar.as_str().is_some() && text.len() > 3 && !text.contains(char::is_whitespace);
                let is_elsewhere = is_dynamic(text)
                    || text.starts_with(['$', '/', '*', '!', '<', '%'])
                    || ["salt://", "http", "sdb://", "__slot__", "-----BEGIN PGP"]
                        .iter()
                        .any(|start| text.starts_with(start));
                if is_secret && is_word && !is_elsewhere {
                    let instead = if code == "B503" { "take it from the pillar" } else { "encrypt it" };
                    let message = format!("'{name}' is a secret in plain text: {instead}");
                    self.report(code, value.span.clone(), message);
                }
            }
        }
    }

    /// Reports printed input of events that is not encoded.
    fn input(&mut self) {
        let Some(view) = &self.file.view else { return };
        for expression in &view.expressions {
            let text = self.file.text.get(expression.inner.clone()).unwrap_or_default();
            let is_input =
                ["data['data']", "data[\"data\"]", "data.data", "data['post']", "data[\"post\"]", "data.post"]
                    .iter()
                    .any(|start| text.trim_start().starts_with(start));
            let last = text.rsplit('|').next().unwrap_or_default().trim();
            let encodes = text.contains('|')
                && ["json", "tojson", "yaml", "yaml_encode", "yaml_dquote", "yaml_squote", "int", "float"]
                    .iter()
                    .any(|name| last.split('(').next() == Some(name));
            if is_input && !encodes {
                let end = expression.inner.end;
                let finding = Finding::new(
                    "B504",
                    &self.file.path,
                    expression.inner.clone(),
                    "input of an event is not encoded: write '| yaml_encode' or '| json' after it",
                );
                self.add(finding.fix("encode it", end..end, " | yaml_encode", false));
            }
        }
    }
}

/// Whether the end of a command is outside of its quotes.
fn is_outside_quotes(before: &str) -> bool {
    let mut open = None;
    let mut escaped = false;
    for c in before.chars() {
        match (c, open) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            ('\'' | '"', None) => open = Some(c),
            (c, Some(quote)) if c == quote => open = None,
            _ => {}
        }
    }
    open.is_none() && !before.trim_end().ends_with('(')
}
