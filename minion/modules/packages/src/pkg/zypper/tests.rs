//! zypper, by transcripts of the output of zypper 1.14 and rpm 4.18, shortened.

use std::sync::Arc;

use brine_function::Args;
use brine_value::json::to_json;
use brine_value::{Map, Value, list, map};

use crate::testing::{self, Scripted};

fn grains() -> Map {
    map! {"id" => "m", "os" => "openSUSE", "os_family" => "Suse", "osarch" => "x86_64"}
}

/// Calls a function and returns the zypper commands it ran and its result.
fn transcript_of(transcript: &str, function: &str, args: Map) -> String {
    let scripted = Scripted::new(transcript);
    let context = testing::context_with(grains(), Arc::clone(&scripted));
    let report = match context.call(function, Args::keyword(args)) {
        Ok(value) => to_json(&value),
        Err(error) => error.to_string(),
    };
    let ran = scripted.ran();
    let ran: Vec<&str> = ran.lines().filter_map(|line| line.strip_prefix("zypper --non-interactive ")).collect();
    format!("{}\n{report}", ran.join("\n"))
}

const TWO_PACKAGES: &str = "
    $ rpm -qa ...
    | brine-one_|-(none)_|-1.0_|-1_|-noarch_|-1795275166
    | brine-two_|-2_|-1.0_|-3_|-noarch_|-1795275166
    | gpg-pubkey_|-(none)_|-39db7c82_|-5847eb1f_|-(none)_|-1795275166
";

