mod calls;
mod hostile;
mod orchestration;
mod reactor;

use brine_authoring_model::{Catalogue, Functions, Signature, Tree};
use brine_function::Registry;

use crate::{Options, check};

/// The functions of minions.
pub(crate) fn catalogue() -> Catalogue {
    Catalogue {
        execution: Functions::of(Registry::new(&brine_modules::MODULES.functions()).iter()),
        states: Functions::of(Registry::new(&brine_modules::MODULES.states()).iter()),
        ..Catalogue::default()
    }
}

/// A function without arguments of its own.
fn signature(name: &str) -> Signature {
    Signature { name: name.to_owned(), params: &[], doc: "", is_custom: false }
}

/// Returns code, line and column of all findings but those of style.
fn found(catalogue: &Catalogue, texts: &[(&str, &str)], options: &Options) -> Vec<String> {
    let tree = Tree::of_texts(texts.iter().copied());
    let findings = check(&tree, catalogue, options);
    let describe = |finding: &crate::Finding| {
        let position = tree.file(&finding.path).unwrap().position(finding.span.start);
        format!("{} {}:{}", finding.code, position.line, position.column)
    };
    findings.iter().map(describe).collect()
}

#[test]
fn each_code_has_its_place() {
    let catalogue = catalogue();
    for (source, expected) in [
        ("a:\n  pkg.installed: []\n", vec![]),
        ("{% if a is defined %}\n{{ a }\n", vec!["B101 2:6"]),
        ("a:\n  pkg.installed\n    - name: x\n", vec!["B102 3:11"]),
        ("{% set x = 1 %}\na:\n  pkg.installed\n    - name: {{ x }}\n", vec!["B102 4:11"]),
        ("a:\n  pkg.installed: []\na:\n  pkg.installed: []\n", vec!["B103 3:1"]),
        ("{% if grains.os %}\na:\n  pkg.installed: []\n{% else %}\na:\n  pkg.installed: []\n{% endif %}\n", vec![]),
        ("a:\n  pkg.installed:\n", vec!["B104 2:3"]),
        ("a:\n  - pkg.installed\n", vec!["B104 1:1"]),
        ("a:\n  pkg.installed: []\n  pkg.latest: []\n", vec!["B104 3:3"]),
        ("a:\n  test.nop:\n    - require:\n", vec!["B104 3:7"]),
        ("{% set b = 1 %}\na:\n  test.nop:\n    - name {{ b }}\n", vec!["B104 4:7"]),
        ("a:\n  pkg.installed:\n    name: x\n", vec!["B104 3:5"]),
        ("a:\n  pkg.installed:\n    - refresh True\n", vec!["B104 3:7"]),
        ("a:\n  pkg: []\n", vec!["B104 2:3"]),
        ("a:\n", vec!["B104 1:1"]),
        ("#!jinja|yamll\na: {}\n", vec!["B105 1:9"]),
        ("a:\n  pkg.instaled: []\n", vec!["B201 2:3"]),
        ("a:\n  pkgg.installed: []\n", vec!["B201 2:3"]),
        ("{% set a = salt['test.pingg']() %}\n{{ a }}:\n  test.nop: []\n", vec!["B202 1:17"]),
        ("{% if 'x.y' in salt %}{% do salt['x.y']() %}{% endif %}\n", vec![]),
        ("{{ grains.os | uper }}:\n  test.nop: []\n", vec!["B203 1:16"]),
        ("{% if grains.os is strng %}{% endif %}\n", vec!["B204 1:20"]),
        ("{{ grains['os_famly'] }}:\n  test.nop: []\n", vec!["B205 1:4"]),
        ("a:\n  test.nop:\n    - require:\n      - test: b\n", vec!["B301 4:15"]),
        ("a:\n  test.nop:\n    - require:\n      - test: {{ b | default('c') }}\n", vec![]),
        ("include:\n  - b\n", vec!["B302 2:5"]),
        ("extend:\n  a:\n    test.nop:\n      - x: 1\n", vec!["B303 2:3"]),
        ("{% from 'x/map.jinja' import a %}\n{{ a }}:\n  test.nop: []\n", vec!["B304 1:9"]),
        ("/a:\n  file.managed:\n    - source: salt://x/y\n", vec!["B305 3:15"]),
        ("{{ nothing }}:\n  test.nop: []\n", vec!["B308 1:4"]),
        ("/a:\n  file.managed:\n    - contens: x\n", vec!["B401 3:7"]),
        ("/a:\n  file.managed:\n    - when: x\n", vec!["B401 3:7"]),
        ("/a:\n  file.managed:\n    - replace: [1]\n", vec!["B402 3:16"]),
        ("/a:\n  file.symlink:\n    - force: True\n", vec!["B403 2:3"]),
        ("/a:\n  file.managed:\n    - mode: '0644'\n    - mode: '0600'\n", vec!["B404 4:7"]),
        ("{% set b = pillar.get('b:c', 1) %}\na{{ b }}:\n  test.nop: []\n", vec!["B312 1:12"]),
        ("/a:\n  file.managed:\n    - context:\n      b: 1\n    - template: jinja\n", vec!["B405 4:7"]),
        ("a:\n  cmd.run:\n    - quiet: True\n    - unless: b\n", vec!["B505 3:7"]),
        ("a:\n  test.nop: [] #\u{a0}b\n", vec!["B607 2:17"]),
        ("{{grains.os}}:\n  test.nop: []  # noqa: 206\n", vec!["B604 1:1"]),
        ("{{grains.os}}: test.nop  # noqa: 206\n", vec![]),
        ("a:\n  cmd.run: []\n", vec!["B501 2:3"]),
        ("a:\n  cmd.run:\n    - name: a | b\n    - unless: c\n", vec!["B502 3:13"]),
        ("a:\n  user.present:\n    - password: hunter22\n", vec!["B503 3:17"]),
        ("a:\n  cmd.wait: []\n", vec!["B505 2:3"]),
        ("a:\n  test.nop: [] \n", vec!["B601 2:15"]),
        ("{{grains.os}}:\n  test.nop: []\n", vec!["B604 1:1"]),
        ("/a:\n  file.managed:\n    - mode: 0644\n", vec!["B605 3:13"]),
        ("a:\n  test.nop: []", vec!["B606 2:15"]),
        ("a:\n  test.nop: []  # brine: ignore B6 \n", vec![]),
        ("a:\n  module.run:\n    - name: test.pingg\n", vec!["B207 3:13"]),
        ("a:\n  module.run:\n    - test.pingg:\n      - x\n", vec!["B207 3:7"]),
        ("test.pingg:\n  module.run: []\n", vec!["B207 1:1"]),
        ("test.ping:\n  salt.function:\n    - tgt: a\n", vec![]),
        ("test.pingg:\n  salt.function:\n    - tgt: a\n", vec!["B207 1:1"]),
        ("a:\n  module.run:\n    - name: custom.run\n", vec![]),
    ] {
        assert_eq!(found(&catalogue, &[("a.sls", source)], &Options::default()), expected, "{source}");
    }
}

