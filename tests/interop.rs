//! Fleets in which unmodified Salt minions of several releases and Brine minions have one Brine master.

use crate::support;

use std::collections::BTreeSet;
use std::time::Instant;

use crate::support::fleet::{BRINE_ID, Fleet, started};
use crate::support::salt::{FLEET_TIMEOUT, TREE, outcome};
use crate::support::{System, stderr, stdout, text};
use brine_value::{Map, Value, list, map};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_states() {
    let fleet = Fleet::start("", "", TREE).await;
    let mut auths = fleet.system.events("salt/").await;
    fleet.all_answer().await;
    fleet.all_answer().await;
    fleet.system.tool_async("salt-run", &["event.send", "salt/done"]).await;
    // Salt's minions must not receive publishes for Brine's, or they would authenticate again to decrypt them.
    loop {
        let (tag, data) = auths.next().await;
        assert_ne!(tag, "salt/auth", "{data:?}");
        if tag == "salt/done" {
            break;
        }
    }
    for answer in fleet.salt(&["*", "cmd.run", "echo a; echo b"]).await.into_values() {
        assert_eq!(answer, "a\nb".into());
    }
    // Concurrent jobs all arrive in order of their serial numbers.
    let target = &fleet.python[0].id;
    let asked = (0..12).map(async |n| fleet.salt(&[target, "test.echo", &format!("n{n}")]).await);
    for (n, answer) in futures::future::join_all(asked).await.into_iter().enumerate() {
        assert_eq!(answer, map! {target.as_str() => format!("n{n}")});
    }
    // The first run makes changes, the second one does not.
    for changed in [true, false] {
        for (id, returned) in fleet.salt(&["*", "state.apply"]).await {
            for (state, result, changes) in [
                ("first", Value::Bool(true), false),
                ("conf", Value::Bool(true), changed),
                ("late", Value::Bool(true), changed),
                ("broken", Value::Bool(false), false),
                ("never", Value::Bool(false), false),
            ] {
                assert_eq!(outcome(&returned, state), (result, changes), "{id} {state}: {returned}");
            }
            let out = |name: &str| std::fs::read_to_string(fleet.system.path(&format!("{id}/out/{name}"))).unwrap();
            assert_eq!(out("web.conf"), format!("hello {id} of Linux\n"));
            assert_eq!(out("late"), format!("hello {id}\n"));
        }
    }
    for (words, count) in [
        (&["-G", "kernel:Linux", "test.ping"][..], 4),
        (&["-I", "greeting:hello salt*", "test.ping"], 3),
        (&["-C", "salt* and not E@.*3007.*", "test.ping"], 2),
    ] {
        assert_eq!(fleet.salt(words).await.len(), count, "{words:?}");
    }
    let batches = fleet.system.tool_async("salt", &["-b", "2", "*", "test.ping", "--out=txt"]).await;
    let said = stdout(&batches);
    let answered: BTreeSet<String> =
        said.lines().filter_map(|line| Some(line.strip_suffix(": True")?.to_owned())).collect();
    assert_eq!(answered, fleet.ids(), "{said}{}", stderr(&batches));
}

const CUSTOM_MODULES: &[(&str, &str)] = &[
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "greeting: hello\n"),
    ("srv/salt/some/file.txt", "some text\n"),
    ("srv/salt/some/empty", ""),
    ("srv/salt/_grains/owng.py", "def own():\n    return {'own_grain': 'yes'}\n"),
    (
        "srv/salt/_states/owns.py",
        "def done(name):\n    return {'name': name, 'result': True, 'changes': {'a': 'b'}, 'comment': __salt__['own.hi'](name)}\n",
    ),
    ("srv/salt/own.sls", "it: {owns.done: []}\n"),
    (
        "srv/salt/_modules/own.py",
        "import salt.channel.client

def hi(name):
    return 'hi ' + name

def pillar(key):
    return __pillar__.get(key)

def ask(cmd, **fields):
    load = {k: v for k, v in fields.items() if not k.startswith('__')}
    load.update(cmd=cmd, id=__opts__['id'])
    with salt.channel.client.ReqChannel.factory(__opts__) as channel:
        return channel.send(load, timeout=20, tries=1)
",
    ),
];

const PEERS: &str = "file_recv: True
peer: {'salt.*': ['test\\.', {'brine': ['grains.get']}], brine: ['test\\.']}
peer_run: {'.*': ['test.arg', 'manage']}
allow_minion_key_revoke: False
nodegroups: {old: 'salt3006*'}
";

