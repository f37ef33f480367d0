//! Reactions while the disk of the master is full.

use std::io::Write;

use crate::faults::disk::SmallDisk;
use crate::support::{System, stderr, stdout, until};

const EVENTS: usize = 20;

/// The journal has no record of a dispatch on a full disk. It is repeated after a crash, and the minion recognises the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_the_full_disk_cannot_record_runs_once() {
    // The entries hold their events until the disk is full.
    let tags = || (0..EVENTS).map(|n| format!("go/{n}"));
    let list = |text: &dyn Fn(String) -> String| tags().map(text).collect::<Vec<_>>().join(", ");
    let mut system = System::new(&format!(
        "auto_accept: True\nreactor: [{}, {{'last': [ROOT/go.sls]}}]\nreactor_debounce: {{{}}}\n",
        list(&|tag| format!("{{'{tag}': [ROOT/go.sls]}}")),
        list(&|tag| format!("'{tag}': 4s"))
    ));
    let disk = SmallDisk::mount(&system.path("cache"));
    if let Err(reason) = &disk {
        assert!(std::env::var_os("BRINE_CI").is_none(), "{reason}");
        return eprintln!("left out: {reason}");
    }
    let ran = system.path("ran");
    let go = format!(
        "go:\n  local.cmd.run:\n    - tgt: web1\n    - args: [{{cmd: 'echo {{{{ data.n }}}} >> {}'}}]\n",
        ran.display()
    );
    system.write("go.sls", &go);
    system.start_master().await;
    system.start_minion("web1").await;
    for tag in tags() {
        let output = system.tool_async("salt-run", &["event.send", &tag, &format!("{{n: {tag}}}")]).await;
        assert!(output.status.success(), "{tag}: {}{}", stdout(&output), stderr(&output));
    }
    let filler = system.path("cache/filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    let zeros = vec![0; 65_536];
    while file.write_all(&zeros).is_ok() {}
    drop(file);
    let mut events = system.events("salt/master/store/failed").await;
    let large = format!("{{x: {}}}", "y".repeat(100_000));
    let failed =
        async { while system.tool_async("salt-run", &["event.send", "fill", &large]).await.status.success() {} };
    tokio::join!(events.next(), failed);
    let lines = || std::fs::read_to_string(&ran).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    until("all reactions ran", || lines().len() >= EVENTS).await;

    system.kill_master();
    std::fs::remove_file(&filler).unwrap();
    system.start_master().await;
    let output = system.tool_async("salt-run", &["event.send", "last", "{n: last}"]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    until("the reaction to the last event ran", || lines().iter().any(|line| line == "last")).await;
    let mut all = lines();
    all.sort();
    let mut expected: Vec<String> = tags().chain(["last".to_owned()]).collect();
    expected.sort();
    assert_eq!(all, expected);
}
