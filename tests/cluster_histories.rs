//! Histories of concurrent calls on all members of a cluster, while servers and members are killed, paused and cut off and
//! a clock jumps: the queues of a cluster are linearizable; so is each key and user with one writer, though each member
//! serves them from its own store; what was deleted does not come back; a batch has one owner.
//!
//! `BRINE_HISTORY_SECONDS` sets how long each history is recorded (10).
#![cfg(feature = "messaging")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_value::{Value, json};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::balancer::Balancer;
use crate::support::clock::Clock;
use crate::support::linearizability::{
    Operation, Queue, QueueCall, Register, RegisterCall, comes_and_goes_once, linearization, relevant,
};
use crate::support::nats::{Nats, member, three_servers};
use crate::support::{BRINE, System, stderr, stdout, until};

const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Three members, each with its own proxies to three servers.
struct Cluster {
    members: Vec<System>,
    proxies: Vec<Vec<Balancer>>,
    servers: Vec<Nats>,
    /// The clock of [`VICTIM`].
    clock: Clock,
}

/// The member or server to which faults happen.
const VICTIM: usize = 1;

/// What happens to a cluster while a history is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ServerKilled,
    ServerPaused,
    /// No member reaches it, but the other servers do.
    ServerCutOff,
    MemberKilled,
    MemberPaused,
    MemberCutOff,
    /// One hour back, then two hours forward.
    ClockJumps,
}

impl Cluster {
    async fn start(extra: &str) -> Self {
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
            members.push(member(&ports, name, SECRET, &format!("auto_accept: True\n{extra}")));
            proxies.push(own);
        }
        let clock = Clock::build(&members[VICTIM].path("clock")).unwrap();
        let mut cluster = Cluster { members, proxies, servers, clock };
        for at in 0..3 {
            cluster.start_member(at).await;
        }
        cluster
    }

    async fn start_member(&mut self, at: usize) {
        let clock = if at == VICTIM { self.clock.environment() } else { Vec::new() };
        let clock: Vec<_> = clock.iter().map(|(name, path)| (name.as_str(), path.to_str().unwrap())).collect();
        self.members[at].start_master_with(&clock).await;
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.members[VICTIM].master_pid().cast_signed()), signal).unwrap();
    }

    fn server_proxies(&self) -> impl Iterator<Item = &Balancer> {
        self.proxies.iter().map(|own| &own[VICTIM])
    }

    fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::ServerKilled => self.servers[VICTIM].kill(),
            Fault::ServerPaused => self.servers[VICTIM].signal(Signal::SIGSTOP),
            Fault::ServerCutOff => self.server_proxies().for_each(Balancer::cut),
            Fault::MemberKilled => self.members[VICTIM].kill_master(),
            Fault::MemberPaused => self.signal(Signal::SIGSTOP),
            Fault::MemberCutOff => self.proxies[VICTIM].iter().for_each(Balancer::cut),
            Fault::ClockJumps => self.clock.set(-3600).unwrap(),
        }
    }

    async fn end(&mut self, fault: Fault) {
        match fault {
            Fault::ServerKilled => self.servers[VICTIM].restart().await,
            Fault::ServerPaused => self.servers[VICTIM].signal(Signal::SIGCONT),
            Fault::ServerCutOff => self.server_proxies().for_each(Balancer::restore),
            Fault::MemberKilled => self.start_member(VICTIM).await,
            Fault::MemberPaused => self.signal(Signal::SIGCONT),
            Fault::MemberCutOff => self.proxies[VICTIM].iter().for_each(Balancer::restore),
            Fault::ClockJumps => self.clock.set(3600).unwrap(),
        }
    }

    /// Lets a fault happen for a third of this time, in its middle.
    async fn suffer(&mut self, fault: Fault, time: Duration) {
        tokio::time::sleep(time / 3).await;
        self.begin(fault);
        tokio::time::sleep(time / 3).await;
        self.end(fault).await;
        tokio::time::sleep(time / 3).await;
    }
}

/// Runs a runner function on a member by its configuration. Returns `None` without an answer or with an error: then the
/// effect of the call is unknown.
async fn call(etc: &str, words: &[&str]) -> Option<Value> {
    tool(etc, "salt-run", words).await
}

/// Runs a program of a member as [`call`].
async fn tool(etc: &str, program: &str, words: &[&str]) -> Option<Value> {
    json::from_json(&printed(etc, program, words).await?).ok()
}

