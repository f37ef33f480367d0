//! Reads the bodies of responses within the limits on size and rate.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::{Access, Response, WebError};

/// The time over which the rate of a body is measured.
const RATE_WINDOW: Duration = Duration::from_secs(60);
/// The size of a piece of a body without a known length, in bytes.
const PIECE: usize = 4 << 20;

/// Reads the body of a response into memory, up to `http_max_body`.
///
/// # Errors
/// The body is incomplete, too large or too slow.
pub fn read(response: &mut Response, access: &Access) -> Result<Vec<u8>, WebError> {
    let length = response.body().content_length().unwrap_or(0).min(access.max_body);
    let mut pieces = Pieces::default();
    if length > 0 {
        pieces.add(usize::try_from(length).unwrap_or(PIECE));
    }
    copy(response, access, &mut pieces)?;
    Ok(pieces.joined())
}

/// Writes the body of a response to `into`, up to `http_max_body`. Returns the number of bytes.
///
/// # Errors
/// The body is incomplete, too large or too slow, or writing fails: what was written until then must not be used.
pub fn copy(response: &mut Response, access: &Access, into: &mut dyn Write) -> Result<u64, WebError> {
    let limit = access.max_body;
    if response.body().content_length().is_some_and(|length| length > limit) {
        return Err(WebError::TooLarge(limit));
    }
    let mut reader = response.body_mut().as_reader();
    copied(&mut reader, limit, access.min_rate, RATE_WINDOW, into)
}

fn copied(
    reader: &mut dyn Read,
    limit: u64,
    min_rate: u64,
    window: Duration,
    into: &mut dyn Write,
) -> Result<u64, WebError> {
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    let (mut since, mut received) = (Instant::now(), 0);
    loop {
        let length = match reader.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(WebError::Request(ureq::Error::from(error))),
        };
        total += length as u64;
        received += length as u64;
        if total > limit {
            return Err(WebError::TooLarge(limit));
        }
        into.write_all(&buffer[..length]).map_err(WebError::Write)?;
        let elapsed = since.elapsed();
        if elapsed >= window {
            let expected = u128::from(min_rate) * elapsed.as_millis() / 1000;
            if u128::from(received) < expected {
                return Err(WebError::TooSlow(min_rate));
            }
            (since, received) = (Instant::now(), 0);
        }
    }
}

/// A body of unknown length. It is not moved to a larger block as it grows, which would need twice its memory.
#[derive(Default)]
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    fn add(&mut self, capacity: usize) {
        self.0.push(Vec::with_capacity(capacity));
    }

    fn joined(self) -> Vec<u8> {
        let mut pieces = self.0.into_iter();
        let mut whole = pieces.next().unwrap_or_default();
        whole.reserve_exact(pieces.as_slice().iter().map(Vec::len).sum());
        for piece in pieces {
            whole.extend_from_slice(&piece);
        }
        whole
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.last().is_none_or(|piece| piece.len() == piece.capacity()) {
            let is_first = self.0.is_empty();
            self.add(if is_first { bytes.len() } else { PIECE });
        }
        let Some(piece) = self.0.last_mut() else { return Ok(0) };
        let length = bytes.len().min(piece.capacity() - piece.len());
        piece.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte at a time, for ever.
    struct Slow(Duration);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            buffer[0] = b'x';
            Ok(1)
        }
    }

    #[test]
    fn slow_and_endless_bodies_fail() {
        let window = Duration::from_millis(50);
        let slow = copied(&mut Slow(Duration::from_millis(10)), 1000, 1_000_000, window, &mut io::sink());
        assert!(matches!(slow, Err(WebError::TooSlow(1_000_000))), "{slow:?}");
        let allowed = copied(&mut Slow(Duration::from_millis(1)), 100, 0, window, &mut io::sink());
        assert!(matches!(allowed, Err(WebError::TooLarge(100))), "{allowed:?}");
        let quick = copied(&mut io::repeat(1).take(1 << 20), 1 << 20, 1000, Duration::ZERO, &mut io::sink());
        assert_eq!(quick.unwrap(), 1 << 20);
    }

    #[test]
    fn pieces_of_a_body_are_joined() {
        let bytes: Vec<u8> = (0..PIECE * 2 + 77).map(|at| (at % 251) as u8).collect();
        for length in [0, 10, PIECE * 3] {
            let mut pieces = Pieces::default();
            if length > 0 {
                pieces.add(length);
            }
            for part in bytes.chunks(65_000) {
                pieces.write_all(part).unwrap();
            }
            assert!(pieces.joined() == bytes, "{length}");
        }
    }
}
