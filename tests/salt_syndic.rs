//! Syndics between Brine and Salt: Brine's syndic below masters of Salt, and Salt's syndic below a Brine master.

use std::time::Instant;

use crate::support::salt::{FLEET_TIMEOUT, PythonMaster};
use crate::support::syndic::{Syndic, below};
use crate::support::{System, stderr, stdout, until};
use brine_value::{Value, json};

/// Waits until a ping of a Salt master is returned by exactly this minion.
async fn until_answered(master: &PythonMaster, id: &str) {
    let begun = Instant::now();
    loop {
        let output = master.tool("salt", &["*", "test.ping", "--static", "--out=json"]).await;
        let returned = json::from_json(&stdout(&output)).unwrap_or_default();
        if returned.get(id) == Some(&true.into()) {
            assert_eq!(returned.as_map().unwrap().len(), 1, "{returned}");
            return;
        }
        assert!(begun.elapsed() < FLEET_TIMEOUT, "{returned}{}", stderr(&output));
    }
}

async fn brine_below_salt(version: &str) {
    let mut upper = PythonMaster::new(version, "auto_accept: True\norder_masters: True\nsyndic_wait: 2\n");
    upper.spawn();
    let mut events = upper.events("syndic/").await;
    let mut starts = upper.events("salt/syndic/").await;
    let mut returns = upper.events("salt/job/").await;
    let mut lower = below(&[upper.ret_port], "");
    lower.start_master().await;
    lower.start_minion("web1").await;
    let _syndic = Syndic::start(&lower, "s1").await;
    starts.until("salt/syndic/s1/start").await;
    until_answered(&upper, "web1").await;
    assert!(lower.tool("salt-run", &["event.send", "my/event", "{a: 1}"]).status.success());
    events.until("syndic/s1/my/event").await;
    // A job of the lower master is in the job cache of the upper one. Salt's master may remove the directory of a job while
    // it writes it: then a later one is there.
    let mut result = None;
    for _ in 0..3 {
        let output = stdout(&lower.tool("salt", &["--async", "web1", "test.echo", "below"]));
        let jid = output.lines().find_map(|line| line.split("job ID: ").nth(1)).unwrap().to_owned();
        returns.until(&format!("salt/job/{jid}/ret/web1")).await;
        let output = upper.tool("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).await;
        result = json::from_json(&stdout(&output)).unwrap().get("web1").cloned();
        if result.is_some() {
            break;
        }
    }
    assert_eq!(result, Some(Value::from("below")));
}

#[tokio::test(flavor = "multi_thread")]
async fn brine_syndic_works_below_salt_3008() {
    brine_below_salt("3008.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn brine_syndic_works_below_salt_3007() {
    brine_below_salt("3007.17").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn brine_syndic_works_below_salt_3006() {
    brine_below_salt("3006.30").await;
}

/// A master and a syndic of Salt below a Brine master, with a Brine minion.
async fn salt_below_brine(version: &str) {
    let upper = System::start("order_masters: True\nsyndic_wait: 3\n").await;
    let above = format!(
        "auto_accept: True\nsyndic_master: 127.0.0.1\nsyndic_master_port: {}\nsyndic_pidfile: ROOT/syndic.pid\nsyndic_log_file: ROOT/syndic.log\n",
        upper.ret_port
    );
    let mut lower = PythonMaster::new(version, &above);
    lower.spawn();
    let mut started = lower.events("salt/minion/").await;
    let mut minions = System::new("");
    minions.configure_minion("web1", &format!("master_port: {}\n", lower.ret_port));
    let path = minions.path("web1/etc/minion");
    let text = std::fs::read_to_string(&path).unwrap().replacen(&format!("master_port: {}\n", minions.ret_port), "", 1);
    std::fs::write(path, text).unwrap();
    minions.spawn_minion("web1");
    started.until("salt/minion/web1/start").await;
    lower.spawn_syndic(upper.publish_port);
    until("the syndic is known", || upper.master_log().contains("a syndic has appeared")).await;
    let answers = || {
        let output = upper.tool("salt", &["*", "test.ping", "--static", "--out=json"]);
        json::from_json(&stdout(&output)).unwrap_or_default()
    };
    until("the minion below answers", || answers().get("web1") == Some(&true.into())).await;
    assert_eq!(answers().as_map().unwrap().len(), 1);
    assert_eq!(upper.salt_json(&["-L", "web1", "test.echo", "x"]).get("web1"), Some(&"x".into()));
}

// The syndic of Salt 3008 (3008.3, 3008.5) hangs while it reports its start, below a master of its own release as well.
#[tokio::test(flavor = "multi_thread")]
async fn salt_3007_syndic_works_below_brine() {
    salt_below_brine("3007.17").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_3006_syndic_works_below_brine() {
    salt_below_brine("3006.30").await;
}
