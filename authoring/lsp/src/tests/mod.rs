//! Requests over a small tree, without a pipe.

mod features;
mod hostile;
mod session;

use std::path::Path;
use std::sync::LazyLock;

use brine_authoring_model::lines::Units;
use brine_authoring_model::{Catalogue, Functions};
use brine_function::Registry;
use serde_json::{Value, json};

use crate::requests;
use crate::workspace::Workspace;

const TREE: &[(&str, &str)] = &[
    ("salt/top.sls", "base:\n  '*':\n    - web\n    - db\n"),
    (
        "salt/web/init.sls",
        "{% from 'web/map.jinja' import port with context %}\n\ninclude:\n  - db\n\nnginx:\n  pkg.installed: []\n\n\
         /etc/web:\n  file.managed:\n    - source: salt://web/files/web.conf\n    - replace: False\n    - require:\n      \
         - pkg: nginx\n      - service: database\n    - context:\n        port: {{ pillar['web']['port'] }}\n        name: \
         {{ salt['pillar.get']('web:name', port) | upper }}\n        os: {{ grains['os'] }}\n",
    ),
    ("salt/web/map.jinja", "{% set port = 80 %}\n{% macro line(a) %}{{ a }}{% endmacro %}\n"),
    ("salt/web/files/web.conf", "x"),
    ("salt/db.sls", "database:\n  service.running:\n    - enable: True\n"),
    ("pillar/top.sls", "base:\n  '*':\n    - web\n"),
    ("pillar/web.sls", "web:\n  port: 80\n  name: {first: a}\n"),
    ("reactor/start.sls", "ping:\n  local.test.ping:\n    - tgt: '*'\n"),
    ("etc/master", "reactor:\n  - 'salt/minion/*/start':\n    - /srv/reactor/start.sls\n"),
];

/// Returns the functions of minions.
pub(crate) fn catalogue() -> Catalogue {
    static ALL: LazyLock<Catalogue> = LazyLock::new(read);
    ALL.clone()
}

fn read() -> Catalogue {
    Catalogue {
        execution: Functions::of(Registry::new(&brine_modules::MODULES.functions()).iter()),
        states: Functions::of(Registry::new(&brine_modules::MODULES.states()).iter()),
        ..Catalogue::default()
    }
}

/// Writes files below a directory.
pub(crate) fn write(directory: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// A tree on the disk, and what the server knows of it.
pub(crate) struct Fixture {
    pub directory: tempfile::TempDir,
    pub workspace: Workspace,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), TREE);
        let mut workspace = Workspace::new(catalogue(), Units::Utf16);
        assert_eq!(workspace.add_root(directory.path()), None);
        Fixture { directory, workspace }
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        crate::uri::of(&self.directory.path().join(path)).unwrap().as_str().to_owned()
    }

    /// Opens a file with another text; a `|` in it is the position that is returned.
    pub(crate) fn open(&mut self, path: &str, text: &str) -> Value {
        let at = text.rfind('|').unwrap_or(text.len());
        let before = &text[..at];
        let position = json!({"line": before.matches('\n').count(),
            "character": before.rsplit('\n').next().unwrap().encode_utf16().count()});
        let text = text.get(at + 1..).map_or(text.to_owned(), |after| format!("{before}{after}"));
        self.workspace.open(self.uri(path), 1, text);
        position
    }

    /// Returns the position of a text in a file, behind its first letters.
    pub(crate) fn position(&self, path: &str, text: &str, behind: usize) -> Value {
        let whole = std::fs::read_to_string(self.directory.path().join(path)).unwrap();
        let at = whole.find(text).unwrap_or_else(|| panic!("{path}: {text}")) + behind;
        let line = whole[..at].matches('\n').count();
        json!({"line": line, "character": whole[..at].rsplit('\n').next().unwrap().len()})
    }

    /// Asks something about a position of a file.
    pub(crate) fn ask(&self, method: &str, path: &str, position: Value, further: Value) -> Value {
        let mut params = json!({"textDocument": {"uri": self.uri(path)}, "position": position});
        params.as_object_mut().unwrap().extend(further.as_object().cloned().unwrap_or_default());
        match requests::answer(&self.workspace, method, params) {
            Ok(answer) => answer,
            Err((_, message)) => Value::String(message),
        }
    }

    /// Returns places as path and line, counted from 0.
    pub(crate) fn places(&self, answer: &Value) -> Vec<String> {
        let one = std::slice::from_ref(answer);
        let all: &[Value] = answer.as_array().map_or(one, Vec::as_slice);
        let start = self.uri("");
        let describe = |place: &Value| {
            let path = place["uri"].as_str().unwrap_or_default().replace(&start, "");
            format!("{path}:{}", place["range"]["start"]["line"])
        };
        all.iter().filter(|place| !place.is_null()).map(describe).collect()
    }

    pub(crate) fn labels(&self, path: &str, position: Value) -> Vec<String> {
        let answer = self.ask("textDocument/completion", path, position, Value::Null);
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }
}
