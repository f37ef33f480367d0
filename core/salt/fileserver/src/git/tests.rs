use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

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
        "git tag -a -m message v1 && git checkout -qb dev && echo dev > states/a.sls && git commit -qam dev && git checkout -q master && git update-ref refs/pull/7/head dev",
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
    roots.find(path, saltenv).map(|entry| fs::read_to_string(entry.path).unwrap())
}

#[test]
fn branches_and_tags_are_environments() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    let roots = served(&cache, list![url(&repository)], Map::new());
    assert_eq!(roots.envs(), ["base", "dev", "v1"]);
    for (env, expected) in [("base", "one\n"), ("dev", "dev\n"), ("v1", "one\n"), ("none", ""), ("../x", "")] {
        assert_eq!(text(&roots, "states/a.sls", env).unwrap_or_default(), expected, "{env}");
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
    for (remotes, more, env, path, expected) in [
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
        (own(list![map! {"saltenv_blacklist" => list!["de*"]}]), Map::new(), "dev", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_root" => "nowhere"}, "base", "top.sls", None),
        (list![url(&repository)], map! {"gitfs_fallback" => "dev"}, "new", "states/a.sls", Some("dev\n")),
        (list![url(&repository)], map! {"gitfs_fallback" => "dev"}, "base", "states/a.sls", Some("one\n")),
        (own(list![map! {"fallback" => "dev", "base" => "none"}]), Map::new(), "base", "states/a.sls", Some("dev\n")),
        (
            list![url(&repository)],
            map! {"gitfs_fallback" => "dev", "gitfs_saltenv_whitelist" => list!["base"]},
            "new",
            "states/a.sls",
            None,
        ),
        (
            list![url(&repository)],
            map! {"gitfs_fallback" => "dev", "gitfs_disable_saltenv_mapping" => true},
            "new",
            "states/a.sls",
            None,
        ),
        (own(list![map! {"all_saltenvs" => "dev"}]), Map::new(), "v1", "states/a.sls", Some("dev\n")),
        (own(list![map! {"all_saltenvs" => "dev"}]), Map::new(), "new", "states/a.sls", None),
        (
            own(list![map! {"refspecs" => list!["+refs/pull/*/head:refs/remotes/origin/pr/*"]}]),
            Map::new(),
            "pr/7",
            "states/a.sls",
            Some("dev\n"),
        ),
        (
            own(list![map! {"refspecs" => list!["+refs/pull/*/head:refs/remotes/origin/pr/*"]}]),
            Map::new(),
            "base",
            "states/a.sls",
            None,
        ),
        (list![url(&repository)], map! {"gitfs_mountpoint" => "../out"}, "base", "top.sls", None),
    ] {
        let roots = served(&cache, remotes.clone(), more.clone());
        assert_eq!(text(&roots, path, env).as_deref(), expected, "{remotes} {more:?} {env}");
    }
}

#[test]
fn all_saltenvs_adds_a_remote_to_the_environments_of_the_others() {
    let (first, second, cache) = (repository(), repository(), tempfile::tempdir().unwrap());
    sh(&first, "git branch prod");
    sh(&second, "echo more > more.sls && git add . && git commit -qm second");
    let remotes = list![url(&first), map! {url(&second) => list![map! {"all_saltenvs" => "master"}]}];
    let roots = served(&cache, remotes, Map::new());
    assert_eq!(roots.envs(), ["base", "dev", "prod", "v1"]);
    for env in ["base", "dev", "prod", "v1"] {
        assert_eq!(text(&roots, "more.sls", env).as_deref(), Some("more\n"), "{env}");
    }
    assert_eq!(text(&roots, "states/a.sls", "dev").as_deref(), Some("dev\n"), "the first remote takes precedence");
}

#[test]
fn fetched_references_follow_the_refspecs() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    let refspecs =
        list!["+refs/heads/*:refs/remotes/origin/*", "+refs/pull/*/head:refs/remotes/origin/pr/*", "^refs/heads/dev"];
    let roots = served(&cache, list![url(&repository)], map! {"gitfs_refspecs" => refspecs});
    let expected = ["base", "pr/7", "v1"];
    assert_eq!(roots.envs(), expected);
    assert!(!roots.update(), "references of one refspec are not pruned by another");
    sh(&repository, "git update-ref -d refs/pull/7/head");
    assert!(roots.update());
    assert_eq!(roots.envs(), ["base", "v1"]);
}

