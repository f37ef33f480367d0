//! The subscriber: receives a publisher's messages with certain prefixes.

use brine_runtime::supervisor;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::connection::{Connection, Incoming, Silent};
use super::handshake::{self, SocketType};
use super::salt_tcp::NO_HEAD;
use super::subscriptions::topics_message;
use super::zmtp::{Framing, Limits, Message, is_pong};
use super::{Endpoint, Reader, TransportError, Writer};

/// The maximum number of messages that are read ahead.
const READ_AHEAD: usize = 16;

type Received = Result<Vec<Bytes>, TransportError>;

/// One connection to a publisher. Its owner decides when to reconnect.
///
/// A message that has begun must be complete within the `message_time` of the limits, whatever arrives meanwhile: with a
/// damaged length, later messages and heartbeats count as parts of it.
///
/// A task reads the connection while this exists, so that heartbeats are answered while the owner is busy.
pub struct Subscriber {
    messages: mpsc::Receiver<Received>,
}

impl Subscriber {
    /// Connects and subscribes to these prefixes; an empty one matches everything.
    pub async fn connect(
        endpoint: &Endpoint,
        prefixes: &[impl AsRef<[u8]>],
        limits: Limits,
    ) -> Result<Self, TransportError> {
        if limits.framing == Framing::Salt {
            return Self::identify(endpoint, &topics_message(prefixes), limits).await;
        }
        let (reader, mut writer) = handshake::connect(endpoint, SocketType::Sub, limits).await?;
        for prefix in prefixes {
            writer.push(&[[b"\x01", prefix.as_ref()].concat()]);
        }
        writer.flush().await?;
        Ok(Self::start(reader, writer, limits))
    }

    /// Connects with Salt's framing and sends this encoded message, by which a Salt master identifies the minion and a
    /// Brine master subscribes it to everything.
    pub async fn identify(endpoint: &Endpoint, message: &Bytes, limits: Limits) -> Result<Self, TransportError> {
        let limits = Limits { framing: Framing::Salt, ..limits };
        let (reader, mut writer) = handshake::connect(endpoint, SocketType::Sub, limits).await?;
        writer.push_content(&[NO_HEAD], message);
        writer.flush().await?;
        Ok(Self::start(reader, writer, limits))
    }

    fn start(reader: Reader, writer: Writer, limits: Limits) -> Self {
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        supervisor::spawn("subscriber", receive(Connection::new(reader, writer, limits.message_time), sender));
        Subscriber { messages }
    }

    /// Returns the next message. Cancel safe.
    pub async fn recv(&mut self) -> Received {
        // Nothing follows the error that ended the connection.
        self.messages.recv().await.unwrap_or(Err(TransportError::Closed))
    }
}

/// Receives until the connection ends or its owner is dropped.
async fn receive(connection: Connection, messages: mpsc::Sender<Received>) {
    let answering = async {
        // A failed write must not drop received messages: the reader reports the end of the connection.
        _ = connection.outgoing.run(Silent).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = forward(connection.incoming, &messages) => {}
        () = answering => {}
        () = messages.closed() => {}
    }
}

async fn forward(mut incoming: Incoming, messages: &mpsc::Sender<Received>) {
    loop {
        let received = match incoming.read().await {
            Ok(Message::Frames(frames)) => Ok(incoming.contents(frames)),
            // A publisher sends no other command: it is a message whose flags were damaged, which must not be dropped
            // in silence.
            Ok(Message::Command(command)) if !is_pong(&command) => {
                Err(TransportError::Malformed("a publisher sent a command instead of a message"))
            }
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        let has_ended = received.is_err();
        if messages.send(received).await.is_err() || has_ended {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
