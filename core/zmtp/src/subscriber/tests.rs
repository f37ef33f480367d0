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
        zmtp::accept(accepted.read, accepted.write, bytes::BytesMut::new(), SocketType::Pub, Limits::default(), None)
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
