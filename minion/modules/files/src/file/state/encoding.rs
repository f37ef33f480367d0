//! Character encodings other than UTF-8: `encoding` of `file.managed`.

/// Encodes a text. Characters that the encoding lacks are omitted, replaced by `?`, or an error, according to
/// `errors`.
pub(super) fn encode(text: &[u8], encoding: &str, errors: &str) -> Result<Vec<u8>, String> {
    let limit = match encoding.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "utf8" => return Ok(text.to_vec()),
        "ascii" | "usascii" => 0x80,
        "latin1" | "iso88591" | "l1" => 0x100,
        _ => return Err(format!("encoding is invalid: expected utf-8, latin-1 or ascii, got '{encoding}'")),
    };
    let text = String::from_utf8_lossy(text);
    let mut encoded = Vec::with_capacity(text.len());
    for character in text.chars() {
        match (u8::try_from(u32::from(character)), errors) {
            (Ok(byte), _) if u32::from(byte) < limit => encoded.push(byte),
            (_, "ignore") => {}
            (_, "replace") => encoded.push(b'?'),
            _ => return Err(format!("encoding '{encoding}' has no character '{character}'")),
        }
    }
    Ok(encoded)
}

/// Decodes a text to UTF-8. Anything that is not UTF-8 is read as Latin-1, which includes ASCII.
pub(super) fn decode(encoded: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(encoded).is_ok() {
        return encoded.to_vec();
    }
    encoded.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded() {
        let text = "caf\u{e9} \u{20ac}".as_bytes();
        for (encoding, errors, expected) in [
            ("utf-8", "strict", Ok(text.to_vec())),
            ("latin-1", "ignore", Ok(b"caf\xe9 ".to_vec())),
            ("ISO-8859-1", "replace", Ok(b"caf\xe9 ?".to_vec())),
            ("ascii", "ignore", Ok(b"caf ".to_vec())),
        ] {
            assert_eq!(encode(text, encoding, errors), expected, "{encoding}");
        }
        assert_eq!(decode(b"caf\xe9"), "caf\u{e9}".as_bytes());
        assert!(encode(text, "ascii", "strict").is_err());
        assert!(encode(text, "ebcdic", "strict").is_err());
    }
}
