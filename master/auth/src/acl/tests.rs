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
fn functions_in_arguments_need_a_permission_like_others() {
    let schedule = |more: Value| -> Value {
        let mut all = map! {"__kwarg__" => true, "function" => "cmd.run", "job_args" => list!["id"]};
        all.extend(more.as_map().cloned().unwrap_or_default());
        list!["j", all]
    };
    let none = || schedule(Value::map());
    let with = |more: Map| schedule(more.into());
    let limited = list!["schedule.*", map! {"*" => list![map! {"cmd.run" => map! {"args" => list!["uptime$"]}}]}];
    let deep = list!["test.cross_test", "test.cross_test", "test.cross_test", "test.cross_test", "cmd.run", "id"];
    for (entries, function, arguments, permitted) in [
        (list!["schedule.*"], "schedule.add", none(), false),
        (list!["schedule.*"], "schedule.list", list![], true),
        (list!["schedule.*", "cmd.run"], "schedule.add", none(), true),
        (list![".*"], "schedule.add", none(), true),
        (list!["schedule.*", map! {"web*" => "cmd.run"}], "schedule.add", none(), true),
        (list!["schedule.*", map! {"db1" => "cmd.run"}], "schedule.add", none(), false),
        (limited.clone(), "schedule.add", none(), false),
        (limited.clone(), "schedule.add", with(map! {"job_args" => list!["uptime"]}), true),
        (limited, "schedule.add", list!["j", "function=cmd.run", "job_args=[uptime]"], true),
        // The function may be that of the existing job.
        (list!["schedule.*", "test.ping"], "schedule.modify", list!["j", "seconds=1"], false),
        (list![".*"], "schedule.modify", list!["j", "seconds=1"], true),
        // Options of the scheduled job.
        (list![".*"], "schedule.add", with(map! {"returner" => "rawfile_json"}), false),
        (list![".*"], "schedule.add", with(map! {"return_kwargs" => map! {"filename" => "/x"}}), false),
        (list![".*"], "schedule.add", with(map! {"metadata" => "x"}), false),
        (
            list![".*", map! {"@options" => map! {"ret" => "redis"}}],
            "schedule.add",
            with(map! {"returner" => "redis"}),
            true,
        ),
        (
            list![".*", map! {"@options" => map! {"ret" => "redis"}}],
            "schedule.add",
            with(map! {"returner" => "redis, rawfile_json"}),
            false,
        ),
        (list!["mine.*"], "mine.send", list!["cmd.run", "id"], false),
        (list!["mine.*", "test.ping"], "mine.send", list!["test.ping"], true),
        (list!["mine.*", "test.ping"], "mine.send", list!["test.ping", "mine_function=cmd.run"], false),
        (list!["mine.*"], "mine.update", list!["mine_functions={cmd.run: [id]}"], false),
        (list!["mine.*"], "mine.update", list![], true),
        (list!["test.*"], "test.cross_test", list!["cmd.run", "id"], false),
        (list!["test.*"], "test.cross_test", list!["test.cross_test", "cmd.run", "id"], false),
        (list!["test.*"], "test.cross_test", list!["test.cross_test", "test.ping"], true),
        (list![".*"], "test.cross_test", deep, false),
        (list!["test.*"], "test.try", list!["module=cmd.run", "cmd=id"], false),
        (list!["saltutil.*"], "saltutil.mmodule", list!["base", "cmd.run", "id"], false),
        (list!["saltutil.*"], "saltutil.wheel", list!["key.accept", "x"], false),
        (list!["saltutil.*", "@wheel"], "saltutil.wheel", list!["key.accept", "x"], true),
        (list!["saltcheck.*"], "saltcheck.run_test", list!["test={module_and_function: cmd.run}"], false),
        (list!["saltcheck.*"], "saltcheck.state_apply", list!["x"], false),
        // Other minions are unknown here: only an entry for all permits their functions.
        (list!["publish.*", map! {"web*" => "test.ping"}], "publish.publish", list!["web*", "test.ping"], false),
        (list!["publish.*", map! {"*" => "test.ping"}], "publish.publish", list!["web*", "test.ping"], true),
        (list!["publish.*", "test.ping"], "publish.publish", list!["web*", "test.ping"], true),
        (list!["publish.*"], "publish.runner", list!["jobs.active"], false),
        (list!["publish.*", "@jobs"], "publish.runner", list!["jobs.active"], true),
    ] {
        let minions = ["web1".to_owned()];
        let job = JobRequest { functions: vec![(function, arguments.as_list().unwrap())], minions: &minions };
        assert_eq!(acl(entries.clone()).permits_job(&job, fleet), permitted, "{entries} {function} {arguments}");
    }
}