#[test]
fn installed_packages_and_upgrades_are_listed() {
    let script = TWO_PACKAGES.to_owned()
        + "
        $ zypper --non-interactive --no-refresh info -t package brine-one brine-two nosuch
        | Loading repository data...
        | Reading installed packages...
        | 
        | Information for package brine-one:
        | ----------------------------------
        | Repository     : Case
        | Name           : brine-one
        | Version        : 1.1-1
        | Installed      : Yes
        | Status         : out-of-date (version 1.0-1 installed)
        | Summary        : A package : of a test
        | 
        | Information for package brine-two:
        | ----------------------------------
        | Name           : brine-two
        | Version        : 2:1.0-3
        | Status         : up-to-date
        | 
        | package 'nosuch' not found.
        $ zypper --non-interactive refresh --force
        $ zypper --non-interactive --xmlout --no-refresh list-updates
        | <?xml version='1.0'?>
        | <stream>
        | <update-status version=\"0.6\"><update-list>
        | <update kind=\"package\" name=\"brine-one\" edition=\"1.1-1\" arch=\"noarch\" edition-old=\"1.0-1\"><summary>A</summary></update>
        | <update kind=\"patch\" name=\"a-patch\" edition=\"1\"></update></update-list>
        | </update-status>
        | </stream>
    ";
    let context = testing::context_with(grains(), Scripted::new(&script));
    let call = |function: &str, names: &[&str], kwargs: Map| {
        let args = Args { positional: names.iter().map(|name| Value::from(*name)).collect(), keyword: kwargs };
        to_json(&context.call(function, args).unwrap())
    };
    let report = [
        call("pkg.list_pkgs", &[], Map::new()),
        call("pkg.latest_version", &["brine-one", "brine-two", "nosuch"], map! {"refresh" => false}),
        call("pkg.list_upgrades", &[], Map::new()),
    ];
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn packages_are_installed_in_given_versions() {
    let script = TWO_PACKAGES.to_owned()
        + "
        $ zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name brine-one=1.1-1 brine-new
        $ zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name brine-one=0.9-1
        | Loading repository data...
        | The selected package 'brine-one-0.9-1.noarch' from repository 'Case' has lower version than the installed one. Use 'zypper install --oldpackage brine-one-0.9-1.noarch' to force installation of the package.
        | Nothing to do.
        $ zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name --force brine-one-0.9-1.noarch
        $ zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name nosuch
        | Loading repository data...
        ! Package 'nosuch' not found.
        = 104
        $ zypper --non-interactive --no-refresh --no-gpg-checks install --auto-agree-with-licenses --name --force --force-resolution --from other --no-recommends brine-new
        $ zypper --non-interactive --xmlout --no-refresh se -xv brine-one
        | <stream><search-result version=\"0.0\"><solvable-list>
        | <solvable status=\"installed\" name=\"brine-one\" kind=\"package\" edition=\"1.0-1\" arch=\"noarch\" repository=\"Case\"/>
        | <solvable status=\"other-version\" name=\"brine-one\" kind=\"package\" edition=\"1.1-1\" arch=\"noarch\" repository=\"Case\"/>
        | </solvable-list></search-result></stream>
        $ zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name brine-one=1.1-1
    ";
    let one = |version: &str| map! {"name" => "brine-one", "version" => version};
    let report = [
        transcript_of(&script, "pkg.install", map! {"pkgs" => list![map! {"brine-one" => "1.1-1"}, "brine-new"]}),
        transcript_of(&script, "pkg.install", one("0.9-1")),
        transcript_of(&script, "pkg.install", map! {"name" => "nosuch"}),
        transcript_of(
            &script,
            "pkg.install",
            map! {"name" => "brine-new", "fromrepo" => "other", "skip_verify" => true, "no_recommends" => true},
        ),
        transcript_of(&script, "pkg.install", one(">1.0-1")),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn repositories_are_refreshed() {
    let script = "
        $ zypper --non-interactive refresh --force
        | Forcing raw metadata refresh
        | Retrieving repository 'Case' metadata [.done]
        | Forcing building of repository cache
        | Building repository 'Case' cache [....done]
        | Repository 'Other' is up to date.
        | All repositories have been refreshed.
        $ zypper --non-interactive refresh
        | Warning: There are no enabled repositories defined.
        = 6
        $ zypper --non-interactive --gpg-auto-import-keys refresh --force case
        ! Repository 'case' is invalid.
        = 4
    ";
    let report = [
        transcript_of(script, "pkg.refresh_db", Map::new()),
        transcript_of(script, "pkg.refresh_db", map! {"force" => false}),
        transcript_of(script, "pkg.refresh_db", map! {"gpgautoimport" => true, "repos" => "case"}),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn packages_are_held() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("etc/zypp")).unwrap();
    let locks = "type: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: brine-two\nversion: == 2:1.0-3\n";
    std::fs::write(root.path().join("etc/zypp/locks"), locks).unwrap();
    let root = root.path().display().to_string();
    let script = format!(
        "$ rpm --root {root} -qa ...
        | brine-two_|-2_|-1.0_|-3_|-noarch_|-1795275166
        $ zypper --non-interactive --no-refresh --root {root} al brine-one
        | Specified lock has been successfully added.
        $ zypper --non-interactive --no-refresh --root {root} rl brine-two=2:1.0-3
        | 1 lock has been successfully removed."
    );
    let call = |function: &str, pkgs: Value| {
        let report = transcript_of(&script, function, map! {"pkgs" => pkgs, "root" => root.as_str()});
        report.replace(&root, "ROOT")
    };
    let report = [
        call("pkg.hold", list!["brine-one", "brine-two"]),
        call("pkg.unhold", list!["brine-one", "brine-two"]),
        call("pkg.unhold", list![map! {"brine-two" => "9"}]),
        call("pkg.list_holds", Value::Nil),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn repositories_are_added_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/zypp/repos.d");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join("case.repo"),
        "[case]\nname=Case\nenabled=1\nautorefresh=0\nbaseurl=http://a/b\ngpgcheck=0\n",
    )
    .unwrap();
    let root = root.path().display().to_string();
    let script = format!(
        "$ zypper --non-interactive --xmlout --no-refresh --root {root} ar http://c/d new
        | <stream><message type=\"error\">no &apos;root&apos;</message></stream>
        = 4
        $ zypper --non-interactive --xmlout --root {root} mr --disable --refresh --priority=90 --name Other case
        | <stream></stream>
        $ zypper --non-interactive --xmlout --no-refresh --root {root} rr --loose-auth --loose-query case
        | <?xml version='1.0'?>
        | <stream>
        | <progress id=\"2\" name=\"Removing repository &apos;Case&apos;\" value=\"0\"/>
        | <message type=\"info\">Repository &apos;Case&apos; has been removed.</message>
        | </stream>"
    );
    let call = |function: &str, repo: &str, args: Map| {
        let mut args = args;
        args.extend(map! {"repo" => repo, "root" => root.as_str()});
        transcript_of(&script, function, args).replace(&root, "ROOT")
    };
    let report = [
        call("pkg.get_repo", "case", Map::new()),
        call("pkg.mod_repo", "case", map! {"enabled" => false, "refresh" => true, "priority" => 90, "name" => "Other"}),
        call("pkg.mod_repo", "case", Map::new()),
        call("pkg.mod_repo", "new", Map::new()),
        call("pkg.mod_repo", "new", map! {"baseurl" => "c/d"}),
        call("pkg.mod_repo", "new", map! {"baseurl" => "http://a/b"}),
        call("pkg.mod_repo", "new", map! {"baseurl" => "http://c/d"}),
        call("pkg.del_repo", "nosuch", Map::new()),
        call("pkg.del_repo", "case", Map::new()),
    ];
    insta::assert_snapshot!(report.join("\n\n"));
}
