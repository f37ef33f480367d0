//! Character encodings of files: `encoding` of `file.managed`, `file.replace` and `ini`.

/// A character encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// With a byte order mark at the beginning.
    Utf8Marked,
    /// One byte a character, with the characters of the bytes from `0x80` on.
    Bytes(&'static [(u8, char)], u32),
    Utf16(Order),
    Utf32(Order),
}

/// The order of the bytes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of the byte order mark, or else little-endian; written with a mark.
    Marked,
    Little,
    Big,
}

/// The bytes of Latin-9 whose characters are not those of Latin-1.
const LATIN_9: &[(u8, char)] = &[
    (0xa4, '\u{20ac}'),
    (0xa6, '\u{160}'),
    (0xa8, '\u{161}'),
    (0xb4, '\u{17d}'),
    (0xb8, '\u{17e}'),
    (0xbc, '\u{152}'),
    (0xbd, '\u{153}'),
    (0xbe, '\u{178}'),
];

/// The bytes of Windows-1252 whose characters are not those of Latin-1.
const WINDOWS_1252: &[(u8, char)] = &[
    (0x80, '\u{20ac}'),
    (0x82, '\u{201a}'),
    (0x83, '\u{192}'),
    (0x84, '\u{201e}'),
    (0x85, '\u{2026}'),
    (0x86, '\u{2020}'),
    (0x87, '\u{2021}'),
    (0x88, '\u{2c6}'),
    (0x89, '\u{2030}'),
    (0x8a, '\u{160}'),
    (0x8b, '\u{2039}'),
    (0x8c, '\u{152}'),
    (0x8e, '\u{17d}'),
    (0x91, '\u{2018}'),
    (0x92, '\u{2019}'),
    (0x93, '\u{201c}'),
    (0x94, '\u{201d}'),
    (0x95, '\u{2022}'),
    (0x96, '\u{2013}'),
    (0x97, '\u{2014}'),
    (0x98, '\u{2dc}'),
    (0x99, '\u{2122}'),
    (0x9a, '\u{161}'),
    (0x9b, '\u{203a}'),
    (0x9c, '\u{153}'),
    (0x9e, '\u{17e}'),
    (0x9f, '\u{178}'),
];

/// The byte order mark.
const MARK: char = '\u{feff}';

impl Encoding {
    /// Parses a name, with Python's aliases.
    ///
    /// # Errors
    /// The encoding is not supported.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Ok(match name.to_lowercase().replace(['-', '_', ' '], "").as_str() {
            "utf8" | "u8" => Encoding::Utf8,
            "utf8sig" => Encoding::Utf8Marked,
            "ascii" | "usascii" | "646" => Encoding::Bytes(&[], 0x80),
            "latin1" | "latin" | "iso88591" | "88591" | "cp819" | "l1" => Encoding::Bytes(&[], 0x100),
            "iso885915" | "latin9" | "l9" => Encoding::Bytes(LATIN_9, 0x100),
            "cp1252" | "windows1252" | "1252" => Encoding::Bytes(WINDOWS_1252, 0x100),
            "utf16" | "u16" => Encoding::Utf16(Order::Marked),
            "utf16le" | "unicodelittleunmarked" => Encoding::Utf16(Order::Little),
            "utf16be" | "unicodebigunmarked" => Encoding::Utf16(Order::Big),
            "utf32" | "u32" => Encoding::Utf32(Order::Marked),
            "utf32le" => Encoding::Utf32(Order::Little),
            "utf32be" => Encoding::Utf32(Order::Big),
            _ => {
                return Err(format!(
                    "encoding is invalid: expected utf-8, utf-8-sig, utf-16, utf-32 (also with -le or -be), ascii, \
                     latin-1, iso-8859-15 or cp1252, got '{name}'"
                ));
            }
        })
    }

    /// Encodes a text. Characters that the encoding lacks are omitted, replaced by `?`, or an error, according to
    /// `errors`: `ignore`, `replace` or `strict`.
    ///
    /// # Errors
    /// The encoding lacks a character.
    pub(crate) fn encode(self, text: &str, errors: &str) -> Result<Vec<u8>, String> {
        let marked = |order| (order == Order::Marked).then_some(MARK).into_iter().chain(text.chars());
        Ok(match self {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8Marked => format!("{MARK}{text}").into_bytes(),
            Encoding::Bytes(special, limit) => {
                let mut encoded = Vec::with_capacity(text.len());
                for character in text.chars() {
                    match (byte_of(character, special, limit), errors) {
                        (Some(byte), _) => encoded.push(byte),
                        (None, "ignore") => {}
                        (None, "replace") => encoded.push(b'?'),
                        (None, _) => return Err(format!("the encoding has no character '{character}'")),
                    }
                }
                encoded
            }
            Encoding::Utf16(order) => {
                let mut buffer = [0; 2];
                let mut encoded = Vec::with_capacity(text.len() * 2 + 2);
                for character in marked(order) {
                    for unit in character.encode_utf16(&mut buffer) {
                        encoded.extend(if order == Order::Big { unit.to_be_bytes() } else { unit.to_le_bytes() });
                    }
                }
                encoded
            }
            Encoding::Utf32(order) => {
                let bytes = |character| {
                    let unit = u32::from(character);
                    if order == Order::Big { unit.to_be_bytes() } else { unit.to_le_bytes() }
                };
                marked(order).flat_map(bytes).collect()
            }
        })
    }

    /// Decodes a text.
    ///
    /// # Errors
    /// The bytes are not a text in this encoding.
    pub(crate) fn decode(self, encoded: &[u8]) -> Result<String, String> {
        let invalid = || "the file is not a text in this encoding".to_owned();
        let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| invalid());
        match self {
            Encoding::Utf8 => utf8(encoded),
            Encoding::Utf8Marked => utf8(encoded.strip_prefix(b"\xef\xbb\xbf").unwrap_or(encoded)),
            Encoding::Bytes(special, limit) => {
                let one = |byte: &u8| {
                    let character = special.iter().find(|(code, _)| code == byte).map(|(_, character)| *character);
                    character.or_else(|| (u32::from(*byte) < limit).then(|| char::from(*byte))).ok_or_else(invalid)
                };
                encoded.iter().map(one).collect()
            }
            Encoding::Utf16(order) => {
                let (order, text) = marked_order(order, encoded, [0xff, 0xfe], [0xfe, 0xff]);
                let units: Vec<u16> =
                    units(text, if order { u16::from_be_bytes } else { u16::from_le_bytes }).ok_or_else(invalid)?;
                String::from_utf16(&units).map_err(|_| invalid())
            }
            Encoding::Utf32(order) => {
                let (order, text) = marked_order(order, encoded, [0xff, 0xfe, 0, 0], [0, 0, 0xfe, 0xff]);
                let units: Vec<u32> =
                    units(text, if order { u32::from_be_bytes } else { u32::from_le_bytes }).ok_or_else(invalid)?;
                units.into_iter().map(|unit| char::from_u32(unit).ok_or_else(invalid)).collect()
            }
        }
    }
}

