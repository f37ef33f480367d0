//! Whether data is text or binary, as Salt tells them apart.

/// Whether data is binary: it has a NUL byte, or nearly a third of non-text bytes.
pub fn is_binary(data: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(data) {
        Ok(_) => true,
        // The last character may be truncated.
        Err(error) => error.error_len().is_none(),
    };
    let is_text = |byte: &u8| match byte {
        b'\n' | b'\r' | b'\t' | 0x0c | 0x08 | 0x20..=0x7e => true,
        0x80..=0xfe => is_utf8,
        _ => false,
    };
    let others = data.iter().filter(|byte| !is_text(byte)).count();
    data.contains(&0) || others * 10 > data.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_binary_are_distinguished_by_bytes() {
        for (data, binary) in [
            (&b"hello\n"[..], false),
            (b"", false),
            (b"a\0b", true),
            ("grüße".as_bytes(), false),
            (&"ü".as_bytes()[..1], false),
            (b"\xff\xfe\xfdab", true),
            (b"\x01\x02abcdefgh", false),
            (b"\x01\x02\x03\x04abcdefgh", true),
        ] {
            assert_eq!(is_binary(data), binary, "{data:?}");
        }
    }
}
