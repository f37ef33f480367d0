//! A cluster of three masters on three NATS servers, whose members are killed in turn and cut off under load: no return is
//! lost, and no minion runs a job twice. The figures are printed.
//!
//! A return whose master dies before it has replied is also sent to another master. This causes two events, of which
//! the job caches keep the first.
#![cfg(feature = "messaging")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::support::balancer::Balancer;
use crate::support::nats::{Nats, member, three_servers};
use crate::support::{System, stderr, stdout, until};
use brine_value::{Value, json};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const MINIONS: &[&str] = &["web1", "web2", "web3", "web4", "web5", "web6"];
/// The seconds after which a return is late.
const LATE: f64 = 10.0;

/// Three members, each with its own proxies to the servers, and minions that fail over between them.
struct Cluster {
    members: Vec<System>,
    proxies: Vec<Vec<Balancer>>,
    minions: System,
    _servers: Vec<Nats>,
}

impl Cluster {
    async fn start() -> Self {
        let servers = three_servers().await;
        let (mut members, mut proxies) = (Vec::new(), Vec::new());
        for name in ["m1", "m2", "m3"] {
            let mut own = Vec::new();
            for server in &servers {
                own.push(Balancer::start(0, vec![([127, 0, 0, 1], server.port).into()]).await);
            }
            let ports: Vec<u16> = own.iter().map(|proxy| proxy.port).collect();
            let mut system = member(&ports, name, SECRET, "auto_accept: True\npublish_catch_up: 300\n");
            system.start_master().await;
            members.push(system);
            proxies.push(own);
        }
        let mut minions = System::new("");
        let masters: Vec<String> = members.iter().map(|member| format!("127.0.0.1:{}", member.ret_port)).collect();
        for (number, id) in MINIONS.iter().enumerate() {
            // The first master differs from minion to minion.
            let mut own = masters.clone();
            own.rotate_left(number % 3);
            let extra = format!(
                "master_type: failover\nmaster_alive_interval: 1\nretry_dns: 0\nmaster: [{}]\n",
                own.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join(", ")
            );
            let file = minions.configure_minion(id, "").join("minion");
            let text = std::fs::read_to_string(&file).unwrap();
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("master")).collect();
            std::fs::write(&file, format!("{}\n{extra}", lines.join("\n"))).unwrap();
            minions.spawn_minion(id);
        }
        let cluster = Cluster { members, proxies, minions, _servers: servers };
        for member in &cluster.members {
            until("every minion is present", || present(member) == MINIONS.len()).await;
        }
        cluster
    }

    /// Publishes a job on a member, and returns its id.
    fn publish(&self, at: usize) -> Option<String> {
        let output = self.members[at].tool("salt", &["--async", "*", "test.arg", "load"]);
        let text = stdout(&output);
        text.lines().find_map(|line| line.split("job ID: ").nth(1)).map(str::to_owned)
    }

    /// Publishes this number of jobs on some members in turn. Returns their ids.
    fn load(&self, at: &[usize], jobs: usize) -> Vec<String> {
        (0..jobs).filter_map(|round| self.publish(at[round % at.len()])).collect()
    }

    /// Waits until every member has every return, and returns the figures.
    async fn check(&self, jids: &[String]) -> Figures {
        for member in &self.members {
            let began = Instant::now();
            until("every return is known", || missing(member, jids) == 0 || began.elapsed() > Duration::from_secs(45))
                .await;
        }
        let mut figures = Figures { jobs: jids.len(), ..Figures::default() };
        for member in &self.members {
            figures.lost = figures.lost.max(missing(member, jids));
            let mut returns: BTreeMap<String, usize> = BTreeMap::new();
            let mut published: BTreeMap<String, f64> = BTreeMap::new();
            let mut late = 0;
            for (tag, data) in journal(member) {
                let parts: Vec<&str> = tag.split('/').collect();
                let stamp = seconds(&data);
                match parts[..] {
                    ["salt", "job", jid, "new"] => _ = published.insert(jid.to_owned(), stamp),
                    ["salt", "job", jid, "ret", _] if jids.iter().any(|other| other == jid) => {
                        *returns.entry(tag.clone()).or_default() += 1;
                        late += usize::from(published.get(jid).is_some_and(|began| stamp - began > LATE));
                    }
                    _ => {}
                }
            }
            figures.doubled = figures.doubled.max(returns.values().filter(|count| **count > 1).count());
            figures.late = figures.late.max(late);
        }
        for id in MINIONS {
            let log = self.minions.minion_log(id);
            let received = log.lines().filter_map(|line| line.split("job received jid=").nth(1)?.split(' ').next());
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            received.for_each(|jid| *counts.entry(jid).or_default() += 1);
            assert!(!counts.is_empty(), "the log of {id} names no jobs");
            figures.run_twice += counts.values().filter(|count| **count > 1).count();
            for jid in jids.iter().filter(|jid| !counts.contains_key(jid.as_str())) {
                println!("{id} never received {jid}");
            }
        }
        figures
    }
}

