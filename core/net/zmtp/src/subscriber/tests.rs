use std::time::Duration;

use super::*;
use crate::Listener;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn heartbeats_are_answered_while_the_owner_is_busy() {
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let endpoint = listener.endpoint().clone();
    let accept = async {
        let accepted = listener.accept().await;
        handshake::accept(
            accepted.read,
            accepted.write,
            bytes::BytesMut::new(),
            SocketType::Pub,
            Limits::default(),
            None,
        )
        .await
        .unwrap()
    };
    let connect = Subscriber::connect(&endpoint, &[b""], Limits::default());
    let (subscriber, (mut reader, mut writer)) = tokio::join!(connect, accept);
    let mut subscriber = subscriber.unwrap();
    assert_eq!(reader.read().await.unwrap(), Message::Frames(vec!["\x01".into()]));
    for n in 0..3u8 {
        writer.push_command(&[b"\x04PING\x00\x0a", &[n][..]].concat());
        writer.send(&[[n]]).await.unwrap();
        let answer = tokio::time::timeout(LONG, reader.read()).await.unwrap().unwrap();
        assert_eq!(answer, Message::Command([b"\x04PONG", &[n][..]].concat().into()));
    }
    drop((reader, writer));
    // Messages before the end are received.
    for n in 0..3u8 {
        assert_eq!(subscriber.recv().await.unwrap(), [vec![n]]);
    }
    for _ in 0..2 {
        assert!(matches!(subscriber.recv().await, Err(TransportError::Closed)));
    }
}

/// Accepts a subscriber, and lets it write.
async fn publisher(listener: &Listener) -> (Reader, Writer) {
    let accepted = listener.accept().await;
    let buffer = bytes::BytesMut::new();
    let (mut reader, writer) =
        handshake::accept(accepted.read, accepted.write, buffer, SocketType::Pub, Limits::default(), None)
            .await
            .unwrap();
    assert_eq!(reader.read().await.unwrap(), Message::Frames(vec!["\x01".into()]));
    (reader, writer)
}

#[tokio::test]
async fn a_message_that_does_not_end_in_time_ends_the_connection() {
    // The headers of two frames of which a length or the flags were damaged.
    for damaged in [&b"\x00\xff"[..], b"\x02\x00\x00\x00\x00\x00\x0f\xff\xff", b"\x01\x02no"] {
        let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
        let endpoint = listener.endpoint().clone();
        let limits = Limits { message_time: Some(Duration::from_millis(300)), ..Limits::default() };
        let (subscriber, (_reader, mut writer)) =
            tokio::join!(Subscriber::connect(&endpoint, &[b""], limits), publisher(&listener));
        let mut subscriber = subscriber.unwrap();
        writer.send(&[b"first"]).await.unwrap();
        assert_eq!(subscriber.recv().await.unwrap(), ["first"]);
        writer.push_raw(damaged);
        writer.flush().await.unwrap();
        // The peer goes on with heartbeats, or frames that continue the message.
        let beating = async {
            for _ in 0..10_000 {
                if damaged[0] == 1 {
                    writer.push_raw(b"\x04\x07\x04PING\x00\x0a");
                } else {
                    writer.push_raw(b"\x04");
                }
                if writer.flush().await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let received = tokio::select! {
            received = tokio::time::timeout(LONG, subscriber.recv()) => received.unwrap(),
            () = beating => panic!("the subscriber reads on"),
        };
        assert!(matches!(received, Err(TransportError::Unfinished { .. })), "{received:?}");
    }
}

#[tokio::test]
async fn an_idle_subscriber_stays_connected() {
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let endpoint = listener.endpoint().clone();
    let limits = Limits { message_time: Some(Duration::from_millis(50)), ..Limits::default() };
    let (subscriber, (_reader, mut writer)) =
        tokio::join!(Subscriber::connect(&endpoint, &[b""], limits), publisher(&listener));
    let mut subscriber = subscriber.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(200), subscriber.recv()).await.is_err());
    writer.send(&[b"later"]).await.unwrap();
    assert_eq!(subscriber.recv().await.unwrap(), ["later"]);
}

#[tokio::test]
async fn a_message_with_the_flags_of_a_command_is_not_dropped_in_silence() {
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let endpoint = listener.endpoint().clone();
    let (subscriber, (_reader, mut writer)) =
        tokio::join!(Subscriber::connect(&endpoint, &[b""], Limits::default()), publisher(&listener));
    let mut subscriber = subscriber.unwrap();
    writer.push_command(b"\x04PONG");
    writer.push_command(b"a job");
    writer.flush().await.unwrap();
    assert!(matches!(subscriber.recv().await, Err(TransportError::Malformed(_))));
}
