//! Whole trees: each kind of expectation passes and fails.

use std::path::Path;

use crate::run::Outcome;
use crate::{Report, Session, Settings};

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn run(root: &Path) -> Report {
    let settings = Settings { paths: vec![root.to_owned()], ..Settings::default() };
    Session::new(brine_modules::MODULES).run(&settings)
}

const WEB: &str = "{% set port = pillar['web']['port'] %}
nginx:
  pkg.installed: []
  service.running:
    - watch:
      - file: /etc/nginx.conf
/etc/nginx.conf:
  file.managed:
    - source: salt://web/nginx.conf
    - template: jinja
    - user: root
    - mode: '0640'
    - context:
        port: {{ port }}
    - require:
      - pkg: nginx
{% if salt['file.file_exists']('/etc/old') %}
/etc/old:
  file.absent: []
{% endif %}
{% if salt['cmd.run']('uname -r').startswith('6') %}
new: test.nop
{% endif %}
";

const DEFAULTS: &str = "defaults:
  sls: web
  grains: {os_family: Debian}
  pillar: {web: {port: 80}}
  mocks: {cmd.run: 6.1.0}
tests:
";

/// Runs one test of the tree, and returns its failures.
fn failures(body: &str) -> Vec<String> {
    let indented = body.lines().map(|line| ["    ", line, "\n"].concat()).collect::<String>();
    let text = format!("{DEFAULTS}  a test:\n{indented}");
    let files = [
        ("top.sls", "base:\n  'web*':\n    - web\n"),
        ("web/init.sls", WEB),
        ("web/nginx.conf", "listen {{ port }} {{ grains.os_family }};\n"),
        ("web/init.test.yml", &text),
        ("orch/deploy.sls", "apply:\n  salt.state:\n    - tgt: 'web*'\n    - sls: web\n"),
        ("reactor/start.sls", "apply {{ data['id'] }}:\n  local.state.apply:\n    - tgt: {{ data['id'] }}\n"),
        ("pillar/top.sls", "base:\n  '*':\n    - web\n"),
        ("pillar/web.sls", "web:\n  port: 8080\n  id: {{ grains['id'] }}\n"),
    ];
    let directory = tree(&files);
    let report = run(directory.path());
    assert_eq!(report.broken, Vec::<String>::new());
    assert_eq!(report.cases.len(), 1);
    match &report.cases[0].done.outcome {
        Outcome::Passed => Vec::new(),
        Outcome::Skipped(reason) => vec![format!("skipped: {reason}")],
        Outcome::Failed(failed) => failed
            .iter()
            .map(|failed| [std::slice::from_ref(&failed.message), &failed.difference[..]].concat().join("\n"))
            .collect(),
    }
}

#[test]
fn each_expectation_passes_and_fails() {
    let managed = "/etc/nginx.conf: {file.managed: [mode: '0640', context: {port: 80}]}";
    for (body, expected) in [
        (format!("expect: {{contains: {{{managed}}}}}"), ""),
        ("expect: {contains: {nginx: {pkg.removed: []}}}".to_owned(), "the state 'nginx' differs"),
        ("expect: {contains: {ngin: pkg.installed}}".to_owned(), "did you mean 'nginx'?"),
        ("expect: {absent: [/etc/old]}".to_owned(), ""),
        ("files: {/etc/old: x}\nexpect: {absent: [/etc/old]}".to_owned(), "'/etc/old' is expected to be absent"),
        ("expect: {order: [pkg: nginx, /etc/nginx.conf, service: nginx]}".to_owned(), ""),
        ("expect: {order: [service: nginx, pkg: nginx]}".to_owned(), "the states run in another order"),
        ("expect: {content: {/etc/nginx.conf: \"listen 80 Debian;\\n\"}}".to_owned(), ""),
        ("expect: {content: {/etc/nginx.conf: {contains: [listen 81]}}}".to_owned(), "does not have 'listen 81'"),
        ("pillar: {web: {port: 8}}\nexpect: {content: {/etc/nginx.conf: x}}".to_owned(), "+ listen 8 Debian;"),
        ("expect: {error: False}".to_owned(), ""),
        ("expect: {error: nothing}".to_owned(), "expected an error with 'nothing', but there is none"),
        ("sls: none\nexpect: {error: No matching sls}".to_owned(), ""),
        ("sls: none\nexpect: {error: False}".to_owned(), "No matching sls"),
        (
            "files: {/etc/nginx.conf: {text: \"listen 80 Debian;\\n\", mode: '0640'}}\n\
             expect: {results: {/etc/nginx.conf: {result: True, changes: {}, comment: correct state}}}"
                .to_owned(),
            "",
        ),
        ("expect: {results: {/etc/nginx.conf: {result: True}}}".to_owned(), "the result of '/etc/nginx.conf' differs"),
        ("expect: {results: {nginx: {result: True}}}".to_owned(), "depends on the host: pkg.installed is not examined"),
        (
            "states: {pkg.installed: {result: False}}\nexpect: {results: {/etc/nginx.conf: {result: False, comment: requisite failed}}}"
                .to_owned(),
            "",
        ),
        ("mocks: {cmd.run: {args: [hostname], returns: a}}\nexpect: {error: False}".to_owned(), "cmd.run('uname -r') is not mocked"),
        ("mocks: {cmd.run: {args: [uname -r], returns: '6', times: 2}}\nexpect: {absent: [x]}".to_owned(), "called 1 times, expected 2"),
        ("mocks: {cmd.rum: 1}\nexpect: {absent: [x]}".to_owned(), "did you mean 'cmd.run'?"),
        ("highstate: True\nid: web1\nexpect: {contains: {new: test.nop}}".to_owned(), ""),
        ("highstate: True\nid: db1\nexpect: {error: No target}".to_owned(), ""),
        ("pillar_roots: ../pillar\npillar: {}\nexpect: {pillar: {web: {id: minion}}}".to_owned(), ""),
        ("expect: {pillar: {web: {port: 81}}}".to_owned(), "the pillar differs"),
        ("orchestrate: orch.deploy\nexpect: {steps: [{apply: {salt.state: [tgt: 'web*', sls: web]}}]}".to_owned(), ""),
        ("orchestrate: orch.deploy\nexpect: {steps: []}".to_owned(), "the low state differs"),
        (
            "event: {tag: salt/minion/web1/start, data: {id: web1}}\nreactor: [{'salt/minion/*/start': [../reactor/start.sls]}]\n\
             expect: {reactions: [{local.state.apply: {tgt: web1}}]}"
                .to_owned(),
            "",
        ),
        ("event: {tag: other}\nreactor: [{'x/*': []}]\nexpect: {reactions: [{local.test.ping: {}}]}".to_owned(), "the reactions differ"),
        ("skip: later\nexpect: {absent: [x]}".to_owned(), "skipped: later"),
        ("expect: snapshot".to_owned(), "there is no snapshot yet"),
    ] {
        let failures = failures(&body);
        if expected.is_empty() {
            assert_eq!(failures, Vec::<String>::new(), "{body}");
        } else {
            assert!(failures.iter().any(|failure| failure.contains(expected)), "{body}: {failures:#?}");
        }
    }
}

