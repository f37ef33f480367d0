//! `brine test`: the real program runs the tests of a small tree.

use std::path::Path;
use std::process::Command;

use crate::support::BRINE;

/// Runs `brine test` in a directory, and returns its status and output.
fn brine_test(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(BRINE).arg("test").args(words).current_dir(directory).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

const SLS: &str = "/etc/a:\n  file.managed:\n    - contents: {{ pillar['text'] }}\nb:\n  cmd.run:\n    - name: touch /brine-was-here\n";
const TESTS: &str = "defaults: {pillar: {text: hello}}\ntests:\n  right:\n    expect:\n      content: {/etc/a: \"hello\\n\"}\n      \
                     order: [/etc/a, b]\n      results: {/etc/a: {result: null}}\n  wrong:\n    expect:\n      \
                     contains: {/etc/a: {file.managed: [contents: other]}}\n  stored:\n    expect: snapshot\n";

#[test]
fn reports_and_exit_statuses_tell_failures_and_broken_files() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path();
    std::fs::write(tree.join("a.sls"), SLS).unwrap();
    std::fs::write(tree.join("a.test.yml"), TESTS).unwrap();
    let (status, text) = brine_test(tree, &[]);
    assert_eq!(status, Some(1), "{text}");
    for expected in [
        "  pass right\n",
        "  FAIL wrong (line 8)\n       the state '/etc/a' differs\n",
        "             - - contents: other\n             + - contents: hello\n",
        "  FAIL stored (line 11)\n       there is no snapshot yet: write it with --update\n",
        "1 passed, 2 failed in ",
    ] {
        let is_there = text.replace(' ', "").contains(&expected.replace(' ', ""));
        assert!(is_there, "{expected}: {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
    assert_eq!(brine_test(tree, &["--filter", "right", "."]).0, Some(0));
    assert_eq!(
        brine_test(tree, &["--list"]),
        (Some(0), "a.test.yml: right\na.test.yml: wrong\na.test.yml: stored\n".into())
    );
    let (status, text) = brine_test(tree, &["--update", "--filter", "stored"]);
    assert!(status == Some(0) && text.contains("wrote a.test.snap.yml"), "{text}");
    assert_eq!(brine_test(tree, &["--filter", "stored"]).0, Some(0));
    // The directory of a tree is easily taken for the one above it.
    std::fs::create_dir(tree.join("states")).unwrap();
    std::fs::write(tree.join("states/b.sls"), "/etc/b: {file.managed: [source: 'salt://b.txt']}\n").unwrap();
    std::fs::write(tree.join("states/b.txt"), "b").unwrap();
    let test = "tests: {content: {expect: {content: {/etc/b: b}}}}\n";
    std::fs::write(tree.join("states/b.test.yml"), test).unwrap();
    let (_, text) = brine_test(tree, &["states"]);
    assert!(text.contains("1 passed") && !text.contains("note:"), "{text}");
    let (_, text) = brine_test(tree, &[".", "--filter", "content"]);
    let note = format!("note: no top.sls was found, so states were read below {}: ", tree.display());
    assert!(text.contains(&note), "{text}");
    std::fs::remove_dir_all(tree.join("states")).unwrap();
    let (_, xml) = brine_test(tree, &["--format", "junit"]);
    assert!(xml.contains("<testsuites tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{xml}");
    let (_, json) = brine_test(tree, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["passed"], &json["tests"][1]["outcome"]), (&2.into(), &"failed".into()));
    let (_, text) = brine_test(tree, &["--coverage-lcov", "lcov.info"]);
    assert!(text.contains("  a.sls  100 % of lines"), "{text}");
    let lcov = std::fs::read_to_string(tree.join("lcov.info")).unwrap();
    assert!(lcov.starts_with("TN:\nSF:a.sls\n") && lcov.contains("DA:3,3\n"), "{lcov}");
    std::fs::write(tree.join("b.test.yml"), "tests:\n  a: {sl: x, expect: snapshot}\n").unwrap();
    let (status, text) = brine_test(tree, &[]);
    assert!(status == Some(2) && text.contains("b.test.yml:2: the key 'sl' is unknown: did you mean 'sls'?"), "{text}");
    assert!(!Path::new("/brine-was-here").exists());
}
