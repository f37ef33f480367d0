use serde_json::{Value, json};

use super::Fixture;
use crate::findings;

#[test]
fn definitions_and_references_cross_files() {
    let fixture = Fixture::new();
    let web = "salt/web/init.sls";
    for (path, text, behind, defined, used) in [
        (web, "- pkg: nginx", 8, vec!["salt/web/init.sls:5"], vec!["salt/web/init.sls:5", "salt/web/init.sls:13"]),
        (web, "database", 1, vec!["salt/db.sls:0"], vec!["salt/db.sls:0", "salt/web/init.sls:14"]),
        (web, "- db", 3, vec!["salt/db.sls:0"], vec!["salt/top.sls:3", "salt/web/init.sls:3"]),
        (web, "web/map", 0, vec!["salt/web/map.jinja:0"], vec!["salt/web/init.sls:0"]),
        (
            web,
            "import port",
            8,
            vec!["salt/web/map.jinja:0"],
            vec!["salt/web/init.sls:0", "salt/web/init.sls:17", "salt/web/map.jinja:0"],
        ),
        (web, "salt://web", 9, vec!["salt/web/files/web.conf:0"], vec!["salt/web/init.sls:10"]),
        (web, "port'] }}", 1, vec!["pillar/web.sls:1"], vec!["pillar/web.sls:1", "salt/web/init.sls:16"]),
        ("salt/top.sls", "- web", 2, vec!["salt/web/init.sls:0"], vec!["salt/top.sls:2"]),
        ("pillar/top.sls", "- web", 2, vec!["pillar/web.sls:0"], vec!["pillar/top.sls:2"]),
        ("etc/master", "/srv", 5, vec!["reactor/start.sls:0"], vec!["etc/master:2"]),
    ] {
        let position = fixture.position(path, text, behind);
        let answer = fixture.ask("textDocument/definition", path, position.clone(), Value::Null);
        assert_eq!(fixture.places(&answer), defined, "{text} {answer}");
        let context = json!({"context": {"includeDeclaration": true}});
        let answer = fixture.ask("textDocument/references", path, position, context);
        assert_eq!(fixture.places(&answer), used, "{text}");
    }
}

#[test]
fn hovers_show_documentation_and_values() {
    let fixture = Fixture::new();
    let web = "salt/web/init.sls";
    for (path, text, behind, expected) in [
        (web, "file.managed", 2, "file.managed("),
        (web, "replace", 1, "`replace` of `file.managed`: True or False"),
        (web, "require:", 1, "must have succeeded"),
        (web, "| upper", 3, "upper"),
        (web, "os'] }}", 1, "Grain `os`"),
        (web, "port'] }}", 1, "`pillar/web.sls:2`\n```yaml\n80\n```"),
        (web, "pillar.get", 1, "pillar.get("),
        (web, "- pkg: nginx", 8, "`pkg.installed` in `salt/web/init.sls:6`"),
        (web, "import port", 8, "{% set port = 80 %}"),
        ("reactor/start.sls", "test.ping", 1, "test.ping("),
    ] {
        let answer = fixture.ask("textDocument/hover", path, fixture.position(path, text, behind), Value::Null);
        let markdown = answer["contents"]["value"].as_str().unwrap_or_default();
        assert!(markdown.contains(expected), "{text}: {answer}");
    }
}