#[test]
fn snapshots_are_written_and_compared() {
    let directory = tree(&[
        ("a.sls", "a:\n  file.managed:\n    - name: /etc/a\n    - contents: {{ pillar['x'] }}\n"),
        ("a.test.yml", "tests:\n  one:\n    pillar: {x: 1}\n    expect: snapshot\n"),
    ]);
    let session = Session::new(brine_modules::MODULES);
    let settings = Settings { paths: vec![directory.path().to_owned()], ..Settings::default() };
    assert_eq!(session.run(&settings).status(), 1);
    assert_eq!(session.run(&Settings { update: true, ..settings.clone() }).status(), 0);
    assert_eq!(session.run(&settings).status(), 0);
    let stored = std::fs::read_to_string(directory.path().join("a.test.snap.yml")).unwrap();
    assert_eq!(
        stored,
        "# Written by `brine test --update`.\none:\n  content:\n    /etc/a:\n    - '1'\n    - ''\n  low:\n  - a:\n      file.managed:\n      - name: /etc/a\n      \
         - contents: 1\n"
    );
    std::fs::write(directory.path().join("a.test.yml"), "tests:\n  one:\n    pillar: {x: 2}\n    expect: snapshot\n")
        .unwrap();
    assert_eq!(session.run(&settings).status(), 1);
}

#[test]
fn tests_of_saltcheck_run_where_they_need_no_host() {
    let directory = tree(&[
        ("a/init.sls", "/etc/a:\n  file.managed:\n    - contents: hello\n"),
        (
            "a/saltcheck-tests/init.tst",
            "apply:\n  module_and_function: saltcheck.state_apply\n  args: [a]\n\
             there:\n  module_and_function: file.contains\n  args: [/etc/a, hello]\n  assertion: assertTrue\n\
             wrong:\n  module_and_function: test.echo\n  args: [a]\n  assertion: assertEqual\n  expected_return: b\n\
             host:\n  module_and_function: cmd.run\n  args: [id]\n  assertion: assertNotEmpty\n",
        ),
    ]);
    let report = run(directory.path());
    let outcomes: Vec<String> =
        report.cases.iter().map(|case| format!("{}: {:?}", case.name, case.done.outcome)).collect();
    assert_eq!(report.counts(), (2, 1, 1), "{outcomes:#?} {:?}", report.broken);
    assert!(outcomes[3].contains("cannot run without a host: cmd.run('id') is not mocked"), "{outcomes:#?}");
}

#[test]
fn coverage_counts_lines_and_branches_of_all_tests() {
    let map = "{% if grains['os_family'] == 'Debian' %}{% set name = 'apache2' %}{% else %}\n{% set name = 'httpd' %}\n{% endif %}\n";
    let files = [
        (
            "a/init.sls",
            "{% from 'a/map.jinja' import name %}\na: {test.nop: [{x: {{ name }}}]}\n{% if pillar.get('b') %}\nb: test.nop\n{% endif %}\n",
        ),
        ("a/map.jinja", map),
        ("never.sls", "c: test.nop\n"),
        ("other.sls", "#!py\nx = 1\n"),
        (
            "a/init.test.yml",
            "tests:\n  one: {grains: {os_family: Debian}, expect: {order: [a]}}\n  two: {grains: {os_family: Debian}, pillar: {b: 1}, expect: {order: [a, b]}}\n",
        ),
    ];
    let directory = tree(&files);
    let settings = Settings { paths: vec![directory.path().to_owned()], coverage: true, ..Settings::default() };
    let report = Session::new(brine_modules::MODULES).run(&settings);
    assert_eq!(report.status(), 0, "{report:?}");
    let covered = report.coverage.unwrap();
    let actual: Vec<_> = covered
        .iter()
        .map(|file| (file.path.file_name().unwrap().to_str().unwrap(), file.lines.clone(), file.conditions.clone()))
        .collect();
    assert_eq!(
        actual,
        [
            ("init.sls", vec![(1, 2), (2, 2), (3, 2), (4, 1)], vec![(3, vec![1, 1])]),
            ("map.jinja", vec![(1, 2), (2, 0)], vec![(1, vec![2, 0])]),
            ("never.sls", vec![(1, 0)], vec![]),
        ]
    );
}
