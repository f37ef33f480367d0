//! Bounded capture of a child process's output.

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use parking_lot::Mutex;

/// The default maximum size of one output, in bytes. Both outputs of a command fit into one message to the master.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// The first bytes of an output, and the number of dropped ones.
#[derive(Debug, Default)]
pub struct Captured {
    kept: Vec<u8>,
    limit: usize,
    dropped: u64,
}

impl Captured {
    fn new(limit: usize) -> Self {
        Captured { kept: Vec::new(), limit, dropped: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (head, dropped) = bytes.split_at(bytes.len().min(self.limit - self.kept.len()));
        if self.kept.capacity() - self.kept.len() < head.len() {
            // Doubles, but never exceeds the limit.
            let capacity = (self.kept.capacity() * 2).max(8192).max(self.kept.len() + head.len()).min(self.limit);
            self.kept.reserve_exact(capacity - self.kept.len());
        }
        self.kept.extend_from_slice(head);
        self.dropped += dropped.len() as u64;
    }

    /// Whether bytes were dropped.
    pub fn is_cut(&self) -> bool {
        self.dropped > 0
    }

    /// Returns the text, without trailing white space unless it is kept, and with a note about dropped bytes.
    pub fn into_text(self, keep_line_ends: bool) -> String {
        let Captured { kept, limit, dropped } = self;
        // Only text that is not UTF-8 is copied.
        let mut text = String::from_utf8(kept)
            .unwrap_or_else(|error| String::from_utf8_lossy(&cut_character(error.into_bytes(), dropped)).into_owned());
        // A replacement character is longer than the byte that it replaces.
        let beyond = text.len().saturating_sub(limit);
        if beyond > 0 {
            let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
        }
        if !keep_line_ends {
            text.truncate(text.trim_end().len());
        }
        let dropped = dropped + beyond as u64;
        if dropped > 0 {
            text.push_str(&format!("\n[output cut after {limit} bytes: {dropped} more bytes were dropped]"));
        }
        text
    }
}

/// Whether a text ends with the note about dropped bytes.
pub fn is_cut(text: &str) -> bool {
    let last = text.rsplit('\n').next().unwrap_or_default();
    last.starts_with("[output cut after ") && last.ends_with(" more bytes were dropped]")
}

/// Removes a truncated character at the end.
fn cut_character(mut bytes: Vec<u8>, dropped: u64) -> Vec<u8> {
    if dropped > 0
        && let Err(error) = str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    bytes
}

/// Reads a pipe to its end on a thread of its own. Bytes beyond the limit are read and dropped, so that the writer does
/// not block.
pub fn collect(
    pipe: Option<impl Read + Send + 'static>,
    limit: usize,
    closed: impl FnOnce() + Send + 'static,
) -> Arc<Mutex<Captured>> {
    let captured = Arc::new(Mutex::new(Captured::new(limit)));
    let into = Arc::clone(&captured);
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        if let Some(mut pipe) = pipe {
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => into.lock().add(&buffer[..length]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        closed();
    });
    captured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut captured = Captured::new(limit);
        for piece in pieces {
            captured.add(piece);
        }
        captured
    }

    #[test]
    fn output_is_cut_at_the_limit_with_a_note() {
        for (limit, pieces, expected) in [
            (10, vec![&b"ab\n"[..]], "ab"),
            (3, vec![b"a", b"bc"], "abc"),
            (3, vec![b"a", b"bcd", b"efg"], "abc\n[output cut after 3 bytes: 4 more bytes were dropped]"),
            (0, vec![b"abc"], "\n[output cut after 0 bytes: 3 more bytes were dropped]"),
            (2, vec!["aä".as_bytes()], "a\n[output cut after 2 bytes: 1 more bytes were dropped]"),
            (3, vec![b"\xff\xff"], "\u{fffd}\n[output cut after 3 bytes: 3 more bytes were dropped]"),
            (6, vec![b"\xffa"], "\u{fffd}a"),
        ] {
            assert_eq!(captured(limit, &pieces).into_text(false), expected, "{limit} {pieces:?}");
        }
        assert_eq!(captured(9, &[b"a\n"]).into_text(true), "a\n");
        assert!(is_cut(&captured(3, &[b"abcd"]).into_text(false)) && !is_cut(&captured(3, &[b"abc"]).into_text(false)));
    }

    #[test]
    fn memory_stays_within_the_limit() {
        let limit = 100_000;
        let mut captured = Captured::new(limit);
        for _ in 0..1000 {
            captured.add(&[b'x'; 8192]);
            assert!(captured.kept.capacity() <= limit);
        }
        assert_eq!(captured.kept.len(), limit);
        assert_eq!(captured.dropped, 8192 * 1000 - limit as u64);
    }
}