/// Returns what a program of a member prints; `None` if it fails or takes long.
async fn printed(etc: &str, program: &str, words: &[&str]) -> Option<String> {
    let mut command = tokio::process::Command::new(BRINE);
    command.args([program, "-c", etc, "--out=json"]).args(words).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.ok()?.ok()?;
    output.status.success().then(|| stdout(&output))
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
    let mut cluster = Cluster::start("").await;
    let (clock, next, ends) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU32::new(1)), Instant::now() + duration());
    let clients: Vec<_> = (0..6)
        .map(|at| tokio::spawn(client(cluster.members[at % 3].etc(), Arc::clone(&clock), Arc::clone(&next), ends)))
        .collect();
    cluster.suffer(fault, duration()).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_server_is_paused() {
    queue_history(Fault::ServerPaused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_server_is_cut_off() {
    queue_history(Fault::ServerCutOff).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_linearizable_while_a_clock_jumps() {
    queue_history(Fault::ClockJumps).await;
}

/// The lists of keys, by the values of a [`Register`] that is a key; 0 is none of them.
const LISTS: [&str; 3] = ["minions_pre", "minions", "minions_rejected"];

/// Returns the list that a key is in, on a member.
async fn key_list(etc: &str, id: &str) -> Option<u32> {
    let keys = tool(etc, "salt-key", &["-L"]).await?;
    let has = |list: &str| keys.get(list).and_then(Value::as_list).is_some_and(|ids| ids.contains(&id.into()));
    Some(LISTS.iter().position(|list| has(list)).map_or(0, |at| u32::try_from(at).unwrap() + 1))
}

/// Returns whether a user has a token, on a member.
async fn has_token(etc: &str, user: &str) -> Option<u32> {
    let tokens = call(etc, &["auth.list_tokens", &format!("user={user}")]).await?;
    Some(u32::from(!tokens.as_map()?.is_empty()))
}

/// A value with one writer, which each member serves from its own store.
#[derive(Debug, Clone)]
enum Shared {
    /// The list that a key is in.
    Key(String),
    /// Whether a user has a token.
    User(String),
}

impl Shared {
    async fn read(&self, etc: &str) -> Option<u32> {
        match self {
            Shared::Key(id) => key_list(etc, id).await,
            Shared::User(user) => has_token(etc, user).await,
        }
    }

    /// Writes another value. Returns it, and whether that was acknowledged.
    async fn change(&self, etc: &str, round: u32) -> (u32, bool) {
        match self {
            Shared::Key(id) => {
                let (what, value) = if round.is_multiple_of(2) { ("-a", 2) } else { ("-r", 3) };
                (value, printed(etc, "salt-key", &["-y", "--include-all", what, id]).await.is_some())
            }
            Shared::User(user) if round.is_multiple_of(2) => {
                let login = ["-T", "-a", "file", "--username", user, "--password", "one", "test.arg"];
                (1, call(etc, &login).await.is_some())
            }
            Shared::User(user) => (0, call(etc, &["auth.del_tokens", user]).await.is_some()),
        }
    }
}

/// Changes and reads a value on one member until `ends`.
async fn writer(etc: String, value: Shared, clock: Arc<AtomicU64>, ends: Instant) -> Vec<Operation<RegisterCall>> {
    let mut history = Vec::new();
    for round in 0.. {
        if Instant::now() >= ends {
            break;
        }
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let (written, acknowledged) = value.change(&etc, round).await;
        let ended = acknowledged.then(|| clock.fetch_add(1, Ordering::SeqCst));
        history.push(Operation { call: RegisterCall::Write(written), began, ended });
        let began = clock.fetch_add(1, Ordering::SeqCst);
        if let Some(read) = value.read(&etc).await {
            let ended = Some(clock.fetch_add(1, Ordering::SeqCst));
            history.push(Operation { call: RegisterCall::Read(read), began, ended });
        } else {
            // A member that is away refuses at once.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    history
}

/// Returns the digests of the tokens that a member lists, again and again until `ends`.
async fn token_watcher(etc: String, ends: Instant) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    while Instant::now() < ends {
        if let Some(tokens) = call(&etc, &["auth.list_tokens"]).await {
            seen.push(tokens.as_map().unwrap().keys().map(ToString::to_string).collect());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    seen
}

const USERS: &str = "external_auth:\n  file:\n    ^filename: ROOT/users\n    user0: ['@runner']\n    user1: ['@runner']\n    \
                     user2: ['@runner']\ntoken_file: ROOT/token\n";

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_are_as_last_written_and_deleted_ones_stay_deleted() {
    let mut cluster = Cluster::start(USERS).await;
    for member in &cluster.members {
        member.write("users", "user0:one\nuser1:one\nuser2:one\n");
    }
    for id in ["both", "key0", "key1", "key2", "gone0", "gone1", "gone2", "gone3", "gone4", "gone5"] {
        let key = std::fs::read(cluster.members[0].path("pki/master.pub")).unwrap();
        let directory = cluster.members[0].path("pki/minions_pre");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(id), key).unwrap();
    }
    let etc: Vec<String> = cluster.members.iter().map(System::etc).collect();
    for etc in &etc {
        agree(|| async { key_list(etc, "gone5").await == Some(1) }, "the keys are known").await;
    }
    let faults = [
        Fault::ServerPaused,
        Fault::MemberCutOff,
        Fault::MemberPaused,
        Fault::MemberKilled,
        Fault::ServerKilled,
        Fault::ClockJumps,
    ];
    let mut watched = vec![Vec::new(); 3];
    for (number, fault) in faults.into_iter().enumerate() {
        let (clock, ends) = (Arc::new(AtomicU64::new(1)), Instant::now() + duration());
        let shared = |at: usize| [Shared::Key(format!("key{at}")), Shared::User(format!("user{at}"))];
        let mut writers = Vec::new();
        for (at, etc) in etc.iter().enumerate() {
            for value in shared(at) {
                // The value that the writer finds belongs to its history.
                let initial = value.read(etc).await.unwrap();
                let task = tokio::spawn(writer(etc.clone(), value.clone(), Arc::clone(&clock), ends));
                writers.push((value, initial, task));
            }
        }
        // A key with two writers ends in one of its lists on all members.
        let both = Shared::Key("both".to_owned());
        let rivals = [0, 2].map(|at| tokio::spawn(writer(etc[at].clone(), both.clone(), Arc::clone(&clock), ends)));
        let watchers: Vec<_> = etc.iter().map(|etc| tokio::spawn(token_watcher(etc.clone(), ends))).collect();
        let deleted = format!("gone{number}");
        let removal = async {
            tokio::time::sleep(duration() / 2).await;
            assert!(printed(&etc[0], "salt-key", &["-y", "-d", &deleted]).await.is_some());
        };
        tokio::join!(cluster.suffer(fault, duration()), removal);
        for (at, watcher) in watchers.into_iter().enumerate() {
            watched[at].extend(watcher.await.unwrap());
        }
        for (value, initial, writer) in writers {
            let mut history = vec![Operation { call: RegisterCall::Write(initial), began: 0, ended: Some(0) }];
            history.extend(writer.await.unwrap());
            let answered = history.iter().filter(|one| one.ended.is_some()).count();
            println!("{fault:?}: {} calls, {answered} answered", history.len());
            let last = agreed(&value, &etc).await;
            let began = clock.fetch_add(1, Ordering::SeqCst);
            history.push(Operation { call: RegisterCall::Read(last), began, ended: Some(began) });
            assert!(answered > 4, "{fault:?}: {history:#?}");
            assert!(linearization::<Register>(&history).is_some(), "{fault:?}: {history:#?}");
        }
        for rival in rivals {
            rival.await.unwrap();
        }
        assert!([2, 3].contains(&agreed(&both, &etc).await), "{fault:?}");
        for etc in &etc {
            agree(|| async { key_list(etc, &deleted).await == Some(0) }, "the deleted key is gone").await;
        }
    }
    for etc in &etc {
        for number in 0..faults.len() {
            assert_eq!(key_list(etc, &format!("gone{number}")).await, Some(0));
        }
    }
    // A member that has seen a token go never shows it again.
    for seen in watched {
        let all: BTreeSet<&String> = seen.iter().flatten().collect();
        assert!(all.len() > 4, "{seen:?}");
        for digest in all {
            assert!(comes_and_goes_once(seen.iter().map(|tokens| tokens.contains(digest))), "{digest} {seen:#?}");
        }
    }
}

/// Waits until a condition holds.
async fn agree<F: Future<Output = bool>>(holds: impl Fn() -> F, what: &str) {
    let end = Instant::now() + crate::support::TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < end, "timed out waiting: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Waits until all members have the same value, twice in succession, and returns it.
async fn agreed(value: &Shared, etc: &[String]) -> u32 {
    let end = Instant::now() + crate::support::TIMEOUT;
    let mut before = None;
    loop {
        let mut all = Vec::new();
        for etc in etc {
            all.push(value.read(etc).await);
        }
        let now = all[0].filter(|_| all.iter().all(|one| *one == all[0]));
        if let Some(now) = now
            && before == Some(now)
        {
            return now;
        }
        before = now;
        assert!(Instant::now() < end, "the members do not agree on {value:?}: {all:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_one_owner_though_the_former_one_comes_back() {
    let mut cluster = Cluster::start("").await;
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
    for fault in [
        Fault::MemberPaused,
        Fault::MemberCutOff,
        Fault::MemberKilled,
        Fault::ServerPaused,
        Fault::ServerCutOff,
        Fault::ClockJumps,
    ] {
        let marks = cluster.members[2].path(&format!("marks-{fault:?}"));
        let command = format!("echo ran >>{}; sleep 2", marks.display());
        let begun = cluster.members[VICTIM].tool("salt", &["--async", "--batch-size", "1", "*", "cmd.run", &command]);
        assert!(begun.status.success(), "{}{}", stdout(&begun), stderr(&begun));
        let ran = || std::fs::read_to_string(&marks).unwrap_or_default().lines().count();
        until("the first minion runs it", || ran() >= 1).await;
        cluster.begin(fault);
        until("the batch goes on", || ran() >= 3).await;
        cluster.end(fault).await;
        until("all minions have run it", || ran() >= 4).await;
        // The former owner learns that it is no longer the owner, and publishes nothing more.
        agree(|| async { call(&cluster.members[VICTIM].etc(), &["manage.present"]).await.is_some() }, "it answers")
            .await;
        until("nothing runs any more", || {
            let running = cluster.members[2].tool("salt", &["*", "saltutil.running", "--out=json", "--static"]);
            json::from_json(&stdout(&running)).ok().is_some_and(|all| {
                all.as_map().is_some_and(|all| all.values().all(|jobs| jobs.as_list().is_some_and(<[Value]>::is_empty)))
            })
        })
        .await;
        assert_eq!(ran(), 4, "{fault:?}");
    }
}