#[test]
fn references_between_files_are_found() {
    let catalogue = catalogue();
    let nop = "a:\n  test.nop: []\n";
    for (texts, expected) in [
        (vec![("salt/top.sls", "base:\n  '*':\n    - a\n    - b\n"), ("salt/a.sls", nop)], vec!["B306 4:7"]),
        (vec![("a.sls", nop), ("b.sls", "include:\n  - a\na:\n  test.nop: []\n")], vec!["B307 3:1"]),
        (vec![("a.sls", nop), ("c.sls", "a:\n  test.nop: []\n")], vec![]),
        (
            vec![
                ("a/map.jinja", "{% set b = 1 %}\n"),
                ("a/init.sls", "{% from 'a/map.jinja' import c %}\n{{ c }}:\n  test.nop: []\n"),
            ],
            vec!["B311 1:9"],
        ),
        (
            vec![
                ("pillar/top.sls", "base:\n  '*':\n    - a\n"),
                ("pillar/a.sls", "web:\n  port: 80\n"),
                ("salt/top.sls", "base:\n  '*':\n    - a\n"),
                ("salt/a.sls", "a{{ pillar['web']['port'] }}{{ pillar['web']['prt'] }}:\n  test.nop: []\n"),
            ],
            vec!["B309 1:32"],
        ),
        (
            vec![("reactor/a.sls", "a:\n  local.test.pingg:\n    - tgt: {{ data['data']['x'] }}\n")],
            vec!["B206 2:3", "B504 3:15"],
        ),
        (vec![("a.b.sls", "c:\n  test.nop: []\n")], vec!["B313 1:1"]),
        (vec![("web.sls", "c:\n  test.nop: []\n"), ("web/init.sls", "d:\n  test.nop: []\n")], vec!["B320 1:1"]),
        (vec![("web.sls", "c:\n  test.nop: []\n"), ("web/db.sls", "d:\n  test.nop: []\n")], vec![]),
        (vec![("a/init.sls", nop), ("b.sls", "include:\n  - a.init\n")], vec![]),
        (vec![("_states/my.py", "def done(name):\n    pass\n"), ("a.sls", "a:\n  my.done:\n    - x: 1\n")], vec![]),
    ] {
        assert_eq!(found(&catalogue, &texts, &Options::default()), expected, "{texts:?}");
    }
}

