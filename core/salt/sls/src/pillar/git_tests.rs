//! Tests of `ext_pillar` `git`.

use brine_value::{Map, Value, list, map};

use super::tests::Master;

/// A repository with the branches `master`, which has a directory `sub`, and `dev`.
fn repository(directory: &std::path::Path) -> String {
    let command = "git init -q --initial-branch=master . && mkdir sub && \
        echo \"base: {'*': [a]}\" | tee top.sls > sub/top.sls && echo 'a: {m: 1, l: [1]}' > a.sls && \
        echo 'sub: {{ saltenv }} {{ opts.id }}' > sub/a.sls && git add . && git commit -qm one && git checkout -qb dev && \
        echo \"dev: {'web*': [a]}\" > top.sls && echo 'a: {d: 1, l: [2]}' > a.sls && git commit -qam two";
    let who =
        ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
    let status =
        std::process::Command::new("sh").args(["-c", command]).current_dir(directory).envs(who).status().unwrap();
    assert!(status.success());
    format!("file://{}", directory.display())
}

#[test]
fn git_branches_are_pillar_environments() {
    let (directory, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = repository(directory.path());
    let branch = |name: &str| Value::from(format!("{name} {url}"));
    let with = |name: &str, own: Value| -> Value { map! {branch(name) => own}.into() };
    let of = |remotes: Value, more: Map, pillarenv: Option<&str>| {
        let mut opts = map! {"ext_pillar" => list![map! {"git" => remotes}], "cachedir" => cache.path().to_owned()};
        opts.extend(more);
        Master::new(&[], opts).pillar("web1", pillarenv, &Map::new())
    };
    let master = map! {"a" => map! {"m" => 1, "l" => list![1]}};
    let dev = map! {"a" => map! {"d" => 1, "l" => list![2]}};
    let both = |list: Value| map! {"a" => map! {"m" => 1, "l" => list, "d" => 1}};
    let error = |text: String| map! {"_errors" => list![format!("Failed to load ext_pillar git: {text}")]};
    let none = Map::new;
    for (remotes, more, pillarenv, expected) in [
        (list![branch("master")], none(), None, master.clone()),
        (list![url.clone()], none(), None, master.clone()),
        (branch("dev"), none(), None, dev.clone()),
        (list![branch("master"), branch("dev")], none(), None, both(list![2])),
        (list![branch("master"), branch("dev")], map! {"pillar_merge_lists" => true}, None, both(list![1, 2])),
        (list![branch("master"), branch("dev")], none(), Some("dev"), dev.clone()),
        (list![branch("__env__")], none(), None, master.clone()),
        (list![branch("__env__")], none(), Some("dev"), dev.clone()),
        (list![with("master", list![map! {"root" => "sub"}])], none(), None, map! {"sub" => "base web1"}),
        (list![branch("master")], map! {"git_pillar_root" => "sub"}, None, map! {"sub" => "base web1"}),
        (list![with("master", list![map! {"env" => "other"}])], none(), None, none()),
        (list![with("none", list![map! {"fallback" => "dev"}, map! {"env" => "dev"}])], none(), None, dev.clone()),
        (list![with("__env__", list![map! {"all_saltenvs" => "master"}])], none(), Some("dev"), none()),
        (list![with("__env__", list![map! {"all_saltenvs" => "dev"}])], none(), Some("dev"), dev.clone()),
        (
            list![with("new", list![map! {"env" => "dev"}])],
            map! {"git_pillar_refspecs" => list!["+refs/heads/dev:refs/remotes/origin/new"]},
            None,
            dev.clone(),
        ),
        (list![branch("none")], none(), None, error(format!("{url} has no branch or tag 'none'"))),
        (list!["a b c"], none(), None, error("a git remote: 'a b c' is not a branch and a URL".into())),
    ] {
        assert_eq!(of(remotes.clone(), more.clone(), pillarenv), expected, "{remotes} {more:?} {pillarenv:?}");
    }
    let report = of(list![format!("master {url}/none")], none(), None);
    let text = report["_errors"].as_list().unwrap()[0].to_string();
    assert!(text.starts_with("Failed to load ext_pillar git: the git remote"), "{text}");
}