#[test]
fn completions_fit_their_place() {
    let mut fixture = Fixture::new();
    for (path, text, expected, absent) in [
        ("salt/a.sls", "a:\n  pkg.inst|\n", "pkg.installed", "file.managed"),
        ("salt/a.sls", "a:\n  file.managed:\n    - sour|\n", "source", "pkgs"),
        ("salt/a.sls", "a:\n  file.managed:\n    - req|\n", "require", "mode"),
        ("salt/a.sls", "a:\n  file.managed:\n    - source: salt://w|\n", "salt://web/files/web.conf", "salt://db.sls"),
        ("salt/a.sls", "a:\n  file.managed:\n    - replace: |\n", "True", "salt://web/files/web.conf"),
        ("salt/a.sls", "a:\n  test.nop:\n    - require:\n      - |\n", "service: database", "database"),
        ("salt/a.sls", "a:\n  test.nop:\n    - require:\n      - pkg: n|\n", "nginx", "database"),
        ("salt/a.sls", "a:\n  test.nop:\n    - require:\n      - sls: w|\n", "web", "database"),
        ("salt/a.sls", "include:\n  - |\n", "db", "nginx"),
        ("salt/a.sls", "{{ pillar['|'] }}", "web", "port"),
        ("salt/a.sls", "{{ pillar.get('|", "web", "port"),
        ("salt/a.sls", "{{ salt['pillar.get']('web:|') }}", "port", "web"),
        ("salt/a.sls", "{{ grains['os|'] }}", "os_family", "cpuarch"),
        ("salt/a.sls", "{{ a | upp| }}", "upper", "lower"),
        ("salt/a.sls", "{% if a is defi| %}", "defined", "upper"),
        ("salt/a.sls", "{{ salt['test.pin|", "test.ping", "test.echo"),
        ("salt/a.sls", "{{ salt.test.pin| }}", "test.ping", "test.echo"),
        ("salt/a.sls", "{% from 'web/|' %}", "web/map.jinja", "web/files/web.conf"),
        ("salt/a.sls", "{% from 'web/map.jinja' import | %}", "port", "upper"),
        ("salt/a.sls", "{% import 'web/map.jinja' as m %}{{ m.| }}", "line", "upper"),
        ("salt/a.sls", "{% set mine = 1 %}{{ mi| }}", "mine", "range"),
        ("salt/top.sls", "base:\n  '*':\n    - w|\n", "web", "nginx"),
        ("pillar/top.sls", "base:\n  '*':\n    - w|\n", "web", "db"),
        ("reactor/b.sls", "a:\n  local.test.pi|\n", "local.test.ping", "local.test.echo"),
        ("reactor/b.sls", "a:\n  local.test.ping:\n    - t|\n", "tgt", "name"),
    ] {
        let position = fixture.open(path, text);
        let labels = fixture.labels(path, position);
        let has = |name: &str| labels.iter().any(|label| label == name);
        assert!(has(expected) && !has(absent), "{text}: {labels:?}");
    }
    let item = json!({"label": "a", "data": {"of": "state", "name": "pkg.installed"}});
    let answer = crate::requests::answer(&fixture.workspace, "completionItem/resolve", item).unwrap();
    assert!(answer["documentation"]["value"].as_str().unwrap().contains("pkg.installed("), "{answer}");
}

/// Applies changes to the text of a file.
fn applied(text: &str, changes: &Value) -> String {
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    let byte = |at: &Value| {
        let (line, column) = (at["line"].as_u64().unwrap() as usize, at["character"].as_u64().unwrap() as usize);
        text.split_inclusive('\n').take(line).map(str::len).sum::<usize>() + column
    };
    for change in changes.as_array().unwrap() {
        let range = &change["range"];
        edits.push((byte(&range["start"]), byte(&range["end"]), change["newText"].as_str().unwrap().to_owned()));
    }
    edits.sort();
    let mut text = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        text.replace_range(start..end, &new);
    }
    text
}

#[test]
fn new_names_reach_all_files_and_keep_the_meaning() {
    let fixture = Fixture::new();
    let rename = |path: &str, text: &str, behind: usize, new: &str| {
        let position = fixture.position(path, text, behind);
        fixture.ask("textDocument/rename", path, position, json!({"newName": new}))
    };
    let text = |path: &str, answer: &Value| {
        let old = std::fs::read_to_string(fixture.directory.path().join(path)).unwrap();
        applied(&old, &answer["changes"][fixture.uri(path)])
    };
    let answer = rename("salt/web/init.sls", "- pkg: nginx", 8, "web server");
    let new = text("salt/web/init.sls", &answer);
    assert!(
        new.contains("web server:\n  pkg.installed:\n    - name: nginx\n\n") && new.contains("- pkg: web server\n"),
        "{new}"
    );
    let answer = rename("salt/db.sls", "database", 1, "a: b");
    assert_eq!(text("salt/db.sls", &answer), "'a: b':\n  service.running:\n    - name: database\n    - enable: True\n");
    assert!(text("salt/web/init.sls", &answer).contains("- service: 'a: b'\n"));
    let answer = rename("pillar/web.sls", "port", 1, "listen");
    assert!(text("pillar/web.sls", &answer).contains("  listen: 80\n"));
    assert!(text("salt/web/init.sls", &answer).contains("pillar['web']['listen']"));
    let answer = rename("pillar/web.sls", "web", 1, "www");
    let new = text("salt/web/init.sls", &answer);
    assert!(
        new.contains("pillar['www']['port']") && new.contains("'www:name'") && new.contains("salt://web/"),
        "{new}"
    );
    for (path, old, new, expected) in [
        ("salt/web/init.sls", "nginx", "database", "salt/db.sls has a state 'database' already"),
        ("pillar/web.sls", "port", "name", "pillar/web.sls has the key 'web:name' already"),
        ("pillar/web.sls", "port", "a:b", "expected no colon"),
        ("salt/web/init.sls", "replace", "x", "only ids of states"),
        ("salt/web/init.sls", "nginx", " ", "expected a text of one line"),
    ] {
        let answer = rename(path, old, 1, new);
        assert!(answer.as_str().unwrap_or_default().contains(expected), "{answer}");
    }
}

