use super::{catalogue, found};
use crate::events::{documented, may_match};
use crate::{Options, check};

#[test]
fn patterns_that_no_event_matches_are_found() {
    let catalogue = catalogue();
    for (pattern, near) in [
        ("salt/minon/*/start", "salt/minion/*/start"),
        ("salt/minion/start", "salt/minion/*/start"),
        ("salt/minion/*/strat", "salt/minion/*/start"),
        ("salt/minion/*/start/", "salt/minion/*/start"),
        ("/salt/auth", "salt/auth"),
        ("slat/auth", "salt/auth"),
        ("salt/jobs/*/ret/*", "salt/job/*/ret/*"),
        ("salt/job/*/return/*", "salt/job/*/ret/*"),
        ("salt/job/*/ret", "salt/job/*/ret/*"),
        ("salt/minion/.*/start", "salt/minion/*/start"),
        ("^salt/minion/.+/start$", "salt/minion/*/start"),
        ("salt/job/\\d+/ret/.*", "salt/job/*/ret/*"),
        ("salt/run/*/rte", "salt/run/*/ret"),
        ("salt/presence/changed", "salt/presence/change"),
        ("salt/becon/*/load/", "salt/beacon/*/*/*"),
        ("minion_strat", "minion_start"),
    ] {
        let configuration = format!("reactor:\n  - '{pattern}': [/srv/reactor/a.sls]\n");
        let tree = brine_authoring_model::Tree::of_texts([("etc/salt/master", configuration.as_str())]);
        let findings = check(&tree, &catalogue, &Options::default());
        let [finding] = &findings[..] else { panic!("{pattern}: {findings:?}") };
        assert_eq!(finding.code, "B318", "{pattern}");
        assert_eq!(finding.fix.as_ref().unwrap().edits[0].1, near, "{pattern}");
        let wait = format!("a:\n  salt.wait_for_event:\n    - name: '{pattern}'\n    - id_list: [a]\n");
        assert_eq!(found(&catalogue, &[("a.sls", &wait)], &Options::default()).len(), 1, "{pattern}");
    }
}

#[test]
fn patterns_that_an_event_may_match_are_not_reported() {
    let catalogue = catalogue();
    for pattern in [
        "*",
        "salt/*",
        "salt/minion/*/start",
        "salt/minion/web[0-9]*/start",
        "salt/minion/web.*/start",
        "salt/minion/web1/start*",
        "salt/minion/*/own/thing",
        "salt/beacon/*/inotify/*",
        "salt/beacon/*/inotify//etc/passwd",
        "salt/beacon/web1/load/",
        "salt/job/2026*/ret/web1",
        "salt/job/*/ret/return",
        "salt/job/*",
        "*/start",
        "salt/cloud/*/created",
        "salt/netapi/hook/deploy",
        "salt/engines/hook/*",
        "salt/fileserver/gitfs/update",
        "salt/run/*/ret",
        "salt/run/*/salt/ceph/set/noout",
        "salt/presence/*",
        "salt/mysite/deploy",
        "minion_start",
        "deploy/web/",
        "deploy/.*",
        "key",
        "keys",
        "my/salt/minion/start",
        "salt/state_result/*/web1/a/b",
    ] {
        let configuration = format!("reactor:\n  - '{pattern}':\n    - /srv/reactor/a.sls\n");
        let findings = found(&catalogue, &[("etc/salt/master", &configuration)], &Options::default());
        assert_eq!(findings, Vec::<String>::new(), "{pattern}");
    }
}

#[test]
fn fields_that_events_do_not_have_are_found() {
    let catalogue = catalogue();
    let of = |tag: &str, read: &str| {
        let configuration = format!("reactor:\n  - '{tag}':\n    - /srv/reactor/a.sls\n");
        let source = format!("a:\n  local.test.ping:\n    - tgt: {{{{ {read} }}}}\n");
        found(&catalogue, &[("etc/salt/master", &configuration), ("reactor/a.sls", &source)], &Options::default())
    };
    for (tag, read, is_wrong) in [
        ("salt/minion/*/start", "data['id']", false),
        ("salt/minion/*/start", "data['name']", true),
        ("salt/minion/*/start", "data.name", true),
        ("salt/minion/*/start", "data['_from']", false),
        ("salt/minion/*/start", "data.get('name', 'x')", false),
        ("salt/minion/*/start", "data['name'] | default('x')", false),
        ("salt/minion/*/start", "'name' in data and data['name']", false),
        ("salt/auth", "data['act']", false),
        ("salt/auth", "data['action']", true),
        ("salt/job/*/ret/*", "data['retcode']", false),
        ("salt/job/*/ret/*", "data['retrun']", true),
        // The fields are those of the beacon, or of another sender.
        ("salt/beacon/*/load/", "data['1m']", false),
        ("salt/minion/*/mine", "data['name']", false),
        ("my/tag", "data['name']", false),
    ] {
        let expected = if is_wrong { vec!["B319 3:15".to_owned()] } else { vec![] };
        assert_eq!(of(tag, read), expected, "{tag} {read}");
    }
}

#[test]
fn the_reference_is_read_as_a_whole() {
    let tags: Vec<&str> = documented().iter().map(|kind| kind.tag.as_str()).collect();
    for tag in
        ["salt/auth", "minion_start", "salt/minion/<id>/start", "salt/job/<jid>/ret/<id>", "salt/wheel/<jid>/ret"]
    {
        assert!(tags.contains(&tag), "{tag}");
    }
    assert!(documented().iter().all(|kind| may_match(&kind.glob, &kind.tag)));
}
