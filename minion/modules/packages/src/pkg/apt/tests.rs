//! Transcripts of apt and dpkg.

use brine_value::map;

use super::*;

#[test]
fn output_of_dpkg_is_parsed() {
    let text = "install ok installed bash 5.2.15-2+b8 amd64\ndeinstall ok config-files old 1.0 all\nhold ok installed held 2 all\nrubbish\n";
    let installed = dpkg_lines(text, "installed");
    assert_eq!(
        installed.into_iter().collect::<Vec<_>>(),
        [("bash".into(), "5.2.15-2+b8".into()), ("held".into(), "2".into())]
    );
    assert_eq!(dpkg_lines(text, "config-files").keys().collect::<Vec<_>>(), ["old"]);
}

#[test]
fn output_of_apt_cache_policy_is_parsed() {
    let text = "bash:\n  Installed: 5.2.15-2+b8\n  Candidate: 5.2.15-2+b13\n  Version table:\n     5.2.15-2+b13 500\nvirtual:\n  Installed: (none)\n  Candidate: (none)\n";
    assert_eq!(policy(text).into_iter().collect::<Vec<_>>(), [("bash".into(), "5.2.15-2+b13".into())]);
}

#[test]
fn version_table_is_parsed() {
    let text = "bash:\n  Installed: 5.2.15-2+b8\n  Candidate: 5.2.15-2+b13\n  Version table:\n     5.2.15-2+b13 500\n        500 http://deb.debian.org/debian bookworm/main amd64 Packages\n *** 5.2.15-2+b8 100\n        100 /var/lib/dpkg/status\n";
    assert_eq!(version_table(text), ["5.2.15-2+b13", "5.2.15-2+b8"]);
}

#[test]
fn simulated_changes_are_parsed() {
    let text =
        "Inst bash [5.2-1] (5.2-2 Debian:12/stable [amd64])\nInst new (1.0 Debian:12 [amd64])\nConf bash (5.2-2 x)\n";
    assert_eq!(planned(text), Versions::from([("bash".into(), "5.2-2".into())]));
}

#[test]
fn output_of_apt_get_update_is_parsed() {
    let text = "Hit:1 http://deb.debian.org/debian bookworm InRelease\nGet:2 http://deb.debian.org/debian bookworm-updates InRelease [55.4 kB]\nErr:3 http://x y\nReading package lists...\n";
    let expected = map! {
        "http://deb.debian.org/debian bookworm InRelease" => Value::Nil,
        "http://deb.debian.org/debian bookworm-updates InRelease" => true,
        "http://x y" => false,
    };
    assert_eq!(refreshed(text), expected);
}

#[test]
fn the_install_command_names_versions() {
    let desired = [("a".to_owned(), None), ("b".to_owned(), Some("2-1".to_owned()))];
    insta::assert_snapshot!(install_command(&desired, &Options::default()).join(" "), @r#"apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef --allow-downgrades install a b=2-1"#);
    let options = Options {
        from: vec!["sid".into()],
        skip_verify: true,
        reinstall: true,
        recommends: Some(false),
        only_upgrade: true,
        force_conf_new: true,
        ..Options::default()
    };
    insta::assert_snapshot!(install_command(&desired[..1], &options).join(" "), @"apt-get -q -y -o DPkg::Options::=--force-confnew --no-install-recommends --only-upgrade --allow-unauthenticated --reinstall -t sid install a");
}

#[test]
fn error_output_is_reported() {
    let output = Output {
        pid: 1,
        retcode: 100,
        stdout: String::new(),
        stderr: "W: x\nE: Unable to locate package q".into(),
        timed_out: false,
    };
    assert_eq!(error_output(&output), ["W: x\nE: Unable to locate package q"]);
    assert_eq!(error_output(&Output { retcode: 0, ..output }), Vec::<String>::new());
}

#[test]
fn packages_are_only_downloaded_with_download_only() {
    let desired = [("a".to_owned(), None)];
    let options = Options { download_only: true, ..Options::default() };
    let command = install_command(&desired, &options);
    assert!(command.ends_with(&["--download-only", "install", "a"].map(str::to_owned)), "{command:?}");
    assert!(!install_command(&desired, &Options::default()).contains(&"--download-only".to_owned()));
}

#[test]
fn upgrades_are_limited_by_options() {
    for (options, words) in [
        (Options::default(), ""),
        (Options { download_only: true, ..Options::default() }, "--download-only"),
        (Options { allow_downgrades: true, dry_run: true, ..Options::default() }, "--allow-downgrades --dry-run"),
    ] {
        assert_eq!(partial(&options).collect::<Vec<_>>().join(" "), words);
    }
}

#[test]
fn lists_are_current_for_the_given_time() {
    let directory = tempfile::tempdir().unwrap();
    assert!(is_current(directory.path(), 60));
    assert!(!is_current(directory.path(), 0));
    assert!(!is_current(Path::new("/nonexistent"), 60));
}

#[test]
fn the_entry_of_the_named_file_is_changed() {
    let line = sources::Source::line("deb http://a s m");
    let list = ["a.list", "b.list", "b.sources"].map(|file| sources::Source::for_file(&line, Some(file)));
    let is_source = |source: &sources::Source| source.uris() == ["http://a"];
    for (file, expected) in
        [(None, 0), (Some("a.list"), 0), (Some("b.list"), 1), (Some("b.sources"), 2), (Some("new.list"), 0)]
    {
        assert_eq!(repositories::position(&list, file, is_source), Some(expected), "{file:?}");
    }
    assert_eq!(repositories::position(&list, Some("b.list"), |_| false), None);
}

/// Salt's results of `pkg.mod_repo` for a line that a file has and the line that is desired.
#[test]
fn options_of_a_line_are_those_of_the_desired_one() {
    for (have, desired, written) in [
        ("deb [arch=amd64] http://a/d stable main", "deb http://a/d stable main", "deb http://a/d stable main"),
        (
            "deb [signed-by=/k.gpg arch=i386] http://a s m",
            "deb [arch=amd64] http://a s m",
            "deb [arch=amd64] http://a s m",
        ),
        ("deb http://a s m", "deb [arch=amd64 lang=de] http://a s m", "deb [arch=amd64 lang=de] http://a s m"),
        ("deb [trusted=yes lang=de] http://a s m", "deb http://a s m", "deb [trusted=yes] http://a s m"),
        ("deb [trusted=yes] http://a s m", "deb [trusted=no] http://a s m", "deb http://a s m"),
    ] {
        let mut source = sources::Source::line(have);
        source.replace_options(&sources::Source::line(desired));
        assert_eq!(source.show(), written, "{have} {desired}");
    }
}
