//! PEM: labelled blocks of Base64 text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// A PEM block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The label, such as `CERTIFICATE`.
    pub label: String,
    /// The headers before the Base64 text, such as `DEK-Info`.
    pub headers: Vec<(String, String)>,
    /// The decoded bytes.
    pub bytes: Vec<u8>,
}

/// Whether bytes contain the beginning of a block.
pub fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(10).any(|part| part == b"-----BEGIN")
}

/// Returns all valid blocks. Text between blocks is ignored.
pub fn blocks(bytes: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(bytes);
    let mut blocks = Vec::new();
    let mut open: Option<(Block, String)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix("-----")) {
            let block = Block { label: label.to_owned(), headers: Vec::new(), bytes: Vec::new() };
            open = Some((block, String::new()));
        } else if line.starts_with(END) {
            if let Some((mut block, body)) = open.take()
                && let Ok(bytes) = STANDARD.decode(body)
            {
                block.bytes = bytes;
                blocks.push(block);
            }
        } else if let Some((block, body)) = &mut open {
            match line.split_once(':') {
                Some((name, value)) => block.headers.push((name.to_owned(), value.trim().to_owned())),
                None => body.push_str(line),
            }
        }
    }
    blocks
}

/// Returns the bytes of the first block with one of these labels.
pub(crate) fn first(bytes: &[u8], labels: &[&str]) -> Option<Vec<u8>> {
    blocks(bytes).into_iter().find(|block| labels.contains(&&block.label[..])).map(|block| block.bytes)
}

/// Encodes a block.
pub fn encode(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let mut out = format!("{BEGIN}{label}-----\n");
    for line in body.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + &format!("{END}{label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_encoded_and_found() {
        let text = format!("text\n{}between\n{}", encode("A", &[7; 100]), encode("B C", b""));
        assert!(is_pem(text.as_bytes()) && !is_pem(b"-----BEGI"));
        let pem_blocks = blocks(text.as_bytes());
        assert_eq!(pem_blocks.len(), 2);
        assert_eq!((&pem_blocks[0].label[..], &pem_blocks[0].bytes[..]), ("A", &[7; 100][..]));
        assert_eq!(first(text.as_bytes(), &["B C"]), Some(Vec::new()));
        assert_eq!(blocks(b"-----BEGIN A-----\n%%\n-----END A-----\n-----BEGIN A-----\nAAAA\n"), []);
    }
}
