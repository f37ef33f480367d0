use std::net::{TcpListener, UdpSocket};

use brine_value::map;

use crate::testing::applied;

#[test]
fn connections_are_tried_unless_in_test_mode() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = map! {"name" => "127.0.0.1", "port" => port, "timeout" => 5};
    let open = applied("firewall.check", settings.clone(), false, "");
    assert_eq!(open.result, Some(true), "{}", open.comment);
    assert!(open.comment.contains(&port.to_string()), "{}", open.comment);
    let other = map! {"name" => "127.0.0.1", "port" => port, "family" => "ipv6"};
    let other = applied("firewall.check", other, false, "");
    let expected = format!("Unable to resolve host 127.0.0.1 on tcp port {port}");
    assert_eq!((other.result, other.comment), (Some(false), expected));
    drop(listener);
    let shut = applied("firewall.check", settings.clone(), false, "");
    assert_eq!(shut.result, Some(false), "{}", shut.comment);
    let tried = applied("firewall.check", settings, true, "");
    assert_eq!((tried.result, tried.comment.as_str()), (Some(true), "The connection will be tested"));
}

#[test]
fn udp_port_is_open_if_it_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let settings = map! {"name" => "127.0.0.1", "port" => port, "proto" => "udp", "timeout" => 10};
    let answering = std::thread::spawn(move || {
        let mut packet = [0; 64];
        let (length, from) = server.recv_from(&mut packet).unwrap();
        server.send_to(&packet[..length], from).unwrap();
    });
    let open = applied("firewall.check", settings.clone(), false, "");
    answering.join().unwrap();
    let expected = format!("Successfully connected to 127.0.0.1 (127.0.0.1) on udp port {port}");
    assert_eq!((open.result, open.comment), (Some(true), expected));
    // Nothing listens on the port any more.
    assert_eq!(applied("firewall.check", settings, false, "").result, Some(false));
}
