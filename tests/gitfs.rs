//! States from repositories: served by a real master to a real minion, and used without a master.

use std::process::Command;

use crate::support::{BRINE, System, stdout};
use brine_value::Value;
use brine_value::json::from_json;

/// Creates a repository with a state in `master`, and another one of the same name in `dev`.
fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    commit(&directory, "git init -q --initial-branch=master . && mkdir states", "one");
    commit(&directory, "git checkout -q -b dev", "dev");
    commit(&directory, "git checkout -q master", "one again");
    directory
}

fn commit(directory: &tempfile::TempDir, before: &str, word: &str) {
    let state = format!("told:\\n  test.configurable_test_state:\\n    - changes: False\\n    - comment: {word}\\n");
    let who =
        ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
    let command = format!("{before} && printf '{state}' > states/told.sls && git add . && git commit -qm '{word}'");
    let status = Command::new("sh").args(["-c", &command]).current_dir(directory.path()).envs(who).status().unwrap();
    assert!(status.success(), "{command}");
}

fn options(repository: &tempfile::TempDir) -> String {
    let path = repository.path().display();
    format!("fileserver_backend: [gitfs]\ngitfs_remotes:\n  - file://{path}:\n    - root: states\n")
}

/// Returns the comment of the only state in a return of `state.sls`.
fn comment(returned: &Value) -> String {
    let states = returned.as_map().and_then(|map| map.values().next()).and_then(Value::as_map).unwrap();
    states.values().next().unwrap().get("comment").unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_get_their_states_from_a_repository() {
    let repository = repository();
    let mut system = System::start(&format!("gitfs_fallback: dev\n{}", options(&repository))).await;
    system.configure_minion("web1", "");
    system.start_minion("web1").await;
    let run = |words: &[&str]| {
        let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
        from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    };
    assert_eq!(run(&["fileserver.update"]), true.into());
    assert_eq!(run(&["fileserver.envs"]), brine_value::list!["base", "dev"]);
    assert_eq!(run(&["fileserver.file_list"]), brine_value::list!["told.sls"]);
    assert_eq!(run(&["fileserver.dir_list", "saltenv=dev"]), brine_value::list![]);
    assert_eq!(comment(&system.salt_json(&["web1", "state.sls", "told"])), "one again");
    assert_eq!(comment(&system.salt_json(&["web1", "state.sls", "told", "saltenv=dev"])), "dev");
    let file = system.salt_json(&["web1", "cp.get_file_str", "salt://told.sls", "saltenv=new"]);
    assert!(file.to_string().contains("comment: dev"), "the fallback: {file}");
    commit(&repository, "true", "two");
    assert_eq!(run(&["fileserver.update", "backend=git"]), true.into());
    assert_eq!(comment(&system.salt_json(&["web1", "state.sls", "told"])), "two");
    let cleared = run(&["fileserver.clear_cache"]);
    assert_eq!(
        cleared.get("cleared"),
        Some(&brine_value::list!["The gitfs fileserver cache was successfully cleared"])
    );
    assert_eq!(run(&["fileserver.clear_cache", "backend=roots"]), "No cache was cleared".into());
}

#[test]
fn salt_call_works_from_a_repository_without_a_master() {
    let (repository, directory) = (repository(), tempfile::tempdir().unwrap());
    let root = directory.path().display();
    let config = format!("id: alone\nroot_dir: {root}\nlog_level: quiet\n{}", options(&repository));
    std::fs::write(directory.path().join("minion"), config).unwrap();
    let call = |words: &[&str]| {
        let mut output = Command::new(BRINE);
        let output = output.args(["salt-call", "--local", "--out=json", "-c"]).arg(directory.path()).args(words);
        from_json(&stdout(&output.output().unwrap())).unwrap()
    };
    assert_eq!(comment(&call(&["state.sls", "told"])), "one again");
    assert_eq!(comment(&call(&["state.sls", "told", "saltenv=dev"])), "dev");
    commit(&repository, "true", "two");
    assert_eq!(comment(&call(&["state.sls", "told"])), "two");
}
