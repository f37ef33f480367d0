//! dnf, by transcripts of the output of dnf 4.14 and rpm 4.18, shortened.

use brine_function::Args;
use brine_value::json::to_json;
use brine_value::{Map, Value, list, map};

use crate::testing::{self, Scripted};

fn grains() -> Map {
    map! {"id" => "m", "os" => "CentOS", "os_family" => "RedHat", "osarch" => "x86_64", "osmajorrelease" => 9}
}

/// Calls a function and returns the commands it ran and its result.
fn transcript_of(transcript: &str, function: &str, args: Map) -> String {
    let scripted = Scripted::new(transcript);
    let context = testing::context_with(grains(), std::sync::Arc::clone(&scripted));
    let report = match context.call(function, Args::keyword(args)) {
        Ok(value) => to_json(&value),
        Err(error) => error.to_string(),
    };
    let ran = scripted.ran();
    // Queries of installed packages are omitted.
    let ran: Vec<&str> = ran.lines().filter(|line| line.starts_with("dnf")).collect();
    format!("{}\n{report}", ran.join("\n"))
}

/// A host with two packages.
const TWO_PACKAGES: &str = "
    $ rpm -qa ...
    | brine-one_|-(none)_|-1.0_|-1_|-noarch_|-1795275166
    | brine-two_|-2_|-1.0_|-3_|-noarch_|-1795275166
";
const NO_LOCKS: &str = "
    $ dnf versionlock list
    | Last metadata expiration check: 0:00:03 ago on Sat Nov 21 15:32:45 2026.
";
const PLUGIN: &str = "
    | python3-dnf-plugin-versionlock_|-(none)_|-4.3_|-1_|-noarch_|-1795275166
";

