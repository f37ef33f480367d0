//! `sdb` with real databases: an etcd server, and SQLite between master and minion.

use std::process::{Child, Command, Stdio};

use crate::support::{System, free_port, stderr, stdout, until};
use brine_value::json::from_json;

/// An etcd server in a directory of its own.
struct Etcd {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Etcd {
    async fn start() -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("brine-etcd").tempdir().unwrap();
        let (port, peer) = (free_port(), free_port());
        let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        let child = Command::new("etcd")
            .args(["--data-dir", directory.path().to_str().unwrap(), "--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}")])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let etcd = Etcd { child: child.ok()?, port, _directory: directory };
        until("etcd accepts connections", || etcd.ctl(&["endpoint", "health"]).is_some()).await;
        Some(etcd)
    }

    /// Runs etcd's own client and returns its output.
    fn ctl(&self, words: &[&str]) -> Option<String> {
        let endpoint = format!("--endpoints=http://127.0.0.1:{}", self.port);
        let output = Command::new("etcdctl").env("ETCDCTL_API", "3").arg(endpoint).args(words).output().unwrap();
        output.status.success().then(|| stdout(&output))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn run(system: &System, words: &[&str]) -> brine_value::Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{words:?}: {}{}", stdout(&output), stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_stores_values() {
    let Some(etcd) = Etcd::start().await else {
        assert!(std::env::var_os("BRINE_CI").is_none(), "etcd is not installed");
        return;
    };
    let port = etcd.port;
    let system = System::start(&format!(
        "store: {{driver: etcd, etcd.host: 127.0.0.1, etcd.port: {port}}}\n\
         plain: {{driver: etcd, etcd.port: {port}, etcd.encode_values: False}}\n"
    ))
    .await;
    for (words, expected) in [
        (&["sdb.get", "sdb://store/a/key"][..], "null"),
        (&["sdb.set", "sdb://store/a/key", "{user: é}"], r#"{"user": "é"}"#),
        (&["sdb.get", "sdb://store/a/key"], r#"{"user": "é"}"#),
        (&["sdb.set", "sdb://plain/text", "hello"], r#""hello""#),
        (&["sdb.get", "sdb://store/text"], r#""hello""#),
        (&["sdb.delete", "sdb://store/a/key"], "true"),
        (&["sdb.get", "sdb://store/a/key"], "null"),
    ] {
        assert_eq!(run(&system, words), from_json(expected).unwrap(), "{words:?}");
    }
    assert_eq!(etcd.ctl(&["get", "text", "--print-value-only"]).unwrap(), "hello\n");
    drop(etcd);
    let output = system.tool("salt-run", &["sdb.get", "sdb://plain/text"]);
    assert!(!output.status.success() && stdout(&output).contains("etcd at http://127.0.0.1"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_in_sqlite_reach_pillar_and_states() {
    let mut system = System::start("store: {driver: sqlite3, database: ROOT/sdb.sqlite}\n").await;
    let database = system.path("sdb.sqlite").display().to_string();
    assert_eq!(run(&system, &["sdb.set", "sdb://store/password", "xyzzy"]), true.into());
    system.write("srv/pillar/top.sls", "base: {'*': [secrets]}\n");
    system.write("srv/pillar/secrets.sls", "word: {{ salt['sdb.get']('sdb://store/password') }}\n");
    system.write("srv/salt/show.sls", "{{ salt['sdb.get']('sdb://own/password') }}:\n  test.nop\n");
    system.configure_minion(
        "web1",
        &format!("own: {{driver: sqlite3, database: '{database}'}}\nwanted: sdb://own/password\n"),
    );
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    for words in
        [&["pillar.get", "word", "unmask=True"][..], &["config.get", "wanted"], &["sdb.get", "sdb://own/password"]]
    {
        assert_eq!(system.salt_json(&[&["web1"], words].concat()).get("web1"), Some(&"xyzzy".into()), "{words:?}");
    }
    let states = system.salt_json(&["web1", "state.apply", "show"]).to_string();
    assert!(states.contains("'__id__': 'xyzzy'"), "{states}");
}
