//! Output of runner functions by `salt-run`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use brine_value::json::from_json;
use support::{System, stderr, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn static_output_is_one_document() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    for (words, expected) in [
        (&["-v", "web1", "test.ping"][..], "{\n    \"web1\": true\n}\n"),
        (&["--show-jid", "web1", "test.ping"], "{\n    \"web1\": true\n}\n"),
        (&["-L", "gone", "test.ping", "-t", "1"], "{}\n"),
    ] {
        let output = system.tool("salt", &[words, &["--static", "--out=json"]].concat());
        let shown = stdout(&output);
        assert!(shown.ends_with(expected), "{words:?}: {shown}{}", stderr(&output));
        assert!(shown == expected || words.contains(&"gone"), "{words:?}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_functions_of_a_fleet() {
    let mut system = System::start("owner: {name: ops}\n").await;
    system.write("srv/pillar/top.sls", "base: {'web1': [web], 'role:db': [{match: grain}, db]}\n");
    system.write("srv/pillar/web.sls", "port: 80\n");
    system.start_minion("web1").await;
    system.configure_minion("db1", "grains: {role: db}\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("db1");
    events.until("salt/minion/db1/start").await;
    assert!(system.tool("salt", &["*", "mine.send", "test.echo", "hello"]).status.success());
    assert!(
        system
            .tool("salt", &["*", "mine.send", "secret", "mine_function=test.echo", "x", "allow_tgt=db1"])
            .status
            .success()
    );
    let output = system.tool("salt-run", &["jobs.list_jobs_filter", "1", "--out=json"]);
    let jobs = from_json(&stdout(&output)).unwrap();
    assert_eq!(jobs.as_list().unwrap()[0].get("Function"), Some(&"mine.send".into()), "{jobs}");
    assert!(jobs.as_list().unwrap()[0].get("JID").is_some(), "{jobs}");
    for (words, expected) in [
        (&["manage.present"][..], r#"["db1", "web1"]"#),
        (&["manage.alived", "subset=[web1, none]"], r#"["web1"]"#),
        (&["manage.not_present"], "[]"),
        (&["cache.grains", "role:db", "tgt_type=grain"], r#"{"db1": {"role": "db"}}"#),
        (&["pillar.show_top"], r#"{"base": {"web1": ["web"], "role:db": [{"match": "grain"}, "db"]}}"#),
        (&["cache.pillar", "tgt=web1"], r#"{"web1": {"port": 80}}"#),
        (&["mine.get", "*", "test.echo"], r#"{"db1": "hello", "web1": "hello"}"#),
        (&["mine.get", "web*", "test.echo,secret"], r#"{"test.echo": {"web1": "hello"}, "secret": {"web1": "x"}}"#),
        (&["mine.update", "web1", "mine_functions={test.ping: []}"], r#"{"web1": true}"#),
        (&["cache.clear_mine_func", "tgt=web1", "clear_mine_func_flag=secret"], "true"),
        (&["mine.get", "*", "[secret]"], r#"{"secret": {"db1": "x"}}"#),
        (&["cache.clear_mine", "tgt=*"], "true"),
        (&["cache.mine"], r#"{"db1": {}, "web1": {}}"#),
        (&["config.get", "owner:name"], r#""ops""#),
        (&["config.get", "nosuch", "none"], r#""none""#),
        (&["salt.cmd", "test.echo", "text=hi"], r#""hi""#),
        (&["salt.cmd", "nosuch.func"], r#""'nosuch.func' is not available.""#),
        (&["salt.execute", "web*", "test.echo", "arg=[hi]"], r#"{"web1": "hi"}"#),
        (&["salt.execute", "web*", "test.echo", "kwarg={text: hi}"], r#"{"web1": "hi"}"#),
        (&["survey.hash", "*", "test.echo", "text=hi"], r#"[{"pool": ["db1", "web1"], "result": "hi"}]"#),
    ] {
        let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
        let (shown, expected) = (stdout(&output), from_json(expected).unwrap());
        let mut value = from_json(&shown).unwrap_or_else(|_| panic!("{words:?}: {shown}{}", stderr(&output)));
        if words[0] == "cache.grains" {
            value.as_map_mut().unwrap()["db1"].as_map_mut().unwrap().retain(|name, _| name.to_string() == "role");
        }
        assert_eq!(value, expected, "{words:?}");
    }
}
