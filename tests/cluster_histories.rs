//! Histories of concurrent calls on all members of a cluster, while servers and members are killed, paused and cut off:
//! the queues of a cluster are linearizable; keys and tokens, which each member serves from its own store, converge, and
//! what was deleted does not come back; a batch has one owner.
//!
//! `BRINE_HISTORY_SECONDS` sets how long each history is recorded (10).
#![cfg(feature = "messaging")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_value::{Value, json};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::balancer::Balancer;
use crate::support::linearizability::{Operation, Queue, QueueCall, linearization, relevant};
use crate::support::nats::{Nats, member, three_servers};
use crate::support::{BRINE, System, stderr, stdout, until};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Three members, each with its own proxies to three servers.
struct Cluster {
    members: Vec<System>,
    proxies: Vec<Vec<Balancer>>,
    servers: Vec<Nats>,
}

/// What happens to a cluster while a history is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ServerKilled,
    MemberKilled,
    MemberPaused,
    MemberCutOff,
}

impl Cluster {
    async fn start() -> Self {
        let servers = three_servers().await;
        for server in &servers {
            server.until_current().await;
        }
        let (mut members, mut proxies) = (Vec::new(), Vec::new());
        for name in ["m1", "m2", "m3"] {
            let mut own = Vec::new();
            for server in &servers {
                own.push(Balancer::start(0, vec![([127, 0, 0, 1], server.port).into()]).await);
            }
            let ports: Vec<u16> = own.iter().map(|proxy| proxy.port).collect();
            let mut system = member(&ports, name, SECRET, "auto_accept: True\n");
            system.start_master().await;
            members.push(system);
            proxies.push(own);
        }
        Cluster { members, proxies, servers }
    }

    fn signal(&self, at: usize, signal: Signal) {
        kill(Pid::from_raw(self.members[at].master_pid().cast_signed()), signal).unwrap();
    }

    /// Lets a fault happen for a third of this time, in its middle.
    async fn suffer(&mut self, fault: Fault, at: usize, time: Duration) {
        tokio::time::sleep(time / 3).await;
        match fault {
            Fault::ServerKilled => self.servers[at].kill(),
            Fault::MemberKilled => self.members[at].kill_master(),
            Fault::MemberPaused => self.signal(at, Signal::SIGSTOP),
            Fault::MemberCutOff => self.proxies[at].iter().for_each(Balancer::cut),
        }
        tokio::time::sleep(time / 3).await;
        match fault {
            Fault::ServerKilled => self.servers[at].restart().await,
            Fault::MemberKilled => self.members[at].start_master().await,
            Fault::MemberPaused => self.signal(at, Signal::SIGCONT),
            Fault::MemberCutOff => self.proxies[at].iter().for_each(Balancer::restore),
        }
        tokio::time::sleep(time / 3).await;
    }
}

/// Runs a runner function on a member by its configuration. Returns `None` without an answer or with an error: then the
/// effect of the call is unknown.
async fn call(etc: &str, words: &[&str]) -> Option<Value> {
    let mut command = tokio::process::Command::new(BRINE);
    command.args(["salt-run", "-c", etc, "--out=json"]).args(words).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.ok()?.ok()?;
    if !output.status.success() {
        return None;
    }
    json::from_json(&stdout(&output)).ok()
}

