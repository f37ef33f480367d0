use std::os::unix::fs::symlink;

use brine_value::{list, map};
use tempfile::TempDir;

use super::*;

/// Creates two roots for `base`, one for any other environment, and files outside of all roots.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for path in ["base/sub/deep", "base/empty", "out/dir", "two", "envs/dev"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    for path in [
        "base/top.sls",
        "base/sub/a",
        "base/.hidden",
        "base/x.swp",
        "base/what?",
        "out/secret",
        "out/dir/f",
        "two/top.sls",
        "two/b",
        "envs/dev/top.sls",
    ] {
        fs::write(at(path), path).unwrap();
    }
    for (target, link) in [
        ("top.sls", "l_in"),
        ("../out/secret", "l_out"),
        ("nowhere", "l_broken"),
        ("sub", "d_in"),
        ("../out/dir", "d_out"),
        (".", "sub/loop"),
    ] {
        symlink(target, at("base").join(link)).unwrap();
    }
    symlink(at("out/secret"), at("base/l_abs")).unwrap();
    dir
}

fn roots(dir: &TempDir, options: &Options) -> Roots {
    let at = |path: &str| dir.path().join(path);
    let map = [
        ("base".to_owned(), vec![at("base"), at("missing"), at("two")]),
        ("__env__".to_owned(), vec![at("envs/__env__")]),
    ];
    Roots::new(map.into_iter().collect(), options)
}

fn content_of(roots: &Roots, path: &str, saltenv: &str) -> Option<String> {
    let entry = roots.find(path, saltenv)?;
    assert!(entry.metadata.is_file());
    Some(fs::read_to_string(entry.path).unwrap())
}

#[test]
fn a_file_is_found_in_the_first_root_that_has_it() {
    let dir = tree();
    let roots = roots(&dir, &Options::default());
    for (path, saltenv, expected) in [
        ("top.sls", "base", Some("base/top.sls")),
        ("./top.sls", "base", Some("base/top.sls")),
        ("sub//a", "base", Some("base/sub/a")),
        ("b", "base", Some("two/b")),
        (".hidden", "base", Some("base/.hidden")),
        ("l_in", "base", Some("base/top.sls")),
        ("d_in/a", "base", Some("base/sub/a")),
        ("top.sls", "dev", Some("envs/dev/top.sls")),
        ("top.sls?saltenv=dev", "base", Some("envs/dev/top.sls")),
        ("top.sls?x=1&saltenv=dev", "base", Some("envs/dev/top.sls")),
        ("|top.sls", "base", Some("base/top.sls")),
        ("|what?", "base", Some("base/what?")),
        ("what?", "base", None),
        ("top.sls", "none", None),
        ("sub", "base", None),
        ("l_broken", "base", None),
        ("", "base", None),
    ] {
        assert_eq!(content_of(&roots, path, saltenv).as_deref(), expected, "{path} in {saltenv}");
    }
    assert_eq!(roots.envs(), ["__env__", "base"]);
}

#[test]
fn paths_do_not_escape_the_roots() {
    let dir = tree();
    let absolute = dir.path().join("out/secret");
    for follow_symlinks in [true, false] {
        let roots = roots(&dir, &Options { follow_symlinks, ..Options::default() });
        for (path, saltenv) in [
            ("../out/secret", "base"),
            ("sub/../../out/secret", "base"),
            ("sub/../top.sls", "base"),
            ("|../out/secret", "base"),
            ("../out/secret?saltenv=base", "base"),
            (absolute.to_str().unwrap(), "base"),
            ("top.sls\0", "base"),
            ("top.sls\0.png", "base"),
            ("secret", "../out"),
            ("secret?saltenv=../out", "base"),
            ("secret", "dev/../../out"),
            ("top.sls", "dev\0"),
            ("top.sls", ""),
            (absolute.strip_prefix("/").unwrap().to_str().unwrap(), "/"),
        ] {
            assert_eq!(content_of(&roots, path, saltenv), None, "{path:?} in {saltenv:?}");
            assert_eq!(roots.read_chunk(path, saltenv, 0, BUFFER_SIZE).unwrap(), None);
            assert_eq!(roots.hash(path, saltenv).unwrap(), None);
        }
        assert_eq!(roots.lists("../out"), FileLists::default());
        assert_eq!(roots.lists("dev/../../out"), FileLists::default());
    }
}

#[test]
fn links_leave_their_root_only_with_follow_symlinks() {
    let dir = tree();
    let following = roots(&dir, &Options::default());
    let staying = roots(&dir, &Options { follow_symlinks: false, ..Options::default() });
    for (path, expected) in [("l_out", "out/secret"), ("l_abs", "out/secret"), ("d_out/f", "out/dir/f")] {
        assert_eq!(content_of(&following, path, "base").as_deref(), Some(expected), "{path}");
        assert_eq!(content_of(&staying, path, "base"), None, "{path}");
    }
    assert_eq!(content_of(&staying, "d_in/a", "base").as_deref(), Some("base/sub/a"));
}