#[tokio::test(flavor = "multi_thread")]
async fn modules_of_the_master_and_pillar_reach_minions() {
    let fleet = Fleet::start("", "", CUSTOM_MODULES).await;
    fleet.python(&["saltutil.sync_all"]).await;
    fleet.assert_python_returns(&["own.hi", "you"], "hi you").await;
    fleet.assert_python_returns(&["grains.get", "own_grain"], "yes").await;
    for returned in fleet.python(&["state.apply", "own"]).await {
        assert_eq!(outcome(&returned, "it"), (true.into(), true));
        assert!(returned.to_string().contains("hi it"), "{returned}");
    }
    // Synchronised grains are known to the master, too.
    assert_eq!(fleet.salt(&["-G", "own_grain:yes", "test.ping"]).await.len(), 3);
    fleet.assert_python_returns(&["own.pillar", "greeting"], "hello").await;
    fleet.system.write("srv/pillar/data.sls", "greeting: welcome\n");
    fleet.assert_python_returns(&["own.pillar", "greeting"], "hello").await;
    fleet.assert_python_returns(&["saltutil.refresh_pillar", "wait=True"], true).await;
    fleet.assert_python_returns(&["own.pillar", "greeting"], "welcome").await;
    // A `salt-call` beside the daemon has its own session, and neither ends the other's.
    for minion in &fleet.python {
        let output = minion.call(&["own.pillar", "greeting"]).await;
        assert!(stdout(&output).contains("welcome"), "{}{}", stdout(&output), stderr(&output));
    }
    fleet.all_answer().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mine_peers_events_and_files() {
    let fleet = Fleet::start(
        PEERS,
        "mine_functions: {test.ping: [], kernel: [{mine_function: grains.get}, kernel]}\n",
        CUSTOM_MODULES,
    )
    .await;
    let python: Vec<String> = fleet.python_ids().into_iter().collect();
    let each = |ids: &[String], value: &dyn Fn(&str) -> Value| -> Map {
        ids.iter().map(|id| (id.as_str().into(), value(id))).collect()
    };
    let fields = |words: &[&str]| -> Vec<String> { words.iter().map(ToString::to_string).collect() };

    // The mine.
    fleet.assert_python_returns(&["mine.update"], true).await;
    fleet.assert_python_returns(&["mine.get", "*", "test.ping"], each(&python, &|_| true.into())).await;
    fleet
        .assert_python_returns(&["mine.get", "kernel:Linux", "kernel", "grain"], each(&python, &|_| "Linux".into()))
        .await;
    fleet.assert_python_returns(&["mine.send", "test.echo", "word"], true).await;
    let both = map! {"test.echo" => each(&python, &|_| "word".into()), "test.ping" => each(&python, &|_| true.into())};
    fleet.assert_python_returns(&["mine.get", "*", "[test.echo, test.ping]"], both).await;
    fleet.assert_python_returns(&["mine.get", "greeting:hel*", "test.echo", "pillar"], map! {}).await;
    fleet
        .assert_python_returns(
            &["mine.get", "greeting:hello", "test.echo", "pillar"],
            each(&python, &|_| "word".into()),
        )
        .await;
    fleet.salt(&[&python[0], "mine.delete", "test.echo"]).await;
    fleet.assert_python_returns(&["mine.get", "*", "test.echo"], each(&python[1..], &|_| "word".into())).await;
    fleet.salt(&[&python[1], "mine.send", "test.echo", "mine", &format!("allow_tgt={}", python[1])]).await;
    let answers = fleet.salt(&["salt*", "mine.get", &python[1], "test.echo"]).await;
    for id in &python {
        let expected = if *id == python[1] {
            map! {id => "mine"}
        } else {
            map! {}
        };
        assert_eq!(answers.get(id.as_str()), Some(&expected.into()), "{id}");
    }
    fleet.salt(&[&python[2], "mine.flush"]).await;
    fleet.assert_python_returns(&["mine.get", &python[2], "test.ping"], map! {}).await;

    // Brine's minion has mine data as the others do, and queries the mine in the same way.
    let brine = async |words: &[&str]| fleet.salt(&[&[BRINE_ID], words].concat()).await.swap_remove(BRINE_ID).unwrap();
    assert_eq!(brine(&["mine.send", "system", "mine_function=grains.get", "kernel"]).await, true.into());
    assert_eq!(brine(&["mine.update", "mine_functions={test.echo: [x]}"]).await, true.into());
    fleet.assert_python_returns(&["mine.get", "*", "system"], map! {BRINE_ID => "Linux"}).await;
    fleet.assert_python_returns(&["mine.get", BRINE_ID, "test.echo"], map! {BRINE_ID => "x"}).await;
    assert_eq!(brine(&["mine.get", "salt*", "test.ping"]).await, each(&python[..2], &|_| true.into()).into());
    assert_eq!(brine(&["mine.flush"]).await, true.into());
    fleet.assert_python_returns(&["mine.get", "*", "system"], map! {}).await;
    let all: Vec<String> = fleet.ids().into_iter().collect();
    let foo = Value::from(each(&all, &|_| "foo".into()));
    assert_eq!(brine(&["publish.publish", "*", "test.echo", "foo", "timeout=40"]).await, foo);
    assert_eq!(brine(&["publish.publish", "*", "cmd.run", "id"]).await, map! {}.into());
    assert_eq!(brine(&["publish.runner", "test.arg", "x"]).await.get("args"), Some(&list!["x"]));

    // Peers: permitted jobs run on all targeted minions.
    let all: Vec<String> = fleet.ids().into_iter().collect();
    fleet
        .assert_python_returns(
            &["publish.publish", "*", "test.echo", "foo", "timeout=40"],
            each(&all, &|_| "foo".into()),
        )
        .await;
    let whole = |_: &str| Value::from(map! {"ret" => "foo"});
    fleet
        .assert_python_returns(&["publish.full_data", "*", "test.echo", "foo", "timeout=40"], each(&all, &whole))
        .await;
    fleet
        .assert_python_returns(
            &["publish.publish", "old", "test.echo", "foo", "nodegroup", "timeout=40"],
            each(&python[..1], &|_| "foo".into()),
        )
        .await;
    fleet
        .assert_python_returns(
            &["publish.publish", BRINE_ID, "grains.get", "kernel", "timeout=40"],
            map! {BRINE_ID => "Linux"},
        )
        .await;
    for refused in [["*", "grains.get", "kernel"], ["*", "cmd.run", "id"], ["*", "publish.publish", "x"]] {
        fleet.assert_python_returns(&[&["publish.publish"], &refused[..]].concat(), map! {}).await;
    }
    fleet
        .assert_python_returns(
            &["publish.runner", "test.arg", "[1, a=b]"],
            map! {"args" => list![1], "kwargs" => map! {"a" => "b"}},
        )
        .await;
    fleet.assert_python_returns(&["publish.runner", "jobs.list_jobs"], map! {}).await;

    // Events are published on the bus.
    let mut events = fleet.system.events("my/tag").await;
    fleet.assert_python_returns(&["event.send", "my/tag", "{a: 1}"], true).await;
    for _ in &python {
        let (_, body) = events.next().await;
        assert!(python.contains(&text(&body, "id")), "{body:?}");
        assert_eq!(body.get("data").and_then(|data| data.get("a")), Some(&1.into()));
    }

    // Files, in both directions.
    let to = fleet.root() + "/copied";
    fleet.assert_python_returns(&["cp.get_file", "salt://some/file.txt", &to], to.as_str()).await;
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "some text\n");
    fleet.assert_python_returns(&["cp.get_file", "salt://some/empty", &to], to.as_str()).await;
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "");
    fleet.assert_python_returns(&["cp.get_file", "salt://none", &to], "").await;
    let large = "a line of a large file\n".repeat(60_000);
    let path = fleet.system.write("large", &large).display().to_string();
    fleet.assert_python_returns(&["cp.push", &path], true).await;
    for id in &python {
        let copy = fleet.system.path(&format!("cache/minions/{id}/files{path}"));
        assert!(std::fs::read_to_string(copy).unwrap() == large, "{id}");
    }

    // Every request, over Salt's own channel.
    fleet.python(&["saltutil.sync_modules"]).await;
    let listed =
        list!["_grains/owng.py", "_modules/own.py", "_states/owns.py", "own.sls", "some/empty", "some/file.txt"];
    let digest = "a23e5fdcd7b276bdd81aa1a0b7b963101863dd3f61ff57935f8c5ba462681ea6";
    for (words, expected) in [
        ("_file_list saltenv=base", listed),
        ("_file_list saltenv=base prefix=some", list!["some/empty", "some/file.txt"]),
        ("_file_list saltenv=other", list![]),
        ("_dir_list saltenv=base", list!["_grains", "_modules", "_states", "some"]),
        ("_file_list_emptydirs saltenv=base", list![]),
        ("_symlink_list saltenv=base", map! {}.into()),
        ("_file_envs", list!["base"]),
        ("_file_hash saltenv=base path=some/file.txt", map! {"hsum" => digest, "hash_type" => "sha256"}.into()),
        ("_file_hash saltenv=base path=none", "".into()),
        ("_serve_file saltenv=base path=none loc=0", map! {"data" => "", "dest" => ""}.into()),
        ("_file_find saltenv=base path=none", map! {"path" => "", "rel" => ""}.into()),
        ("_master_tops", map! {}.into()),
        ("_ext_nodes", map! {}.into()),
        ("_register_resources resources={}", true.into()),
        ("_register_resources", map! {}.into()),
        ("revoke_auth", false.into()),
        ("_syndic_return jid=20261121000000000000 return={}", Value::Nil),
        ("minion_publish fun=test.echo arg=[foo] tgt=brine ret='' tmo=20", map! {BRINE_ID => "foo"}.into()),
        ("minion_publish fun=cmd.run arg=[id] tgt=brine ret=''", map! {}.into()),
        ("pub_ret jid=20261121000000000000", map! {}.into()),
        ("no_such_command", map! {}.into()),
        ("__init__", map! {}.into()),
    ] {
        let words = fields(&words.split_whitespace().collect::<Vec<_>>());
        let words: Vec<&str> = ["own.ask"].into_iter().chain(words.iter().map(String::as_str)).collect();
        fleet.assert_python_returns(&words, expected).await;
    }
    for opts in fleet.python(&["own.ask", "_master_opts"]).await {
        assert_eq!(opts.get("file_roots"), Some(&map! {"base" => list![]}.into()), "{opts}");
        assert_eq!(opts.get("nodegroups"), Some(&map! {"old" => "salt3006*"}.into()), "{opts}");
        assert_eq!(opts.as_map().map(Map::len), Some(16), "{opts}");
    }
    for opts in fleet.python(&["own.ask", "_master_opts", "env_only=True"]).await {
        assert_eq!(opts.as_map().map(Map::len), Some(4), "{opts}");
    }
    for answer in fleet.python(&["own.ask", "_file_hash_and_stat", "saltenv=base", "path=some/file.txt"]).await {
        let parts = answer.as_list().unwrap();
        assert_eq!(parts[0].get("hsum"), Some(&digest.into()));
        assert_eq!(parts[1].as_list().map(<[Value]>::len), Some(10), "{answer}");
    }
    fleet.all_answer().await;
}

