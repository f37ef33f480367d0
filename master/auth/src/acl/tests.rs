use brine_value::{list, map};

use super::*;
use crate::events::may_see;

fn acl(entries: Value) -> Acl {
    Acl::new(entries.as_list().unwrap())
}

fn fleet(target: &str) -> Option<HashSet<String>> {
    let ids: &[&str] = match target {
        "web*" => &["web1", "web2"],
        "db1" => &["db1"],
        "nobody" => &[],
        _ => return None,
    };
    Some(ids.iter().map(ToString::to_string).collect())
}

#[test]
fn jobs_are_permitted_by_function_target_and_arguments() {
    let web = list![map! {"web*" => list!["state.apply", "pkg.*"]}];
    let limited = list![
        map! {"db1" => map! {"cmd.run" => map! {"args" => list!["uptime.*"], "kwargs" => map! {"cwd" => "/tmp"}}}}
    ];
    let any = list![map! {"db1" => list![map! {"cmd.run" => map! {"args" => list![Value::Nil, "b"]}}]}];
    let packages = |pattern: Value| -> Value {
        list![map! {"db1" => map! {"pkg.install" => map! {"kwargs" => map! {"pkgs" => pattern}}}}]
    };
    let pkgs = |pkgs: Value| -> Value { map! {"pkgs" => pkgs, "__kwarg__" => true}.into() };
    let kwargs = |cwd: &str| -> Value { map! {"cwd" => cwd, "__kwarg__" => true}.into() };
    for (entries, function, arguments, minions, permitted) in [
        (list!["test.*"], "test.ping", list![], &["web1", "db1"][..], true),
        (list!["test.ping"], "test.pingx", list![], &["web1"], true),
        (list!["test.ping$"], "test.pingx", list![], &["web1"], false),
        (list!["ping"], "test.ping", list![], &["web1"], false),
        (list![".*"], "cmd.run", list!["id"], &[], true),
        (list!["("], "test.ping", list![], &["web1"], false),
        (list![], "test.ping", list![], &["web1"], false),
        (list![], "saltutil.find_job", list![], &["web1"], false),
        (list!["test.ping"], "saltutil.find_job", list!["1"], &["web1"], true),
        (list!["@runner", "@wheel"], "test.ping", list![], &["web1"], false),
        (web.clone(), "pkg.install", list!["vim"], &["web1", "web2"], true),
        (web.clone(), "pkg.install", list!["vim"], &["web1", "db1"], false),
        (web.clone(), "test.ping", list![], &["web1"], false),
        (web.clone(), "pkg.install", list![], &[], false),
        (list![map! {"*" => list!["test.*"]}], "test.ping", list![], &["web1", "db1"], true),
        (list![map! {"G@bad(" => list!["test.*"]}], "test.ping", list![], &["web1"], false),
        (list![map! {"web*" => "test.*", "db1" => "test.*"}], "test.ping", list![], &["web1"], false),
        (limited.clone(), "cmd.run", list!["uptime -p", kwargs("/tmp")], &["db1"], true),
        (limited.clone(), "cmd.run", list!["uptime -p", kwargs("/etc")], &["db1"], false),
        (limited.clone(), "cmd.run", list!["uptime -p"], &["db1"], false),
        (limited.clone(), "cmd.run", list!["id", kwargs("/tmp")], &["db1"], false),
        (limited.clone(), "cmd.run", list!["uptime -p", "cwd=/tmp"], &["db1"], true),
        (limited.clone(), "cmd.run", list!["uptime -p", "cwd=/etc", kwargs("/tmp")], &["db1"], true),
        (limited.clone(), "cmd.run", list!["uptime -p", kwargs("/tmp"), "cwd=/etc"], &["db1"], false),
        (limited.clone(), "cmd.run", list!["cwd=/tmp", "uptime -p"], &["db1"], true),
        (limited.clone(), "cmd.run", list!["uptime=1", "id", kwargs("/tmp")], &["db1"], false),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list![pkgs(list!["nginx", "curl"])], &["db1"], true),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list![pkgs("curl".into())], &["db1"], true),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list!["pkgs=[curl, nginx]"], &["db1"], true),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list![pkgs(list!["nginx", "bash"])], &["db1"], false),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list![pkgs(list![])], &["db1"], false),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list!["nginx"], &["db1"], false),
        (packages(list!["nginx$", "curl$"]), "pkg.install", list![pkgs(map! {"nginx" => 1}.into())], &["db1"], false),
        (packages("nginx$".into()), "pkg.install", list![pkgs(list!["nginx"])], &["db1"], true),
        (packages(Value::Nil), "pkg.install", list![pkgs(list!["nginx", "bash"])], &["db1"], true),
        (any.clone(), "cmd.run", list!["a", "b"], &["db1"], true),
        (any, "cmd.run", list!["a"], &["db1"], false),
    ] {
        let minions: Vec<String> = minions.iter().map(ToString::to_string).collect();
        let job = JobRequest { functions: vec![(function, arguments.as_list().unwrap())], minions: &minions };
        assert_eq!(
            acl(entries.clone()).permits_job(&job, fleet),
            permitted,
            "{entries} {function} {arguments} {minions:?}"
        );
    }
}

