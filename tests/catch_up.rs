//! Jobs that were published while a minion was disconnected (`publish_catch_up`): below a syndic, with several masters,
//! and requested by a hostile minion.

use crate::support;

use std::time::{Duration, Instant};

use crate::support::proxy::{Mode, Proxy};
use crate::support::syndic::{Syndic, below};
use crate::support::{System, stdout, until};
use brine_ids::Jid;
use brine_value::{Value, list, map, msgpack};
use brine_wire::{Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};

/// Longer than a test takes on a busy machine.
const WINDOW: &str = "publish_catch_up: 300\n";

/// Publishes a job that appends this word to the file `ran`, and returns its id.
async fn publish(system: &System, ran: &System, word: &str) -> Jid {
    publish_as(system, ran, word, Jid::new()).await
}

/// Publishes a job as [`publish`], with this id.
async fn publish_as(system: &System, ran: &System, word: &str, jid: Jid) -> Jid {
    let mut request = PublishRequest::new("m1", "cmd.run", "root");
    request.jid = Some(jid.clone());
    request.key = Some(system.root_key());
    request.arg = vec![format!("echo {word} >> {}", ran.path("ran").display()).into()];
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let answer = client.request(Envelope::clear(request.to_map()), support::TIMEOUT).await.unwrap();
    let answer = msgpack::unpack(&answer).unwrap().to_string();
    assert!(answer.contains(jid.as_str()), "{word}: {answer}");
    jid
}

/// Returns the words that jobs have written, sorted: jobs run at the same time.
fn ran(system: &System) -> Vec<String> {
    let text = std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    let mut words: Vec<String> = text.lines().map(str::to_owned).collect();
    words.sort();
    words
}