/// Returns the minion of a return of this function.
fn returned<'a>(fun: &str, tag: &'a str, data: &Map) -> Option<&'a str> {
    let (_, id) = tag.strip_prefix("salt/job/")?.split_once("/ret/")?;
    (text(data, "fun") == fun).then_some(id)
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_rejected_and_denied_keys_are_handled() {
    let mut fleet = Fleet { python: Vec::new(), system: System::new("") };
    fleet.system.start_master().await;
    let mut events = fleet.system.events("salt/").await;
    fleet.spawn("rejected_retry: True\n");
    let act = |act: &'static str| {
        move |tag: &str, data: &Map| (tag == "salt/auth" && text(data, "act") == act).then(|| text(data, "id"))
    };
    events.until_all(&fleet.ids(), act("pend")).await;
    let key = async |words: &[&str]| {
        let output = fleet.system.tool_async("salt-key", words).await;
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    key(&["-R", "-y"]).await;
    events.until_all(&fleet.ids(), act("reject")).await;
    key(&["-A", "-y", "--include-rejected"]).await;
    // Brine's minion ends when it is rejected, as Salt's do without `rejected_retry`.
    fleet.system.spawn_minion(BRINE_ID);
    events.until_all(&fleet.ids(), started).await;
    fleet.all_answer().await;
    // Another key under a known id.
    let python = fleet.python_ids();
    for minion in &mut fleet.python {
        minion.kill();
        for file in ["minion.pem", "minion.pub"] {
            std::fs::remove_file(fleet.system.path(&format!("{}/pki/{file}", minion.id))).unwrap();
        }
        minion.spawn();
    }
    events.until_all(&python, act("denied")).await;
    let listed = stdout(&fleet.system.tool_async("salt-key", &["-l", "den"]).await);
    assert!(python.iter().all(|id| listed.contains(id.as_str())), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beacons_schedules_and_reactions() {
    let reactor = "reactor:\n  - salt/auth: [ROOT/auth.sls]\n  - salt/minion/*/start: [ROOT/start.sls]\n";
    let system = System::new(reactor);
    let accept = "{% if data['act'] == 'pend' and data['id'].startswith(('salt', 'brine')) %}\naccept:\n  wheel.key.accept: [{match: {{ data['id'] }}}]\n{% endif %}\n";
    for (path, text) in [("auth.sls", accept), ("start.sls", support::START)].iter().chain(TREE) {
        system.write(path, text);
    }
    let mut fleet = Fleet { python: Vec::new(), system };
    fleet.system.start_master().await;
    let mut events = fleet.system.events("salt/").await;
    let minion = "beacons: {status: [{loadavg: [all]}, {interval: 1}]}\nschedule: {often: {function: test.arg, args: [scheduled], seconds: 1}}\n";
    fleet.spawn(minion);
    // Returns arrive in any order.
    let mut missing: BTreeSet<(String, &str)> = BTreeSet::new();
    for id in fleet.python_ids() {
        missing.extend(["highstate", "beacon", "schedule"].map(|what| (id.clone(), what)));
    }
    missing.insert((BRINE_ID.to_owned(), "highstate"));
    let begun = Instant::now();
    while !missing.is_empty() {
        assert!(begun.elapsed() < FLEET_TIMEOUT, "timed out waiting for {missing:?}");
        let (tag, data) = events.next().await;
        if let Some(id) = returned("state.highstate", &tag, &data) {
            let conf = outcome(data.get("return").unwrap(), "conf");
            assert_eq!(conf.0, true.into(), "{data:?}");
            missing.remove(&(id.to_owned(), "highstate"));
        } else if let Some(id) = returned("test.arg", &tag, &data) {
            assert_eq!(text(&data, "schedule"), "often");
            missing.remove(&(id.to_owned(), "schedule"));
        } else if let Some((id, _)) = tag.strip_prefix("salt/beacon/").and_then(|rest| rest.split_once("/status/")) {
            assert!(data.get("data").is_some_and(|data| data.get("loadavg").is_some()), "{data:?}");
            missing.remove(&(id.to_owned(), "beacon"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_survive_restarts_and_key_rotations_of_the_master() {
    let mut fleet = Fleet::start("", "", &[]).await;
    let mut events = fleet.system.events("salt/").await;

    // A job is found and killed.
    let sleeping = stdout(&fleet.system.tool_async("salt", &["salt*", "--async", "test.sleep", "300"]).await);
    let jid = sleeping.trim().rsplit(' ').next().unwrap().to_owned();
    let count_jobs =
        |answers: &[Value]| answers.iter().filter(|job| job.get("jid") == Some(&jid.as_str().into())).count();
    let begun = Instant::now();
    while count_jobs(&fleet.python(&["saltutil.find_job", &jid]).await) < 3 {
        assert!(begun.elapsed() < FLEET_TIMEOUT, "the job is not found");
    }
    for answer in fleet.python(&["saltutil.kill_job", &jid]).await {
        assert!(answer.to_string().starts_with("Signal 9 sent to job"), "{answer}");
    }
    while count_jobs(&fleet.python(&["saltutil.find_job", &jid]).await) > 0 {
        assert!(begun.elapsed() < FLEET_TIMEOUT, "the job does not end");
    }

    // Running minions fetch new keys.
    fleet.system.write("cache/.dfn", "");
    let accepted =
        |tag: &str, data: &Map| (tag == "salt/auth" && text(data, "act") == "accept").then(|| text(data, "id"));
    events.until_all(&fleet.ids(), accepted).await;
    fleet.all_answer().await;

    // The master is down while a job runs: all minions reconnect, and their returns are not lost.
    let flag = fleet.system.path("go-on");
    let running = fleet.system.path("running");
    let wait =
        format!("echo x >> {}; until test -e {}; do sleep 0.1; done; echo done", running.display(), flag.display());
    let published = fleet.system.tool_async("salt", &["*", "--async", "cmd.run", &wait]).await;
    let jid = stdout(&published).trim().rsplit(' ').next().unwrap().to_owned();
    let all = fleet.ids();
    let begun = || std::fs::read_to_string(&running).unwrap_or_default().lines().count();
    support::until("all have begun", || begun() == all.len()).await;
    fleet.system.kill_master();
    std::fs::write(&flag, "").unwrap();
    fleet.system.start_master().await;
    // The first returns arrive before anything can subscribe to the new master's events.
    let (mut missing, begun) = (all.clone(), Instant::now());
    while !missing.is_empty() {
        assert!(begun.elapsed() < FLEET_TIMEOUT, "timed out waiting for {missing:?}");
        let returns = stdout(&fleet.system.tool_async("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).await);
        missing.retain(|id| !returns.contains(&format!("\"{id}\": \"done\"")));
        // Salt's minions may drop a return themselves; it cannot arrive.
        let dropped = |id: &str| fleet.python.iter().any(|minion| minion.id == id && minion.dropped_a_return());
        missing.retain(|id| !dropped(id));
    }
    // Publishes of the new master reach the minions as soon as they have reconnected.
    fleet.until_reached().await;
    fleet.all_answer().await;
}
