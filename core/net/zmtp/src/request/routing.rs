//! How a reply identifies its request.

use bytes::Bytes;

use crate::zmtp::Framing;

/// The routing frames of requests on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Routing {
    /// None: the connection has one request at a time.
    Single,
    /// A number in front of the empty frame.
    Numbered,
    /// Salt's framing: a number in the head, which the server repeats.
    Head,
}

/// The encoding of a head in front of its number, of eight hexadecimal digits: Salt's servers decode a head and encode it
/// again, which keeps a string.
const HEAD: &[u8] = b"\x81\xa3mid\xa8";

impl Routing {
    /// Returns the routing of a connection.
    pub fn new(framing: Framing, pipelines_requests: bool) -> Self {
        match framing {
            Framing::Salt => Routing::Head,
            Framing::Zmtp if pipelines_requests => Routing::Numbered,
            Framing::Zmtp => Routing::Single,
        }
    }

    /// Returns the number of the request after that of this number.
    pub fn next(self, number: u32) -> u32 {
        if self == Routing::Single { 0 } else { number.wrapping_add(1) }
    }

    /// Returns the frames in front of a request.
    pub fn frames(self, number: u32) -> Vec<Bytes> {
        match self {
            Routing::Single => vec![Bytes::new()],
            Routing::Numbered => vec![Bytes::copy_from_slice(&number.to_be_bytes()), Bytes::new()],
            Routing::Head => vec![[HEAD, format!("{number:08x}").as_bytes()].concat().into(), Bytes::new()],
        }
    }

    /// Returns the number of the request that these frames reply to, and the reply; `None` if the frames are no reply.
    pub fn reply(self, frames: &[Bytes]) -> Option<(u32, &Bytes)> {
        match (self, frames) {
            (Routing::Single, [empty, reply]) if empty.is_empty() => Some((0, reply)),
            (Routing::Numbered, [number, empty, reply]) if empty.is_empty() => {
                Some((u32::from_be_bytes(number[..].try_into().ok()?), reply))
            }
            (Routing::Head, [head, _, reply]) => {
                let digits = std::str::from_utf8(head.strip_prefix(HEAD)?).ok()?;
                Some((u32::from_str_radix(digits, 16).ok()?, reply))
            }
            _ => None,
        }
    }
}
