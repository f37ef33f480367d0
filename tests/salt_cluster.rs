//! Minions of Salt and of Brine behind a load balancer in front of the members of a cluster.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::support::balancer::Balancer;
use crate::support::nats::{Nats, member};
use crate::support::salt::PythonMinion;
use crate::support::{System, stdout, until};
use brine_value::{Value, json};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Returns the ids that return a ping.
fn pinged(system: &System) -> Vec<String> {
    let output = system.tool("salt", &["--static", "--out=json", "-t", "20", "*", "test.ping"]);
    // While no minion is known, the output is not JSON.
    let all = json::from_json(&stdout(&output)).ok().and_then(|all| all.as_map().cloned()).unwrap_or_default();
    let mut ids: Vec<String> =
        all.iter().filter(|(_, value)| **value == Value::Bool(true)).map(|(id, _)| id.to_string()).collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_of_both_kinds_work_through_a_round_robin_proxy() {
    let nats = Nats::start().await;
    let mut members = Vec::new();
    for (number, name) in (1_u8..).zip(["m1", "m2", "m3"]) {
        let system = member(&[nats.port], name, SECRET, "auto_accept: True\n");
        members.push((system, format!("127.0.0.{}", 10 + number)));
    }
    // As in production, all members and the proxy have the same ports, each on its own address, because masters send
    // minions their own publish port.
    let (publish, requests) = (members[0].0.publish_port, members[0].0.ret_port);
    for (system, host) in &mut members {
        (system.publish_port, system.ret_port) = (publish, requests);
        let file = system.path("etc/master");
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !["interface:", "publish_port:", "ret_port:"].iter().any(|name| line.starts_with(name)))
            .collect();
        let ports = format!("interface: {host}\npublish_port: {publish}\nret_port: {requests}\n");
        std::fs::write(&file, format!("{}\n{ports}", lines.join("\n"))).unwrap();
        system.start_master().await;
    }
    let to = |port: u16| -> Vec<SocketAddr> {
        members.iter().map(|(_, host)| SocketAddr::new(host.parse().unwrap(), port)).collect()
    };
    let (for_publish, for_requests) =
        (Balancer::start(publish, to(publish)).await, Balancer::start(requests, to(requests)).await);
    let mut python = Vec::new();
    for id in ["salt1", "salt2"] {
        let mut minion = PythonMinion::new(&members[0].0, id, "3008.5", "");
        minion.spawn();
        python.push(minion);
    }
    for id in ["brine1", "brine2", "brine3"] {
        members[0].0.configure_minion(id, "");
        members[0].0.spawn_minion(id);
    }
    let ids = ["brine1", "brine2", "brine3", "salt1", "salt2"];
    for (member, _) in &members {
        until("every minion is reached", || pinged(member) == ids).await;
        let applied = member.salt_json(&["-t", "30", "*", "state.single", "test.nop", "name=x"]);
        assert_eq!(applied.as_map().map(brine_value::Map::len), Some(ids.len()), "{applied:?}");
    }
    for proxy in [&for_publish, &for_requests] {
        let used = proxy.counts.iter().filter(|count| count.load(Ordering::Relaxed) > 0).count();
        assert!(used >= 2, "the proxy used {used} members");
    }
    // A member is killed: its minions reconnect through the proxy to other members.
    members[0].0.kill_master();
    let (survivor, _) = &members[1];
    until("every minion is reached again", || pinged(survivor) == ids).await;
    let listed = stdout(&survivor.tool("salt-key", &["-l", "acc"]));
    assert!(ids.iter().all(|id| listed.contains(id)), "{listed}");
}