#[test]
fn outlines_folds_colours_and_formats_cover_a_file() {
    let mut fixture = Fixture::new();
    let path = "salt/web/init.sls";
    let text = std::fs::read_to_string(fixture.directory.path().join(path)).unwrap();
    fixture.workspace.open(fixture.uri(path), 1, text);
    let outline = fixture.ask("textDocument/documentSymbol", path, Value::Null, Value::Null);
    let names: Vec<&str> = outline.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nginx", "/etc/web"]);
    assert_eq!(outline[1]["children"][0]["name"], "file.managed");
    let folds = fixture.ask("textDocument/foldingRange", path, Value::Null, Value::Null);
    let first = |line: u64| folds.as_array().unwrap().iter().any(|fold| fold["startLine"] == line);
    assert!(first(8) && first(12), "{folds}");
    let tokens = fixture.ask("textDocument/semanticTokens/full", path, Value::Null, Value::Null);
    assert!(tokens["data"].as_array().unwrap().len() > 5 * 40, "{tokens}");
    let symbols = crate::requests::answer(&fixture.workspace, "workspace/symbol", json!({"query": "dtbs"})).unwrap();
    assert_eq!(symbols[0]["name"], "database");
    fixture.open("salt/a.sls", "a:\n  test.nop:   []  \n\n\n\nb:\n  test.nop: []\n");
    let options = json!({"options": {"tabSize": 2, "insertSpaces": true}});
    let answer = fixture.ask("textDocument/formatting", "salt/a.sls", Value::Null, options);
    assert_eq!(
        applied("a:\n  test.nop:   []  \n\n\n\nb:\n  test.nop: []\n", &answer),
        "a:\n  test.nop: []\n\nb:\n  test.nop: []\n"
    );
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 30}});
    let context = json!({"range": range, "context": {"diagnostics": []}});
    let actions = fixture.ask("textDocument/codeAction", "salt/a.sls", Value::Null, context);
    let titles: Vec<&str> = actions.as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.starts_with("Apply all")), "{actions}");
}

#[test]
fn findings_follow_open_texts_and_the_disk() {
    let mut fixture = Fixture::new();
    let codes = |fixture: &Fixture, path: &str| -> Vec<String> {
        let here = fixture.workspace.here(&fixture.uri(path)).unwrap();
        findings::of(&here).into_iter().map(|finding| finding.code.to_owned()).collect()
    };
    assert_eq!(codes(&fixture, "salt/web/init.sls"), Vec::<String>::new());
    fixture.open("salt/db.sls", "other:\n  service.running: []\n");
    assert_eq!(codes(&fixture, "salt/web/init.sls"), ["B301"]);
    let uri = fixture.uri("salt/db.sls");
    fixture.workspace.close(&uri);
    assert_eq!(codes(&fixture, "salt/web/init.sls"), Vec::<String>::new());
    // A missing directory would be one that is made later.
    super::write(fixture.directory.path(), &[("salt/web/files/other.conf", "")]);
    let uri = fixture.uri("salt/web/files/other.conf");
    fixture.workspace.changed_on_disk(&uri);
    std::fs::remove_file(fixture.directory.path().join("salt/web/files/web.conf")).unwrap();
    let uri = fixture.uri("salt/web/files/web.conf");
    fixture.workspace.changed_on_disk(&uri);
    assert_eq!(codes(&fixture, "salt/web/init.sls"), ["B305"]);
    super::write(fixture.directory.path(), &[("salt/web/files/web.conf", ""), ("salt/db.sls", "x:\n  test.nop: []\n")]);
    fixture.workspace.refresh();
    assert_eq!(codes(&fixture, "salt/web/init.sls"), ["B301"]);
    super::write(fixture.directory.path(), &[("brine.toml", "[check]\nignore = ['B3']\n")]);
    let uri = fixture.uri("brine.toml");
    assert_eq!(fixture.workspace.changed_on_disk(&uri), None);
    assert_eq!(codes(&fixture, "salt/web/init.sls"), Vec::<String>::new());
}

#[test]
fn links_out_of_a_folder_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    super::write(
        outside.path(),
        &[("secret.sls", "secret:\n  test.nop: []\n"), ("d/x.sls", "hidden:\n  test.nop: []\n")],
    );
    let mut fixture = Fixture::new();
    let salt = fixture.directory.path().join("salt");
    std::os::unix::fs::symlink(outside.path().join("secret.sls"), salt.join("secret.sls")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("d"), salt.join("d")).unwrap();
    fixture.workspace.refresh();
    for path in ["salt/secret.sls", "salt/d/x.sls"] {
        let uri = fixture.uri(path);
        fixture.workspace.changed_on_disk(&uri);
        assert!(fixture.workspace.here(&uri).is_none(), "{path}");
    }
}
