//! Messages between `salt-ssh` and the host: a length of four bytes, big-endian, followed by msgpack.

use std::io::{self, Read, Write};

use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The maximum size of a message, in bytes.
pub const MAX: usize = 64 << 20;

/// The key of a message that only shows that the host is there, while its function runs.
pub const ALIVE: &str = "alive";

fn too_large(size: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a message of {size} bytes is too large: {MAX} are allowed"))
}

fn packed(map: &Map) -> io::Result<Vec<u8>> {
    let body = msgpack::pack_map(map);
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX).ok_or_else(|| too_large(body.len()))?;
    Ok([&length.to_be_bytes()[..], &body].concat())
}

fn unpacked(body: &[u8]) -> io::Result<Map> {
    let invalid = |error: msgpack::UnpackError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    // The peer may be a hostile host: limit the decoded size.
    msgpack::unpack_map_within(body, Budget::AUTHENTICATED).map_err(invalid)
}

fn length(bytes: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(bytes) as usize;
    if length > MAX { Err(too_large(length)) } else { Ok(length) }
}

/// Writes a message.
///
/// # Errors
/// The message is too large, or the connection is closed.
pub fn write(out: &mut impl Write, map: &Map) -> io::Result<()> {
    out.write_all(&packed(map)?)?;
    out.flush()
}

/// Reads a message.
///
/// # Errors
/// The connection is closed, or the data is not a message.
pub fn read(from: &mut impl Read) -> io::Result<Map> {
    let mut header = [0; 4];
    from.read_exact(&mut header)?;
    let mut body = Vec::new();
    let length = length(header)?;
    // Memory is allocated only as bytes arrive, not by the declared length.
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    unpacked(&body)
}

/// Writes a message, as [`write`] does.
///
/// # Errors
/// As for [`write`].
pub async fn send(out: &mut (impl AsyncWrite + Unpin), map: &Map) -> io::Result<()> {
    out.write_all(&packed(map)?).await?;
    out.flush().await
}

/// Reads a message, as [`read`] does.
///
/// # Errors
/// As for [`read`].
pub async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Map> {
    let mut header = [0; 4];
    from.read_exact(&mut header).await?;
    let mut body = Vec::new();
    let length = length(header)?;
    from.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    unpacked(&body)
}

/// Returns a string field; an empty string if it is missing or of another type.
#[must_use]
pub fn text<'a>(map: &'a Map, name: &str) -> &'a str {
    map.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[tokio::test]
    async fn messages_arrive_whole_or_not_at_all() {
        let message = map! {"fun" => "test.ping", "data" => vec![0u8; 100_000]};
        let mut bytes = Vec::new();
        write(&mut bytes, &message).unwrap();
        assert_eq!(read(&mut &bytes[..]).unwrap(), message);
        assert_eq!(receive(&mut &bytes[..]).await.unwrap(), message);
        for cut in [0, 3, 4, 100, bytes.len() - 1] {
            assert!(read(&mut &bytes[..cut]).is_err() && receive(&mut &bytes[..cut]).await.is_err(), "{cut}");
        }
        let huge = [&u32::MAX.to_be_bytes()[..], b"x"].concat();
        assert!(read(&mut &huge[..]).unwrap_err().to_string().contains("too large"));
        assert!(receive(&mut &b"\0\0\0\x01\x05"[..]).await.is_err(), "not a mapping");
    }
}