#[test]
fn functions_in_arguments_of_runner_functions_need_a_permission() {
    for (entries, function, arguments, minions, permitted) in [
        (list!["@runner"], "runner.salt.execute", list!["*", "cmd.run", list!["id"]], &["web1"][..], false),
        (list!["@runner", "cmd.run"], "runner.salt.execute", list!["*", "cmd.run"], &["web1"], true),
        (
            list!["@runner", map! {"web*" => "cmd.run"}],
            "runner.salt.execute",
            list!["web1", "cmd.run"],
            &["web1"],
            true,
        ),
        (
            list!["@runner", map! {"web*" => "cmd.run"}],
            "runner.salt.execute",
            list!["*", "cmd.run"],
            &["web1", "db1"],
            false,
        ),
        (list!["@runner", "cmd.run"], "runner.salt.execute", list!["*", "cmd.run", "ret=redis"], &["web1"], false),
        (list!["@runner", "cmd.run"], "runner.salt.execute", list!["*", "cmd.run", "jid=20"], &["web1"], false),
        (list!["@runner", "cmd.run"], "runner.salt.execute", list!["*", "cmd.run", "jid="], &["web1"], true),
        (
            list!["@runner", "cmd.run", map! {"@options" => "jid"}],
            "runner.salt.execute",
            list!["*", "cmd.run", "jid=20"],
            &["web1"],
            true,
        ),
        (list!["@runner", map! {"web*" => ".*"}], "runner.salt.cmd", list!["cmd.run", "id"], &[], false),
        (list!["@runner", ".*"], "runner.salt.cmd", list!["cmd.run", "id"], &[], true),
        (list![".*"], "runner.batch.start", list!["*", list!["test.ping", "cmd.run"]], &["web1"], true),
        (list!["test.*"], "runner.batch.start", list!["*", list!["test.ping", "cmd.run"]], &["web1"], false),
        (list![".*"], "runner.batch.start", list!["*", "test.ping", "kwargs={metadata: x}"], &["web1"], false),
        (list!["@jobs"], "runner.queue.insert_runner", list!["salt.cmd", "args=[cmd.run, id]"], &[], false),
        (list!["@runner"], "runner.queue.insert_runner", list!["salt.cmd", "args=[cmd.run, id]"], &[], false),
        (list!["@runner"], "runner.queue.insert_runner", list!["jobs.active"], &[], true),
        (list!["@jobs"], "runner.queue.insert_runner", list!["jobs.active"], &[], true),
        (list!["@runner"], "runner.mine.update", list!["web1", "mine_functions={cmd.run: [id]}"], &["web1"], false),
    ] {
        let minions: Vec<String> = minions.iter().map(ToString::to_string).collect();
        let all = called(function, &Args::from_wire(arguments.as_list().unwrap()));
        let acl = acl(entries.clone());
        let is = !all.is_empty() && all.iter().all(|one| acl.permits_called(one, &minions, fleet));
        assert_eq!(is, permitted, "{entries} {function} {arguments}");
    }
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

#[test]
fn a_plan_needs_a_permission_for_its_function_unless_plans_are_approved() {
    let permits = |acl: &Acl| {
        let arguments = [Value::from("state.apply"), map! {"digests" => map! {}}.into(), "web".into()];
        acl.permits_job(&JobRequest { functions: vec![("state.apply_plan", &arguments)], minions: &[] }, |_| None)
    };
    for (entries, plain, approved) in [
        (list!["state.apply_plan"], false, true),
        (list!["state.apply_plan", "state.apply"], true, true),
        // As in Salt, a pattern is the beginning of a name.
        (list!["state.apply"], true, true),
        (list!["state.apply$"], false, false),
    ] {
        assert_eq!(permits(&acl(entries.clone())), plain, "{entries}");
        assert_eq!(permits(&acl(entries.clone()).with_approved_plans()), approved, "{entries}");
    }
}