/// Counts of jobs, and of those that a minion ran twice; and the highest counts of a member of lost returns (missing in
/// its job cache), returns with two events, and returns after [`LATE`] seconds.
#[derive(Debug, Default)]
struct Figures {
    jobs: usize,
    run_twice: usize,
    lost: usize,
    doubled: usize,
    late: usize,
}

fn run(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)))
}

fn present(member: &System) -> usize {
    run(member, &["manage.present"]).as_list().map_or(0, <[Value]>::len)
}

/// Returns the number of returns that are missing in a member's job cache.
fn missing(member: &System, jids: &[String]) -> usize {
    let returned = |jid: &String| -> BTreeSet<String> {
        let all = run(member, &["jobs.lookup_jid", jid]);
        all.as_map().into_iter().flatten().map(|(id, _)| id.to_string()).collect()
    };
    jids.iter().map(|jid| MINIONS.len() - returned(jid).len().min(MINIONS.len())).sum()
}

fn journal(system: &System) -> Vec<(String, Value)> {
    let (mut events, mut next) = (Vec::new(), 1);
    loop {
        let page = run(system, &["event_bus.since", &next.to_string(), "limit=1000"]);
        let page = page.as_list().unwrap();
        for event in page {
            events.push((event.get("tag").unwrap().to_string(), event.get("data").unwrap().clone()));
            next = event.get("seq").unwrap().as_i64().unwrap() + 1;
        }
        if page.is_empty() {
            return events;
        }
    }
}

fn seconds(data: &Value) -> f64 {
    let stamp: jiff::civil::DateTime = data.get("_stamp").unwrap().to_string().parse().unwrap();
    stamp.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_millisecond() as f64 / 1000.0
}

#[tokio::test(flavor = "multi_thread")]
async fn each_member_is_killed_in_turn_under_load() {
    let mut cluster = Cluster::start().await;
    let mut jids = Vec::new();
    for dead in 0..3 {
        let others: Vec<usize> = (0..3).filter(|at| *at != dead).collect();
        jids.extend(cluster.load(&[0, 1, 2], 8));
        cluster.members[dead].kill_master();
        jids.extend(cluster.load(&others, 10));
        until("every minion has another master", || present(&cluster.members[others[0]]) == MINIONS.len()).await;
        jids.extend(cluster.load(&others, 10));
        cluster.members[dead].start_master().await;
    }
    let figures = cluster.check(&jids).await;
    println!("members killed in turn: {figures:?}");
    assert!(figures.jobs > 10, "{figures:?}");
    assert_eq!((figures.lost, figures.run_twice), (0, 0), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_member_serves_its_minions_and_catches_up() {
    let cluster = Cluster::start().await;
    let mut jids = cluster.load(&[0, 1, 2], 8);
    for proxy in &cluster.proxies[0] {
        proxy.cut();
    }
    jids.extend(cluster.load(&[0, 1, 2], 15));
    for proxy in &cluster.proxies[0] {
        proxy.restore();
    }
    let figures = cluster.check(&jids).await;
    println!("a member cut off: {figures:?}");
    assert!(figures.jobs > 10, "{figures:?}");
    assert_eq!((figures.lost, figures.run_twice), (0, 0), "{figures:?}");
}
