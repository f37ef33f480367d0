//! What the API does with bytes of clients without a login, for the fuzz targets.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use brine_http_server::{Following, Heads};
use brine_value::Value;
use tokio::io::{AsyncRead, ReadBuf};

use crate::format::{Kind, read_within};
use crate::limits::value_limit;
use crate::lowstate::RawChunk;

/// Parses a body, as JSON, YAML, text or a form. Returns its value and the counted memory of the value, in bytes.
pub fn body(kind: u8, raw: &[u8]) -> Result<(Value, usize), String> {
    let kind = [Kind::Json, Kind::Yaml, Kind::Text, Kind::Form][usize::from(kind) % 4];
    let limit = value_limit(raw.len(), false);
    let (value, left) = read_within(kind, raw, limit).map_err(|error| error.message)?;
    Ok((value, limit - left))
}

/// Parses the arguments of a lowstate with this value.
pub fn arguments(value: Value, size: usize) -> Result<(), String> {
    let chunks = match value {
        Value::Map(chunk) => vec![chunk],
        Value::List(chunks) => {
            chunks.into_iter().filter_map(|mut chunk| chunk.as_map_mut().map(std::mem::take)).collect()
        }
        _ => Vec::new(),
    };
    let parsed = RawChunk::parse(chunks, &mut value_limit(size, false));
    parsed.map(drop).map_err(|error| error.message)
}

/// Collects heads of requests without bodies that arrive in pieces. Returns the forwarded bytes.
pub fn heads(bytes: &[u8], piece: usize) -> Vec<u8> {
    struct Pieces<'a>(&'a [u8], usize);
    impl AsyncRead for Pieces<'_> {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
            let this = self.get_mut();
            let (piece, rest) = this.0.split_at(this.1.min(this.0.len()).min(buffer.remaining()));
            buffer.put_slice(piece);
            this.0 = rest;
            Poll::Ready(Ok(()))
        }
    }
    let (mut heads, mut stream, mut passed) = (Heads::new(usize::MAX), Pieces(bytes, piece.max(1)), Vec::new());
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let mut chunk = [0; 1024];
        let mut buffer = ReadBuf::new(&mut chunk);
        match heads.poll_read(&mut stream, &mut context, &mut buffer) {
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => passed.extend_from_slice(buffer.filled()),
            _ => return passed,
        }
        if passed.ends_with(b"\r\n\r\n") && !passed.contains(&0) {
            heads.expect(Following::Body(0));
        }
    }
}
