//! Messages on the pipes: a head with the length, then JSON. Sizes are bounded.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lsp_server::Message;

/// The largest message, in bytes.
const MAX_MESSAGE: usize = 16 << 20;
/// The largest head of a message, in bytes.
const MAX_HEAD: u64 = 4096;
/// The number of messages that wait, in each direction.
const MAX_WAITING: usize = 256;

/// What the client sent.
pub(crate) enum Incoming {
    /// A message.
    Message(Message),
    /// Something that is no message; the next one may be right.
    Invalid,
    /// The pipe failed.
    Failed(io::Error),
}

/// Reads messages in a thread of their own. The channel ends with the pipe.
pub(crate) fn reader(mut input: impl BufRead + Send + 'static) -> io::Result<Receiver<Incoming>> {
    let (sender, receiver) = sync_channel(MAX_WAITING);
    let read = move || {
        loop {
            let incoming = match read(&mut input) {
                Ok(Some(incoming)) => incoming,
                Ok(None) => return,
                Err(error) => Incoming::Failed(error),
            };
            let is_last = matches!(incoming, Incoming::Failed(_));
            if sender.send(incoming).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("lsp-reader".to_owned()).spawn(read)?;
    Ok(receiver)
}

/// Writes messages in a thread of their own, which ends when the channel is closed or the pipe fails.
pub(crate) fn writer(mut output: impl Write + Send + 'static) -> io::Result<(SyncSender<Message>, JoinHandle<()>)> {
    let (sender, receiver) = sync_channel::<Message>(MAX_WAITING);
    let write = move || {
        for message in receiver {
            if message.write(&mut output).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("lsp-writer".to_owned()).spawn(write)?;
    Ok((sender, thread))
}

/// Reads one message; `None` at the end of the pipe.
fn read(input: &mut impl BufRead) -> io::Result<Option<Incoming>> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut length = None;
    let mut head = input.by_ref().take(MAX_HEAD);
    let mut line = Vec::new();
    loop {
        line.clear();
        if head.read_until(b'\n', &mut line)? == 0 {
            if head.limit() == 0 {
                return Err(invalid(format!("the head of a message is invalid: expected {MAX_HEAD} bytes at most")));
            }
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            break;
        }
        if let Some((name, value)) = text.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>().map_err(|_| {
                invalid(format!("the length of a message is invalid: expected a number, got '{}'", value.trim()))
            })?);
        }
    }
    let length = length.ok_or_else(|| invalid("a message is invalid: expected the field Content-Length".to_owned()))?;
    if length > MAX_MESSAGE {
        return Err(invalid(format!("a message of {length} bytes is invalid: expected {MAX_MESSAGE} bytes at most")));
    }
    // Not allocated before it is there.
    let mut body = Vec::new();
    if input.by_ref().take(length as u64).read_to_end(&mut body)? < length {
        return Ok(None);
    }
    Ok(Some(match serde_json::from_slice(&body) {
        Ok(message) => Incoming::Message(message),
        Err(_) => Incoming::Invalid,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_text(mut input: &[u8]) -> String {
        match read(&mut input) {
            Ok(Some(Incoming::Message(message))) => format!("{message:?}"),
            Ok(Some(Incoming::Invalid)) => "invalid".to_owned(),
            Ok(Some(Incoming::Failed(error))) | Err(error) => error.to_string(),
            Ok(None) => "end".to_owned(),
        }
    }

    #[test]
    fn messages_are_bounded() {
        let good = b"Content-Length: 33\r\nX: y\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}";
        assert!(result_text(good).contains("exit"));
        for (input, expected) in [
            (&b""[..], "end"),
            (b"Content-Length: 40\r\n\r\n{}", "end"),
            (b"Content-Length: 2\r\n\r\n{}", "invalid"),
            (b"Content-Length: 2\n\n\xff\xff", "invalid"),
            (b"Content-Length: x\r\n\r\n", "the length of a message is invalid: expected a number, got 'x'"),
            (b"A: b\r\n\r\n", "a message is invalid: expected the field Content-Length"),
            (
                b"Content-Length: 99999999999\r\n\r\n",
                "a message of 99999999999 bytes is invalid: expected 16777216 bytes at most",
            ),
        ] {
            assert_eq!(result_text(input), expected);
        }
        assert_eq!(result_text(&[b'x'; 5000]), "the head of a message is invalid: expected 4096 bytes at most");
    }
}