#[test]
fn trees_that_are_parts_are_told_once() {
    let catalogue = catalogue();
    let nop = "a:\n  test.nop: []\n";
    let uses =
        "b:\n  qvm.present: []\nc:\n  qvm.present: []\n{{ salt['qvm.a']() }}{{ salt['qvm.b']() }}:\n  test.nop: []\n";
    let many = "include: [redis, limits.one, wireguard, postfix, backup.two]\n";
    for (texts, external, expected) in [
        // A module of a package, and a misspelt one.
        (vec![("a.sls", uses)], "", vec!["B201 2:3", "B202 5:9"]),
        (vec![("a.sls", uses)], "qvm", vec![]),
        (vec![("a.sls", "b:\n  qvm.present: []\n")], "", vec!["B201 2:3"]),
        // Formulas of other trees, and a missing file.
        (vec![("a.sls", many)], "", vec!["B314 1:50"]),
        (vec![("a.sls", many)], "[a-z]*", vec![]),
        (vec![("a.sls", "include: [redis]\n"), ("b.sls", "include: [redis]\n")], "", vec!["B314 1:11"]),
        (vec![("a.sls", "include: [redis]\n")], "", vec!["B302 1:11"]),
        (
            vec![("a.sls", many), ("nginx.sls", nop), ("b.sls", "include: [ngnix]\n")],
            "",
            vec!["B314 1:50", "B302 1:11"],
        ),
        (vec![("a.sls", "{% import_yaml '/srv/x.yaml' as x %}\n{{ x }}:\n  test.nop: []\n")], "", vec!["B314 1:16"]),
        // Formulas of other trees, in a formula.
        (vec![("FORMULA", ""), ("users/vimrc.sls", "include: [vim]\n")], "", vec!["B314 1:11"]),
        (vec![("pillar.example", ""), ("hadoop/jmx.sls", "include: [jmx]\n")], "", vec!["B314 1:11"]),
        (vec![("FORMULA", ""), ("a/b.sls", "extend:\n  nginx:\n    service:\n      - watch: []\n")], "", vec![]),
        (
            vec![
                ("FORMULA", ""),
                ("a/b.sls", "c:\n  test.nop:\n    - require_in:\n      - sls: apache\n"),
                ("a/d.sls", nop),
            ],
            "",
            vec!["B314 4:14"],
        ),
        // A formula with the name of the file.
        (
            vec![
                ("top.sls", "base:\n  '*': [wiki.rotate]\n"),
                ("wiki/rotate.sls", "include: [rotate, other]\nb:\n  test.nop:\n    - require:\n      - pkg: rotate\n"),
                ("log.sls", "include: [rotate]\nc:\n  test.nop:\n    - require:\n      - pkg: rotate\n"),
            ],
            "",
            vec!["B302 1:11", "B302 1:19"],
        ),
        // A short name of a directory is no misspelt one.
        (
            vec![
                ("pillar/top.sls", "base:\n  '*': [j.pve, w.pve, w.build, wiki.pve]\n"),
                ("pillar/j/pve.sls", "a: 1\n"),
                ("pillar/wikis/pve.sls", "a: 1\n"),
            ],
            "",
            vec!["B314 2:23", "B306 2:32"],
        ),
        // The pillar of tests.
        (
            vec![
                ("t/pillar/top.sls", "base:\n  '*': [a]\n"),
                ("t/pillar/a.sls", "b: 1\n"),
                ("top.sls", "base: {}\n"),
                ("c.sls", "a{{ pillar['d'] }}:\n  test.nop: []\n"),
            ],
            "",
            vec![],
        ),
        // All keys beside 'context' have one finding.
        (
            vec![("a.sls", "/a:\n  file.managed:\n    - context:\n      b: 1\n      c: 1\n    - d: 1\n")],
            "",
            vec!["B405 4:7", "B401 6:7"],
        ),
        // A private pillar.
        (
            vec![
                ("pillar/top.sls", "base:\n  '*': [private.a]\n  'b': [private.b]\n"),
                ("salt/top.sls", "base:\n  '*': [a]\n"),
                ("salt/a.sls", "a{{ pillar['b']['c'] }}:\n  test.nop: []\n"),
            ],
            "",
            vec!["B314 2:9"],
        ),
        // Macros of the pillar.
        (
            vec![
                ("pillar/m.jinja", "{% macro b() %}{% endmacro %}\n"),
                ("salt/m.jinja", "{% macro c() %}{% endmacro %}\n"),
                ("pillar/a.sls", "{% from 'm.jinja' import b %}\na: {{ b() }}\n"),
                ("salt/top.sls", "base: {}\n"),
            ],
            "",
            vec![],
        ),
        // A file that another one includes by a computed path.
        (
            vec![
                ("a/c.sls", "{{ x }}:\n  test.nop: []\n"),
                ("a/b.sls", "{% set x = 1 %}{% include slspath + '/c.sls' %}\n"),
            ],
            "",
            vec![],
        ),
        (
            vec![
                (
                    "a.sls",
                    "/a:\n  file.recurse:\n    - source: salt://b\n    - show_changes: False\n    - makedirs: True\n",
                ),
                ("b/c", ""),
            ],
            "",
            vec!["B401 5:7"],
        ),
        // Data beside states.
        (vec![("a.sls", "db:\n  master:\n    host: x\n  slave:\n    host: y\n")], "", vec![]),
        // Modules of 'module_dirs'.
        (
            vec![
                ("srv/modules/modules/my.py", "def run():\n    pass\n"),
                ("a.sls", "{{ salt['my.run']() }}{{ salt['my.rnu']() }}:\n  test.nop: []\n"),
            ],
            "",
            vec!["B202 1:31"],
        ),
        // A file that an orchestration makes.
        (vec![("a/init.sls", "/a:\n  file.managed:\n    - source: salt://a/cache/key\n")], "", vec![]),
    ] {
        let options =
            Options { external: external.split_whitespace().map(str::to_owned).collect(), ..Options::default() };
        assert_eq!(found(&catalogue, &texts, &options), expected, "{texts:?}");
    }
}

