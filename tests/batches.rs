//! Batches that the master runs by itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use brine_core::Value;
use support::{System, stdout, text};

async fn system() -> System {
    let mut system = System::start("").await;
    for id in ["web1", "web2", "web3"] {
        system.start_minion(id).await;
    }
    system
}

/// Hands over a batch whose job waits for a file: its job id.
async fn hand_over(system: &System, more: &[&str]) -> String {
    let command = format!("until [ -e {} ]; do sleep 0.02; done", system.path("go").display());
    let words: Vec<&str> = [&["web*", "cmd.run", &command, "--async"], more].concat();
    let told = stdout(&system.tool_async("salt", &words).await);
    told.strip_prefix("Executed batch command with job ID: ").unwrap_or_else(|| panic!("{told}")).trim().to_owned()
}

async fn status(system: &System, jid: &str) -> Value {
    let shown = stdout(&system.tool_async("salt-run", &["--out=json", "batch.status", jid]).await);
    brine_core::value::json::from_json(&shown).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_goes_on_after_a_restart_of_the_master() {
    let mut system = system().await;
    let mut events = system.events("salt/job/").await;
    let jid = hand_over(&system, &["-b", "2"]).await;
    events.until(&format!("salt/job/{jid}/publish")).await;
    let told = status(&system, &jid).await;
    for (name, is) in [("total", 3), ("active", 2), ("pending", 1), ("completed", 0), ("batch_size", 2)] {
        assert_eq!(told.get(name), Some(&is.into()), "{name}: {told}");
    }
    system.kill_master();
    system.start_master().await;
    let mut events = system.events("salt/batch/").await;
    assert_eq!(status(&system, &jid).await.get("active"), Some(&2.into()));
    system.write("go", "");
    let (_, data) = events.until(&format!("salt/batch/{jid}/complete")).await;
    assert_eq!((text(&data, "completed"), text(&data, "failed")), ("3".into(), "0".into()));
    assert_eq!(stdout(&system.tool_async("salt-run", &["--out=json", "batch.list_active"]).await).trim(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_stopped() {
    let system = system().await;
    let mut events = system.events("salt/batch/").await;
    let jid = hand_over(&system, &["-b", "1"]).await;
    events.until(&format!("salt/batch/{jid}/progress")).await;
    let stop = async |jid: &str| stdout(&system.tool_async("salt-run", &["batch.stop", jid]).await).trim().to_owned();
    assert_eq!(stop(&jid).await, "True");
    let (_, data) = events.until(&format!("salt/batch/{jid}/halted")).await;
    assert_eq!(text(&data, "abandoned_pending"), "['web2', 'web3']");
    assert_eq!(status(&system, &jid).await.get("halted_reason"), Some(&"stop".into()));
    assert_eq!(stop(&jid).await, "False");
    system.write("go", "");
    let words = ["nobody", "test.ping", "-b", "1", "--async"];
    assert_eq!(stdout(&system.tool_async("salt", &words).await), "No minions matched the target.\n");
}