/// Waits until these jobs have run, each once.
async fn until_ran(system: &System, words: &[&str]) {
    let started = Instant::now();
    while ran(system) != words {
        assert!(started.elapsed() < support::TIMEOUT, "expected {words:?}, got {:?}", ran(system));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_below_a_syndic_runs_missed_jobs_once() {
    let upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{WINDOW}")).await;
    let mut lower = below(&[upper.ret_port], WINDOW);
    lower.start_master().await;
    lower.start_minion("m1").await;
    let (mut started, mut jobs) = (upper.events("salt/syndic/").await, lower.events("salt/job/").await);
    let mut syndic = Syndic::start(&lower, "s1").await;
    started.until("salt/syndic/s1/start").await;
    let words = ["1", "2", "3", "4", "5"];
    let file = lower.path("ran").display().to_string();
    let publish = async |word: &str| {
        let command = format!("echo {word} >> {file}");
        let output = stdout(&upper.tool_async("salt", &["--async", "m1", "cmd.run", &command]).await);
        output.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned()
    };
    publish(words[0]).await;
    until_ran(&lower, &words[..1]).await;
    // The minion is stopped.
    lower.kill_minion("m1");
    let jid = publish(words[1]).await;
    jobs.until(&format!("salt/job/{jid}/publish")).await;
    lower.spawn_minion("m1");
    until_ran(&lower, &words[..2]).await;
    // The syndic is stopped.
    syndic.kill();
    until("the upper master notices", || {
        stdout(&upper.tool("salt", &["-t", "1", "--out=txt", "m1", "test.ping"])).trim() != "m1: True"
    })
    .await;
    publish(words[2]).await;
    let mut syndic = Syndic::start(&lower, "s1").await;
    until_ran(&lower, &words[..3]).await;
    // Both are stopped, and start again in either order.
    for (word, minion_first) in [(3, true), (4, false)] {
        lower.kill_minion("m1");
        syndic.kill();
        let jid = publish(words[word]).await;
        if minion_first {
            let mut starts = lower.events("salt/minion/").await;
            lower.spawn_minion("m1");
            starts.until("salt/minion/m1/start").await;
        }
        syndic = Syndic::start(&lower, "s1").await;
        if !minion_first {
            jobs.until(&format!("salt/job/{jid}/publish")).await;
            lower.spawn_minion("m1");
        }
        until_ran(&lower, &words[..=word]).await;
    }
    let returned = stdout(&upper.tool("salt", &["--out=txt", "m1", "test.ping"]));
    assert_eq!(returned.trim(), "m1: True");
    assert_eq!(ran(&lower), words);
}

/// TwoMasters independent masters with one key pair, and a proxy in front of each.
struct TwoMasters {
    systems: Vec<System>,
    proxies: Vec<Proxy>,
}

impl TwoMasters {
    /// Starts the masters, and the minion m1 in the first directory.
    async fn start(extra: &str) -> Self {
        let first = System::start(WINDOW).await;
        let mut second = System::new(&format!("auto_accept: True\n{WINDOW}"));
        for file in ["master.pem", "master.pub"] {
            std::fs::create_dir_all(second.path("pki")).unwrap();
            std::fs::copy(first.path("pki").join(file), second.path("pki").join(file)).unwrap();
        }
        second.start_master().await;
        let mut proxies = Vec::new();
        for system in [&first, &second] {
            proxies.push(Proxy::start(system.ret_port).await);
        }
        let mut two = TwoMasters { systems: vec![first, second], proxies };
        let ports =
            two.proxies.iter().map(|proxy| format!("'127.0.0.1:{}'", proxy.port)).collect::<Vec<_>>().join(", ");
        // Publishes do not pass through the proxies: the minion notices a cut by its checks (`master_alive_interval`).
        let more = format!("master: [{ports}]\nauth_timeout: 1\nmaster_alive_interval: 1\n{WINDOW}{extra}");
        two.systems[0].configure_minion("m1", &more);
        // `configure_minion` has written a `master` option, too; it is removed.
        let path = two.systems[0].path("m1/etc/minion");
        let text = std::fs::read_to_string(&path).unwrap().replace("master: 127.0.0.1\n", "");
        std::fs::write(path, text).unwrap();
        two.systems[0].spawn_minion("m1");
        two
    }

    /// Cuts the minion off from a master.
    fn close(&self, master: usize) {
        self.proxies[master].set(Mode::Refuse);
        self.proxies[master].cut();
    }

    fn open(&self, master: usize) {
        self.proxies[master].set(Mode::Pass);
    }

    /// Waits until the minion has lost its masters this many times.
    async fn until_lost(&self, times: usize) {
        until("the minion notices", || {
            self.systems[0].minion_log("m1").matches("the connection to the master is lost").count() >= times
        })
        .await;
    }

    async fn publish(&self, master: usize, word: &str) -> Jid {
        publish(&self.systems[master], &self.systems[0], word).await
    }

    async fn publish_as(&self, master: usize, word: &str, jid: Jid) {
        publish_as(&self.systems[master], &self.systems[0], word, jid).await;
    }

    async fn until_ran(&self, words: &[&str]) {
        until_ran(&self.systems[0], words).await;
    }

    /// Waits until the minion serves a master.
    async fn until_serves(&self, master: usize) {
        until("the minion serves the master", || {
            let output = self.systems[master].tool("salt", &["--out=txt", "-t", "1", "m1", "test.ping"]);
            stdout(&output).trim() == "m1: True"
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_delivers_missed_jobs_once() {
    let mut two = TwoMasters::start("master_type: failover\n").await;
    two.until_serves(0).await;
    let shared = two.publish(0, "a1").await;
    two.until_ran(&["a1"]).await;
    two.close(0);
    two.until_serves(1).await;
    // The minion uses the second master. The job that the first one publishes now is older than the minion's last job.
    two.publish(0, "a2").await;
    two.publish(1, "b1").await;
    two.until_ran(&["a1", "b1"]).await;
    two.close(1);
    two.until_lost(2).await;
    two.publish(1, "b2").await;
    two.publish(0, "a3").await;
    // The second master publishes a job with an id that the minion has already run for the first one.
    two.publish_as(1, "again", shared).await;
    two.open(0);
    two.until_ran(&["a1", "a2", "a3", "b1"]).await;
    two.publish(0, "a4").await;
    two.until_ran(&["a1", "a2", "a3", "a4", "b1"]).await;
    two.close(0);
    two.open(1);
    two.until_ran(&["a1", "a2", "a3", "a4", "b1", "b2"]).await;
    // After a restart the minion uses the first master again; the jobs that the second one published meanwhile are
    // older.
    two.systems[0].stop_minion("m1");
    two.publish(1, "b3").await;
    two.publish(0, "a5").await;
    two.open(0);
    two.systems[0].spawn_minion("m1");
    two.until_ran(&["a1", "a2", "a3", "a4", "a5", "b1", "b2"]).await;
    two.close(0);
    two.until_ran(&["a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3"]).await;
    two.until_serves(1).await;
    two.until_ran(&["a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returning_master_of_several_delivers_missed_jobs_once() {
    let mut two = TwoMasters::start("").await;
    two.until_serves(0).await;
    two.until_serves(1).await;
    two.publish(0, "a1").await;
    two.publish(1, "b1").await;
    two.until_ran(&["a1", "b1"]).await;
    two.close(0);
    two.until_lost(1).await;
    two.publish(0, "a2").await;
    let shared = two.publish(1, "b2").await;
    two.until_ran(&["a1", "b1", "b2"]).await;
    two.publish_as(0, "again", shared).await;
    two.open(0);
    two.until_ran(&["a1", "a2", "b1", "b2"]).await;
    // The minion stops, too, and starts again before the master is reachable.
    two.close(0);
    two.systems[0].stop_minion("m1");
    two.publish(0, "a3").await;
    two.systems[0].spawn_minion("m1");
    two.until_serves(1).await;
    two.publish(1, "b3").await;
    two.until_ran(&["a1", "a2", "b1", "b2", "b3"]).await;
    two.open(0);
    two.until_ran(&["a1", "a2", "a3", "b1", "b2", "b3"]).await;
    two.until_serves(0).await;
    two.until_ran(&["a1", "a2", "a3", "b1", "b2", "b3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_minion_receives_no_jobs_of_others_and_blocks_no_requests() {
    let mut system = System::start("").await;
    system.start_minion("m1").await;
    let rogue = system.channel("rogue", "aes-256-gcm");
    rogue.authenticate().await.unwrap();
    // Large jobs, and targets of several kinds.
    let large = "x".repeat(100_000);
    for _ in 0..16 {
        assert!(system.tool_async("salt", &["--async", "m1", "test.echo", &large]).await.status.success());
    }
    for words in [&["-L", "m1,m2"][..], &["-E", "m.*"], &["-C", "m1 or m2"], &["m*"]] {
        let words = [&["--async"], words, &["test.ping"]].concat();
        assert!(system.tool_async("salt", &words).await.status.success());
    }
    let ask = |more: Value| {
        let mut load = map! {"cmd" => "_catch_up"};
        load.extend(more.as_map().unwrap().clone());
        rogue.request(load)
    };
    for claim in [
        map! {},
        map! {"jid" => ""},
        map! {"jid" => "20200101000000000000"},
        map! {"jid" => "", "away" => i64::MAX},
        map! {"jid" => "20200101000000000000", "away" => i64::MAX},
        map! {"id" => "m1", "jid" => "", "tgt" => "m1"},
    ] {
        assert_eq!(ask(claim.clone().into()).await.unwrap(), list![], "{claim:?}");
    }
    for invalid in [map! {"jid" => "../x"}, map! {"away" => -1}, map! {"away" => "x"}, map! {"jid" => 5.5}] {
        assert_eq!(ask(invalid.clone().into()).await.unwrap(), Value::map(), "{invalid:?}");
    }
    // During endless requests of the hostile minion, others are served.
    let endless = async {
        loop {
            futures::future::join_all((0..50).map(|_| ask(map! {"jid" => "20200101000000000000"}.into()))).await;
        }
    };
    let pings = async {
        for _ in 0..5 {
            let output = system.tool_async("salt", &["--out=txt", "m1", "test.ping"]).await;
            assert_eq!(stdout(&output).trim(), "m1: True");
        }
    };
    tokio::select! {
        () = endless => {}
        () = pings => {}
    }
    assert!(!system.master_log().contains("panicked"));
}
