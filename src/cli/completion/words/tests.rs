use std::path::Path;

use super::*;

/// The values for the last word of a line, whose words are separated by spaces.
fn values(line: &str) -> Vec<String> {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    match complete(&words) {
        Answer::Candidates(candidates) => candidates.into_iter().map(|candidate| candidate.value).collect(),
        Answer::Files => vec![":files".into()],
        Answer::Directories => vec![":directories".into()],
    }
}

fn configured(directory: &Path) {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let root = directory.display();
    write(
        "master",
        &format!(
            "pki_dir: {root}/pki\nfile_roots: {{base: [{root}/srv], dev: [{root}/dev]}}\nnodegroups: {{group1: 'L@a'}}\n"
        ),
    );
    for path in ["pki/minions/web1", "pki/minions/web2", "pki/minions_pre/new1", "pki/minions_rejected/bad1"] {
        write(path, "");
    }
    for path in ["srv/top.sls", "srv/web/init.sls", "srv/web/tls.sls", "srv/db.sls", "srv/.git/x.sls", "dev/only.sls"] {
        write(path, "");
    }
}

#[test]
fn words_are_completed_by_their_place() {
    let directory = tempfile::tempdir().unwrap();
    configured(directory.path());
    let c = format!("-c {}", directory.path().display());
    for (line, expected) in [
        // Tools and options.
        ("brine ke", "key"),
        ("brine help sw", "swarm"),
        ("brine link ", ":directories"),
        ("brine completion b", "bash"),
        ("salt --subs", "--subset"),
        ("salt --out=js", "--out=json"),
        ("salt --out js", "json"),
        ("salt --state_output ter", "terse"),
        ("salt-call -l inf", "info"),
        ("salt-call --local --file-root ", ":directories"),
        ("salt-run --log-file ", ":files"),
        // Targets.
        ("salt C web", "web1 web2"),
        ("salt C ", "web1 web2 '*'"),
        ("salt C 'we", "web1 web2"),
        ("salt C -L web1,we", "web1,web1 web1,web2"),
        ("salt C -N ", "group1"),
        ("salt C -G os:", ""),
        ("salt-cp C web1 ", ":files"),
        ("salt-key C -a ", "new1"),
        ("salt-key C --include-rejected -a ", "bad1 new1"),
        ("salt-key C -yd w", "web1 web2"),
        ("salt-key -l p", "pre"),
        // Functions and their arguments.
        ("salt C web1 disk.us", "disk.usage"),
        ("salt C '*' tes", "test."),
        ("salt-call C test.pin", "test.ping"),
        ("salt-run C jobs.lookup_", "jobs.lookup_jid"),
        ("salt C web1 state.apply web", "web web.tls"),
        ("salt C web1 state.apply saltenv=dev o", "only"),
        ("salt C web1 state.apply web test=", "test=True test=False"),
        ("salt-call C state.single file.manag", "file.managed"),
        ("salt-call C state.single file.managed makedirs=", "makedirs=True makedirs=False"),
        ("salt-call C state.single file.managed contents_pil", "contents_pillar="),
        ("salt-run C state.orchestrate d", "db"),
        ("salt-call C cmd.run ls shel", "shell="),
        ("salt-call C cmd.run ls shell=/bin/sh shel", ""),
        ("salt-call C no.such ", ""),
        ("brine call C sys.doc test.pin", "test.ping"),
        ("brine docs how-to/no-ans", "how-to/no-answer"),
        ("brine docs cmd.run_stder", "cmd.run_stderr"),
        ("brine docs pkg.latest_v", "pkg.latest_version"),
        ("brine docs file.managed", "file.managed"),
        ("brine docs cmd.wait_s", "cmd.wait_script"),
    ] {
        let line = line.replace('C', &c);
        let expected: Vec<&str> = expected.split(' ').filter(|word| !word.is_empty()).collect();
        assert_eq!(values(&line), expected, "{line}");
    }
}

#[test]
fn options_are_described_and_hidden_ones_left_out() {
    let words = ["salt-key".to_owned(), "--a".to_owned()];
    let Answer::Candidates(candidates) = complete(&words) else { panic!("expected candidates") };
    assert!(candidates.iter().any(|candidate| candidate.value == "--accept" && !candidate.about.is_empty()));
    assert!(!candidates.iter().any(|candidate| candidate.value == "--auto-create"), "{candidates:?}");
}

#[test]
fn a_broken_configuration_completes_what_needs_none() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("master"), "a: [\n").unwrap();
    let c = directory.path().display();
    assert_eq!(values(&format!("salt -c {c} web")), Vec::<String>::new());
    assert_eq!(values(&format!("salt -c {c} web1 test.pin")), ["test.ping"]);
}
