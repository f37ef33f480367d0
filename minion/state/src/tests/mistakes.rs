//! Typical mistakes in SLS files and top files, and what people read: what is wrong, where, and what to write.

use brine_value::{Map, Value};

use super::call;
use crate::testing;

/// The text that a run returns: its errors, or the comments and warnings of its states.
fn returned(files: &[(&str, &str)], fun: &str, positional: &[&str]) -> String {
    let context = testing::context(files);
    match call(&context, fun, positional, brine_value::map! {"test" => false}) {
        Err(error) => error.to_string(),
        Ok(Value::Map(results)) => {
            let text = |result: &Value, key: &str| match result.get(key) {
                Some(Value::List(all)) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            let all =
                results.values().map(|result| format!("{}\n{}", text(result, "comment"), text(result, "warnings")));
            all.collect::<Vec<_>>().join("\n")
        }
        Ok(Value::List(errors)) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Ok(other) => other.to_string(),
    }
}

#[test]
fn mistakes_in_sls_files_are_answered_with_place_and_remedy() {
    let mut wrong = Vec::new();
    for (sls, parts) in [
        // Words and arguments.
        ("/nonexistent/x:\n  file.manage:\n    - contents: a\n", &["Did you mean 'file.managed'?"][..]),
        ("/nonexistent/x:\n  fil.managed:\n    - contents: a\n", &["Did you mean 'file.managed'?"]),
        (
            "/nonexistent/x:\n  file.managed:\n    - contens: a\n",
            &["'contens' of file.managed (t.sls:3): did you mean 'contents'?"],
        ),
        (
            "a:\n  user.present:\n    - shel: /bin/sh\n",
            &["'shel' is an invalid keyword argument", "Did you mean 'shell'?"],
        ),
        (
            "a:\n  user.present:\n    - when: x\n",
            &["'when' is an invalid keyword argument", "write 'onlyif' or 'unless'"],
        ),
        ("run:\n  cmd.run:\n    - user: bob\n", &["(t.sls:3): the argument is called 'runas'"]),
        ("run:\n  cmd.run:\n    - chdir: /\n    - name: 'true'\n", &["(t.sls:3): the argument is called 'cwd'"]),
        (
            "run:\n  cmd.run:\n    - name: 'true'\n    - ignore_errors: True\n",
            &["(t.sls:4): a failed state does not end"],
        ),
        ("run:\n  cmd.run:\n    - name: 'true'\n    - with_items: [1]\n", &["(t.sls:4): write {% for %}"]),
        ("run:\n  cmd.run:\n    - name: 'true'\n    - depends_on: [x]\n", &["(t.sls:4): write 'require'"]),
        (
            "run:\n  cmd.run:\n    - name: 'true'\n    - onchange: [{test: a}]\n",
            &["(t.sls:4): did you mean 'onchanges'?"],
        ),
        ("run:\n  cmd.run:\n    - name: 'true'\n    - unles: 'true'\n", &["(t.sls:4): did you mean 'unless'?"]),
        // YAML.
        (
            "a:\n  test.nop:\n\t- name: b\n",
            &["cannot start any token", "--> t.sls:3", " 3 | \t- name: b", "line 3 is indented with a tab"],
        ),
        ("a:\n  file.managed\n    - name: /x\n", &["--> t.sls:3", "line 2 lacks a colon at its end"]),
        ("a:\n  test.nop:\n    - name b\n", &["has whitespace", "--> t.sls:1", "write a colon and a space"]),
        ("a:\n  test.nop:\n    - name: b: c\n", &["--> t.sls:3", "^", "colon and a space must be quoted"]),
        ("a:\n  test.nop:\n    - name: *b\n", &["--> t.sls:3", "begins with '*' must be quoted"]),
        ("a:\n  test.nop:\n    - name: @b\n", &["--> t.sls:3", "begins with '@' must be quoted"]),
        ("a:\n  test.nop:\n    - name: 'b\n", &["the quote that opens in line 3 is not closed"]),
        ("a:\n  test.nop:\n    - name: [b\n    - order: 1\n", &["--> t.sls:", "the bracket that opens in line 3"]),
        ("a:\n  test.nop:\n    - name: b\n   - order: 1\n", &["--> t.sls:4", "stand in one column"]),
        (
            "{% set v = '@x' %}\na:\n  test.nop:\n    - name: {{ v }}\n",
            &["--> t.sls:4", "has a value of '{{ }}': quote it"],
        ),
        // Jinja.
        ("a:\n  test.nop:\n    - name: {{ nope }}\n", &["'nope' is undefined", "--> t.sls:3", "<====="]),
        ("{% if x %}\na: test.nop\n", &["Jinja syntax error", "--> t.sls:"]),
        ("a:\n  test.nop:\n    - name: {{ pillar['nope'] }}\n", &["nope", "--> t.sls:3"]),
        ("a:\n  test.nop:\n    - name: {{ salt['nope.nope']() }}\n", &["nope.nope", "--> t.sls:3"]),
        // Structure.
        ("a:\n  test.nop:\n    name: b\n", &["is not formed as a list", "--> t.sls:1", "write a dash before each"]),
        ("a:\n  test.nop:\n", &["short declaration", "--> t.sls:1", "remove the colon"]),
        ("a:\n  test:\n    - name: b\n", &["No function declared", "--> t.sls:1", "write module and function"]),
        (
            "a:\n  test.nop:\n    - require: b\n",
            &["needs to be formed as a list", "--> t.sls:1", "each item with a dash"],
        ),
        (
            "b: test.nop\na:\n  test.nop:\n    - require:\n      - test.nop: b\n",
            &["Invalid requisite type 'test.nop'", "did you mean 'test'?"],
        ),
        ("include: x\na: test.nop\n", &["Include Declaration in SLS t", "--> t.sls:1", "write a dash before each"]),
        ("- a\n- b\n", &["does not render to a dictionary", "an SLS file is a mapping"]),
        (
            "a:\n  test.nop:\n    - require:\n      - test: b\nb:\n  test.nop:\n    - require:\n      - test: a\n",
            &["Recursive requisites were found", "remove one of the requisites"],
        ),
        (
            "b: test.nop\na:\n  test.nop:\n    - requires:\n      - test: b\n",
            &["unknown argument 'requires' of test.nop (t.sls:4): did you mean 'require'?"],
        ),
        ("b: test.nop\na:\n  test.nop:\n    - onchange:\n      - test: b\n", &["(t.sls:4): did you mean 'onchanges'?"]),
        (
            "/nonexistent/y:\n  file.managed:\n    - mode: 999\n    - contents: a\n",
            &["Invalid mode: 999", "octal digits"],
        ),
        (
            "/tmp/nonexistent-y:\n  file.managed:\n    - contents: a\n    - template: jinjaa\n",
            &["Specified template format jinjaa", "a renderer of templates, such as jinja"],
        ),
        ("a:\n  module.run:\n    - test.png: []\n", &["Unavailable function: test.png.", "did you mean 'test.ping'?"]),
        // Names.
        (
            "include:\n  - helo\na: test.nop\n",
            &["Specified SLS helo", "--> t.sls:2", "neither helo.sls nor helo/init.sls", "did you mean 'hello'?"],
        ),
        (
            "vim:\n  test.nop: []\na:\n  test.nop:\n    - require:\n      - test: vmi\n",
            &["Referenced state does not exist", "--> t.sls:6", "did you mean 'test: vim'?"],
        ),
        (
            "vim:\n  test.nop: []\na:\n  test.nop:\n    - require:\n      - pkg: vim\n",
            &["Referenced state does not exist", "--> t.sls:6", "'vim' is a state of test: write 'test: vim'"],
        ),
        (
            "/nonexistent/x/y:\n  file.managed:\n    - contents: a\n",
            &["Parent directory not present", "write 'makedirs: True'"],
        ),
        (
            "/nonexistent/y:\n  file.managed:\n    - source: salt://hello.sl\n",
            &["Source file salt://hello.sl not found", "did you mean salt://hello.sls?"],
        ),
        (
            "/tmp:\n  file.directory:\n    - user: nobody_of_this_name\n",
            &["User nobody_of_this_name is not available", "user.present"],
        ),
    ] {
        let answer = returned(&[("t.sls", sls), ("hello.sls", "h: test.nop")], "state.apply", &["t"]);
        for part in parts.iter().filter(|part| !answer.contains(**part)) {
            wrong.push(format!("=== {sls}misses {part}\n--- {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_in_names_of_sls_files_are_answered() {
    let files = [("hello.sls", "h: test.nop"), ("web/init.sls", "w: test.nop")];
    for (name, part) in [
        ("hallo", "neither hallo.sls nor hallo/init.sls is in the files of the master; did you mean 'hello'?"),
        ("hello.sls", "the name of an SLS has no '.sls' at its end: write 'hello'"),
        ("srv.web", "did you mean 'web'?"),
    ] {
        let answer = returned(&files, "state.apply", &[name]);
        assert!(answer.starts_with("No matching sls found for '") && answer.contains(part), "{name}: {answer}");
    }
}

#[test]
fn mistakes_in_top_files_are_answered() {
    for (top, parts) in [
        ("base:\n  *:\n    - hello\n", &["Rendering the top file 'top.sls'", "--> top.sls:2", "as in '*':"][..]),
        ("base:\n\t'*':\n    - hello\n", &["--> top.sls:2", "line 2 is indented with a tab"]),
        ("base:\n  '*'\n    - hello\n", &["Rendering the top file", "--> top.sls:", "hint: "]),
        ("base:\n  '*': hello\n", &["not formed as a list", "a dash before each"]),
        ("base:\n  - '*': [hello]\n", &["not formatted as a dict", "the order is environment, target, SLS files"]),
        ("- base\n", &["not to a dict", "begins with an environment, such as 'base:'"]),
        (
            "base:\n  'os:Debian':\n    - match: grian\n    - hello\n",
            &["'grian' is not a target type", "did you mean 'grain'? the kinds of targets are glob, "],
        ),
        (
            "base:\n  'os:NoSuch':\n    - hello\n",
            &["No target of the top file", "below it write '- match: grain', or write 'G@os:NoSuch'"],
        ),
        ("prod:\n  '*':\n    - hello\n", &["environment 'prod'", "the file server has the environments base"]),
        ("base:\n  'web*':\n    - hello\n", &["No target of the top file 'top.sls' matches the minion", "'web*'"]),
        ("base:\n  '*':\n    - helo\n", &["No matching sls found for 'helo'", "did you mean 'hello'?"]),
        (
            "base:\n  '(web1 or test-minion)':\n    - hello\n",
            &["No target of the top file", "hint: the target", "a parenthesis needs a blank before and after it"],
        ),
        ("base:\n  'G@osDebian':\n    - hello\n", &["No target", "expected a key and a value with ':' between them"]),
        ("base:\n  'g@os:Debian':\n    - hello\n", &["No target", "did you mean 'G@'?"]),
        ("base:\n  'osDebian':\n    - match: grain\n    - hello\n", &["No target", "expected a key and a value"]),
        ("'*':\n  - hello\n", &["not formatted as a dict", "the order is environment"]),
        ("base:\n  '{{ nope }}':\n    - hello\n", &["Rendering the top file", "'nope' is undefined", "--> top.sls:2"]),
    ] {
        let answer = returned(&[("top.sls", top), ("hello.sls", "h: test.nop")], "state.highstate", &[]);
        for part in parts {
            assert!(answer.contains(part), "{top}misses {part}\n--- {answer}");
        }
        assert!(!answer.contains("No Top file"), "{top}{answer}");
    }
}

#[test]
fn an_excerpt_shows_no_value_of_the_pillar() {
    let minion = testing::minion(&[("t.sls", "a:\n  test.nop:\n    - name: {{ pillar.password }}: b\n")]);
    *minion.pillar.write() = std::sync::Arc::new(brine_value::map! {"password" => "Xyzzy-12345"});
    let context = testing::context_of(minion);
    let answer = call(&context, "state.apply", &["t"], Map::new()).unwrap().to_string();
    assert!(answer.contains("--> t.sls:3") && !answer.contains("Xyzzy"), "{answer}");
}
