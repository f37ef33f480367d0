//! The subscriber: receives what a publisher sends under some prefixes.

use bytes::Bytes;

use super::zmtp::{self, Limits, Message, Reader, SocketType, Writer};
use super::{Endpoint, TransportError};

/// One connection to a publisher. When it breaks, its owner decides when to connect again.
pub struct Subscriber {
    reader: Reader,
    // Kept: dropping the writing side would close the connection.
    writer: Writer,
}

impl Subscriber {
    /// Connects and subscribes to these prefixes; an empty one is for everything.
    pub async fn connect(endpoint: &Endpoint, prefixes: &[&[u8]], limits: Limits) -> Result<Self, TransportError> {
        let (reader, mut writer) = zmtp::connect(endpoint, SocketType::Sub, limits).await?;
        for prefix in prefixes {
            writer.push(&[[b"\x01", *prefix].concat()]);
        }
        writer.flush().await?;
        Ok(Subscriber { reader, writer })
    }

    /// The next message. Safe to drop while it waits.
    pub async fn recv(&mut self) -> Result<Vec<Bytes>, TransportError> {
        loop {
            match self.reader.read().await? {
                Message::Frames(frames) => return Ok(frames),
                Message::Command(command) => {
                    if let Some(pong) = zmtp::pong(&command) {
                        self.writer.push_command(&pong);
                        self.writer.flush().await?;
                    }
                }
            }
        }
    }
}
