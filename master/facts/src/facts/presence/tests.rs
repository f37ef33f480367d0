use super::*;

struct Connection(Arc<()>, Peer);

fn connect(address: &str) -> Connection {
    let open = Arc::new(());
    let peer = Peer::new(address, Arc::downgrade(&open));
    Connection(open, peer)
}

fn present(presence: &Presence, listening: &[(&str, usize)]) -> String {
    let listening = listening.iter().map(|(host, count)| (host.parse().unwrap(), *count)).collect();
    let ids: Vec<String> = presence.present_addresses(&listening).keys().map(MinionId::to_string).collect();
    ids.join(" ")
}

#[test]
fn an_address_has_at_most_as_many_present_minions_as_subscribers() {
    let presence = Presence::default();
    let [web1, web2, db1] = ["web1", "web2", "db1"].map(|id| id.parse::<MinionId>().unwrap());
    let (first, second, third) = (connect("10.0.0.1:1"), connect("10.0.0.1:2"), connect("[::ffff:10.0.0.2]:3"));
    for (id, connection) in [(&web1, &first), (&web2, &second), (&db1, &third)] {
        presence.record(id, &connection.1);
    }
    assert_eq!(present(&presence, &[("10.0.0.1", 2), ("10.0.0.2", 1)]), "db1 web1 web2");
    assert_eq!(present(&presence, &[("10.0.0.1", 2)]), "web1 web2");
    assert_eq!(present(&presence, &[("10.0.0.3", 9)]), "");
    // The minion with the most recent request counts, unless its connection is closed.
    assert_eq!(present(&presence, &[("10.0.0.1", 1)]), "web2");
    drop(second.0);
    assert_eq!(present(&presence, &[("10.0.0.1", 1)]), "web1");
    assert_eq!(present(&presence, &[("10.0.0.1", 2)]), "web1 web2");
    presence.forget(&web1);
    assert_eq!(present(&presence, &[("10.0.0.1", 2)]), "web2");
}

#[test]
fn a_salt_call_does_not_hide_its_daemon() {
    let presence = Presence::default();
    let [web1, web2] = ["web1", "web2"].map(|id| id.parse::<MinionId>().unwrap());
    let (daemon, other) = (connect("10.0.0.1:1"), connect("10.0.0.1:2"));
    presence.record(&web1, &daemon.1);
    let call = connect("10.0.0.1:9");
    presence.record(&web1, &call.1);
    drop(call.0);
    presence.record(&web2, &other.1);
    drop(other.0);
    assert_eq!(present(&presence, &[("10.0.0.1", 1)]), "web1");
}

#[test]
fn a_minion_that_moves_is_present_at_its_last_address() {
    let presence = Presence::default();
    let web1 = "web1".parse::<MinionId>().unwrap();
    for address in ["10.0.0.1:1", "10.0.0.2:1", "local"] {
        presence.record(&web1, &connect(address).1);
    }
    assert_eq!(present(&presence, &[("10.0.0.1", 1)]), "");
    assert_eq!(present(&presence, &[("10.0.0.2", 1)]), "web1");
}

#[test]
fn absence_is_certain_after_a_while_and_without_unknown_subscribers() {
    let presence = Presence::default();
    let [web1, web2] = ["web1", "web2"].map(|id| id.parse::<MinionId>().unwrap());
    let (first, second) = (connect("10.0.0.1:1"), connect("10.0.0.1:2"));
    presence.record(&web1, &first.1);
    presence.record(&web2, &second.1);
    let start = Instant::now();
    let ids = ["web1", "web2", "never"].map(str::to_owned);
    let absent = |subscribers: usize, seconds: u64| {
        let listening = HashMap::from([("10.0.0.1".parse().unwrap(), subscribers)]);
        presence.certainly_absent(&ids, &listening, start + Duration::from_secs(seconds)).join(" ")
    };
    presence.observe(start);
    assert_eq!(absent(2, 10), "");
    // Those that the master has not heard of since its start have longer to connect.
    assert_eq!(absent(2, 70), "never");
    drop(second.0);
    presence.observe(start);
    assert_eq!(absent(1, 10), "");
    assert_eq!(absent(1, 20), "web2");
    // A subscriber without a request connection may be any minion.
    assert_eq!(absent(2, 20), "");
    let again = connect("10.0.0.1:3");
    presence.record(&web2, &again.1);
    drop(again.0);
    assert_eq!(absent(1, 20), "", "it has been there meanwhile");
}