#[test]
fn each_function_of_a_job_has_to_be_permitted() {
    let acl = acl(list!["test.ping"]);
    let minions = ["web1".to_owned()];
    let job = |functions| JobRequest { functions, minions: &minions };
    assert!(acl.permits_job(&job(vec![("test.ping", &[])]), fleet));
    assert!(!acl.permits_job(&job(vec![("test.ping", &[]), ("cmd.run", &[])]), fleet));
    assert!(!acl.permits_job(&job(vec![("saltutil.find_job", &[]), ("cmd.run", &[])]), fleet));
    assert!(!acl.permits_job(&job(Vec::new()), fleet));
}

#[test]
fn master_calls_need_their_own_entries() {
    let orchestrate =
        list![map! {"@runner" => list!["jobs.*", map! {"state.orch" => map! {"args" => list!["deploy"]}}]}];
    for (entries, kind, function, positional, permitted) in [
        (list![".*"], CallKind::Runner, "jobs.active", list![], false),
        (list!["@runner"], CallKind::Runner, "jobs.active", list![], true),
        (list!["@runners"], CallKind::Runner, "jobs.active", list![], true),
        (list!["@runner"], CallKind::Wheel, "key.accept", list![], false),
        (list!["@wheel"], CallKind::Wheel, "key.accept", list!["web1"], true),
        (list!["@jobs"], CallKind::Runner, "jobs.active", list![], true),
        (list!["@jobs"], CallKind::Runner, "manage.up", list![], false),
        (list![map! {"@wheel" => list!["key.list_all"]}], CallKind::Wheel, "key.list_all", list![], true),
        (list![map! {"@wheel" => list!["key.list_all"]}], CallKind::Wheel, "key.accept", list![], false),
        (list![map! {"@jobs" => list!["active"]}], CallKind::Runner, "jobs.active", list![], true),
        (list![map! {"@jobs" => list!["active"]}], CallKind::Runner, "jobs.list_jobs", list![], false),
        (orchestrate.clone(), CallKind::Runner, "state.orch", list!["deploy"], true),
        (orchestrate.clone(), CallKind::Runner, "state.orch", list!["wipe"], false),
        (orchestrate, CallKind::Runner, "state.orch", list![], false),
        (list!["@runner"], CallKind::Runner, "jobs", list![], false),
        (list!["@runner"], CallKind::Runner, "jobs.active.more", list![], false),
    ] {
        let positional = positional.as_list().unwrap();
        let is = acl(entries.clone()).permits_call(kind, function, positional, &Map::new());
        assert_eq!(is, permitted, "{entries} {kind:?} {function} {positional:?}");
    }
}

#[test]
fn events_are_permitted_by_tag() {
    let jobs = map! {"events" => list!["salt/job/*", "my/*"]};
    for (entries, tag, seen) in [
        (list![], "salt/job/1/new", false),
        (list!["test.ping"], "salt/auth", false),
        (list!["test.ping"], "salt/job/1/new", false),
        (list!["@runner"], "salt/auth", true),
        (list![map! {"@runner" => "event_bus.since"}], "salt/auth", true),
        (list!["@jobs", ".*", "@wheel"], "salt/auth", false),
        (list!["@runner", jobs.clone()], "salt/auth", false),
        (list!["test.ping", jobs.clone()], "salt/job/1/new", true),
        (list!["test.ping", jobs.clone()], "salt/auth", false),
        (list!["@runner", jobs.clone(), map! {"events" => "salt/auth"}], "salt/auth", true),
        (list![map! {"events" => list![]}], "my/tag", false),
        // An invalid entry permits nothing.
        (list!["test.ping", map! {"events" => list![1]}], "my/tag", false),
        (list!["test.ping", map! {"events" => Value::Nil}], "my/tag", false),
        (list!["test.ping", map! {"events" => "my/*", "web*" => "test.ping"}], "my/tag", true),
        (list!["test.ping", map! {"events" => "my/*", "web*" => "test.ping"}], "salt/auth", false),
    ] {
        assert_eq!(may_see(&acl(entries.clone()).event_permissions(false), tag), seen, "{entries} {tag}");
        let is_limited = entries.to_string().contains("events");
        let is_open = !is_limited && !entries.as_list().unwrap().is_empty();
        assert_eq!(
            may_see(&acl(entries.clone()).event_permissions(true), tag),
            seen || is_open,
            "open: {entries} {tag}"
        );
    }
    let events_only = acl(list![jobs]);
    let minions = ["events".to_owned()];
    for function in ["saltutil.find_job", "salt/job/1", "test.ping"] {
        let job = JobRequest { functions: vec![(function, &[])], minions: &minions };
        assert!(!events_only.permits_job(&job, fleet), "{function}");
    }
    assert!(!events_only.permits_call(CallKind::Runner, "jobs.active", &[], &Map::new()));
}
