use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::Listener;
use crate::io::{Reader, Writer};

const LONG: Duration = Duration::from_secs(20);

/// The kinds of request servers: Brine's, which shares a connection, and others.
const KINDS: [SocketType; 2] = [SocketType::Router, SocketType::Rep];

async fn listen() -> (Listener, RequestClient) {
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let client = RequestClient::new(listener.endpoint().clone(), Limits::default());
    (listener, client)
}

async fn accept(listener: &Listener, kind: SocketType) -> (Reader, Writer) {
    let accepted = listener.accept().await;
    handshake::accept(accepted.read, accepted.write, bytes::BytesMut::new(), kind, Limits::default(), None)
        .await
        .unwrap()
}

/// Returns the next request with all its frames.
async fn request(reader: &mut Reader) -> Vec<Bytes> {
    match reader.read().await.unwrap() {
        Message::Frames(frames) => frames,
        other => panic!("{other:?}"),
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "this does not come about: {what}");
        tokio::task::yield_now().await;
    }
}

/// Echoes requests and sends heartbeats at an interval, as libzmq does: a peer that does not answer is disconnected.
/// `answered` is the number of answered heartbeats.
async fn heartbeating(mut reader: Reader, mut writer: Writer, answered: watch::Sender<usize>) {
    const INTERVAL: Duration = Duration::from_millis(100);
    const TIMEOUT: Duration = Duration::from_millis(300);
    let mut interval = tokio::time::interval(INTERVAL);
    let mut heard = Instant::now();
    while heard.elapsed() < TIMEOUT {
        tokio::select! {
            _ = interval.tick() => writer.push_command(b"\x04PING\x00\x03context"),
            message = reader.read() => {
                match message {
                    Ok(Message::Frames(frames)) => writer.push(&frames),
                    Ok(Message::Command(command)) => {
                        assert_eq!(command, &b"\x04PONGcontext"[..]);
                        answered.send_modify(|count| *count += 1);
                    }
                    _ => return,
                }
                heard = Instant::now();
            }
        }
        writer.flush().await.unwrap();
    }
}

#[tokio::test]
async fn idle_connections_answer_heartbeats() {
    for kind in KINDS {
        let (listener, client) = listen().await;
        let (sender, mut answered) = watch::channel(0);
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (reader, writer) = accept(&listener, kind).await;
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(heartbeating(reader, writer, sender.clone()));
            }
        });
        assert_eq!(client.request("one", LONG).await.unwrap(), "one");
        // Three times as long as an unanswered heartbeat takes to end the connection.
        tokio::time::timeout(LONG, answered.wait_for(|count| *count > 10)).await.unwrap().unwrap();
        assert_eq!(client.request("two", LONG).await.unwrap(), "two");
        assert_eq!(connections.load(Ordering::Relaxed), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_while_idle_is_not_used_again() {
    for kind in KINDS {
        let (listener, client) = listen().await;
        let server = tokio::spawn(async move {
            for _ in 0..2 {
                let (mut reader, mut writer) = accept(&listener, kind).await;
                let frames = request(&mut reader).await;
                writer.send(&frames).await.unwrap();
            }
        });
        assert_eq!(client.request("one", LONG).await.unwrap(), "one");
        until("the client notices", || match &*client.0.pool.lock() {
            Pool::Shared(queue) => queue.is_closed(),
            Pool::Single(idle) => idle.iter().all(mpsc::Sender::is_closed),
            _ => false,
        })
        .await;
        assert_eq!(client.request("two", LONG).await.unwrap(), "two", "{kind:?}");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again_by_the_client() {
    for kind in KINDS {
        let (listener, client) = listen().await;
        let server: JoinHandle<Vec<Bytes>> = tokio::spawn(async move {
            let (mut reader, writer) = accept(&listener, kind).await;
            let first = request(&mut reader).await;
            drop((reader, writer));
            let (mut reader, mut writer) = accept(&listener, kind).await;
            let second = request(&mut reader).await;
            writer.send(&second).await.unwrap();
            [first, second].concat()
        });
        let error = client.request("one", LONG).await.unwrap_err();
        assert!(matches!(error, TransportError::Unanswered { .. }), "{kind:?}: {error}");
        assert_eq!(client.request("two", LONG).await.unwrap(), "two");
        let seen = server.await.unwrap();
        assert_eq!(seen.iter().filter(|frame| *frame == "one").count(), 1);
    }
}

#[tokio::test]
async fn a_late_reply_is_not_taken_for_that_of_the_next_request() {
    let (listener, client) = listen().await;
    tokio::spawn(async move {
        let mut held = None;
        loop {
            let (mut reader, mut writer) = accept(&listener, SocketType::Rep).await;
            let frames = request(&mut reader).await;
            if frames[1] == "late" {
                held = Some((reader, writer, frames));
                continue;
            }
            if let Some((_, writer, frames)) = &mut held {
                _ = writer.send(frames).await;
            }
            writer.send(&frames).await.unwrap();
        }
    });
    let error = client.request("late", Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, TransportError::TimedOut { .. }), "{error}");
    assert_eq!(client.request("next", LONG).await.unwrap(), "next");
}

#[tokio::test]
async fn requests_share_a_first_connection_that_fails() {
    let (listener, client) = listen().await;
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let accepted = listener.accept().await;
            counted.fetch_add(1, Ordering::Relaxed);
            drop(accepted);
        }
    });
    for round in 1..3 {
        let asked = (0..20).map(|_| client.request("word", LONG));
        for failed in futures::future::join_all(asked).await {
            assert!(matches!(failed, Err(TransportError::NoHandshake { .. })), "{failed:?}");
        }
        assert_eq!(connections.load(Ordering::Relaxed), round);
    }
}

#[tokio::test]
async fn connections_are_bounded() {
    const MAX: usize = 3;
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let client = RequestClient::with_connections(listener.endpoint().clone(), Limits::default(), MAX);
    let open = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&open);
    tokio::spawn(async move {
        loop {
            let (mut reader, mut writer) = accept(&listener, SocketType::Rep).await;
            assert!(counted.fetch_add(1, Ordering::Relaxed) < MAX);
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                while let Ok(Message::Frames(frames)) = reader.read().await {
                    writer.send(&frames).await.unwrap();
                }
                counted.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    let asked = (0..50).map(|n| {
        let client = client.clone();
        async move { client.request(n.to_string(), LONG).await.unwrap() == n.to_string() }
    });
    assert!(futures::future::join_all(asked).await.into_iter().all(|is_own| is_own));
}

#[tokio::test]
async fn a_peer_that_closes_before_its_greeting_is_named_with_a_likely_cause() {
    let (listener, client) = listen().await;
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    let error = client.request("word", LONG).await.unwrap_err();
    assert!(matches!(error, TransportError::NoHandshake { .. }), "{error}");
    assert!(error.to_string().contains("transport: tcp"), "{error}");
}