#[test]
fn a_file_is_read_in_parts_until_an_empty_one() {
    let dir = tree();
    let roots = roots(&dir, &Options::default());
    let read = |loc| roots.read_chunk("./top.sls", "base", loc, 5).unwrap().unwrap();
    for (loc, data) in [(0, "base/"), (5, "top.s"), (10, "ls"), (12, ""), (13, ""), (u64::MAX, "")] {
        let chunk = Chunk { data: data.into(), relative: "top.sls".into() };
        assert_eq!(read(loc), chunk, "{loc}");
    }
}

#[test]
fn hashes_and_stats_are_those_of_the_file() {
    let dir = tree();
    let roots = roots(&dir, &Options::default());
    let hash = roots.hash("top.sls", "base").unwrap().unwrap();
    insta::assert_snapshot!(hash, @"9292818f9afc6e422f5285f0dc84a64dcfdedabd025c15ad2687af5c8dabca68");
    let stat = roots.find("top.sls", "base").unwrap().stat();
    assert_eq!((stat[0] & 0o170_000, stat[6]), (0o100_000, 12));
}

#[test]
fn lists_match_salt() {
    let dir = tree();
    let roots = roots(&dir, &Options::default());
    insta::assert_snapshot!(roots.file_list("base", "").join(" "), @".hidden b d_in/a d_out/f l_abs l_broken l_in l_out sub/a top.sls what? x.swp");
    insta::assert_snapshot!(roots.dir_list("base", "").join(" "), @"d_in d_in/deep d_in/loop d_out empty sub sub/deep sub/loop");
    insta::assert_snapshot!(roots.empty_dirs("base", "").join(" "), @"d_in/deep empty sub/deep");
    let links: Vec<_> =
        roots.symlink_list("base", "").into_iter().map(|(link, target)| format!("{link}>{target}")).collect();
    insta::assert_snapshot!(links.join(" "), @"d_in>sub d_in/loop>. d_out>../out/dir l_broken>nowhere l_in>top.sls l_out>../out/secret sub/loop>.");
}

#[test]
fn links_that_are_not_followed_are_listed_and_not_walked() {
    let dir = tree();
    let roots = roots(&dir, &Options { follow_symlinks: false, ..Options::default() });
    assert!(roots.file_list("base", "d_").is_empty());
    assert_eq!(roots.dir_list("base", "d_"), ["d_in", "d_out"]);
    assert!(roots.symlink_list("base", "l_").contains_key("l_abs"));
}

#[test]
fn links_that_are_ignored_are_not_listed() {
    let dir = tree();
    let roots = roots(&dir, &Options { ignore_symlinks: true, follow_symlinks: false, ..Options::default() });
    assert_eq!(roots.dir_list("base", ""), ["empty", "sub", "sub/deep"]);
    assert_eq!(roots.file_list("base", "l_"), [""; 0]);
    assert!(roots.symlink_list("base", "").is_empty());
}

#[test]
fn a_prefix_is_the_start_of_a_path_without_slashes_around_it() {
    let dir = tree();
    let roots = roots(&dir, &Options::default());
    for (prefix, expected) in [("su", &["sub/a"][..]), ("/sub/", &["sub/a"]), ("top", &["top.sls"]), ("none", &[])] {
        assert_eq!(roots.file_list("base", prefix), expected, "{prefix}");
    }
    assert_eq!(roots.empty_dirs("base", "sub"), ["sub/deep"]);
    assert_eq!(roots.symlink_list("base", "/sub/").into_iter().collect::<Vec<_>>(), [("sub/loop".into(), ".".into())]);
    assert_eq!(roots.file_list("dev", ""), ["top.sls"]);
}

#[test]
fn ignored_files_are_neither_found_nor_listed() {
    let dir = tree();
    let options = Options {
        ignore_globs: vec!["*.swp".into(), "sub/*".into()],
        ignore_regexes: vec![r"/\.hid".into(), "^sub$".into(), "(".into()],
        ..Options::default()
    };
    let roots = roots(&dir, &options);
    // Finding matches the full path, so that these two rules do not apply, as in Salt.
    for (path, is_found) in [("x.swp", false), (".hidden", false), ("sub/a", true), ("top.sls", true)] {
        assert_eq!(roots.find(path, "base").is_some(), is_found, "{path}");
    }
    let files = roots.file_list("base", "");
    assert!(!files.iter().any(|path| path == "x.swp" || path.starts_with("sub/")), "{files:?}");
    assert!(files.contains(&".hidden".to_owned()) && files.contains(&"d_in/a".to_owned()), "{files:?}");
    assert!(!roots.dir_list("base", "").contains(&"sub".to_owned()));
}

