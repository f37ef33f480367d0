//! State runs of jobs and of `salt-call`: one at a time, whatever their job ids and `process_count_max`; and the jobs
//! that wait for a thread.

use std::process::{Child, Command, Stdio};

use brine_ids::Jid;
use brine_value::{Value, json, msgpack};
use brine_wire::{Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};

use crate::support::{self, BRINE, System, stderr, stdout, until};

/// Publishes a job with this id.
async fn publish(system: &System, jid: &str, fun: &str, arg: Vec<Value>) {
    let mut request = PublishRequest::new("web1", fun, "root");
    request.jid = Some(jid.parse::<Jid>().unwrap());
    request.key = Some(system.root_key());
    request.arg = arg;
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let answer = client.request(Envelope::clear(request.to_map()), support::TIMEOUT).await.unwrap();
    assert!(msgpack::unpack(&answer).unwrap().to_string().contains(jid));
}

/// Starts a minion with this configuration.
async fn start(system: &mut System, extra: &str) {
    system.configure_minion("web1", extra);
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
}

fn salt_call(system: &System, words: &[&str]) -> Child {
    let etc = system.path("web1/etc").display().to_string();
    let mut command = Command::new(BRINE);
    command.args(["salt-call", "-c", &etc]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn state_runs_of_jobs_and_salt_call_never_overlap() {
    let mut system = System::start("").await;
    system.write(
        "srv/salt/slow.sls",
        "slow:\n  cmd.run:\n    - name: echo begin >> ROOT/log; sleep 0.2; echo end >> ROOT/log\n",
    );
    start(&mut system, "process_count_max: 2\nstate_queue: True\n").await;
    // Held by `process_count_max`, with ids that are older and newer than those of the calls beside them.
    let jids = ["20200101000000000000", "20990101000000000000", "20200101000000000005", "20990101000000000001"];
    let mut calls = Vec::new();
    for jid in jids {
        publish(&system, jid, "state.apply", vec!["slow".into()]).await;
        calls.push(salt_call(&system, &["state.apply", "slow"]));
    }
    // A process that is killed in its run frees the place.
    let mut killed = salt_call(
        &system,
        &[
            "state.single",
            "cmd.run",
            "name=touch ROOT/held; sleep 20".replace("ROOT", &system.path("").display().to_string()).as_str(),
        ],
    );
    let log = system.path("log");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let held = system.path("held");
    until("the last run begins", || held.exists()).await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    for mut call in calls {
        assert!(tokio::task::spawn_blocking(move || call.wait().unwrap()).await.unwrap().success());
    }
    until("all runs end", || read().matches("end").count() == 2 * jids.len()).await;
    assert_eq!(read(), "begin\nend\n".repeat(2 * jids.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_for_a_thread_is_known_and_can_be_ended() {
    let mut system = System::start("").await;
    start(&mut system, "process_count_max: 1\n").await;
    let json = |words: &[&str]| {
        let output = system.tool("salt", &[&["web1", "--static", "--out=json"], words].concat());
        let value = json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        value.get("web1").cloned().unwrap_or_default()
    };
    let [running, waiting, ended] = ["20990101000000000000", "20200101000000000001", "20200101000000000002"];
    publish(
        &system,
        running,
        "cmd.run",
        vec![
            "touch ROOT/one; while [ ! -e ROOT/go ]; do sleep 0.05; done"
                .replace("ROOT", &system.path("").display().to_string())
                .into(),
        ],
    )
    .await;
    let one = system.path("one");
    until("the first job runs", || one.exists()).await;
    publish(&system, waiting, "test.echo", vec!["waited".into()]).await;
    let touch = format!("touch {}", system.path("never").display());
    publish(&system, ended, "cmd.run", vec![touch.into()]).await;
    // The fields of Salt for a job in its queue.
    until("the job is known", || json(&["saltutil.find_job", waiting]).is_truthy()).await;
    let job = json(&["saltutil.find_job", waiting]);
    let field = |name: &str| job.get(name).cloned().unwrap_or_default();
    assert_eq!((field("fun"), field("jid")), ("test.echo".into(), waiting.into()));
    assert_eq!(
        (field("pid"), field("queued"), field("queue_type")),
        (0.into(), true.into(), "job_queue".into()),
        "{job}"
    );
    // As in Salt it does not count as running.
    let listed = json(&["saltutil.running"]).to_string();
    assert!(listed.contains(running) && !listed.contains(waiting), "{listed}");
    until("the other job is known", || json(&["saltutil.find_job", ended]).is_truthy()).await;
    assert_eq!(json(&["saltutil.term_job", ended]), format!("Signal 15 sent to job {ended} at pid 0").into());
    // `salt` does not give up on a job that waits.
    let mut words = Command::new(BRINE);
    words.args(["salt", "-c", &system.etc(), "web1", "test.echo", "patient", "-t", "1", "--out=json"]);
    let patient = words.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = system.events("salt/job/").await;
    let mut asked = 0;
    while asked < 2 {
        let (tag, data) = events.next().await;
        asked += u32::from(tag.ends_with("/new") && support::text(&data, "fun") == "saltutil.find_job");
    }
    std::fs::write(system.path("go"), "").unwrap();
    let output = tokio::task::spawn_blocking(move || patient.wait_with_output().unwrap()).await.unwrap();
    assert!(stdout(&output).contains("patient"), "{}", stdout(&output));
    let lookup = |jid: &str| {
        let output = system.tool("salt-run", &["jobs.lookup_jid", jid, "--out=json"]);
        json::from_json(&stdout(&output)).unwrap_or_default().get("web1").cloned().unwrap_or_default()
    };
    until("the waiting job returns", || lookup(waiting) == "waited".into()).await;
    until("the ended job returns", || lookup(ended).to_string().contains("was ended before it began")).await;
    assert!(!system.path("never").exists());
}