#[test]
fn depth_limits_the_commits_that_are_fetched() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    for (depth, commits) in [(1, "1\n"), (0, "2\n"), (1, "1\n")] {
        let all = map! {"gitfs_depth" => depth};
        let options = RemoteOptions { own: Map::new(), all: &all, prefix: "gitfs_" };
        let cached = Repository::new(&url(&repository), &options, cache.path()).unwrap();
        cached.fetch().unwrap();
        let directory = cached.place().join("repository");
        let counted =
            Command::new("git").arg("--git-dir").arg(directory).args(["rev-list", "--count", "dev"]).output().unwrap();
        assert_eq!(String::from_utf8(counted.stdout).unwrap(), commits, "{depth}");
    }
}

/// Serves a repository as a proxy for `http://repository.invalid/x.git/` to the user `me` with the password `secret`.
/// Returns the proxy's URL.
fn proxy(repository: &TempDir) -> String {
    sh(repository, "git update-server-info");
    let (listener, files) = (TcpListener::bind("127.0.0.1:0").unwrap(), repository.path().join(".git"));
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            let path = head.strip_prefix("GET http://repository.invalid/x.git/");
            let path = path.and_then(|path| path.split([' ', '?']).next()).unwrap_or("../none");
            let (status, body) = if head.contains("Authorization: Basic bWU6c2VjcmV0\r\n") {
                fs::read(files.join(path)).map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body))
            } else {
                ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=x", Vec::new())
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    url
}

#[test]
fn a_remote_behind_a_proxy_gets_the_password() {
    let repository = repository();
    let proxy = proxy(&repository);
    for (password, expected) in [("secret", &["base", "dev", "v1"][..]), ("other", &[])] {
        let cache = tempfile::tempdir().unwrap();
        let options = map! {
            "fileserver_backend" => list!["gitfs"], "gitfs_remotes" => list!["http://repository.invalid/x.git"],
            "gitfs_proxy" => proxy.as_str(), "gitfs_user" => "me", "gitfs_password" => password,
            "gitfs_insecure_auth" => true,
        };
        let gitfs = Gitfs::of(&options, cache.path()).unwrap().unwrap();
        gitfs.update();
        let mut environments = gitfs.envs();
        environments.sort();
        assert_eq!(environments, expected, "{password}");
    }
}

#[test]
fn invalid_options_of_remotes_are_refused() {
    for (option, value, expected) in [
        ("refspecs", list!["+refs/pull/*/head:refs/pull/*"], "refs/remotes/origin/"),
        ("refspecs", list!["master"], "refs/remotes/origin/"),
        ("depth", "many".into(), "a non-negative integer"),
        ("user", "me".into(), "insecure_auth"),
    ] {
        let all = Map::new();
        let options = RemoteOptions { own: map! {option => value}, all: &all, prefix: "gitfs_" };
        let error = Repository::new("http://h/x.git", &options, Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn options_of_a_remote_that_do_not_exist_are_refused() {
    for (prefix, option, is_known) in [
        ("gitfs_", "saltenv_whitelist", true),
        ("gitfs_", "env", false),
        ("gitfs_", "roots", false),
        ("git_pillar_", "env", true),
        ("git_pillar_", "mountpoint", true),
        ("git_pillar_", "saltenv", false),
        ("git_pillar_", "fall_back", false),
    ] {
        let all = Map::new();
        let options = RemoteOptions { own: map! {option => "x"}, all: &all, prefix };
        let error = Repository::new("file:///x", &options, Path::new("/nonexistent")).err();
        let refusal = format!("the remote file:///x has the unknown option '{option}': expected all_saltenvs, base,");
        let is_refused = error.is_some_and(|error| error.to_string().contains(&refusal));
        assert_eq!(is_refused, !is_known, "{prefix} {option}");
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

#[test]
fn a_remote_that_does_not_answer_does_not_hold_up_the_others() {
    let (repository, cache) = (repository(), tempfile::tempdir().unwrap());
    // It accepts connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = format!("git://{}/repository", silent.local_addr().unwrap());
    let before = std::time::Instant::now();
    let roots = served(&cache, list![map! {hanging => list![map! {"timeout" => 1}]}, url(&repository)], Map::new());
    assert!(before.elapsed() < std::time::Duration::from_secs(60), "{:?}", before.elapsed());
    assert_eq!(text(&roots, "top.sls", "base").as_deref(), Some("top\n"));
    let wrong =
        map! {"fileserver_backend" => list!["gitfs"], "gitfs_remotes" => list!["file:///x"], "gitfs_timeout" => 0};
    let error = Gitfs::of(&wrong, cache.path()).unwrap_err().to_string();
    assert!(error.contains("gitfs_timeout: expected a positive number of seconds, got 0"), "{error}");
}
