use super::*;

#[test]
fn a_minion_publishes_only_under_its_own_id() {
    let id: MinionId = "web1".parse().unwrap();
    for (tag, may) in [
        ("my/event", true),
        ("minion_start", true),
        ("minion_ping", true),
        ("_salt_error", true),
        ("pkg.installed", true),
        ("saltation/x", true),
        ("brine/access/denied", false),
        ("salt/minion/web1/start", true),
        ("salt/minion/web1", false),
        ("salt/minion/web10/start", false),
        ("salt/minion/db1/start", false),
        ("salt/beacon/web1/load/", true),
        ("salt/beacon/db1/load", false),
        ("salt/state_result/20261120235852025555/web1/mine", true),
        ("salt/state_result/20261120235852025555/web1", true),
        ("salt/state_result/20261120235852025555/db1/not/mine", false),
        ("salt/state_result/x/web1/mine", false),
        ("salt/job/20261120235852025555/start/web1", true),
        ("salt/job/20261120235852025555/start/web1/x", false),
        ("salt/job/20261120235852025555/start/db1", false),
        ("salt/job/20261120235852025555/prog/web1/0", true),
        ("salt/job/20261120235852025555/prog/db1/0", false),
        ("salt/job/20261120235852025555/ret/web1", false),
        ("salt/job/20261120235852025555/sub/web1/error/state.sls", false),
        ("salt/job/20261120235852025555/new", false),
        ("salt/job/20261120235852025555/publish", false),
        ("20261120235852025555", false),
        ("20261120235852025555/x", false),
        ("salt/batch/20261120235852025555/new", false),
        ("salt/cloud/web2/created", false),
        ("salt/cluster/peer", false),
        ("salt/fileserver/roots/update", false),
        ("salt/reactors/manage/add", false),
        ("salt/auth", false),
        ("salt/authx", false),
        ("salt/key", false),
        ("salt/run/1/ret", false),
        ("salt/wheel/1/new", false),
        ("salt/presence/present", false),
        ("salt/stats/x", false),
        ("salt/", false),
        ("salt", false),
        ("key", false),
        ("syndic/web1/x", false),
        ("minion/refresh/web1", false),
        ("minion/refresh/db1", false),
        ("resource/refresh/db1", false),
        ("__schedule_return", false),
        ("salt/minion/web1/../db1/start", false),
        ("salt/minion/web1/./start", false),
        ("salt/minion/web1/..", false),
        ("salt/beacon/web1/../../auth", false),
        ("salt/minion/web1/..start", true),
        ("../salt/auth", false),
        ("my/../salt/auth", false),
        ("my/..", false),
        ("my/\0event", false),
        ("salt/minion/web1/start\0", false),
        ("my/\nevent", false),
        ("my/\u{1b}[0m", false),
        ("my/\u{85}", false),
        ("brine/alert/not_back", false),
        ("alert/not_back", true),
    ] {
        assert_eq!(may_publish(&id, tag), may, "{tag}");
    }
}

#[test]
fn events_of_minions_below_have_their_own_tags_too() {
    let syndic: MinionId = "s1".parse().unwrap();
    for (tag, is_below) in [
        ("salt/minion/below1/start", true),
        ("salt/minion/own1/start", false),
        ("salt/beacon/below1/load/", true),
        ("salt/beacon/own1/load/", false),
        ("salt/job/20261120235852025555/prog/below1/0", true),
        ("salt/job/20261120235852025555/prog/own1/0", false),
        ("salt/job/20261120235852025555/new", false),
        ("salt/auth", false),
        ("salt/key", false),
        ("salt/run/20261120235852025555/ret", false),
        ("salt/minion/../x", false),
        ("syndic/s2/salt/minion/below1/start", false),
        ("key", false),
        ("my/event", true),
    ] {
        let published = is_of_minion_below(&syndic, tag, |id| id.as_str() == "own1");
        assert_eq!(published, is_below, "{tag}");
    }
}

#[test]
fn a_syndic_reports_its_own_start() {
    let id: MinionId = "s1".parse().unwrap();
    for (tag, is_start) in [
        ("salt/syndic/s1/start", true),
        ("syndic_start", true),
        ("salt/syndic/s2/start", false),
        ("salt/syndic/s1/stop", false),
        ("syndic/s1/start", false),
    ] {
        assert_eq!(is_start_of_syndic(&id, tag), is_start, "{tag}");
    }
}

#[test]
fn only_a_syndic_has_a_prefix_and_only_its_own() {
    let id: MinionId = "s1".parse().unwrap();
    for (pretag, order_masters, may) in [
        ("syndic/s1", true, true),
        ("syndic/s1/syndic/s2", true, true),
        ("syndic/s1", false, false),
        ("syndic/s10", true, false),
        ("syndic/s2", true, false),
        ("salt/job", true, false),
        ("syndic/s1/..", true, false),
        ("syndic/s1/\0", true, false),
        ("", true, false),
    ] {
        assert_eq!(may_prefix(&id, pretag, order_masters), may, "{pretag}");
    }
}
