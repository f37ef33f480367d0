//! Third-party packages: `saltext-*` from PyPI on a Brine master and minion, with a real Redis server for those that
//! need one.

use crate::support::salt;

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{System, free_port, stdout, until};
use brine_value::{Value, map};

const PACKAGES: [&str; 9] = [
    "saltext-redis==1.0.2",
    "saltext-vault==1.8.0",
    "saltext-consul==1.1.0",
    "saltext-zabbix==1.0.0",
    "saltext-prometheus==2.2.0",
    "saltext-telegram==1.0.0",
    "saltext-influxdb==1.0.0",
    "saltext-pushover==2.0.0",
    "saltext-mongodb==1.0.0",
];

/// A Redis server on a port of its own.
struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    async fn start(directory: &Path) -> Self {
        let port = free_port();
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server must be installed (Debian's package redis-server)");
        until("Redis answers", || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Redis { process, port }
    }

    fn cli(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(words).output().unwrap();
        stdout(&output).trim().to_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extension_packages_are_called_on_master_and_minion() {
    let venv = salt::environment_with("saltext", "3008.5", &PACKAGES);
    let directory = tempfile::tempdir().unwrap();
    let redis = Redis::start(directory.path()).await;
    let python = format!("python_host: {{venv: {}}}\npython_fallback: True\n", venv.display());
    let redis_options = format!("redis.host: 127.0.0.1\nredis.port: {}\nredis.db: 0\n", redis.port);
    redis.cli(&["HSET", "m1", "color", "blue"]);
    // An external pillar of saltext-redis, on the master.
    let vault = "vault: {auth: {token: unused}, server: {url: 'http://127.0.0.1:1'}}\n";
    let mut system = System::start(&format!(
        "{python}{redis_options}{vault}ext_pillar:\n- redis: {{function: key_value}}\nengines: [test]\n"
    ))
    .await;
    system.write("srv/salt/keys.sls", "greeting:\n  redis.string:\n    - value: hello\n");
    // A beacon of saltext-vault, which refuses this configuration.
    system.configure_minion(
        "m1",
        &format!("{python}{redis_options}vault: {{config_location: local}}\nbeacons: {{vault_lease: [{{interval: 1}}]}}\nloop_interval: 1\n"),
    );
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    let call = |words: &[&str]| {
        let words = [&["-t", "60", "m1"], words].concat();
        system.salt_json(&words).get("m1").cloned().unwrap_or_else(|| panic!("{words:?}"))
    };

    // Execution functions: one that reaches its server, and several whose result or error shows that they ran.
    assert_eq!(call(&["redis.ping"]), true.into());
    assert_eq!(call(&["redis.get_key", "nothing"]), Value::Nil);
    assert_eq!(call(&["consul.list"]).get("message"), Some(&"No Consul URL found.".into()));
    assert_eq!(call(&["zabbix.compare_params", "{a: 1}", "{a: 1}"]), map! {}.into());
    for (words, part) in [
        (&["vault.query", "GET", "a/b"][..], "Invalid vault configuration: auth:token is required"),
        (&["influxdb.list_dbs"], "port=8086"),
    ] {
        let answer = call(words).to_string();
        assert!(answer.contains(part), "{words:?}: {answer}");
    }
    let listed = call(&["sys.list_functions", "mongodb", "pushover"]).to_string();
    for name in ["mongodb.db_list", "pushover.post_message"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    let spec = call(&["sys.argspec", "telegram.post_message"]).to_string();
    assert!(spec.contains("chat_id"), "{spec}");

    // A state.
    let applied = call(&["state.apply", "keys"]);
    let (_, state) = applied.as_map().unwrap_or_else(|| panic!("{applied}")).first().unwrap();
    assert_eq!(state.get("changes"), Some(&map! {"greeting" => "Value updated"}.into()), "{state}");
    assert_eq!(redis.cli(&["GET", "greeting"]), "hello");

    // The external pillar, and the beacon's validation of its configuration.
    let pillar = call(&["slsutil.renderer", "string={{ pillar.get('redis_pillar', pillar)['color'] == 'blue' }}"]);
    assert_eq!(pillar, true.into());
    until("the beacon's check is asked", || {
        system.minion_log("m1").contains("Requires monitored lease(s) cache key(s) in `leases`")
    })
    .await;

    // A runner function.
    let policies = stdout(&system.tool("salt-run", &["--out=json", "vault.show_policies", "m1"]));
    assert!(policies.contains("saltstack/minions"), "{policies}{}", system.master_log());

    // The engine `test` of the package `salt` itself still runs.
    assert!(!system.master_log().contains("engine ended"), "{}", system.master_log());
}
