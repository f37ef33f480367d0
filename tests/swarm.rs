//! `brine swarm`: simulated minions of either cipher on one master.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::{BRINE, System};
use brine_value::Value;

/// A swarm, killed on drop.
struct Swarm(Child);

impl Swarm {
    fn start(system: &System, cipher: &str) -> Self {
        let port = system.ret_port.to_string();
        let words = ["swarm", "--port", &port, "--minions", "20", "--cipher", cipher, "--prefix", cipher, "--json"];
        let keys = system.path(&format!("swarm-{cipher}"));
        let mut child = Command::new(BRINE).args(words).arg("--dir").arg(keys).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"minions\": 20,"), "{line}");
        Swarm(child)
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_minions_of_both_ciphers_coexist() {
    let mut system = System::start("").await;
    let _swarms = ["aes-256-gcm", "aes-192-cbc-hmac"].map(|cipher| Swarm::start(&system, cipher));
    system.start_minion("real").await;
    let pinged = system.salt_json(&["*", "test.ping"]);
    let pinged = pinged.as_map().unwrap();
    assert_eq!(pinged.len(), 41);
    assert!(pinged.values().all(|value| *value == Value::Bool(true)), "{pinged:?}");
    let applied = system.salt_json(&["aes-256-gcm7", "state.apply"]);
    assert_eq!(applied.get("aes-256-gcm7").unwrap().as_map().unwrap().len(), 4);
}
