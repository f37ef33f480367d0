use std::net::TcpListener;
use std::time::Instant;

use brine_value::{list, map};

use super::*;

fn ldap(uri: &str) -> Ldap {
    Ldap::new(&map! {"auth.ldap.uri" => uri, "auth.ldap.binddn" => "uid={{ username }},dc=example"}).unwrap()
}

#[test]
fn the_first_value_of_a_dn_is_its_leading_component() {
    for (name, value) in [
        ("cn=admins,ou=Groups,dc=example", "admins"),
        ("cn=a\\,b,ou=Groups", "a\\,b"),
        ("cn=a=b", "a=b"),
        ("fred", "fred"),
        ("", ""),
    ] {
        assert_eq!(first_value(name), value, "{name}");
    }
}

#[test]
fn organisational_units_are_recognised_in_entries() {
    let ldap = ldap("ldap://127.0.0.1:1");
    for (entry, is_unit) in [
        (Value::from(map! {"ldap(OU=web,dc=example)" => list!["test.ping"]}), true),
        (map! {"ldap(OU=web" => list!["test.ping"]}.into(), false),
        (map! {"web*" => list!["test.ping"]}.into(), false),
        ("ldap(x)".into(), false),
    ] {
        assert_eq!(ldap.must_expand(&entry), is_unit, "{entry}");
    }
    // The server is down: the `ldap` entry permits nothing, but other entries stay valid.
    let entries = vec![map! {"ldap(OU=web)" => list!["test.ping"]}.into(), "test.ping".into()];
    assert_eq!(ldap.expand(entries), [Value::from("test.ping")]);
}

#[test]
fn an_unreachable_or_silent_server_is_an_error_before_the_deadline() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    for (uri, reason) in [
        (format!("ldap://127.0.0.1:{port}"), "no answer within 300ms"),
        (format!("ldaps://127.0.0.1:{port}"), "no answer within 300ms"),
        ("ldap://127.0.0.1:1".to_owned(), "refused"),
    ] {
        let mut ldap = ldap(&uri);
        ldap.settings.verify = false;
        ldap.deadline = Duration::from_millis(300);
        let begun = Instant::now();
        let error = ldap.authenticate("fred", "pw").unwrap_err().to_string();
        assert!(error.starts_with(&format!("request to {uri} failed: ")) && error.contains(reason), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
        // A login without a password is rejected without a bind.
        assert_eq!(ldap.authenticate("fred", "").unwrap(), None);
    }
}
