use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::Backend;
use crate::{Options, Roots};
use brine_value::{list, map};

/// Creates a repository with a branch `master` of two files, a branch `dev`, and an annotated tag `v1`.
fn repository() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    sh(
        &directory,
        "git init -q --initial-branch=master . && mkdir -p states/sub && echo one > states/a.sls && echo two > states/sub/b && echo top > top.sls",
    );
    sh(&directory, "ln -s /etc/passwd states/out && ln -s a.sls states/in && git add . && git commit -qm one");
    sh(
        &directory,
        "git tag -a -m message v1 && git checkout -qb dev && echo dev > states/a.sls && git commit -qam dev && git checkout -q master",
    );
    directory
}

fn sh(directory: &TempDir, command: &str) {
    let who =
        ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
    let status = Command::new("sh").args(["-c", command]).current_dir(directory.path()).envs(who).status().unwrap();
    assert!(status.success(), "{command}");
}

fn url(repository: &TempDir) -> String {
    format!("file://{}", repository.path().display())
}

fn served(cache: &TempDir, remotes: Value, more: Map) -> Roots {
    let mut options = map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => remotes};
    options.extend(more);
    let gitfs = Gitfs::of(&options, cache.path()).unwrap().unwrap();
    assert!(gitfs.update());
    Roots { backends: vec![Backend::Git(gitfs)], ..Roots::new(IndexMap::new(), &Options::default()) }
}

fn text(roots: &Roots, path: &str, saltenv: &str) -> Option<String> {
    roots.find(path, saltenv).map(|found| fs::read_to_string(found.path).unwrap())
}

#[test]
fn branches_and_tags_are_environments() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    let roots = served(&cache, list![url(&repository)], Map::new());
    assert_eq!(roots.envs(), ["base", "dev", "v1"]);
    for (env, wanted) in [("base", "one\n"), ("dev", "dev\n"), ("v1", "one\n"), ("none", ""), ("../x", "")] {
        assert_eq!(text(&roots, "states/a.sls", env).unwrap_or_default(), wanted, "{env}");
    }
    assert_eq!(roots.file_list("base", ""), ["states/a.sls", "states/in", "states/out", "states/sub/b", "top.sls"]);
    assert_eq!(text(&roots, "states/in", "base").as_deref(), Some("one\n"));
    assert_eq!(text(&roots, "states/out", "base"), None, "a link in a repository does not lead out of it");
    assert!(roots.hash("top.sls", "dev").unwrap().is_some());
}

#[test]
fn pushed_commits_are_served_after_an_update() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    let roots = served(&cache, list![url(&repository)], Map::new());
    assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
    sh(&repository, "echo new > states/a.sls && git commit -qam new && git branch -qD dev");
    assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
    assert!(roots.update());
    assert!(!roots.update());
    assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("new\n"));
    assert_eq!(roots.envs(), ["base", "v1"]);
    fs::rename(repository.path().join(".git"), repository.path().join("gone")).unwrap();
    assert!(!roots.update(), "an unreachable remote keeps its last state");
    assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("new\n"));
    roots.clear_cache().unwrap();
    assert!(roots.envs().is_empty());
}

#[test]
fn each_remote_has_its_own_options() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    let own = |more: Value| list![map! {url(&repository) => more}];
    for (remotes, more, env, path, wanted) in [
        (own(list![map! {"root" => "states"}]), Map::new(), "base", "a.sls", Some("one\n")),
        (own(list![map! {"mountpoint" => "salt://web/files"}]), Map::new(), "base", "web/files/top.sls", Some("top\n")),
        (own(list![map! {"base" => "dev"}]), Map::new(), "base", "states/a.sls", Some("dev\n")),
        (own(list![map! {"base" => "dev"}]), Map::new(), "master", "states/a.sls", Some("one\n")),
        (
            own(list![
                map! {"saltenv" => list![map! {"prod" => list![map! {"ref" => "v1"}, map! {"root" => "states"}]}]}
            ]),
            map! {"gitfs_disable_saltenv_mapping" => true},
            "prod",
            "sub/b",
            Some("two\n"),
        ),
        (list![url(&repository)], map! {"gitfs_root" => "states"}, "dev", "a.sls", Some("dev\n")),
        (list![url(&repository)], map! {"gitfs_saltenv_blacklist" => list!["de*"]}, "dev", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_saltenv_whitelist" => list!["base"]}, "dev", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_ref_types" => list!["branch"]}, "v1", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_root" => "nowhere"}, "base", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_mountpoint" => "../out"}, "base", "top.sls", None),
    ] {
        let roots = served(&cache, remotes.clone(), more.clone());
        assert_eq!(text(&roots, path, env).as_deref(), wanted, "{remotes} {more:?} {env}");
    }
}

#[test]
fn the_first_remote_that_has_a_file_serves_it() {
    let (first, second, cache) = (repository(), repository(), tempfile::tempdir().unwrap());
    sh(&second, "echo second > states/a.sls && echo more > more.sls && git add . && git commit -qm second");
    let roots = served(&cache, list![url(&first), url(&second)], Map::new());
    assert_eq!(text(&roots, "states/a.sls", "base").as_deref(), Some("one\n"));
    assert_eq!(text(&roots, "more.sls", "base").as_deref(), Some("more\n"));
}

#[test]
fn gitfs_is_served_only_if_configured() {
    let directory = Path::new("/nonexistent");
    assert!(Gitfs::of(&Map::new(), directory).unwrap().is_none());
    assert!(Gitfs::of(&map! {"fileserver_backend" => list!["roots", "git"]}, directory).unwrap().is_some());
    let bad = map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => list!["--upload-pack=x"]};
    assert!(matches!(Gitfs::of(&bad, directory), Err(GitError::Options(_))));
}
