//! A minion with several masters, one at a time (`master_type: failover`) or all at once: masters that are killed, hang,
//! are unresolvable, refuse the minion, and come back.

use crate::support;

use std::time::{Duration, Instant};

use crate::support::proxy::{Mode, Proxy};
use crate::support::{Events, System, stdout};
use brine_value::Value;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const START: &str = "salt/minion/m1/start";

/// Several masters with one key pair.
async fn masters(count: usize) -> Vec<System> {
    let mut all = vec![System::start("").await];
    for _ in 1..count {
        let mut other = System::new("auto_accept: True\n");
        for file in ["master.pem", "master.pub"] {
            std::fs::create_dir_all(other.path("pki")).unwrap();
            std::fs::copy(all[0].path("pki").join(file), other.path("pki").join(file)).unwrap();
        }
        other.start_master().await;
        all.push(other);
    }
    all
}

async fn events(all: &[System]) -> Vec<Events> {
    let mut events = Vec::new();
    for system in all {
        events.push(system.events("salt/minion/").await);
    }
    events
}

/// Starts the minion m1 in the first directory, with `before` in front of the addresses of all masters; it uses one
/// master at a time.
fn start(all: &mut [System], before: &str, extra: &str) {
    start_with(all, before, &format!("master_type: failover\n{extra}"));
}

