use super::*;

#[test]
fn pauses_double_and_are_forgotten() {
    let throttle = Throttle::default();
    let begun = Instant::now();
    let address = Some(IpAddr::from([10, 0, 0, 1]));
    let other = Some(IpAddr::from([10, 0, 0, 2]));
    let mut pauses = Vec::new();
    for _ in 0..12 {
        throttle.record(address, "file", "fred", false, begun);
        pauses.push(throttle.remaining(None, "file", "fred", begun).as_secs());
    }
    assert_eq!(pauses, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    for (address, user, seconds) in [(other, "fred", 60), (address, "ann", 60), (other, "ann", 0), (None, "ann", 0)] {
        assert_eq!(throttle.remaining(address, "file", user, begun).as_secs(), seconds, "{address:?} {user}");
    }
    let later = begun + Duration::from_secs(59);
    assert_eq!(throttle.remaining(address, "file", "fred", later), Duration::from_secs(1));
    throttle.record(address, "file", "fred", true, later);
    assert_eq!(throttle.remaining(None, "file", "fred", later), Duration::ZERO);
    let forgotten = begun + FAILURE_LIFETIME;
    throttle.record(address, "file", "ann", false, forgotten);
    assert_eq!(throttle.remaining(address, "file", "ann", forgotten), Duration::ZERO);
}

#[test]
fn other_spellings_and_addresses_of_one_host_count_together() {
    let throttle = Throttle::default();
    let begun = Instant::now();
    let address = |text: &str| Some(text.parse().unwrap());
    for (from, user) in [("2001:db8::1", "Fred Smith"), ("2001:db8::2", "fred  smith"), ("2001:db8::3:1", "FRED SMITH")]
    {
        throttle.record(address(from), "ldap", user, false, begun);
    }
    throttle.record(address("::ffff:10.0.0.1"), "ldap", "fred smith", false, begun);
    for (from, user, seconds) in [
        (None, "fred smith", 1),
        (None, "fredsmith", 0),
        (address("2001:db8::9"), "ann", 0),
        (address("10.0.0.1"), "ann", 0),
    ] {
        assert_eq!(throttle.remaining(from, "ldap", user, begun).as_secs(), seconds, "{from:?} {user}");
    }
    throttle.record(address("2001:db8::4"), "ldap", "ann", false, begun);
    assert_eq!(throttle.remaining(address("2001:db8::9"), "ldap", "bob", begun).as_secs(), 1);
    assert_eq!(throttle.remaining(address("2001:db8:0:1::9"), "ldap", "bob", begun).as_secs(), 0);
}

#[test]
fn networks_keep_loopback_addresses() {
    for (address, expected) in
        [("::1", "::1"), ("127.0.0.1", "127.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8::1:2", "2001:db8::")]
    {
        assert_eq!(network(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn remembered_failures_are_bounded() {
    let throttle = Throttle::default();
    let begun = Instant::now();
    for number in 0..MAX_ENTRIES + 10 {
        throttle.record(None, "file", &number.to_string(), false, begun);
    }
    assert_eq!(throttle.state.lock().users.len(), MAX_ENTRIES);
}
