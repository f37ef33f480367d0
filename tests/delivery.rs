//! Delivery of jobs and returns when daemons stop, crash or hang.

use crate::support;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{BRINE, System, stdout};
use brine_ids::Jid;
use brine_value::{Value, list, map, msgpack};
use brine_wire::{Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};

/// The maximum time for a minion to stop.
const STOP: Duration = Duration::from_secs(5);

/// Returns the number of files in a directory. Files that are still being written have hidden names.
fn entries(directory: &Path) -> usize {
    let is_whole = |entry: &std::fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    std::fs::read_dir(directory).map_or(0, |entries| entries.flatten().filter(is_whole).count())
}

/// Publishes a job with this id.
async fn publish(system: &System, jid: &Jid, fun: &str, arg: Vec<Value>) {
    let mut request = PublishRequest::new("web1", fun, "root");
    request.jid = Some(jid.clone());
    request.key = Some(system.root_key());
    request.arg = arg;
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let answer = client.request(Envelope::clear(request.to_map()), support::TIMEOUT).await.unwrap();
    assert!(msgpack::unpack(&answer).unwrap().to_string().contains(jid.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn return_survives_restarts_of_master_and_minion() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let jid = Jid::new();
    let (began, go) = (system.path("began"), system.path("go"));
    let command = format!("touch {}; until test -e {}; do sleep 0.05; done; echo done", began.display(), go.display());
    publish(&system, &jid, "cmd.run", list![command].as_list().unwrap().to_vec()).await;
    support::until("the job runs", || began.exists()).await;
    system.kill_master();
    support::until("the minion notices", || system.minion_log("web1").contains("the connection to the master is lost"))
        .await;
    system.write("go", "");
    let returns = system.path("web1/cache/returns");
    support::until("the return is on disk", || entries(&returns) == 1).await;
    system.kill_minion("web1");
    system.start_master().await;
    let mut events = system.events(&format!("salt/job/{jid}/ret/")).await;
    system.spawn_minion("web1");
    let (_, event) = events.next().await;
    assert_eq!(event.get("return"), Some(&"done".into()));
    support::until("the return leaves the disk", || entries(&returns) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_call_leaves_its_return_to_the_minion() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let etc = system.path("web1/etc").display().to_string();
    // The master is stopped while the function runs.
    let pid = std::fs::read_to_string(system.path("master.pid")).unwrap();
    let command = format!("kill -9 {}; echo left", pid.trim());
    let output = support::within_limit(BRINE).args(["salt-call", "-c", &etc, "cmd.run", &command]).output().unwrap();
    assert!(stdout(&output).contains("left"), "{output:?}");
    let returns = system.path("web1/cache/returns");
    assert_eq!(entries(&returns), 1);
    system.kill_master();
    system.kill_minion("web1");
    system.start_master().await;
    let mut events = system.events("salt/job/").await;
    system.spawn_minion("web1");
    let (_, event) = events.until("salt/job/*/ret/web1").await;
    assert_eq!(event.get("return"), Some(&"left".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_published_again_after_a_restart_runs_once() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let (jid, ran) = (Jid::new(), system.path("ran"));
    let command: Vec<Value> = vec![format!("echo x >> {}", ran.display()).into()];
    let mut events = system.events("salt/job/").await;
    publish(&system, &jid, "cmd.run", command.clone()).await;
    events.until("salt/job/*/ret/web1").await;
    system.kill_minion("web1");
    let mut start = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    start.until("salt/minion/web1/start").await;
    publish(&system, &jid, "cmd.run", command).await;
    let last = Jid::new();
    publish(&system, &last, "test.ping", Vec::new()).await;
    events.until(&format!("salt/job/{last}/ret/web1")).await;
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn minion_stops_in_time_despite_hanging_jobs() {
    // Endless loops, interrupted sleeps, processes that ignore signals, and waits on the master.
    let endless = "#!jinja\n{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
    let jobs: Vec<(&str, Vec<Value>)> = vec![
        ("slsutil.renderer", vec![map! {"__kwarg__" => true, "string" => endless}.into()]),
        ("test.sleep", vec![600.into()]),
        ("cmd.run", vec!["trap '' TERM INT; sleep 600".into()]),
        ("saltutil.runner", vec!["test.sleep".into(), list![600]]),
    ];
    let mut system = System::start("").await;
    system.configure_minion("web1", "job_stop_timeout: 1\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    for (fun, arg) in &jobs {
        publish(&system, &Jid::new(), fun, arg.clone()).await;
    }
    let proc = system.path("web1/cache/proc");
    support::until("all jobs run", || entries(&proc) >= jobs.len() - 1).await;
    let start = Instant::now();
    system.stop_minion("web1");
    assert!(start.elapsed() < STOP, "{:?}", start.elapsed());
    let log = system.minion_log("web1");
    assert!(log.contains("The Salt Minion is shutdown"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runas_has_the_groups_of_the_user_and_the_environment() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let system = System::new("");
    let etc = system.configure_minion("web1", "").display().to_string();
    let call = |words: &[&str]| {
        let mut command = support::within_limit(BRINE);
        command.args(["salt-call", "-c", &etc, "--local", "--out=txt", "cmd.run_all"]).args(words);
        let output = command.arg("runas=nobody").output().unwrap();
        stdout(&output) + &support::stderr(&output)
    };
    let own = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let text = call(&[
        "grep Groups /proc/self/status; id -un; echo $LD_LIBRARY_PATH; exit 7",
        "env={LD_LIBRARY_PATH: /nowhere}",
    ]);
    for expected in [format!("Groups:\\t{}", own.gid), "nobody".into(), "/nowhere".into(), "'retcode': 7".into()] {
        assert!(text.contains(&expected), "{expected}: {text}");
    }
    assert!(!text.contains("BRINE_RUNAS"), "{text}");
    let text = call(&["env", "python_shell=False", "clean_env=True", "env={ONLY: this}"]);
    assert!(text.contains("ONLY=this") && !text.contains("PATH="), "{text}");
    let text = call(&["/no/such/program", "python_shell=False"]);
    assert!(text.contains("[Errno 2] No such file or directory: '/no/such/program'"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_failed_requests_share_one_authentication() {
    let system = System::start("").await;
    for cipher in ["aes-256-gcm", "aes-192-cbc-hmac"] {
        let id = format!("many-{cipher}");
        let channel = system.channel(&id, cipher);
        channel.authenticate().await.unwrap();
        // The master drops the session with the key, and accepts the key again.
        assert!(stdout(&system.tool_async("salt-key", &["-d", &id, "-y"]).await).contains("deleted"));
        let before = system.counter("brine_authentications_total");
        let ask = || channel.request(map! {"cmd" => "_file_envs"});
        for answer in futures::future::join_all((0..20).map(|_| ask())).await {
            assert_eq!(answer.unwrap(), list!["base"]);
        }
        assert_eq!(system.counter("brine_authentications_total") - before, 1, "{cipher}");
    }
}