/// Starts the minion m1 in the first directory, with `before` in front of the addresses of all masters.
fn start_with(all: &mut [System], before: &str, extra: &str) {
    let ports: Vec<String> = all.iter().map(|system| format!("'127.0.0.1:{}'", system.ret_port)).collect();
    let more = format!("master: [{before}{}]\nauth_timeout: 1\n{extra}", ports.join(", "));
    all[0].configure_minion("m1", &more);
    // `configure_minion` has written a `master` option, too; it is removed.
    let path = all[0].path("m1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap().replace("master: 127.0.0.1\n", "");
    std::fs::write(path, text).unwrap();
    all[0].spawn_minion("m1");
}

/// Calls a function on the minion and returns its result.
fn returned(system: &System, words: &[&str]) -> Value {
    let all = system.salt_json(&[&["m1"], words].concat());
    all.get("m1").cloned().unwrap_or_default()
}

fn answers(system: &System) -> bool {
    system.salt_json(&["m1", "test.ping"]).get("m1") == Some(&true.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_fails_over_through_all_masters_in_turn() {
    let mut all = masters(3).await;
    let mut events = events(&all).await;
    start(&mut all, "", "");
    events[0].until(START).await;
    assert!(answers(&all[0]));

    let killed = Instant::now();
    all[0].kill_master();
    events[1].until(START).await;
    assert!(killed.elapsed() < Duration::from_secs(3), "the failover took {:?}", killed.elapsed());
    assert!(answers(&all[1]));

    // The loss of the second master is noticed like that of the first.
    all[1].kill_master();
    events[2].until(START).await;
    assert!(answers(&all[2]));

    // All masters are down; the minion waits, and uses the first one that is back.
    all[2].kill_master();
    all[1].start_master().await;
    let mut second = all[1].events("salt/minion/").await;
    second.until(START).await;
    assert!(answers(&all[1]));
    assert!(all[0].minion_log("m1").contains("the master does not serve this minion"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unresolvable_and_unreachable_masters_are_skipped_at_startup() {
    let mut all = masters(2).await;
    all[0].kill_master();
    let mut second = all[1].events("salt/minion/").await;
    start(&mut all, "no-such-host.invalid, ", "");
    second.until(START).await;
    assert!(answers(&all[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_leaves_a_hanging_master_and_fails_back_to_the_first() {
    let mut all = masters(2).await;
    let mut events = events(&all).await;
    start(&mut all, "", "master_alive_interval: 1\nmaster_failback: True\nmaster_failback_interval: 1\n");
    events[0].until(START).await;
    assert!(answers(&all[0]));
    let first = Pid::from_raw(i32::try_from(all[0].master_pid()).unwrap());
    kill(first, Signal::SIGSTOP).unwrap();
    events[1].until(START).await;
    assert!(answers(&all[1]));
    kill(first, Signal::SIGCONT).unwrap();
    events[0].until(START).await;
    assert!(answers(&all[0]));
    assert!(all[0].minion_log("m1").contains("has not answered for 1s"));
    // After two more checks there was no further start. There is no event to wait for.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let log = all[0].minion_log("m1");
    assert_eq!(log.matches("the minion is ready").count(), 3, "{log}");
}

/// A fault of a master.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Killed,
    Hung,
    /// The connections stay open without traffic.
    Blackholed,
    /// Another master, with another key, takes its address.
    Replaced,
}

impl Fault {
    async fn begin(self, system: &mut System, proxy: &Proxy) {
        match self {
            Fault::Killed => system.kill_master(),
            Fault::Hung => kill(pid(system), Signal::SIGSTOP).unwrap(),
            Fault::Blackholed => proxy.set(Mode::Stall),
            Fault::Replaced => {
                system.kill_master();
                std::fs::rename(system.path("pki"), system.path("pki.real")).unwrap();
                system.start_master().await;
            }
        }
    }

    async fn end(self, system: &mut System, proxy: &Proxy) {
        match self {
            Fault::Killed => system.start_master().await,
            Fault::Hung => kill(pid(system), Signal::SIGCONT).unwrap(),
            Fault::Blackholed => {
                proxy.set(Mode::Pass);
                proxy.cut();
            }
            Fault::Replaced => {
                system.kill_master();
                std::fs::remove_dir_all(system.path("pki")).unwrap();
                std::fs::rename(system.path("pki.real"), system.path("pki")).unwrap();
                system.start_master().await;
            }
        }
    }
}

fn pid(system: &System) -> Pid {
    Pid::from_raw(i32::try_from(system.master_pid()).unwrap())
}

/// Two of three masters fail, in every order: each time the minion changes to the third one. All are behind proxies
/// that delay the traffic, and an unresolvable name precedes them in the list.
async fn two_of_three_fail_in_every_order(fault: Fault) {
    let mut all = masters(3).await;
    let mut proxies = Vec::new();
    for system in &all {
        let proxy = Proxy::start(system.ret_port).await;
        proxy.delay(Duration::from_millis(30));
        proxies.push(proxy);
    }
    let ports: Vec<String> = proxies.iter().map(|proxy| format!("'127.0.0.1:{}'", proxy.port)).collect();
    let more = format!(
        "master: ['no-such-host.invalid', {}]\nmaster_type: failover\nauth_timeout: 1\nmaster_alive_interval: 1\n",
        ports.join(", ")
    );
    all[0].configure_minion("m1", &more);
    let path = all[0].path("m1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap().replace("master: 127.0.0.1\n", "");
    std::fs::write(path, text).unwrap();
    let mut events = all[0].events("salt/minion/").await;
    all[0].spawn_minion("m1");
    // From here on the minion trusts the masters' key.
    events.until(START).await;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let [first, second, left] = order;
        for failed in [first, second] {
            fault.begin(&mut all[failed], &proxies[failed]).await;
        }
        // On a master that the minion has not reached yet, `salt` prints no return.
        let is_served = || {
            let output = all[left].tool("salt", &["--out=txt", "-t", "1", "m1", "test.ping"]);
            stdout(&output).trim() == "m1: True"
        };
        support::until(&format!("{fault:?} {order:?}: the third master has the minion"), is_served).await;
        for failed in [second, first] {
            fault.end(&mut all[failed], &proxies[failed]).await;
        }
    }
    let log = all[0].minion_log("m1");
    assert!(log.contains("no-such-host.invalid") && !log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_masters_are_killed_in_every_order() {
    two_of_three_fail_in_every_order(Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_masters_hang_in_every_order() {
    two_of_three_fail_in_every_order(Fault::Hung).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_masters_are_blackholed_in_every_order() {
    two_of_three_fail_in_every_order(Fault::Blackholed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_masters_are_replaced_in_every_order() {
    two_of_three_fail_in_every_order(Fault::Replaced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn master_that_rejected_the_minion_is_skipped() {
    let mut all = masters(2).await;
    let mut events = events(&all).await;
    start(&mut all, "", "");
    events[0].until(START).await;
    assert!(all[0].tool("salt-key", &["-y", "-r", "m1", "--include-accepted"]).status.success());
    events[1].until(START).await;
    assert!(answers(&all[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_masters_publish_jobs_and_receive_events_and_mine_data() {
    let mut all = masters(3).await;
    for (number, system) in all.iter().enumerate() {
        system.write("srv/pillar/top.sls", "base: {'*': [own]}\n");
        system.write("srv/pillar/own.sls", &format!("number: {number}\n"));
        system.write("srv/salt/where.txt", &format!("file {number}"));
    }
    let mut events = events(&all).await;
    let fired: Vec<Events> = futures::future::join_all(all.iter().map(|system| system.events("my/"))).await;
    start_with(&mut all, "no-such-host.invalid, ", "mine_functions: {test.ping: []}\n");
    for events in &mut events {
        events.until(START).await;
    }
    for (number, system) in all.iter().enumerate() {
        assert!(answers(system));
        assert!(returned(system, &["match.pillar", &format!("number:{number}")]).is_truthy());
        assert_eq!(returned(system, &["cp.get_file_str", "salt://where.txt"]), format!("file {number}").into());
        assert_eq!(returned(system, &["config.get", "master_port"]), i64::from(system.ret_port).into());
    }
    assert!(returned(&all[1], &["event.send", "my/event", "{a: 1}"]).is_truthy());
    for mut fired in fired {
        assert_eq!(fired.until("my/event").await.1.get("data").and_then(|data| data.get("a")).cloned(), Some(1.into()));
    }
    for system in &all {
        let mined = || system.tool("salt-run", &["mine.get", "m1", "test.ping", "--out=json"]);
        support::until("the mine has the minion's data", || stdout(&mined()).contains("true")).await;
    }
    // A running job is seen by all.
    let job = all[0].tool("salt", &["--async", "m1", "test.sleep", "20"]);
    assert!(job.status.success());
    support::until("the job of one master is seen by another", || {
        returned(&all[1], &["saltutil.is_running", "test.sleep"]).as_list().is_some_and(|jobs| jobs.len() == 1)
    })
    .await;
    returned(&all[2], &["saltutil.kill_all_jobs"]);
    support::until("the job of another master is killed", || {
        returned(&all[1], &["saltutil.is_running", "test.sleep"]).as_list().is_some_and(<[Value]>::is_empty)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_masters_do_not_affect_the_others() {
    let mut all = masters(3).await;
    let mut events = events(&all).await;
    start_with(&mut all, "", "master_alive_interval: 1\nstartup_states: sls\nsls_list: [none]\n");
    for events in &mut events {
        events.until(START).await;
    }
    // One master hangs and one is killed: the third one still serves the minion, and events are kept for the others.
    let first = Pid::from_raw(i32::try_from(all[0].master_pid()).unwrap());
    kill(first, Signal::SIGSTOP).unwrap();
    all[1].kill_master();
    assert!(answers(&all[2]));
    let asked = Instant::now();
    assert!(returned(&all[2], &["event.send", "my/event"]).is_truthy());
    assert!(asked.elapsed() < Duration::from_secs(5), "an event took {:?}", asked.elapsed());
    all[1].start_master().await;
    kill(first, Signal::SIGCONT).unwrap();
    // In the journal: it may have arrived before anybody could subscribe.
    let journal =
        |system: &System| stdout(&system.tool("salt-run", &["--out=json", "event_bus.since", "1", "limit=1000"]));
    support::until("the second master has the event", || journal(&all[1]).contains("my/event")).await;
    for system in &all {
        support::until("all masters serve the minion again", || answers(system)).await;
    }
    // Rejected by one master, the minion stays with the others, and returns to that master when it is accepted there.
    assert!(all[2].tool("salt-key", &["-y", "-r", "m1", "--include-accepted"]).status.success());
    assert!(all[2].tool("salt", &["m1", "test.ping", "--timeout=1"]).status.code() != Some(0));
    assert!(answers(&all[0]) && answers(&all[1]));
    assert!(all[2].tool("salt-key", &["-y", "-a", "m1", "--include-rejected"]).status.success());
    support::until("the master serves the minion again", || answers(&all[2])).await;
    let log = all[0].minion_log("m1");
    assert_eq!(log.matches("user=\"startup_states\"").count() + log.matches("fun=\"state.sls\"").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn master_type_func_takes_the_masters_from_a_function() {
    let mut all = masters(2).await;
    let mut events = events(&all).await;
    let ports = all.iter().map(|system| format!("127.0.0.1:{}", system.ret_port)).collect::<Vec<_>>();
    let code = format!("def addresses():\n    return {ports:?}\n");
    all[0].write("own/_modules/inventory.py", &code);
    start_with(&mut all, "", "master_type: func\nmodule_dirs: [ROOT/own/_modules]\n");
    let path = all[0].path("m1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once("master: [").unwrap();
    let after = after.split_once(']').unwrap().1;
    // The address of a master in place of a function is an error of one sentence.
    support::until("the list is refused", || all[0].minion_log("m1").contains("option 'master'")).await;
    all[0].stop_minion("m1");
    std::fs::write(&path, format!("{before}master: inventory.addresses{after}")).unwrap();
    all[0].spawn_minion("m1");
    for events in &mut events {
        events.until(START).await;
    }
    assert!(answers(&all[0]) && answers(&all[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_without_a_master_runs_its_schedule_with_its_own_files_and_pillar() {
    let mut system = System::new("");
    system.write("own/salt/top.sls", "base: {'*': [a]}\n");
    let state = "ROOT/done:\n  file.managed: [{contents: {{ pillar['word'] }}}]\n";
    system.write("own/salt/a.sls", state);
    system.write("own/pillar/top.sls", "base: {'*': [p]}\n");
    system.write("own/pillar/p.sls", "word: own\nschedule: {often: {function: state.apply, seconds: 1}}\n");
    let roots = "file_roots: {base: [ROOT/own/salt]}\npillar_roots: {base: [ROOT/own/pillar]}\n";
    system.configure_minion("m1", &format!("master_type: disable\n{roots}"));
    system.spawn_minion("m1");
    let marker = system.path("done");
    support::until("the scheduled states have run", || {
        std::fs::read_to_string(&marker).is_ok_and(|text| text == "own\n")
    })
    .await;
    let log = system.minion_log("m1");
    assert!(log.contains("without a master") && !log.contains("ERROR"), "{log}");
    let minion = system.path("m1/etc").display().to_string();
    let called = system.tool("salt-call", &["-c", &minion, "match.pillar", "word:own", "--out=json"]);
    assert!(stdout(&called).contains("true"), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_connects_from_its_source_address() {
    let mut system = System::start("presence_events: True\n").await;
    let source = support::free_port();
    system.configure_minion("m1", &format!("source_address: 127.0.0.9\nsource_publish_port: {source}\n"));
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until(START).await;
    assert!(answers(&system));
    let output = system.tool("salt-run", &["manage.alived", "show_ip=True", "--out=json"]);
    assert!(stdout(&output).contains("127.0.0.9"), "{}", stdout(&output));
    let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let hex = format!("0900007F:{source:04X}");
    assert!(connections.contains(&hex), "no connection from {hex}: {connections}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_connects_from_its_ports_again_and_again() {
    let mut system = System::start("").await;
    let (ret, publish) = (support::free_port(), support::free_port());
    let options = format!("source_interface_name: lo\nsource_ret_port: {ret}\nsource_publish_port: {publish}\n");
    let etc = system.configure_minion("m1", &options).display().to_string();
    system.spawn_minion("m1");
    let pairs = [(ret, system.ret_port), (publish, system.publish_port)];
    for end in ["the master", "the minion", "nothing"] {
        support::until("the minion answers", || {
            let output = system.tool("salt", &["--out=txt", "-t", "1", "m1", "test.ping"]);
            stdout(&output).trim() == "m1: True"
        })
        .await;
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        for (from, to) in pairs {
            // 01 is an established connection.
            let expected = format!("0100007F:{from:04X} 0100007F:{to:04X} 01");
            assert!(connections.contains(&expected), "before the end of {end}: no {expected} in {connections}");
        }
        // Another process of the minion connects from other ports if these are in use.
        let called = system.tool_async("salt-call", &["-c", &etc, "--out=txt", "pillar.items"]).await;
        assert!(called.status.success(), "{}", support::stderr(&called));
        match end {
            "the master" => {
                system.kill_master();
                system.start_master().await;
            }
            "the minion" => {
                system.kill_minion("m1");
                system.spawn_minion("m1");
            }
            _ => {}
        }
    }
}
