use super::*;

#[tokio::test]
async fn both_ends_of_a_connection_have_their_keepalive() {
    let keepalive = |idle| Keepalive::new(true, idle, 7, 2);
    let options = PortOptions { keepalive: keepalive(40), ..PortOptions::default() };
    let listener = Listener::bind_port(&Endpoint::Tcp("127.0.0.1".into(), 0), options).await.unwrap();
    let (opened, accepted) = tokio::join!(listener.endpoint().open(None, keepalive(30)), listener.accept());
    for (half, idle) in [(opened.unwrap().0, 30), (accepted.read, 40)] {
        let ReadHalf::Tcp(stream) = half else { panic!("not TCP") };
        let socket = socket2::SockRef::from(stream.as_ref());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(idle));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(7));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 2);
    }
}

#[tokio::test]
async fn the_backlog_bounds_the_connections_that_are_not_accepted_yet() {
    let options = PortOptions { backlog: 1, ..PortOptions::default() };
    let listener = Listener::bind_port(&Endpoint::Tcp("127.0.0.1".into(), 0), options).await.unwrap();
    let mut open = Vec::new();
    while let Ok(opened) =
        tokio::time::timeout(Duration::from_millis(300), listener.endpoint().open(None, Keepalive::default())).await
    {
        open.push(opened.unwrap());
        assert!(open.len() < 10, "all connections were accepted");
    }
}

#[test]
fn endpoints_are_parsed() {
    for (text, endpoint) in [
        ("tcp://127.0.0.1:4506", Endpoint::Tcp("127.0.0.1".into(), 4506)),
        ("tcp://[::1]:4506", Endpoint::Tcp("::1".into(), 4506)),
        ("ipc:///run/x.ipc", Endpoint::Ipc("/run/x.ipc".into())),
    ] {
        let read: Endpoint = text.parse().unwrap();
        assert_eq!(read, endpoint);
        assert_eq!(read.to_string(), text);
    }
    for bad in ["", "tcp://", "tcp://host", "tcp://:1", "tcp://h:99999", "ipc://", "udp://h:1"] {
        assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
    }
}