/// Records calls of one client on one member until `ends`.
async fn client(etc: String, clock: Arc<AtomicU64>, next: Arc<AtomicU32>, ends: Instant) -> Vec<Operation<QueueCall>> {
    let mut history = Vec::new();
    let mut pops = false;
    while Instant::now() < ends {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        pops = !pops;
        let (unknown, answer) = if pops {
            (
                QueueCall::Pop(None),
                call(&etc, &["queue.pop", "work"]).await.and_then(|items| {
                    let items = items.as_list()?.to_vec();
                    let item = items.first().map(|item| item.to_string().trim_start_matches("item").parse());
                    Some(QueueCall::Pop(Some(item.transpose().ok()?)))
                }),
            )
        } else {
            let item = next.fetch_add(1, Ordering::SeqCst);
            let answer = call(&etc, &["queue.insert", "work", &format!("item{item}")]).await;
            (QueueCall::Insert(item, None), answer.map(|answer| QueueCall::Insert(item, Some(answer == true.into()))))
        };
        let ended = answer.is_some().then(|| clock.fetch_add(1, Ordering::SeqCst));
        if ended.is_none() {
            // A member that is away refuses at once.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        history.push(Operation { call: answer.unwrap_or(unknown), began, ended });
    }
    history
}

fn duration() -> Duration {
    Duration::from_secs(std::env::var("BRINE_HISTORY_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10))
}

async fn queue_history(fault: Fault) {
    let mut cluster = Cluster::start().await;
    let (clock, next, ends) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU32::new(1)), Instant::now() + duration());
    let clients: Vec<_> = (0..6)
        .map(|at| tokio::spawn(client(cluster.members[at % 3].etc(), Arc::clone(&clock), Arc::clone(&next), ends)))
        .collect();
    cluster.suffer(fault, 1, duration()).await;
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.unwrap());
    }
    // What is left belongs to the history.
    let mut left = None;
    for _ in 0..120 {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let answer = call(&cluster.members[0].etc(), &["queue.pop", "work"]).await;
        let Some(item) = answer.as_ref().and_then(Value::as_list).map(|items| items.first().cloned()) else {
            history.push(Operation { call: QueueCall::Pop(None), began, ended: None });
            continue;
        };
        let item = item.map(|item| item.to_string().trim_start_matches("item").parse().unwrap());
        let ended = Some(clock.fetch_add(1, Ordering::SeqCst));
        history.push(Operation { call: QueueCall::Pop(Some(item)), began, ended });
        left = item;
        if item.is_none() {
            break;
        }
    }
    assert_eq!(left, None, "the queue was emptied");
    let answered = history.iter().filter(|operation| operation.ended.is_some()).count();
    println!("{fault:?}: {} calls, {answered} answered", history.len());
    assert!(answered > 10, "{history:?}");
    let history = relevant(history);
    assert!(linearization::<Queue>(&history).is_some(), "{fault:?}: {history:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_server_is_killed() {
    queue_history(Fault::ServerKilled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_member_is_killed() {
    queue_history(Fault::MemberKilled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_member_is_paused() {
    queue_history(Fault::MemberPaused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_member_is_cut_off() {
    queue_history(Fault::MemberCutOff).await;
}

/// Returns the keys of each state on a member.
fn keys(system: &System) -> Value {
    let output = system.tool("salt-key", &["-L", "--out=json"]);
    json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_converge_and_deleted_ones_stay_deleted() {
    let mut cluster = Cluster::start().await;
    for at in 0..6 {
        let key = std::fs::read(cluster.members[0].path("pki/master.pub")).unwrap();
        let directory = cluster.members[0].path("pki/minions_pre");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("minion{at}")), key).unwrap();
    }
    assert!(cluster.members[0].tool("salt-key", &["-L"]).status.success());
    until("all members have the keys", || {
        cluster.members.iter().all(|member| keys(member) == keys(&cluster.members[0]))
    })
    .await;
    let pending = keys(&cluster.members[0]);
    assert_eq!(pending.get("minions_pre").and_then(Value::as_list).map(<[Value]>::len), Some(6), "{pending:?}");
    for (fault, deleted) in
        [(Fault::MemberCutOff, "minion0"), (Fault::MemberPaused, "minion1"), (Fault::ServerKilled, "minion2")]
    {
        let etc: Vec<String> = cluster.members.iter().map(System::etc).collect();
        let ends = Instant::now() + duration();
        // Members 0 and 2 accept and reject the other keys all the time.
        let changes: Vec<_> = [0, 2]
            .into_iter()
            .map(|at| {
                let etc = etc[at].clone();
                tokio::spawn(async move {
                    let mut accepts = false;
                    while Instant::now() < ends {
                        accepts = !accepts;
                        let what = if accepts { "-a" } else { "-r" };
                        let mut command = tokio::process::Command::new(BRINE);
                        command.args(["salt-key", "-c", &etc, "-y", "--include-all", what, "minion[345]"]);
                        _ = tokio::time::timeout(Duration::from_secs(20), command.output()).await;
                    }
                })
            })
            .collect();
        let removal = async {
            tokio::time::sleep(duration() / 2).await;
            let mut command = tokio::process::Command::new(BRINE);
            command.args(["salt-key", "-c", &etc[0], "-y", "-d", deleted]);
            assert!(command.output().await.unwrap().status.success());
        };
        tokio::join!(cluster.suffer(fault, 1, duration()), removal);
        for change in changes {
            change.await.unwrap();
        }
        until("all members have the same keys", || {
            let first = keys(&cluster.members[0]);
            cluster.members.iter().all(|member| keys(member) == first)
        })
        .await;
        let all = format!("{:?}", keys(&cluster.members[1]));
        assert!(!all.contains(deleted), "{fault:?}: {all}");
        assert!(all.contains("minion3") && all.contains("minion5"), "{fault:?}: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_one_owner_though_a_paused_one_comes_back() {
    let mut cluster = Cluster::start().await;
    let ids: Vec<String> = (0..4).map(|number| format!("web{number}")).collect();
    // All minions belong to a member that stays.
    for id in &ids {
        cluster.members[2].start_minion(id).await;
    }
    until("all members reach the minions", || {
        cluster.members.iter().all(|member| {
            let present = member.tool("salt-run", &["manage.present", "--out=json"]);
            json::from_json(&stdout(&present)).ok().and_then(|ids| Some(ids.as_list()?.len())) == Some(4)
        })
    })
    .await;
    let marks = cluster.members[2].path("marks");
    let command = format!("echo ran >>{}; sleep 2", marks.display());
    let begun = cluster.members[0].tool("salt", &["--async", "--batch-size", "1", "*", "cmd.run", &command]);
    assert!(begun.status.success(), "{}{}", stdout(&begun), stderr(&begun));
    let ran = || std::fs::read_to_string(&marks).unwrap_or_default().lines().count();
    until("the first minion runs it", || ran() >= 1).await;
    cluster.signal(0, Signal::SIGSTOP);
    until("another member has taken the batch over", || ran() >= 3).await;
    cluster.signal(0, Signal::SIGCONT);
    until("all minions have run it", || ran() >= 4).await;
    // The former owner learns that it is no longer the owner, and publishes nothing more.
    let answered = cluster.members[0].tool("salt-run", &["manage.present", "--out=json"]);
    assert!(answered.status.success());
    until("nothing runs any more", || {
        let running = cluster.members[2].tool("salt", &["*", "saltutil.running", "--out=json", "--static"]);
        json::from_json(&stdout(&running)).ok().is_some_and(|all| {
            all.as_map().is_some_and(|all| all.values().all(|jobs| jobs.as_list().is_some_and(<[Value]>::is_empty)))
        })
    })
    .await;
    assert_eq!(ran(), 4);
}