#[test]
fn installed_packages_and_upgrades_are_listed() {
    let script = TWO_PACKAGES.to_owned()
        + "
        $ dnf --quiet --assumeyes clean expire-cache
        $ dnf --quiet --assumeyes check-update
        $ dnf --quiet list available brine-one brine-two nosuch
        | Available Packages
        | brine-one.noarch                          1.1-1                             case
        | brine-two.noarch                          2:1.0-3                           case
        $ dnf --quiet list available nosuch
        ! Error: No matching Packages to list
        = 1
        $ dnf --quiet '--disablerepo=*' --enablerepo=other list available brine-one
        | Available Packages
        | brine-one.noarch                          1.5-1                             other
        $ dnf --quiet list --upgrades
        | Available Upgrades
        | brine-one.noarch                          1.1-1                             case
        | a-package-with-a-very-long-name.noarch
        |                                           2:1.2-1                           case
    ";
    let scripted = Scripted::new(&script);
    let context = testing::context_with(grains(), scripted);
    let call = |function: &str, names: &[&str], kwargs: Map| {
        let args = Args { positional: names.iter().map(|name| Value::from(*name)).collect(), keyword: kwargs };
        to_json(&context.call(function, args).unwrap())
    };
    let report = [
        call("pkg.list_pkgs", &[], Map::new()),
        call("pkg.list_pkgs", &[], map! {"versions_as_list" => true}),
        call("pkg.list_pkgs", &[], map! {"attr" => "epoch,release"}),
        call("pkg.list_pkgs", &[], map! {"removed" => true}),
        call("pkg.version", &["brine-two"], Map::new()),
        call("pkg.version", &["brine-*", "nosuch"], Map::new()),
        call("pkg.latest_version", &["brine-one", "brine-two", "nosuch"], Map::new()),
        call("pkg.latest_version", &["nosuch"], Map::new()),
        call("pkg.latest_version", &["brine-one"], map! {"fromrepo" => "other", "refresh" => false}),
        call("pkg.list_upgrades", &[], map! {"refresh" => false}),
    ];
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn packages_are_installed_in_given_versions() {
    let one = |version: &str| map! {"name" => "brine-one", "version" => version};
    let script = format!(
        "{TWO_PACKAGES}
        $ dnf -y --best --allowerasing install brine-one-1.1-1
        $ dnf -y downgrade brine-one-0.9
        $ dnf -y reinstall brine-one-1.0-1
        $ dnf -y --best --allowerasing install brine-two-1.2-1
        $ dnf -y --best --allowerasing --disablerepo=a --enablerepo=b --nogpgcheck install brine-new
        $ dnf --quiet --showduplicates list available brine-one
        | Available Packages
        | brine-one.noarch                           1.0-1                           case
        | brine-one.noarch                           1.1-1                           case
        $ dnf --quiet --showduplicates list available nosuch
        ! Error: No matching Packages to list
        = 1
        $ dnf -y --best --allowerasing install nosuch
        | No match for argument: nosuch
        ! Error: Unable to find a match: nosuch
        = 1
        "
    );
    let report = [
        transcript_of(&script, "pkg.install", one("1.1-1")),
        transcript_of(&script, "pkg.install", one("0.9")),
        transcript_of(&script, "pkg.install", map! {"name" => "brine-one", "version" => "1.0-1", "reinstall" => true}),
        transcript_of(&script, "pkg.install", map! {"pkgs" => list![map! {"brine-two" => "2:1.2-1"}]}),
        transcript_of(&script, "pkg.install", one(">1.0-1, <2")),
        transcript_of(&script, "pkg.install", one("1.1*")),
        transcript_of(&script, "pkg.install", one(">=9")),
        transcript_of(&script, "pkg.install", map! {"name" => "nosuch", "version" => "9*"}),
        transcript_of(&script, "pkg.install", map! {"name" => "nosuch"}),
        transcript_of(
            &script,
            "pkg.install",
            map! {"name" => "brine-new", "disablerepo" => "a", "enablerepo" => "b", "skip_verify" => true},
        ),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn packages_are_removed() {
    let script = format!(
        "{TWO_PACKAGES}{}
        $ dnf -y remove brine-two
        $ dnf -y remove brine-two-1.0-3
        ",
        TWO_PACKAGES.lines().filter(|line| !line.contains("brine-two")).collect::<Vec<_>>().join("\n")
    );
    let report = [
        transcript_of(&script, "pkg.remove", map! {"name" => "brine-two,nosuch"}),
        transcript_of(&script, "pkg.purge", map! {"name" => "brine-t*"}),
        transcript_of(&script, "pkg.remove", map! {"name" => "brine-two", "version" => "2:1.0-3"}),
        transcript_of(TWO_PACKAGES, "pkg.remove", map! {"name" => "brine-two", "version" => "9"}),
        transcript_of(TWO_PACKAGES, "pkg.remove", map! {"name" => "nosuch"}),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn packages_are_held() {
    let locked = format!(
        "{TWO_PACKAGES}{PLUGIN}
        $ dnf versionlock list
        | brine-two-2:1.0-3.*
        $ dnf versionlock add brine-one
        | Adding versionlock on: brine-one-0:1.0-1.*
        $ dnf versionlock add brine-two
        $ dnf versionlock delete brine-two
        | Deleting versionlock for: brine-two-2:1.0-3.*
        $ dnf -y --best --allowerasing install brine-two-1.2-1
        "
    );
    let newer = || map! {"name" => "brine-two", "version" => "2:1.2-1"};
    let mut forced = newer();
    forced.insert("update_holds".into(), true.into());
    let report = [
        transcript_of(&locked, "pkg.hold", map! {"pkgs" => list!["brine-one", "brine-two"]}),
        transcript_of(&locked, "pkg.unhold", map! {"pkgs" => list!["brine-one", "brine-two"]}),
        transcript_of(&locked, "pkg.list_holds", Map::new()),
        transcript_of(&locked, "pkg.list_holds", map! {"full" => false}),
        transcript_of(&locked, "pkg.install", newer()),
        transcript_of(&locked, "pkg.install", forced),
        transcript_of(&format!("{TWO_PACKAGES}{NO_LOCKS}"), "pkg.hold", map! {"name" => "brine-one"}),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn repositories_are_queried() {
    let clean = "
        $ dnf --quiet --assumeyes clean expire-cache
        $ dnf --quiet --assumeyes check-update
    ";
    for (status, expected) in [("", "null"), ("= 100", "true"), ("= 1", "false")] {
        let report = transcript_of(&format!("{clean}{status}"), "pkg.refresh_db", Map::new());
        assert_eq!(report.lines().last(), Some(expected), "{status}");
    }
}

#[test]
fn yum_and_tdnf_are_called_with_their_options() {
    let script = "
        $ rpm -qa ...
        | brine-one_|-(none)_|-1.0_|-1_|-noarch_|-1795275166
        $ yum -y install brine-new
        $ yum --quiet list updates
    ";
    let scripted = Scripted::new(script);
    let context = testing::context_with(grains(), std::sync::Arc::clone(&scripted));
    context.call("pkg.install", Args::keyword(map! {"name" => "brine-new"})).unwrap();
    context.call("pkg.list_upgrades", Args::keyword(map! {"refresh" => false})).unwrap();
    let ran = scripted.ran();
    assert_eq!(
        ran.lines().filter(|line| line.starts_with("yum")).collect::<Vec<_>>(),
        ["yum -y install brine-new", "yum --quiet list updates"]
    );
}

#[test]
fn missing_package_manager_is_an_error() {
    let context = testing::context_with(grains(), Scripted::new(""));
    let report = context.call("pkg.refresh_db", Args::default()).unwrap_err().to_string();
    assert_eq!(report, "ERROR: neither dnf nor yum is installed: packages of this host cannot be managed");
    let context = testing::context_with(map! {"os_family" => "Plan9"}, Scripted::new(""));
    let report = context.call("pkg.list_pkgs", Args::default()).unwrap_err().to_string();
    assert_eq!(
        report,
        "ERROR: the os_family 'Plan9' has no supported package manager: expected apt, dnf, zypper, apk or pacman"
    );
}

/// Runs `pkgrepo` and the functions on repositories in a temporary directory.
#[test]
fn repositories_are_managed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    std::fs::write(
        directory.path().join("case.repo"),
        "# of a test\n[case]\nname=Case\nbaseurl=http://a\n\n[other]\nname=Other\nmirrorlist=http://b\nenabled=0\n",
    )
    .unwrap();
    let context = testing::context_with(grains(), Scripted::new(""));
    let state = |function: &str, args: Map| {
        let state = brine_context::StateContext { call: context.clone(), ..testing::state_context(false, &[]) };
        let mut args = args;
        args.insert("basedir".into(), path.as_str().into());
        let outcome = context.minion.states.call(&state, function, Args::keyword(args)).unwrap();
        let report =
            ["result", "comment", "changes"].map(|key| to_json(&outcome.get(key).cloned().unwrap_or_default()));
        report.join(" | ").replace(&path, "FOLDER")
    };
    let call = |function: &str, repo: &str, args: Map| {
        let mut args = args;
        args.insert("basedir".into(), path.as_str().into());
        let result = context.call(function, Args { positional: vec![repo.into()], keyword: args });
        result.map_or_else(|error| error.to_string(), |value| to_json(&value)).replace(&path, "FOLDER")
    };
    let show = || {
        let mut files: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|file| {
            format!("--- {}\n{}", file.file_name().unwrap().display(), std::fs::read_to_string(file).unwrap())
        });
        texts.collect::<String>()
    };
    let new = || map! {"name" => "new", "humanname" => "New", "baseurl" => "http://c/$releasever", "gpgcheck" => true};
    let mut newer = new();
    newer.insert("gpgcheck".into(), 0.into());
    newer.insert("comments".into(), list!["why", "#not"]);
    let report = [
        state("pkgrepo.managed", new()),
        state("pkgrepo.managed", new()),
        state("pkgrepo.managed", newer),
        state("pkgrepo.managed", map! {"name" => "case", "humanname" => "Case", "baseurl" => "http://a"}),
        state("pkgrepo.managed", map! {"name" => "case", "mirrorlist" => "http://d", "disabled" => true}),
        state("pkgrepo.managed", map! {"name" => "bad"}),
        state("pkgrepo.managed", map! {"name" => "bad", "baseurl" => "a", "mirrorlist" => "b"}),
        call("pkg.get_repo", "new", Map::new()),
        call("pkg.mod_repo", "other", map! {"enabled" => true, "cost" => 5}),
        call("pkg.mod_repo", "other", map! {"mirrorlist" => ""}),
        show(),
        state("pkgrepo.absent", map! {"name" => "other"}),
        state("pkgrepo.absent", map! {"name" => "new"}),
        state("pkgrepo.absent", map! {"name" => "new"}),
        state("pkgrepo.absent", map! {"name" => "case", "keyid" => "1"}),
        call("pkg.del_repo", "nosuch", Map::new()),
        show(),
    ];
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn attributes_of_rpm_packages_are_returned() {
    let fields = |name: &str, version: &str, more: &str| {
        format!("{name}\x1f{version}\x1f1795275166\x1f1795275166\x1fx.src.rpm\x1f{version}-1\x1f{more}\x1f\x1e")
    };
    let one = fields("kernel", "6.1", "Two\\n lines");
    let output =
        [&one, &fields("kernel", "6.12", "New"), &fields("gpg-pubkey", "1", "Key"), "package no is not installed"];
    let transcript = format!("$ rpm ...\n| {}", output.concat());
    let about = |args: Map| {
        let context = testing::context_with(grains(), Scripted::new(&transcript));
        let attr = "version,install_date,install_date_time_t,source_rpm,description";
        let mut keyword = map! {"attr" => attr};
        keyword.extend(args);
        let args = Args { positional: vec!["kernel".into(), "no".into()], keyword };
        to_json(&context.call("pkg.info_installed", args).unwrap())
    };
    let of = |version: &str, text: &str| {
        format!(
            r#""version": "{version}", "install_date_time_t": 1795275166, "install_date": "2026-11-21T15:32:46Z", "source": "x.src.rpm", "description": "{text}""#
        )
    };
    assert_eq!(about(Map::new()), format!(r#"{{"kernel": {{{}}}}}"#, of("6.12", "New")));
    let all = about(map! {"all_versions" => true});
    let (new, old) = (of("6.12", "New"), of("6.1", "Two\\\\n lines"));
    let expected = format!(r#"{{"kernel": [{{{new}, "edition": "6.12-1"}}, {{{old}, "edition": "6.1-1"}}]}}"#);
    assert_eq!(all, expected);
    let unknown = transcript_of("$ rpm ...", "pkg.info_installed", map! {"attr" => "nothing"});
    assert_eq!(unknown.trim(), "ERROR: No valid attributes found.");
}

#[test]
fn packages_of_groups_are_installed() {
    let script = TWO_PACKAGES.to_owned()
        + NO_LOCKS
        + "
        $ dnf --quiet '--disablerepo=*' --enablerepo=case groupinfo tools
        | Group: Tools
        |  Description: Some tools
        |  Mandatory Packages:
        |    brine-one
        |    brine-new
        |  Default Packages:
        |    brine-two
        |    brine-more
        |  Optional Packages:
        |    brine-other
        $ dnf --quiet '--disablerepo=*' --enablerepo=case groupinfo none
        ! Warning: Group none does not exist.
        $ dnf ...
    ";
    let repo = || map! {"fromrepo" => "case"};
    let with = |more: Map| repo().into_iter().chain(more).collect::<Map>();
    insta::assert_snapshot!(transcript_of(&script, "pkg.group_diff", with(map! {"name" => "tools"})));
    insta::assert_snapshot!(transcript_of(
        &script,
        "pkg.group_install",
        with(map! {"name" => list!["tools"], "skip" => "brine-more"})
    ));
    assert!(
        transcript_of(&script, "pkg.group_info", with(map! {"name" => "none"})).ends_with("Group 'none' not found")
    );
}
