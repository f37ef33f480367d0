//! CVEs of logins: tokens and access lists of users.

use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use crate::cve::{ask, error_of};
use crate::support::System;
#[cfg(feature = "pam")]
use crate::support::pam;

const CONFIG: &str = "sharedsecret: s3cret
external_auth:
  sharedsecret:
    fred: ['test.*', {'web*': [pkg.*]}, {'@runner': [jobs.active]}]
";

fn login(user: &str) -> Map {
    map! {"eauth" => "sharedsecret", "username" => user, "password" => "s3cret"}
}

fn publish(tgt: &str, fun: &str, login: Map) -> Map {
    let mut load = PublishRequest::new(tgt, fun, "root").to_map();
    load.insert("kwargs".into(), login.into());
    load
}

fn call(cmd: &str, fun: &str, login: &Map) -> Map {
    let mut load = map! {"cmd" => cmd, "fun" => fun, "user" => "root"};
    load.extend(login.clone());
    load
}

async fn token(system: &System) -> Value {
    let mut load = login("fred");
    load.insert("cmd".into(), "mk_token".into());
    ask(system, load).await.get("token").cloned().unwrap_or_default()
}

/// A token is invalid from the moment it expires.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_3144_tokens_expire() {
    for (expire, error) in [(3600, ""), (0, "AuthenticationError")] {
        let mut system = System::start(&format!("token_expire: {expire}\n{CONFIG}")).await;
        system.start_minion("web1").await;
        let token = token(&system).await;
        assert_eq!(token.as_str().map(str::len), Some(64));
        let answer = ask(&system, publish("web1", "test.ping", map! {"token" => token.clone()})).await;
        assert_eq!(error_of(&answer), error, "{answer}");
        let answer = ask(&system, call("runner", "jobs.active", &map! {"token" => token.clone()})).await;
        assert_eq!(error_of(&answer).is_empty(), error.is_empty(), "{answer}");
        let answer = ask(&system, map! {"cmd" => "get_token", "token" => token}).await;
        let name = answer.get("name").cloned();
        assert_eq!(name.is_some(), error.is_empty(), "{answer}");
    }
}

/// Calls of every kind require authentication and an entry for the function.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25281_calls_need_a_login_and_an_entry() {
    let system = System::start(CONFIG).await;
    let wrong = map! {"eauth" => "sharedsecret", "username" => "fred", "password" => "guessed"};
    let no_such = map! {"token" => "a".repeat(64)};
    for (login, runner) in [
        (Map::new(), "UserAuthenticationError"),
        (map! {"key" => "x".repeat(64)}, "UserAuthenticationError"),
        (wrong, "EauthAuthenticationError"),
        (no_such, "TokenAuthenticationError"),
        (map! {"token" => ""}, "TokenAuthenticationError"),
        (map! {"token" => "../../../etc/passwd"}, "TokenAuthenticationError"),
        (map! {"eauth" => "auto", "username" => "fred"}, "EauthAuthenticationError"),
        (login("nobody"), "EauthAuthenticationError"),
    ] {
        for (cmd, fun) in [("wheel", "key.list_all"), ("runner", "jobs.active")] {
            for asynchronous in [false, true] {
                let mut load = call(cmd, fun, &login);
                load.insert("async".into(), asynchronous.into());
                let answer = ask(&system, load).await;
                assert_eq!(error_of(&answer), runner, "{cmd} {login:?}: {answer}");
            }
        }
        let answer = ask(&system, publish("*", "cmd.run", login.clone())).await;
        assert!(error_of(&answer).ends_with("Error"), "{login:?}: {answer}");
    }
    let answer = ask(&system, call("wheel", "key.list_all", &login("fred"))).await;
    assert_eq!(error_of(&answer), "EauthAuthenticationError", "no entry for wheel functions");
    let answer = ask(&system, call("runner", "jobs.active", &login("fred"))).await;
    assert_eq!(error_of(&answer), "");
}

/// No entry for a target permits a target without known minions: masters below a syndic might have minions that match.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22941_publisher_acl_denies_unknown_targets() {
    let mut system = System::start(CONFIG).await;
    system.start_minion("web1").await;
    for (tgt, fun, error) in [
        ("web1", "pkg.version", ""),
        ("web9", "pkg.version", "AuthorizationError"),
        ("db*", "pkg.version", "AuthorizationError"),
        ("*", "cmd.run", "AuthorizationError"),
    ] {
        let answer = ask(&system, publish(tgt, fun, login("fred"))).await;
        assert_eq!(error_of(&answer), error, "{tgt} {fun}: {answer}");
    }
}

/// PAM's account management is checked, too: locked and expired accounts, and those that have to change their password,
/// cannot log in.
#[cfg(feature = "pam")]
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22967_pam_refuses_locked_accounts() {
    if !pam::is_possible() {
        return;
    }
    let system = System::new("external_auth: {pam: {'*': ['@jobs']}}\n");
    pam::write_accounts(&system);
    let _master = pam::start_master(&system).await;
    for (user, accepted) in
        [("good", true), ("locked", false), ("disabled", false), ("expired", false), ("stale", false)]
    {
        let login = map! {"cmd" => "mk_token", "eauth" => "pam", "username" => user, "password" => "pw"};
        let answer = ask(&system, login).await;
        let token = answer.get("token");
        assert_eq!(token.is_some(), accepted, "{user}: {answer}");
    }
}
