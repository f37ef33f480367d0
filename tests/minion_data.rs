//! Data that a minion sends to its master, or has from it: the mine, pushed files, the pillar, and its id.

use crate::support;

use crate::support::{BRINE, Events, System, stdout, text, within_limit};
use brine_value::json::from_json;
use brine_value::{Value, list, map};

/// Waits until the master has accepted a scheduled update of the mine.
async fn mine_updated(events: &mut Events, id: &str) {
    loop {
        let (_, data) = events.until(&format!("salt/job/*/ret/{id}")).await;
        if text(&data, "fun") == "mine.update" {
            assert_eq!(data.get("retcode"), Some(&0.into()), "{data:?}");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mine_is_updated_on_schedule() {
    let mut system = System::start("").await;
    system.write("srv/pillar/top.sls", "base: {'web1': [mine]}\n");
    system.write(
        "srv/pillar/mine.sls",
        "mine_functions:\n  of_pillar: [{mine_function: test.echo}, pillar]\n  both: [{mine_function: test.echo}, pillar]\n",
    );
    system.configure_minion(
        "web1",
        "mine_return_job: True\nmine_functions:\n  both: [{mine_function: test.echo}, configuration]\n  test.ping: []\n",
    );
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    mine_updated(&mut events, "web1").await;
    system.start_minion("web2").await;
    let get = |fun: &str| {
        let report = system.salt_json(&["web2", "mine.get", "*", fun]);
        report.get("web2").and_then(|mine| mine.get("web1")).cloned()
    };
    for (fun, expected) in [
        ("of_pillar", Some("pillar".into())),
        ("both", Some("configuration".into())),
        ("test.ping", Some(true.into())),
        ("nosuch", None),
    ] {
        assert_eq!(get(fun), expected, "{fun}");
    }
    let listed = system.salt_json(&["web1", "schedule.list", "return_yaml=False", "show_all=True"]);
    let job = listed.get("web1").and_then(|jobs| jobs.get("__mine_interval")).cloned().unwrap();
    for (option, value) in [
        ("function", Value::from("mine.update")),
        ("minutes", 60.into()),
        ("maxrunning", 2.into()),
        ("enabled", true.into()),
    ] {
        assert_eq!(job.get(option), Some(&value), "{option}: {job}");
    }
    let hidden = system.salt_json(&["web1", "schedule.list", "return_yaml=False"]);
    assert_eq!(hidden.get("web1"), Some(&Value::map()));

    // Changed functions in the pillar update it at once.
    system.write("srv/pillar/mine.sls", "mine_functions:\n  later: [{mine_function: test.echo}, new]\n");
    assert_eq!(
        system.salt_json(&["web1", "saltutil.refresh_pillar", "wait=True", "timeout=10"]),
        map! {"web1" => true}.into()
    );
    mine_updated(&mut events, "web1").await;
    assert_eq!(get("later"), Some("new".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mine_is_removed_with_the_key_unless_it_is_preserved() {
    let (none, hello) = (map! {}, map! {"web1" => "hello"});
    for (options, asks, expected) in [
        ("", None, &none),
        ("preserve_minion_cache: True\n", None, &hello),
        ("", Some("preserve_minion_cache=False"), &none),
        ("", Some("preserve_minion_cache=True"), &hello),
    ] {
        let mut system = System::start(options).await;
        system.start_minion("web1").await;
        system.salt_json(&["web1", "mine.send", "test.echo", "hello"]);
        if let Some(asks) = asks {
            let mut keys = system.events("salt/key").await;
            system.salt_json(&["web1", "--async", "saltutil.revoke_auth", asks]);
            keys.until("salt/key").await;
        }
        system.stop_minion("web1");
        if asks.is_none() {
            assert!(system.tool("salt-key", &["--yes", "--delete", "web1"]).status.success());
        }
        system.start_minion("web1").await;
        let output = system.tool("salt-run", &["mine.get", "web1", "test.echo", "--out=json"]);
        assert_eq!(from_json(&stdout(&output)).unwrap(), expected.clone().into(), "{options} {asks:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_pushed_to_a_master_with_file_recv() {
    for (options, is_taken) in [("file_recv: True\nfile_recv_max_size: 1\n", true), ("", false)] {
        let mut system = System::start(options).await;
        system.start_minion("web1").await;
        let call = |words: &[&str]| {
            let report = system.salt_json(&[&["web1"], words].concat());
            report.get("web1").cloned().unwrap_or_else(|| panic!("{words:?}: {report}"))
        };
        let stored_path = |name: &str| system.path(&format!("cache/minions/web1/files/{name}"));
        let path = system.write("box/deep/a.conf", &"0123456789abcdef".repeat(40_000)).display().to_string();
        let large = system.write("box/large", &"0123456789abcdef".repeat(70_000)).display().to_string();
        let directory = system.path("box").display().to_string();
        let own = path.trim_start_matches('/');
        assert_eq!(call(&["cp.push", &path]), is_taken.into());
        assert_eq!(stored_path(own).exists(), is_taken);
        if is_taken {
            assert_eq!(std::fs::read(stored_path(own)).unwrap(), std::fs::read(&path).unwrap());
        }
        assert_eq!(call(&["cp.push", &large]), false.into());
        assert_eq!(call(&["cp.push_dir", &directory, "glob=*.conf", "upload_path=/up"]), is_taken.into());
        assert_eq!(stored_path("up/deep/a.conf").exists(), is_taken);
        assert_eq!(call(&["cp.push", &path, "upload_path=moved", "remove_source=True"]), is_taken.into());
        assert_eq!((stored_path("moved").exists(), std::fs::exists(&path).unwrap()), (is_taken, !is_taken));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pushed_files_are_served_to_other_minions_by_minionfs() {
    let mut system = System::start(
        "file_recv: True\nfileserver_backend: [roots, minionfs]\nminionfs_mountpoint: salt://pushed\nminionfs_blacklist: ['db*']\n",
    )
    .await;
    for id in ["web1", "db1"] {
        system.start_minion(id).await;
    }
    system.write(
        "srv/salt/shared.sls",
        &format!("{}:\n  file.managed:\n    - source: salt://pushed/web1/box/a.conf\n", system.path("copy").display()),
    );
    let path = system.write("box/a.conf", "of web1\n").display().to_string();
    for id in ["web1", "db1"] {
        let report = system.salt_json(&[id, "cp.push", &path, "upload_path=/box/a.conf"]);
        assert_eq!(report.get(id), Some(&true.into()), "{report}");
    }
    let report = system.salt_json(&["db1", "state.apply", "shared", "--out=json"]);
    assert_eq!(std::fs::read_to_string(system.path("copy")).unwrap(), "of web1\n", "{report}");
    let listed = system.salt_json(&["web1", "cp.list_master", "prefix=pushed"]);
    assert_eq!(listed.get("web1"), Some(&list!["pushed/web1/box/a.conf"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_grains_are_collected_with_the_pillar_that_depends_on_them() {
    let mut system = System::start("").await;
    system.write("srv/pillar/top.sls", "base:\n  'role:web':\n    - match: grain\n    - web\n");
    system.write("srv/pillar/web.sls", "port: 80\n");
    system.configure_minion("web1", "grains_refresh_every: 60\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let get = |words: &[&str]| system.salt_json(&[&["web1"], words].concat()).get("web1").cloned().unwrap();
    let jobs = get(&["schedule.list", "show_all=True", "return_yaml=False"]);
    assert_eq!(jobs.get("__update_grains").and_then(|job| job.get("minutes")), Some(&60.into()), "{jobs}");
    assert_eq!((get(&["grains.get", "role"]), get(&["pillar.get", "port"])), ("".into(), "".into()));
    std::fs::write(system.path("web1/etc/grains"), "role: web\n").unwrap();
    // What the job publishes every hour.
    get(&["event.fire", "{'force_refresh': False}", "grains_refresh"]);
    support::until("the pillar of the new grain", || get(&["pillar.get", "port", "unmask=True"]) == 80.into()).await;
    assert_eq!(get(&["grains.get", "role"]), "web".into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_with_local_files_can_have_the_pillar_of_its_master() {
    let mut system = System::start("").await;
    system.write("srv/pillar/top.sls", "base: {'*': [site]}\n");
    system.write("srv/pillar/site.sls", "from: master\n");
    system.write("own/pillar/top.sls", "base: {'*': [site]}\n");
    system.write("own/pillar/site.sls", "from: minion\n");
    system.write("own/salt/where.sls", "own files: test.nop\n");
    let local = "file_client: local\nfile_roots: {base: [ROOT/own/salt]}\npillar_roots: {base: [ROOT/own/pillar]}\n";
    for (id, more, from) in [("web1", "use_master_when_local: True\n", "master"), ("web2", "", "minion")] {
        system.configure_minion(id, &format!("{local}{more}"));
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
        let get = |words: &[&str]| system.salt_json(&[&[id], words].concat()).get(id).cloned().unwrap();
        assert_eq!(get(&["pillar.get", "from", "unmask=True"]), from.into(), "{id}");
        get(&["saltutil.refresh_pillar"]);
        assert_eq!(get(&["pillar.get", "from", "unmask=True"]), from.into(), "{id}");
        assert_eq!(get(&["cp.list_states"]), list!["where"], "{id}");
        let etc = system.path(&format!("{id}/etc")).display().to_string();
        let words = ["salt-call", "-c", &etc, "pillar.get", "from", "unmask=True", "--out=json"];
        let called = stdout(&within_limit(BRINE).args(words).output().unwrap());
        assert!(called.contains(&format!("\"local\": \"{from}\"")), "{id}: {called}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_keeps_the_id_of_its_id_function_and_has_paths_of_its_own() {
    let mut system = System::start("").await;
    let configure = |system: &System, name: &str| {
        let options = format!(
            "id_function: {{test.echo: {{text: {name}}}}}\nminion_id_lowercase: True\n\
             append_minionid_config_dirs: [pki_dir, cachedir, pidfile]\n"
        );
        let etc = system.configure_minion("host", &options);
        let text = std::fs::read_to_string(etc.join("minion")).unwrap();
        std::fs::write(etc.join("minion"), text.trim_start_matches("id: host\n")).unwrap();
    };
    for name in ["Web1", "Web2"] {
        configure(&system, name);
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion("host");
        events.until("salt/minion/web1/start").await;
        assert_eq!(std::fs::read_to_string(system.path("host/etc/minion_id")).unwrap(), "web1");
        for path in ["host/pki/web1/minion.pem", "host/cache/web1", "salt/web1/host.pid"] {
            assert!(system.path(path).exists(), "{path}");
        }
        assert!(!system.path("host/pki/minion.pem").exists());
        assert_eq!(system.salt_json(&["web1", "config.get", "id"]).get("web1"), Some(&"web1".into()));
        system.stop_minion("host");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_applies_its_top_file_at_the_start() {
    let mut system = System::start("").await;
    system.write("srv/salt/boot.sls", "base: {'*': [first]}\n");
    system.write("srv/salt/first.sls", "done: {test.nop: [fire_event: boot]}\n");
    system.configure_minion("web1", "startup_states: top\ntop_file: boot.sls\n");
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/state_result/*/web1/boot").await;
    // The run is a job of the job cache.
    events.until("salt/job/*/ret/web1").await;
    support::until("the job is stored", || {
        let jobs = stdout(&system.tool("salt-run", &["jobs.list_jobs", "search_target=web1", "--out=json"]));
        jobs.contains("state.top") && jobs.contains("startup_states")
    })
    .await;
}
