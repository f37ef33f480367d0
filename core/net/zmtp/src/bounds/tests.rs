use super::addresses::ADDRESSES;
use super::*;

fn bounds(connections: usize, per_address: usize) -> Bounds {
    Bounds::new(PeerLimits { connections, per_address, ..PeerLimits::default() })
}

fn address(n: u8) -> IpAddr {
    [10, 0, 0, n].into()
}

fn trust(bounds: &Bounds, n: u8, is_local: bool) -> Arc<Trust> {
    Arc::new(Trust::new(bounds.clone(), Some(address(n)), is_local))
}

/// Opens a connection of an address.
fn open(bounds: &Bounds, n: u8) -> Result<(Arc<Trust>, Open), ExceededLimit> {
    let trust = trust(bounds, n, false);
    bounds.open(address(n), &trust).map(|open| (trust, open))
}

fn is_evicted(trust: &Trust) -> bool {
    use futures::FutureExt;
    let is_evicted = trust.evicted().now_or_never().is_some();
    if is_evicted {
        // `evicted` consumes a permit, which is restored.
        trust.evicted.notify_one();
    }
    is_evicted
}

#[test]
fn unknown_addresses_cannot_take_all_connections() {
    let bounds = bounds(16, 0);
    let one: Vec<_> = (0..4).map(|_| open(&bounds, 1).unwrap()).collect();
    assert_eq!(open(&bounds, 1).unwrap_err(), ExceededLimit::Address(4));
    let two: Vec<_> = (0..4).map(|_| open(&bounds, 2).unwrap()).collect();
    assert_eq!(bounds.0.addresses.lock().counts(), (8, 8, 2));
    // The connections of an authenticated address no longer count as those of unknown addresses.
    bounds.remember(address(1));
    let more: Vec<_> = (0..8).map(|_| open(&bounds, 1).unwrap()).collect();
    assert_eq!(open(&bounds, 1).unwrap_err(), ExceededLimit::Total(16));
    drop((one, two));
    assert!(open(&bounds, 3).is_ok());
    drop(more);
    assert_eq!(bounds.0.addresses.lock().counts(), (0, 0, 1));
}

#[test]
fn the_idlest_connection_of_the_busiest_address_is_evicted() {
    let bounds = bounds(16, 0);
    let flood: Vec<_> = (0..8).map(|i| open(&bounds, 1 + i % 2).unwrap()).collect();
    for ((trust, _), time) in flood.iter().zip([9, 9, 8, 8, 1, 2, 7, 7]) {
        trust.last_message.store(time, Ordering::Relaxed);
    }
    // Both addresses have four connections, the first address the older ones: its third connection has been idle
    // for longest.
    let honest = open(&bounds, 3).unwrap();
    let evicted = |flood: &[(Arc<Trust>, Open)]| -> Vec<usize> {
        (0..flood.len()).filter(|i| is_evicted(&flood[*i].0)).collect()
    };
    assert_eq!(evicted(&flood), [4]);
    assert_eq!(bounds.0.addresses.lock().counts(), (8, 8, 3));
    // The flood continues, and evicts its own connections.
    let more: Vec<_> = (0..20).map(|i| open(&bounds, 1 + i % 2).unwrap()).collect();
    assert!(!is_evicted(&honest.0));
    // With one connection each, the oldest one is evicted.
    let others: Vec<_> = (0..7).map(|i| open(&bounds, 4 + i).unwrap()).collect();
    assert!(!is_evicted(&honest.0));
    let another = open(&bounds, 11).unwrap();
    assert!(is_evicted(&honest.0) && !is_evicted(&others[0].0));
    drop((others, another));
    // A connection with an authenticated sender is not evicted, even after its address has expired.
    let honest = open(&bounds, 3).unwrap();
    drop((flood, more));
    honest.0.is_authenticated.store(true, Ordering::Relaxed);
    let full: Vec<_> = (0..40).map(|i| open(&bounds, 10 + i).unwrap()).collect();
    assert!(!is_evicted(&honest.0));
    drop((full, honest));
    assert_eq!(bounds.0.addresses.lock().counts(), (0, 0, 0));
}

