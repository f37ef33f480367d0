use super::{catalogue, found, signature};
use crate::Options;

#[test]
fn targets_of_steps_are_checked() {
    let catalogue = catalogue();
    let state = |rest: &str| format!("a:\n  salt.state:\n    - highstate: True\n{rest}");
    for (rest, expected) in [
        ("    - tgt: '*'\n", vec![]),
        ("    - tgt: web1,web2\n    - tgt_type: list\n", vec![]),
        ("    - tgt: [web1, web2]\n    - tgt_type: list\n", vec![]),
        ("    - tgt: 'G@os:Debian and not ( web* or L@db1,db2 )'\n    - tgt_type: compound\n", vec![]),
        ("    - tgt: {{ pillar['t'] }}\n    - tgt_type: compound\n", vec![]),
        ("    - tgt: 'G@os:{{ grains.os }} and'\n    - tgt_type: compound\n", vec![]),
        ("    - tgt: a and\n    - tgt_type: {{ pillar['t'] }}\n", vec![]),
        ("    - tgt: 'own:value'\n    - tgt_type: grain\n", vec![]),
        ("    - tgt: N@web and N@db\n    - tgt_type: compound\n", vec![]),
        ("    - tgt: web\n    - tgt_type: nodegroup\n", vec![]),
        // The pieces are in different branches.
        (
            "{% if grains.os %}\n    - tgt: a or b\n    - tgt_type: compound\n{% else %}\n    - tgt: '*'\n{% endif %}\n",
            vec![],
        ),
        ("", vec!["B403 2:3"]),
        ("    - tgt: '*'\n    - tgt_type: globb\n", vec!["B209 5:17"]),
        ("    - tgt: '*'\n    - tgt_type: regex\n", vec!["B209 5:17"]),
        ("    - tgt: 'os:x'\n    - tgt_type: anything\n", vec!["B209 5:17"]),
        ("    - tgt: 'a or b'\n    - expr_form: compound\n", vec!["B401 5:7"]),
        ("    - tgt: 'G@os:Debian and'\n    - tgt_type: compound\n", vec!["B407 4:12"]),
        ("    - tgt: 'web* db*'\n    - tgt_type: compound\n", vec!["B407 4:12"]),
        ("    - tgt: 'not (web1)'\n    - tgt_type: compound\n", vec!["B407 4:12"]),
        ("    - tgt: 'osDebian'\n    - tgt_type: grain\n", vec!["B407 4:12"]),
        ("    - tgt: 'role'\n    - tgt_type: pillar\n", vec!["B407 4:12"]),
        ("    - tgt: 'web['\n    - tgt_type: pcre\n", vec!["B407 4:12"]),
        ("    - tgt: 10.0.0.0.0/8\n    - tgt_type: ipcidr\n", vec!["B407 4:12"]),
        ("    - tgt: [web1, web2]\n", vec!["B407 4:12"]),
        ("    - tgt: 'g@os:Debian or a'\n    - tgt_type: compound\n", vec!["B407 4:12"]),
        ("    - tgt: 'os_famly:Debian'\n    - tgt_type: grain\n", vec!["B205 4:12"]),
        ("    - tgt: 'a or P@os_famly:(Debian|x)'\n    - tgt_type: compound\n", vec!["B205 4:12"]),
    ] {
        let source = state(rest);
        assert_eq!(found(&catalogue, &[("a.sls", &source)], &Options::default()), expected, "{source}");
    }
}

#[test]
fn values_of_steps_have_their_types() {
    let catalogue = catalogue();
    for (line, is_right) in [
        ("batch: 10", true),
        ("batch: 25%", true),
        ("batch: '3'", true),
        ("batch: {{ pillar['b'] }}", true),
        ("batch: ten", false),
        ("batch: [1]", false),
        ("batch: True", false),
        ("subset: 2", true),
        ("subset: all", false),
        ("subset: [1]", false),
        ("fail_minions: web1", true),
        ("fail_minions: [web1, 3]", true),
        ("fail_minions: True", false),
        ("fail_minions: {a: b}", false),
        ("allow_fail: 1", true),
        ("allow_fail: some", false),
        ("concurrent: True", true),
        ("concurrent: 'yes'", false),
        ("timeout: 30", true),
        ("timeout: soon", false),
    ] {
        let source = format!("a:\n  salt.state:\n    - highstate: True\n    - tgt: '*'\n    - {line}\n");
        let column = 9 + line.split(':').next().unwrap().len();
        let expected = if is_right { vec![] } else { vec![format!("B402 5:{column}")] };
        let is_quoted = |finding: &String| line.contains('\'') && finding.starts_with("B402 5:");
        let findings = found(&catalogue, &[("a.sls", &source)], &Options::default());
        assert!(findings == expected || !is_right && findings.iter().all(is_quoted), "{line} {findings:?}");
    }
}

#[test]
fn nodegroups_are_those_of_the_configuration() {
    let catalogue = catalogue();
    let step = "a:\n  salt.state:\n    - highstate: True\n    - tgt: N@wbe and N@db\n    - tgt_type: compound\nb:\n  salt.state:\n    - highstate: True\n    - tgt: cache\n    - tgt_type: nodegroup\n";
    for (configuration, expected) in [
        ("nodegroups:\n  web: L@a,b\n  db: G@role:db\n", vec!["B317 4:12", "B317 9:12"]),
        ("nodegroups:\n  wbe: L@a\n  db: x\n  cache: y\n", vec![]),
        ("nodegroups: {{ x }}\n", vec![]),
        ("interface: 0.0.0.0\n", vec![]),
    ] {
        let texts = [("orch/a.sls", step), ("etc/salt/master", configuration)];
        assert_eq!(found(&catalogue, &texts, &Options::default()), expected, "{configuration}");
    }
}

#[test]
fn functions_of_the_master_exist() {
    let mut catalogue = catalogue();
    for name in ["manage.up", "state.orchestrate"] {
        catalogue.runners.add(signature(name));
    }
    catalogue.wheel.add(signature("key.accept"));
    for (source, expected) in [
        ("manage.up:\n  salt.runner: []\n", vec![]),
        ("manage.upp:\n  salt.runner: []\n", vec!["B207 1:1"]),
        ("mange.up:\n  salt.runner: []\n", vec!["B207 1:1"]),
        ("a:\n  salt.runner:\n    - name: own.thing\n", vec![]),
        ("a:\n  salt.wheel:\n    - name: key.acept\n", vec!["B207 3:13"]),
        (
            "a:\n  salt.parallel_runners:\n    - runners:\n        b:\n          - name: state.orchestrat\n",
            vec!["B207 5:19"],
        ),
        ("a:\n  salt.parallel_runners:\n    - runners:\n        b:\n          name: state.orchestrate\n", vec![]),
    ] {
        assert_eq!(found(&catalogue, &[("a.sls", source)], &Options::default()), expected, "{source}");
    }
}

#[test]
fn targets_of_reactions_are_checked() {
    let catalogue = catalogue();
    for (lines, expected) in [
        ("    - tgt: {{ data['id'] }}\n", vec![]),
        ("    - tgt: 'role:web'\n    - expr_form: grain\n", vec![]),
        ("    - tgt: 'role:web'\n    - tgt_type: grains\n", vec!["B209 4:17"]),
        ("    - tgt: 'web* or'\n    - tgt_type: compound\n", vec!["B407 3:12"]),
    ] {
        let source = format!("a:\n  local.test.ping:\n{lines}");
        assert_eq!(found(&catalogue, &[("reactor/a.sls", &source)], &Options::default()), expected, "{source}");
    }
}
