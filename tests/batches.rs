//! Batches that the master runs.

use crate::support;

use crate::support::{System, stdout, text};
use brine_value::Value;

async fn system() -> System {
    let mut system = System::start("").await;
    for id in ["web1", "web2", "web3"] {
        system.start_minion(id).await;
    }
    system
}

/// Starts a batch whose job waits for a file. Returns its job id.
async fn start_batch(system: &System, more: &[&str]) -> String {
    let command = format!("until [ -e {} ]; do sleep 0.02; done", system.path("go").display());
    let words: Vec<&str> = [&["web*", "cmd.run", &command, "--async"], more].concat();
    let report = stdout(&system.tool_async("salt", &words).await);
    report.strip_prefix("Executed batch command with job ID: ").unwrap_or_else(|| panic!("{report}")).trim().to_owned()
}

async fn status(system: &System, jid: &str) -> Value {
    let text = stdout(&system.tool_async("salt-run", &["--out=json", "batch.status", jid]).await);
    brine_value::json::from_json(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_continues_after_a_restart_of_the_master() {
    let mut system = system().await;
    let mut events = system.events("salt/job/").await;
    let jid = start_batch(&system, &["-b", "2"]).await;
    events.until(&format!("salt/job/{jid}/publish")).await;
    let report = status(&system, &jid).await;
    for (name, is) in [("total", 3), ("active", 2), ("pending", 1), ("completed", 0), ("batch_size", 2)] {
        assert_eq!(report.get(name), Some(&is.into()), "{name}: {report}");
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
    let jid = start_batch(&system, &["-b", "1"]).await;
    events.until(&format!("salt/batch/{jid}/progress")).await;
    let stop = async |jid: &str| stdout(&system.tool_async("salt-run", &["batch.stop", jid]).await).trim().to_owned();
    assert_eq!(stop(&jid).await, "True");
    let (_, data) = events.until(&format!("salt/batch/{jid}/halted")).await;
    assert_eq!(text(&data, "abandoned_pending"), "['web2', 'web3']");
    assert_eq!(status(&system, &jid).await.get("halted_reason"), Some(&"stop".into()));
    assert_eq!(stop(&jid).await, "False");
    system.write("go", "");
    let words = ["nobody", "test.ping", "-b", "1", "--async"];
    let nobody =
        "No minions matched the target. No command was sent, no jid was assigned.\nNo minions matched the target.\n";
    assert_eq!(stdout(&system.tool_async("salt", &words).await), nobody);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parts_of_a_batch_have_one_job_id() {
    let system = system().await;
    let text = stdout(&system.tool_async("salt", &["web*", "test.echo", "hi", "-b", "2", "--out=json"]).await);
    let jids: std::collections::BTreeSet<&str> = text.lines().filter(|line| line.contains("\"jid\"")).collect();
    assert_eq!((text.matches("\"jid\"").count(), jids.len()), (3, 1), "{text}");
    let jid = jids.first().unwrap().split('"').nth(3).unwrap().to_owned();
    let job = stdout(&system.tool_async("salt-run", &["--out=json", "jobs.list_job", &jid]).await);
    let job = brine_value::json::from_json(&job).unwrap();
    assert_eq!(job.get("Minions").map(ToString::to_string), Some("['web1', 'web2', 'web3']".into()), "{job}");
    assert_eq!(job.get("Result").and_then(Value::as_map).map(indexmap::IndexMap::len), Some(3), "{job}");
    let one =
        stdout(&system.tool_async("salt", &["web*", "test.echo", "hi", "-b", "1", "--static", "--out=json"]).await);
    let one = brine_value::json::from_json(&one).unwrap();
    assert_eq!(one.to_string(), "{'web1': 'hi', 'web2': 'hi', 'web3': 'hi'}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_salt_itself_is_listed_and_stopped_while_it_pauses() {
    let system = system().await;
    let mut events = system.events("salt/batch/").await;
    let etc = system.etc();
    let salt = tokio::task::spawn_blocking(move || {
        support::within_limit(support::BRINE)
            .args(["salt", "-c", &etc, "web*", "test.ping", "-b", "1", "--batch-wait", "600"])
            .output()
            .unwrap()
    });
    let (tag, _) = events.until("salt/batch/*/new").await;
    let jid = tag.split('/').nth(2).unwrap().to_owned();
    // The job was published and has returned: the pause has begun.
    for _ in 0..2 {
        events.until(&format!("salt/batch/{jid}/progress")).await;
    }
    support::until("the batch is known to the master", || {
        stdout(&system.tool("salt-run", &["--out=json", "batch.list_active"])).contains(&jid)
    })
    .await;
    let report = status(&system, &jid).await;
    for (name, is) in [("driver", Value::from("cli")), ("completed", 1.into()), ("pending", 2.into())] {
        assert_eq!(report.get(name), Some(&is), "{name}: {report}");
    }
    assert_eq!(stdout(&system.tool_async("salt-run", &["batch.stop", &jid]).await).trim(), "True");
    events.until(&format!("salt/batch/{jid}/halted")).await;
    let output = salt.await.unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output).matches("Executing run on").count(), 1);
    assert!(support::stderr(&output).contains("Batch run stopped due to stop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_the_master_is_stopped_while_it_pauses() {
    let system = system().await;
    let mut events = system.events("salt/batch/").await;
    let words = ["web*", "test.ping", "-b", "1", "--batch-wait", "600", "--async"];
    let report = stdout(&system.tool_async("salt", &words).await);
    let jid = report.trim().rsplit(' ').next().unwrap().to_owned();
    for _ in 0..2 {
        events.until(&format!("salt/batch/{jid}/progress")).await;
    }
    system.tool_async("salt-run", &["batch.stop", &jid]).await;
    let (_, data) = events.until(&format!("salt/batch/{jid}/halted")).await;
    assert_eq!((text(&data, "completed"), text(&data, "reason")), ("1".into(), "stop".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn failhard_stops_the_batch_and_an_empty_batch_has_salts_status() {
    let system = system().await;
    let output = system.tool_async("salt", &["web*", "cmd.run", "exit 3", "-b", "1", "--failhard"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output).matches("Executing run on").count(), 1, "{}", stdout(&output));
    let output = system.tool_async("salt", &["nobody", "test.ping", "-b", "1"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(support::stderr(&output).contains("ERROR: No return received\n"));
}