#[test]
fn a_known_address_does_not_take_all_connections() {
    let bounds = bounds(16, 0);
    bounds.remember(address(1));
    let _most: Vec<_> = (0..14).map(|_| open(&bounds, 1).unwrap()).collect();
    assert_eq!(open(&bounds, 1).unwrap_err(), ExceededLimit::Address(14));
    assert!(open(&bounds, 2).is_ok());
}

#[test]
fn per_address_limit_applies_to_every_address() {
    let bounds = bounds(100, 2);
    for (n, is_local) in [(1, false), (2, true)] {
        let open = || bounds.open(address(n), &trust(&bounds, n, is_local));
        let _two = (open().unwrap(), open().unwrap());
        assert_eq!(open().unwrap_err(), ExceededLimit::Address(2));
    }
}

#[test]
fn only_known_addresses_may_send_large_messages() {
    let bounds = Bounds::new(PeerLimits { unauthenticated_memory: 1 << 20, ..PeerLimits::default() });
    let (unknown, known, local) = (trust(&bounds, 1, false), trust(&bounds, 2, false), trust(&bounds, 3, true));
    known.remember_address();
    for (trust, small, large) in [(&unknown, true, false), (&known, true, true), (&local, true, true)] {
        assert_eq!(matches!(trust.admit(60_000), Admitted::Yes(_)), small);
        assert_eq!(matches!(trust.admit(100_000), Admitted::Yes(_)), large);
    }
    let Admitted::Yes(held) = known.admit(1 << 20) else { panic!("there is memory") };
    assert!(matches!(unknown.admit(5_000), Admitted::No));
    // Memory of authenticated connections is accounted separately.
    known.authenticate();
    assert!(matches!(known.admit(1 << 20), Admitted::Yes(_)));
    drop(held);
    assert!(matches!(unknown.admit(5_000), Admitted::Yes(_)));
}

#[tokio::test]
async fn message_memory_of_an_address_is_limited_to_its_share() {
    let bounds = Bounds::new(PeerLimits { message_time: Duration::from_millis(50), ..PeerLimits::default() });
    let hostile: Vec<_> = (0..3).map(|_| trust(&bounds, 1, false)).collect();
    let honest = trust(&bounds, 2, false);
    hostile.iter().chain([&honest]).for_each(|trust| trust.authenticate());
    let mut held = Vec::new();
    for trust in hostile.iter().cycle().take(SHARE / (32 << 20)) {
        let Admitted::Yes(memory) = trust.admit(32 << 20) else { panic!("the share has memory") };
        held.push(memory);
    }
    assert!(matches!(hostile[0].admit(5_000), Admitted::Later));
    assert!(hostile[1].wait_for_memory(5_000).await.is_none(), "it waits as long as a message may take");
    let Admitted::Yes(_own) = honest.admit(64 << 20) else { panic!("others have memory") };
    held.pop();
    assert!(hostile[2].wait_for_memory(5_000).await.is_some());
    // A message larger than a share reserves all of it.
    assert!(matches!(hostile[2].admit(SHARE * 2), Admitted::Later));
    drop(held);
    assert!(matches!(hostile[2].admit(SHARE * 2), Admitted::Yes(_)));
}

#[test]
fn remembered_addresses_are_bounded_and_ipv6_networks_count_as_one() {
    let bounds = bounds(16, 0);
    for n in 0..=u32::try_from(ADDRESSES).unwrap() {
        bounds.remember(IpAddr::from(n.to_be_bytes()));
    }
    assert_eq!(bounds.0.addresses.lock().counts(), (0, 0, ADDRESSES));
    assert!(!bounds.is_known([0, 0, 0, 0].into()) && bounds.is_known([0, 0, 0, 1].into()));
    bounds.remember("2001:db8::1".parse().unwrap());
    assert!(bounds.is_known("2001:db8::2".parse().unwrap()));
    assert!(!bounds.is_known("2001:db8:0:1::1".parse().unwrap()));
}
