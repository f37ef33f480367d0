//! Secrets in jobs that go through several masters: those below a syndic, and members of a cluster.

use std::path::PathBuf;

use super::{MARKER, Watch, ask, files_with, keywords};
use crate::support::syndic::{Syndic, below};
use crate::support::{System, until};
use brine_ids::Jid;
use brine_value::{Value, map};
use brine_wire::PublishRequest;

const LOGS: &str = "log_file: ROOT/master-all.log\nlog_level_logfile: all\n";

/// Publishes a job that writes the marker into a file, and one that fails with it, and waits for both.
async fn publish(upper: &System, lower: &System) {
    let environment = map! {"DB_PASSWORD" => MARKER, "FILE" => lower.path("ran").display().to_string()};
    let url = format!("https://fred:{MARKER}@host/");
    let write = vec![Value::from("echo $DB_PASSWORD >> $FILE"), keywords(map! {"env" => environment})];
    let mut returns = upper.events("salt/job/").await;
    for (fun, arg) in [
        ("cmd.run", write),
        ("shadow.set_password", vec!["nobody-here".into(), MARKER.into()]),
        ("test.ping", vec![url.into(), keywords(map! {"password" => MARKER})]),
    ] {
        let mut request = PublishRequest { arg, ..PublishRequest::new("web1", fun, "root") };
        (request.key, request.jid) = (Some(upper.root_key()), Some(Jid::new()));
        let jid = request.jid.clone().unwrap();
        ask(upper, request.to_map()).await;
        returns.until(&format!("salt/job/{jid}/ret/web1")).await;
    }
    let ran = || std::fs::read_to_string(lower.path("ran")).unwrap_or_default();
    until("the minion has written the secret", || ran() == format!("{MARKER}\n")).await;
}

fn has_no_marker(systems: &[&System], watches: &[Watch]) {
    for (system, watch) in systems.iter().zip(watches) {
        assert_eq!(watch.leaks(), Vec::<String>::new());
        assert_eq!(files_with(&system.path(""), MARKER, &["etc", "ran"]), Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn masters_above_and_below_record_no_secrets() {
    let upper = System::start(&format!("order_masters: True\nsyndic_wait: 15\n{LOGS}")).await;
    let mut lower = below(&[upper.ret_port], LOGS);
    lower.start_master().await;
    lower.start_minion("web1").await;
    let mut started = upper.events("salt/syndic/").await;
    let _syndic = Syndic::start_with(&lower, "s1", "log_level: all\n").await;
    started.until("salt/syndic/s1/start").await;
    let watches = [Watch::start(&upper).await, Watch::start(&lower).await];
    publish(&upper, &lower).await;
    has_no_marker(&[&upper, &lower], &watches);
}

#[cfg(feature = "messaging")]
#[tokio::test(flavor = "multi_thread")]
async fn servers_and_members_of_a_cluster_record_no_secrets() {
    use crate::support::nats::{Nats, member};

    const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let nats = Nats::start().await;
    let mut members = Vec::new();
    for name in ["m1", "m2"] {
        let mut system = member(&[nats.port], name, SECRET, &format!("auto_accept: True\n{LOGS}"));
        system.start_master().await;
        members.push(system);
    }
    members[1].start_minion("web1").await;
    let watches = [Watch::start(&members[0]).await, Watch::start(&members[1]).await];
    // The first member must have the key of the minion.
    until("the minion is known", || {
        let answer = members[0].salt_json(&["web1", "test.ping"]);
        answer.get("web1") == Some(&true.into())
    })
    .await;
    publish(&members[0], &members[1]).await;
    has_no_marker(&[&members[0], &members[1]], &watches);
    let stored = nats.stored();
    assert!(!stored.is_empty() && !stored.windows(MARKER.len()).any(|part| part == MARKER.as_bytes()));
}
