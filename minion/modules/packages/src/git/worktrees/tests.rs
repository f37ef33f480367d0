use std::process::Command;

use super::*;
use crate::testing;

#[test]
fn listed_worktrees_are_parsed() {
    let text = "worktree /r\nbare\n\nworktree /r/a\nHEAD 1\nbranch refs/heads/x/y\n\nworktree /r/b c\nHEAD 2\ndetached\nlocked why\n";
    let worktree = |path: &str, head: &str, branch: Option<&str>| Worktree {
        path: path.into(),
        head: head.into(),
        branch: branch.map(str::to_owned),
    };
    assert_eq!(parse(text), [worktree("/r/a", "1", Some("x/y")), worktree("/r/b c", "2", None)]);
    assert_eq!(parse(""), []);
}

#[test]
fn worktrees_are_added_listed_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (repo, linked) = (directory.path().join("repo"), directory.path().join("hotfix"));
    let (repo, linked) = (repo.to_str().unwrap(), linked.to_str().unwrap());
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
        assert!(Command::new("git").args(identity).args(words).output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", repo]);
    git(&["-C", repo, "commit", "--allow-empty", "-m", "first"]);
    let context = testing::context(&[]);
    let call = |fun: &str, positional: &[&str], keyword: Map| {
        let positional = positional.iter().map(|word| (*word).into()).collect();
        context.call(&format!("git.{fun}"), Args { positional, keyword })
    };
    call("worktree_add", &[repo, linked], map! {}).unwrap();
    let listed = call("list_worktrees", &[repo], map! {}).unwrap();
    assert_eq!(listed.get(linked).and_then(|about| about.get("branch")), Some(&"hotfix".into()), "{listed}");
    assert_eq!(listed.as_map().unwrap().len(), 2);

    let archive = directory.path().join("all.tar");
    assert_eq!(call("archive", &[repo, archive.to_str().unwrap()], map! {}).unwrap(), true.into());
    assert!(archive.exists());
    assert_eq!(call("merge_tree", &[repo, "HEAD", "hotfix"], map! {}).unwrap(), "".into());

    assert_eq!(call("worktree_rm", &[linked], map! {}).unwrap(), true.into());
    let stale = call("list_worktrees", &[repo], map! {"stale" => true}).unwrap();
    assert_eq!(stale.as_map().unwrap().keys().collect::<Vec<_>>(), [&Value::from(linked)]);
    assert!(call("worktree_prune", &[repo], map! {}).unwrap().to_string().contains("hotfix"));

    for (fun, words, named, expected) in [
        ("worktree_rm", vec![repo], map! {}, "is not a git worktree"),
        ("worktree_rm", vec![linked], map! {}, "does not exist"),
        ("worktree_add", vec![repo, "--force"], map! {}, "starts with '-'"),
        ("worktree_add", vec![repo, "x"], map! {"branch" => "y", "detach" => true}, "Only one of"),
        ("archive", vec![repo, "/tmp/never", "--exec=sh"], map! {}, "starts with '-'"),
        ("merge_tree", vec![repo, "HEAD", "nosuch"], map! {}, "Unable to determine merge base"),
        ("list_worktrees", vec![repo], map! {"all" => true, "stale" => true}, "cannot both be set"),
    ] {
        let error = call(fun, &words, named).unwrap_err().to_string();
        assert!(error.contains(expected), "{fun}: {error}");
    }
}
