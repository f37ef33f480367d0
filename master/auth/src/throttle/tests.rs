use super::*;

fn throttle() -> (Arc<Throttle>, Instant) {
    (Arc::default(), Instant::now())
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

/// Makes an attempt, and returns the seconds of the pause by which it is refused.
fn fail(throttle: &Arc<Throttle>, from: Option<IpAddr>, user: &str, now: Instant) -> Option<u64> {
    match throttle.begin(from, "file", user, now) {
        Ok(attempt) => {
            attempt.end(Outcome::Failed, now);
            None
        }
        Err(pause) => Some(pause.as_secs()),
    }
}

/// Returns the pause of an attempt in seconds, or its delay in milliseconds.
fn look(throttle: &Arc<Throttle>, from: Option<IpAddr>, user: &str, now: Instant) -> Result<u128, u64> {
    throttle.begin(from, "file", user, now).map(|attempt| attempt.delay().as_millis()).map_err(|pause| pause.as_secs())
}

#[test]
fn pauses_of_a_user_from_one_address_double_and_are_forgotten() {
    let (throttle, mut now) = throttle();
    let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
    let mut pauses = Vec::new();
    for _ in 0..10 {
        while let Some(pause) = fail(&throttle, here, "fred", now) {
            pauses.push(pause);
            now += Duration::from_secs(pause);
        }
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32]);
    // Nobody else has to wait for it, and the user from elsewhere only a little.
    assert_eq!(look(&throttle, there, "fred", now), Ok(4000));
    assert_eq!(look(&throttle, here, "ann", now), Ok(0));
    assert_eq!(look(&throttle, None, "fred", now), Ok(4000));
    assert_eq!(look(&throttle, here, "fred", now), Err(60));
    // The pause ends, whatever is tried meanwhile.
    let later = now + Duration::from_secs(59);
    assert_eq!(look(&throttle, here, "fred", later), Err(1));
    let after = now + Duration::from_secs(60);
    throttle.begin(here, "file", "fred", after).unwrap_or_else(|_| panic!("paused")).end(Outcome::Succeeded, after);
    assert_eq!(look(&throttle, here, "fred", after), Ok(0));
    assert_eq!(look(&throttle, here, "fred", after + FAILURE_LIFETIME), Ok(0));
}

#[test]
fn an_address_is_refused_after_failures_of_many_users() {
    let (throttle, now) = throttle();
    let guesses = |from: Option<IpAddr>| {
        (0..100).filter(|user| fail(&throttle, from, &format!("user{user}"), now).is_none()).count()
    };
    assert_eq!(guesses(address("10.0.0.1")), 11);
    // A /64 network of IPv6 is one address.
    assert_eq!(guesses(address("2001:db8::1")), 11);
    assert_eq!(guesses(address("2001:db8::2:3")), 0);
    assert_eq!(guesses(address("2001:db8:0:1::1")), 11);
    assert_eq!(guesses(address("::ffff:10.0.0.1")), 0);
    // A success with an own password does not help.
    let later = now + Duration::from_secs(1);
    throttle
        .begin(address("10.0.0.1"), "file", "own", later)
        .unwrap_or_else(|_| panic!("paused"))
        .end(Outcome::Succeeded, later);
    assert_eq!(fail(&throttle, address("10.0.0.1"), "one", later), None);
    assert_eq!(fail(&throttle, address("10.0.0.1"), "two", later), Some(2));
}

#[test]
fn concurrent_attempts_count_as_failures() {
    let (throttle, now) = throttle();
    let here = address("10.0.0.1");
    let begun: Vec<Attempt> = (0..100).filter_map(|_| throttle.begin(here, "file", "fred", now).ok()).collect();
    assert_eq!(begun.len(), 4);
    // Those that end without an outcome are forgotten.
    drop(begun);
    assert_eq!(look(&throttle, here, "fred", now), Ok(0));
    assert!(throttle.state.lock().users.0.is_empty());
    for _ in 0..4 {
        fail(&throttle, here, "fred", now);
    }
    let later = now + Duration::from_secs(1);
    let one = throttle.begin(here, "file", "fred", later);
    assert!(one.is_ok() && throttle.begin(here, "file", "fred", later).is_err());
}

#[test]
fn local_users_are_delayed_and_never_refused() {
    let (throttle, now) = throttle();
    let delays: Vec<_> = (0..10)
        .map(|_| {
            let attempt = throttle.begin(None, "file", "fred", now).unwrap_or_else(|_| panic!("refused"));
            let delay = attempt.delay().as_millis();
            attempt.end(Outcome::Failed, now);
            delay
        })
        .collect();
    assert_eq!(delays, [0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 4000]);
}

#[test]
fn other_spellings_of_a_name_count_together() {
    let (throttle, now) = throttle();
    let here = address("10.0.0.1");
    for user in ["Fred Smith", "fred  smith", "FRED SMITH", "ｆred smith"] {
        assert_eq!(fail(&throttle, here, user, now), None);
    }
    assert_eq!(fail(&throttle, here, "fred smith", now), Some(1));
    assert_eq!(look(&throttle, here, "fredsmith", now), Ok(0));
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
    let (throttle, now) = throttle();
    for number in 0..MAX_ENTRIES as u32 + 10 {
        fail(&throttle, Some(IpAddr::from(number.to_be_bytes())), &number.to_string(), now);
    }
    let state = throttle.state.lock();
    assert_eq!([state.users.0.len(), state.pairs.0.len(), state.addresses.0.len()], [MAX_ENTRIES; 3]);
}
