//! `external_auth: pam` with pam_unix and scratch accounts.
#![cfg(feature = "pam")]

use crate::support::pam;

use std::process::Output;

use crate::support::{System, stderr, stdout};

const CONFIG: &str = "token_file: ROOT/token
external_auth:
  pam:
    good: ['@jobs']
    locked: ['@jobs']
    disabled: ['@jobs']
    expired: ['@jobs']
    stale: ['@jobs']
    'brine-ops%': ['@jobs']
";

fn active_jobs(system: &System, words: &[&str]) -> Output {
    system.tool("salt-run", &[words, &["jobs.active", "--out=json"]].concat())
}

fn login(system: &System, user: &str, password: &str) -> Output {
    active_jobs(system, &["-a", "pam", "--username", user, "--password", password])
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_the_host_authenticate() {
    if !pam::is_possible() {
        return;
    }
    let system = System::new(CONFIG);
    pam::write_accounts(&system);
    let _master = pam::start_master(&system).await;
    for (user, password, accepted) in [
        ("good", "pw", true),
        ("good", "wr0ng", false),
        ("good", "", false),
        ("member", "pw", true),
        ("locked", "pw", false),
        ("disabled", "pw", false),
        ("expired", "pw", false),
        ("stale", "pw", false),
        ("nobody-here", "pw", false),
        ("root", "", false),
    ] {
        let output = login(&system, user, password);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(stdout(&output).trim() == "{}", accepted, "{user} {password}: {text}\n{}", system.master_log());
        let refused = format!("Authentication failure of type \"eauth\" occurred for user {user}.");
        assert_eq!(text.contains(&refused), !accepted, "{user}: {text}");
    }
    let log = system.master_log();
    assert!(log.contains("PAM refuses a user") && !log.contains("wr0ng"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_end_with_the_account() {
    if !pam::is_possible() {
        return;
    }
    let system = System::new(CONFIG);
    pam::write_accounts(&system);
    let master = pam::start_master(&system).await;
    let made = active_jobs(&system, &["-T", "-a", "pam", "--username", "good", "--password", "pw"]);
    assert_eq!(stdout(&made).trim(), "{}", "{}", stderr(&made));
    assert_eq!(stdout(&active_jobs(&system, &["-a", "pam"])).trim(), "{}");
    drop(master);
    // The check of an account is cached for a minute, in this process only.
    let master = pam::start_master(&system).await;
    assert_eq!(stdout(&active_jobs(&system, &["-a", "pam"])).trim(), "{}");
    drop(master);
    pam::change_account(&system, "good", "HASH:20000:0:99999:7::1:");
    let _master = pam::start_master(&system).await;
    let refused = active_jobs(&system, &["-a", "pam"]);
    let text = format!("{}{}", stdout(&refused), stderr(&refused));
    assert!(text.contains("Authentication failure of type \"token\""), "{text}");
    assert!(system.master_log().contains("the account is no longer valid"), "{}", system.master_log());
}
