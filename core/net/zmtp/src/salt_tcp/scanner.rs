//! Finds the end of one msgpack value without decoding it.

use crate::TransportError;

/// The progress within one value. Containers only add to the number of values to come, so nesting costs no memory.
#[derive(Debug)]
pub(super) struct Scanner {
    /// The number of values that have not begun.
    values: u64,
    /// The remaining bytes of the current string, bytes, number or extension.
    content: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner { values: 1, content: 0 }
    }
}

impl Scanner {
    /// Examines further bytes of the value. Returns the number of bytes that belong to it and need not be examined
    /// again, and whether the value is complete.
    ///
    /// # Errors
    /// The bytes are not msgpack.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), TransportError> {
        let mut at = 0;
        loop {
            let here = usize::try_from(self.content).unwrap_or(usize::MAX).min(bytes.len() - at);
            self.content -= here as u64;
            at += here;
            if self.content > 0 {
                return Ok((at, false));
            }
            if self.values == 0 {
                return Ok((at, true));
            }
            let Some(Header { length, values, content }) = header(&bytes[at..])? else { return Ok((at, false)) };
            at += length;
            self.values = self.values - 1 + values;
            self.content = content;
        }
    }

    /// Returns the number of bytes that the value still needs at least: each value takes one.
    pub fn minimum(&self) -> u64 {
        self.values.saturating_add(self.content)
    }
}

/// The first bytes of a value.
struct Header {
    /// Its length in bytes.
    length: usize,
    /// The number of values that a container announces.
    values: u64,
    /// The number of bytes that follow the header.
    content: u64,
}

/// Reads the header of a value; `None` if it is incomplete.
fn header(bytes: &[u8]) -> Result<Option<Header>, TransportError> {
    let Some(&marker) = bytes.first() else { return Ok(None) };
    let plain = |values: u64, content: u64| Ok(Some(Header { length: 1, values, content }));
    // The number that follows the marker, in so many bytes.
    let (width, is_container) = match marker {
        0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => return plain(0, 0),
        0x80..=0x8f => return plain(2 * u64::from(marker & 0x0f), 0),
        0x90..=0x9f => return plain(u64::from(marker & 0x0f), 0),
        0xa0..=0xbf => return plain(0, u64::from(marker & 0x1f)),
        0xc1 => return Err(TransportError::Malformed("a message is not msgpack")),
        0xca | 0xce | 0xd2 => return plain(0, 4),
        0xcb | 0xcf | 0xd3 => return plain(0, 8),
        0xcc | 0xd0 => return plain(0, 1),
        0xcd | 0xd1 => return plain(0, 2),
        // Extensions of a fixed length have their type in front.
        0xd4..=0xd8 => return plain(0, 1 + (1 << (marker - 0xd4))),
        0xc4 | 0xc7 | 0xd9 => (1, false),
        0xc5 | 0xc8 | 0xda => (2, false),
        0xc6 | 0xc9 | 0xdb => (4, false),
        0xdc | 0xde => (2, true),
        0xdd | 0xdf => (4, true),
    };
    let Some(number) = bytes.get(1..=width) else { return Ok(None) };
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let length = 1 + width;
    Ok(Some(match marker {
        0xde | 0xdf => Header { length, values: 2 * number, content: 0 },
        _ if is_container => Header { length, values: number, content: 0 },
        0xc7..=0xc9 => Header { length, values: 0, content: number + 1 },
        _ => Header { length, values: 0, content: number },
    }))
}
