use std::sync::Arc;

use brine_authoring_model::Tree;
use brine_jinja::Host;
use brine_value::{Map, Value, map};

use super::{Prepared, Sample, Samples};
use crate::{Options, check_with};

fn samples(all: Vec<Sample>) -> Samples {
    let prepared = |sample| Prepared::new(sample, Host::new(), Arc::new(Map::new()));
    Samples { all: all.into_iter().map(prepared).collect(), is_pure: |_, _| false }
}

/// Returns line, code and message of the findings of a file, without those of style and danger.
fn rendered_findings(texts: &[(&str, &str)], all: Vec<Sample>) -> Vec<String> {
    let tree = Tree::of_texts(texts.iter().copied());
    let options = Options { ignore: vec!["B5".to_owned(), "B6".to_owned()], ..Options::default() };
    let findings = check_with(&tree, &crate::tests::catalogue(), &options, Some(&samples(all)));
    let line = |finding: &crate::Finding| tree.file(&finding.path).unwrap().position(finding.span.start).line;
    findings.iter().map(|finding| format!("{} {} {}", line(finding), finding.code, finding.message)).collect()
}

/// A file that has no data before it is rendered.
const OPEN: &str =
    "{% macro state(name, function) %}\n{{ name }}:\n  {{ function }}:\n    - user: root\n{% endmacro %}\n";

#[test]
fn open_files_are_rendered_for_common_systems() {
    let grains = "{{ state('a', 'pkg.instaled' if grains.os_family == 'Debian' else 'test.nop') }}\n";
    let findings = rendered_findings(&[("a.sls", &format!("{OPEN}{grains}"))], Sample::common());
    assert_eq!(
        findings,
        [
            "6 B201 there is no state function 'pkg.instaled': did you mean 'pkg.installed'? (rendered for Debian, Ubuntu)"
        ]
    );
}

#[test]
fn errors_of_yaml_are_at_the_line_of_the_source() {
    let broken = "{{ state('b', 'test.nop') }}\n{% if grains.kernel == 'Windows' %}\nc: d: e\n{% endif %}\n";
    let findings = rendered_findings(&[("a.sls", &format!("{OPEN}{broken}"))], Sample::common());
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].starts_with("8 B102 "), "{findings:?}");
}

#[test]
fn undefined_variables_name_their_samples() {
    let text = "{% if grains.os == 'Debian' %}{% set x = 1 %}{% endif %}\na{{ x }}:\n  test.nop: []\n";
    assert_eq!(
        rendered_findings(&[("a.sls", text)], Sample::common()),
        Vec::<String>::new(),
        "no formula must support all systems"
    );
    let grains = |os: &str| (os.to_owned(), Value::from(map! {"os" => os}));
    let named = Sample::of_files(&[grains("Debian"), grains("SUSE")], &[]).unwrap();
    assert_eq!(
        rendered_findings(&[("a.sls", text)], named.clone()),
        ["2 B308 the variable 'x' is not defined (rendered for SUSE)"]
    );
    // What a pillar may have is reported only if the pillar is known.
    let text = "a{{ pillar.b.c }}:\n  test.nop: []\n";
    assert_eq!(rendered_findings(&[("a.sls", text)], named), Vec::<String>::new());
    let pillar = ("p".to_owned(), Value::from(map! {"b" => map! {"d" => 1}}));
    let named = Sample::of_files(&[grains("Debian")], &[pillar]).unwrap();
    assert_eq!(
        rendered_findings(&[("a.sls", text)], named),
        ["1 B308 'dict object' has no attribute 'c' (rendered for every sample)"]
    );
}

#[test]
fn results_of_functions_are_not_guessed() {
    for text in [
        "{% for x in salt['cmd.run']('ls').splitlines() %}\n{{ x }}:\n  pkg.installed: []\n{% endfor %}\n",
        "{% set a = salt['mine.get']('*', 'b') %}\n{{ a.c }}:\n  test.nop: []\n{{ a['d']['e'] }}\n",
        "{% for i in range(100000000) %}{{ i }}{% endfor %}\n",
    ] {
        assert_eq!(
            rendered_findings(&[("a.sls", &format!("{OPEN}{text}"))], Sample::common()),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn imports_stay_in_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("secret.yaml"), "a: {instaled: 1}\n").unwrap();
    let tree = directory.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::os::unix::fs::symlink("../secret.yaml", tree.join("link.yaml")).unwrap();
    std::fs::write(tree.join("own.yaml"), "a: pkg.instaled\n").unwrap();
    for name in ["link", "own"] {
        let text = format!("{OPEN}{{% import_yaml '{name}.yaml' as b %}}\n{{{{ state('c', b.a) }}}}\n");
        std::fs::write(tree.join(format!("{name}.sls")), text).unwrap();
    }
    let tree = Tree::load(&tree, None).unwrap();
    let findings = check_with(&tree, &crate::tests::catalogue(), &Options::default(), Some(&samples(Sample::common())));
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["own.sls"], "{findings:?}");
}

#[test]
fn files_of_grains_may_have_several_minions() {
    let minion = |os: &str| Value::from(map! {"os" => os});
    let names = |data: Value| -> Vec<String> {
        let samples = Sample::of_files(&[("file".to_owned(), data)], &[]).unwrap();
        samples.into_iter().map(|sample| sample.name).collect()
    };
    assert_eq!(names(minion("Debian")), ["file"]);
    assert_eq!(names(map! {"local" => minion("Debian")}.into()), ["file"]);
    assert_eq!(names(map! {"web1" => minion("Debian"), "db1" => minion("SUSE")}.into()), ["web1", "db1"]);
    let many: Vec<(String, Value)> = (0..65).map(|number| (number.to_string(), minion("Debian"))).collect();
    assert!(Sample::of_files(&many, &[]).is_err());
}
