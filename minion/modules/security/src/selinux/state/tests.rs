//! States of SELinux, by transcripts of its programs.

use brine_value::list;

use super::*;
use crate::testing::applied;

const SELINUX: &str = "
    $ semanage boolean --list
    | SELinux boolean                State  Default Description
    | a                              (off  ,  off)  Allow a
    | b                              (on   ,  off)  Allow b
    $ semodule --list-modules=full
    | 100 new       pp
    | 100 old       pp disabled
    $ semanage fcontext --list
    | /srv          all files          system_u:object_r:var_t:s0
    $ semanage port --list
    | http_port_t                    tcp      80, 443
";

fn named(name: &str, more: Map) -> Map {
    map! {"name" => name}.into_iter().chain(more).collect()
}

/// Arguments, whether it is test mode, further programs, and the result, the comment and the changes.
type Case<'a> = (Map, bool, &'a str, Option<bool>, &'a str, Map);

fn check(function: &str, cases: Vec<Case<'_>>) {
    for (keyword, test, more, result, comment, changes) in cases {
        let report = applied(&format!("selinux.{function}"), keyword.clone(), test, &format!("{SELINUX}{more}"));
        assert_eq!((report.result, &*report.comment), (result, comment), "{function} {keyword:?}");
        assert_eq!(report.changes, changes.into(), "{function} {keyword:?}");
    }
}

#[test]
fn booleans_are_set_together() {
    let correct = "The following booleans were in the correct state: b";
    let changed = "The following booleans were in the correct state: b\nThe following booleans have been changed: a";
    let persistent = map! {"b" => map! {"old" => list!["on", "off"], "new" => list!["on", "on"]}};
    let several = map! {"booleans" => list!["a", map! {"b" => "on"}], "value" => "yes"};
    check(
        "boolean",
        vec![
            (named("b", map! {"value" => true}), false, "", Some(true), correct, map! {}),
            (
                named("b", map! {"value" => true, "persist" => true}),
                true,
                "",
                None,
                "The following booleans would be changed: b",
                persistent,
            ),
            (
                named("x", several),
                false,
                "$ setsebool a=on\n",
                Some(true),
                changed,
                map! {"a" => map! {"old" => "off", "new" => "on"}},
            ),
            (named("none", map! {"value" => 1}), false, "", Some(false), "Boolean none is not available", map! {}),
            (
                named("a", map! {"value" => "maybe"}),
                false,
                "",
                Some(false),
                "maybe is not a valid value for the boolean a",
                map! {},
            ),
        ],
    );
    check(
        "mode",
        vec![(named("sometimes", map! {}), false, "", Some(false), "sometimes is not an accepted mode", map! {})],
    );
}

#[test]
fn modules_are_enabled_and_removed() {
    let changes = map! {"old" => "disabled", "new" => "enabled"};
    check(
        "module",
        vec![
            (named("new", map! {}), false, "", Some(true), "Module new is in the desired state", map! {}),
            (named("old", map! {}), true, "", None, "Module old is set to be toggled to Enabled", map! {}),
            (
                named("old", map! {}),
                false,
                "$ semodule --enable old\n",
                Some(true),
                "Module old has been set to Enabled",
                changes,
            ),
            (named("none", map! {}), false, "", Some(false), "Module none is not available", map! {}),
            (
                named("old", map! {"remove" => true}),
                false,
                "$ semodule --remove old\n",
                Some(true),
                "Module old has been removed",
                map! {},
            ),
        ],
    );
    let failing = "$ semodule --install /m.pp\n= 1\n";
    check(
        "module_install",
        vec![(named("/m.pp", map! {}), false, failing, Some(false), "Failed to install module /m.pp", map! {})],
    );
}

#[test]
fn contexts_of_files_are_set_and_applied() {
    let srv = |kind: &str| map! {"name" => "/srv", "sel_type" => kind};
    let present =
        "SELinux policy for \"/srv\" already present with specified filetype \"all files\" and sel_type \"var_t\".";
    let new = map! {"/srv" => map! {"filetype" => "all files", "sel_type" => "httpd_t"}};
    check(
        "fcontext_policy_present",
        vec![
            (srv("var_t"), false, "", Some(true), present, map! {}),
            (
                srv("httpd_t"),
                false,
                "$ semanage fcontext --modify --type httpd_t /srv\n",
                Some(true),
                "",
                map! {"old" => map! {}, "new" => new},
            ),
        ],
    );
    let absent = "SELinux policy for \"/none\" already absent with specified filetype \"a\" and sel_type \"None\".";
    check("fcontext_policy_absent", vec![(named("/none", map! {}), false, "", Some(true), absent, map! {})]);
    let applied = "SElinux policies are already applied for filespec \"/srv\"";
    let relabels =
        "$ restorecon -n -v /srv\n| Would relabel /srv from u:r:a_t:s0 to u:r:b_t:s0\n$ restorecon -v -F /srv\n";
    let changes = map! {"/srv" => map! {"old" => map! {"sel_type" => "a_t"}, "new" => map! {"sel_type" => "b_t"}}};
    check(
        "fcontext_policy_applied",
        vec![
            (named("/srv", map! {}), false, "$ restorecon -n -v /srv\n", Some(true), applied, map! {}),
            (named("/srv", map! {}), false, relabels, Some(true), "", changes),
        ],
    );
}

#[test]
fn port_types_are_set() {
    let port = |name: &str, kind: &str| map! {"name" => name, "sel_type" => kind};
    let sentence = |name: &str, what: &str, kind: &str| {
        format!(
            "SELinux policy for \"{name}\" already {what} with specified sel_type \"{kind}\", protocol \"None\" and port \"None\"."
        )
    };
    check(
        "port_policy_present",
        vec![
            (
                port("tcp/80", "http_port_t"),
                false,
                "",
                Some(true),
                &sentence("tcp/80", "present", "http_port_t"),
                map! {},
            ),
            (port("tcp/81", "http_port_t"), true, "", None, "", map! {}),
        ],
    );
    let absent = sentence("tcp/81", "absent", "None");
    check("port_policy_absent", vec![(named("tcp/81", map! {}), false, "", Some(true), &absent, map! {})]);
}
