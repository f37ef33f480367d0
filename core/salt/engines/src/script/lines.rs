//! Lines of a stream, with a limit of their length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 1 << 20;

/// A line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// The beginning of a line that is too long; the rest is discarded.
    Cut(Vec<u8>),
}

/// The lines of a stream.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(stream: R) -> Self {
        Lines { reader: BufReader::new(stream), max: MAX_LINE }
    }

    /// Returns the next line; `None` at the end.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        let (mut line, mut is_cut) = (Vec::new(), false);
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok((is_cut || !line.is_empty()).then(|| to_line(line, is_cut)));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let room = self.max - line.len();
            is_cut |= part.len() > room;
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(read.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(to_line(line, is_cut)));
            }
        }
    }
}

fn to_line(line: Vec<u8>, is_cut: bool) -> Line {
    if is_cut { Line::Cut(line) } else { Line::Whole(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_cut_and_the_next_one_is_whole() {
        let mut lines = Lines { max: 4, ..Lines::new(&b"abcd\n\nabcde\nx\nabcdefgh"[..]) };
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        let whole = |text: &str| Line::Whole(text.into());
        let cut = || Line::Cut(b"abcd".to_vec());
        assert_eq!(all, [whole("abcd"), whole(""), cut(), whole("x"), cut()]);
    }
}