/// Returns whether the order is big-endian, and the text without its mark.
fn marked_order<const N: usize>(order: Order, text: &[u8], little: [u8; N], big: [u8; N]) -> (bool, &[u8]) {
    match order {
        Order::Little => (false, text),
        Order::Big => (true, text),
        Order::Marked => match (text.strip_prefix(&big), text.strip_prefix(&little)) {
            (Some(rest), _) => (true, rest),
            (None, rest) => (false, rest.unwrap_or(text)),
        },
    }
}

/// Splits a text into its units; nothing if the last one is incomplete.
fn units<const N: usize, T>(text: &[u8], unit: fn([u8; N]) -> T) -> Option<Vec<T>> {
    let (whole, rest) = text.as_chunks::<N>();
    rest.is_empty().then(|| whole.iter().map(|bytes| unit(*bytes)).collect())
}

/// Returns the byte of a character.
fn byte_of(character: char, special: &[(u8, char)], limit: u32) -> Option<u8> {
    if let Some((byte, _)) = special.iter().find(|(_, candidate)| *candidate == character) {
        return Some(*byte);
    }
    let byte = u8::try_from(u32::from(character)).ok().filter(|byte| u32::from(*byte) < limit)?;
    (!special.iter().any(|(other, _)| *other == byte)).then_some(byte)
}

/// Decodes a text to UTF-8 for a diff. Anything that is not UTF-8 is read as Latin-1, which includes ASCII.
pub(super) fn decode_any(encoded: &[u8]) -> String {
    match std::str::from_utf8(encoded) {
        Ok(text) => text.to_owned(),
        Err(_) => encoded.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_as_in_python() {
        let text = "caf\u{e9} \u{20ac}";
        for (encoding, errors, expected) in [
            ("utf-8", "strict", Some(text.as_bytes())),
            ("utf_8_sig", "strict", Some(b"\xef\xbb\xbfcaf\xc3\xa9 \xe2\x82\xac")),
            ("latin-1", "ignore", Some(b"caf\xe9 ")),
            ("ISO-8859-1", "replace", Some(b"caf\xe9 ?")),
            ("iso8859-15", "strict", Some(b"caf\xe9 \xa4")),
            ("cp1252", "strict", Some(b"caf\xe9 \x80")),
            ("ascii", "ignore", Some(b"caf ")),
            ("utf-16", "strict", Some(b"\xff\xfec\0a\0f\0\xe9\0 \0\xac\x20")),
            ("utf-16-be", "strict", Some(b"\0c\0a\0f\0\xe9\0 \x20\xac")),
            ("utf-32-le", "strict", Some(b"c\0\0\0a\0\0\0f\0\0\0\xe9\0\0\0 \0\0\0\xac\x20\0\0")),
            ("ascii", "strict", None),
            ("latin-1", "strict", None),
        ] {
            let encoded = Encoding::parse(encoding).unwrap().encode(text, errors).ok();
            assert_eq!(encoded.as_deref(), expected, "{encoding}");
        }
        assert!(Encoding::parse("ebcdic").is_err());
        assert!(Encoding::parse("iso8859-15").unwrap().encode("\u{a4}", "strict").is_err());
    }

    #[test]
    fn decoding_inverts_encoding() {
        let text = "a\u{f6}\n\u{20ac}";
        for name in ["utf-8", "utf-8-sig", "iso-8859-15", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"] {
            let encoding = Encoding::parse(name).unwrap();
            let encoded = encoding.encode(text, "strict").unwrap();
            assert_eq!(encoding.decode(&encoded).unwrap(), text, "{name}");
        }
        assert_eq!(Encoding::parse("utf-16").unwrap().decode(b"\xfe\xff\0a").unwrap(), "a");
        assert!(Encoding::parse("utf-16").unwrap().decode(b"abc").is_err());
        assert!(Encoding::parse("ascii").unwrap().decode(b"\xe9").is_err());
        assert_eq!(decode_any(b"caf\xe9"), "caf\u{e9}");
    }
}