proptest::proptest! {
    #[test]
    fn no_path_is_found_outside_of_the_roots(path in "[./a|?\\x00]{0,8}(secret)?(\\?saltenv=[./]{0,4}(out)?)?", saltenv in "[./]{0,3}(out|base|dev)?") {
        static DIR: std::sync::LazyLock<TempDir> = std::sync::LazyLock::new(tree);
        let roots = roots(&DIR, &Options::default());
        if let Some(text) = content_of(&roots, &path, &saltenv) {
            proptest::prop_assert!(!text.starts_with("out"), "{} in {}", path, saltenv);
        }
    }
}

/// Creates the cache of a master with pushed files, and a file server of it with these options.
fn pushed(options: Map) -> (TempDir, Roots) {
    let dir = tempfile::tempdir().unwrap();
    for path in ["web1/files/etc/hosts", "web1/files/top.sls", "db1/files/var/log/a", "_modules/files/evil.py"] {
        let path = dir.path().join("minions").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "pushed").unwrap();
    }
    fs::write(dir.path().join("minions/web1/data.p"), "").unwrap();
    symlink("/etc/passwd", dir.path().join("minions/web1/files/link")).unwrap();
    let mut config = map! {"fileserver_backend" => list!["minion"]};
    config.extend(options);
    let roots = configured(IndexMap::new(), &Options::default(), &config, dir.path()).unwrap();
    (dir, roots)
}

#[test]
fn pushed_files_are_served_below_the_id_of_their_minion() {
    let at_the_top = map! {};
    let mounted = map! {"minionfs_mountpoint" => "salt://pushed/all", "minionfs_env" => "prod"};
    let cases = [
        (&at_the_top, "web1/etc/hosts", "base", true),
        (&at_the_top, "db1/var/log/a", "base", true),
        (&at_the_top, "web1/etc/hosts", "prod", false),
        (&at_the_top, "web1", "base", false),
        (&at_the_top, "web2/etc/hosts", "base", false),
        // Top files, directories of modules, and files outside of the pushed ones are not served.
        (&at_the_top, "web1/top.sls", "base", false),
        (&at_the_top, "_modules/evil.py", "base", false),
        (&at_the_top, "web1/link", "base", false),
        (&at_the_top, "web1/../data.p", "base", false),
        (&at_the_top, "../minions/web1/data.p", "base", false),
        (&mounted, "pushed/all/web1/etc/hosts", "prod", true),
        (&mounted, "pushed/all/web1/etc/hosts", "base", false),
        (&mounted, "web1/etc/hosts", "prod", false),
        (&mounted, "pushed/allweb1/etc/hosts", "prod", false),
        // Below a mount point such an id is harmless.
        (&mounted, "pushed/all/_modules/evil.py", "prod", true),
    ];
    for (options, path, saltenv, is_served) in cases {
        let (_dir, roots) = pushed(options.clone());
        assert_eq!(content_of(&roots, path, saltenv).is_some(), is_served, "{path} of {saltenv}");
    }
}

#[test]
fn pushed_files_of_exposed_minions_are_listed() {
    let cases = [
        (map! {}, vec!["db1/var/log/a", "web1/etc/hosts"]),
        (map! {"minionfs_whitelist" => list!["web*"]}, vec!["web1/etc/hosts"]),
        (map! {"minionfs_blacklist" => list!["web\\d"]}, vec!["db1/var/log/a"]),
        (map! {"minionfs_whitelist" => list!["*1"], "minionfs_blacklist" => list!["db1"]}, vec!["web1/etc/hosts"]),
        (map! {"minionfs_mountpoint" => "/p/", "minionfs_whitelist" => list!["db1"]}, vec!["p/db1/var/log/a"]),
    ];
    for (options, files) in cases {
        let (_dir, roots) = pushed(options.clone());
        assert_eq!(roots.file_list("base", ""), files, "{options:?}");
        assert_eq!(roots.envs(), ["base"]);
    }
    let (_dir, roots) = pushed(map! {});
    assert_eq!(roots.dir_list("base", "web1"), ["web1", "web1/etc"]);
    assert_eq!(roots.file_list("base", "db1/var"), ["db1/var/log/a"]);
}

#[test]
fn custom_modules_are_listed_without_other_files() {
    let dir = tree();
    for path in ["base/_modules/deep", "base/_states", "base/sub/_modules", "two/_modules"] {
        fs::create_dir_all(dir.path().join(path)).unwrap();
    }
    for path in [
        "base/_modules/a.py",
        "base/_modules/deep/b.py",
        "base/_states/c.py",
        "base/sub/_modules/no.py",
        "base/_no.py",
        "two/_modules/d.py",
    ] {
        fs::write(dir.path().join(path), path).unwrap();
    }
    let roots = roots(&dir, &Options::default());
    let listed = roots.custom_modules("base");
    assert_eq!(listed, ["_modules/a.py", "_modules/d.py", "_modules/deep/b.py", "_states/c.py"]);
    let all = roots.file_list("base", "").into_iter().filter(|path| path.starts_with('_') && path.contains('/'));
    assert_eq!(listed, all.collect::<Vec<_>>());
}
