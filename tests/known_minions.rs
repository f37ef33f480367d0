//! Messages about minions that the master knows: one with another key, one that is away.

use crate::support::{self, System, stderr, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_key_is_explained_on_both_sides() {
    let mut system = System::start("").await;
    system.start_minion("m1").await;
    system.stop_minion("m1");
    // The host is installed anew: its key is another one.
    std::fs::remove_dir_all(system.path("m1/pki")).unwrap();
    let mut events = system.events("salt/auth").await;
    system.spawn_minion("m1");
    events.until("salt/auth").await;
    let ways = ["salt-key -d m1", "salt-key -a m1 --include-denied"];
    for words in [&["-L"][..], &["-a", "m1"]] {
        let said = stderr(&system.tool_async("salt-key", words).await);
        assert!(ways.iter().all(|way| said.contains(way)), "{words:?}: {said}");
    }
    assert_eq!(stderr(&system.tool_async("salt-key", &["-L", "--out=json"]).await), "");
    support::until("the minion names a way out", || system.minion_log("m1").contains("salt-key -d m1")).await;
    assert!(system.master_log().contains("If it was reinstalled"), "{}", system.master_log());
    let accepted = system.tool_async("salt-key", &["-y", "-a", "m1", "--include-denied"]).await;
    assert!(accepted.status.success(), "{}", stderr(&accepted));
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_that_are_known_to_be_away_cost_no_waiting() {
    let mut system = System::start("gather_job_timeout: 3\n").await;
    for id in ["m1", "m2"] {
        system.start_minion(id).await;
    }
    system.kill_minion("m2");
    let mut said = String::new();
    let start = std::time::Instant::now();
    while !said.contains("[Not connected]") && start.elapsed() < support::TIMEOUT {
        // Certain after 15 seconds, which are counted every 5 seconds.
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let began = std::time::Instant::now();
        let output = system.tool_async("salt", &["*", "test.ping", "-t", "2"]).await;
        said = stdout(&output);
        if said.contains("[Not connected]") {
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("m1:\n    True"), "{said}");
            assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
        }
    }
    assert!(said.contains("m2:\n    Minion did not return. [Not connected]"), "{said}");
}