#[test]
fn options_select_and_ignore() {
    let catalogue = catalogue();
    let source = "a:\n  cmd.run: [] \n";
    for (select, ignore, expected) in [
        (vec![], vec!["B6"], vec!["B501 2:3"]),
        (vec!["B601"], vec![], vec!["B601 2:14"]),
        (vec!["B31", "B506"], vec![], vec![]),
        (vec!["B"], vec!["B5", "B6"], vec![]),
    ] {
        let owned = |codes: Vec<&str>| codes.into_iter().map(str::to_owned).collect();
        let options = Options { select: owned(select), ignore: owned(ignore), ..Options::default() };
        assert_eq!(found(&catalogue, &[("a.sls", source)], &options), expected);
    }
}

#[test]
fn codes_on_request_are_reported_if_selected() {
    let catalogue = catalogue();
    let nop = "a:\n  test.nop: []\n";
    let unused = vec![("a.sls", nop), ("b.sls", "include:\n  - a\nb:\n  test.nop: []\n")];
    let secret = vec![("pillar/a.sls", "db:\n  password: hunter22\n  key: '-----BEGIN PGP MESSAGE-----'\n")];
    for (texts, code, expected) in [(unused, "B310", "B310 2:5"), (secret, "B506", "B506 2:13")] {
        assert_eq!(found(&catalogue, &texts, &Options::default()), Vec::<String>::new());
        let options = Options { select: vec![code.to_owned()], ..Options::default() };
        assert_eq!(found(&catalogue, &texts, &options), [expected]);
    }
}

#[test]
fn configuration_files_and_steps_are_checked() {
    let mut catalogue = catalogue();
    catalogue.examine_options = Some(|text, is_master| {
        let mistake = |option: &str, is_error| brine_authoring_model::OptionMistake {
            option: option.to_owned(),
            message: format!("of the {}", if is_master { "master" } else { "minion" }),
            is_error,
        };
        let all = [("worker_thread", false), ("publish_port", true)];
        all.into_iter()
            .filter(|(option, _)| text.contains(option))
            .map(|(option, error)| mistake(option, error))
            .collect()
    });
    let texts = [
        ("salt/top.sls", "base:\n  '*':\n    - web\n"),
        ("salt/web.sls", "a:\n  test.nop: []\n"),
        ("salt/orch/deploy.sls", "a:\n  salt.state:\n    - tgt: '*'\n    - sls:\n      - web\n      - webb\n"),
        ("reactor/start.sls", "a:\n  local.test.ping:\n    - tgt: '*'\n"),
        (
            "etc/master",
            "publish_port: many\nreactor:\n  - 'salt/auth': [/srv/reactor/start.sls]\n  - a:\n    - /srv/reactor/strat.sls\n    - salt://reactor/*.sls\n",
        ),
        ("etc/minion.d/a.conf", "id: x\nworker_thread: 1\n"),
        ("etc/minion.d/b.conf", "id: [\n"),
        ("etc/minion.d/c.conf", "worker_thread: {{ x }}\n"),
    ];
    assert_eq!(
        found(&catalogue, &texts, &Options::default()),
        ["B406 1:1", "B315 5:7", "B208 2:1", "B102 2:1", "B316 6:9"]
    );
}
