//! The subscriber: receives what a publisher sends under some prefixes.

use bytes::Bytes;

use super::zmtp::{self, Limits, Message, SocketType};
use super::{Endpoint, Reader, TransportError, Writer};

/// One connection to a publisher. When it breaks, its owner decides when to connect again.
pub struct Subscriber {
    reader: Reader,
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

    /// Returns the next message. Safe to drop while it waits.
    pub async fn recv(&mut self) -> Result<Vec<Bytes>, TransportError> {
        loop {
            self.writer.flush().await?;
            match self.reader.read().await? {
                Message::Frames(frames) => return Ok(frames),
                Message::Command(command) => {
                    if let Some(pong) = zmtp::pong(&command) {
                        self.writer.push_command(&pong);
                    }
                }
                Message::Dropped(_) => {}
            }
        }
    }
}
