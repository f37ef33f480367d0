//! Percent encoding for URLs.

/// Encodes a component of a URL.
pub fn percent_encoded(text: &str) -> String {
    encoded(text, b"_.-~")
}

/// Encodes a path of a URL, keeping slashes.
pub fn percent_encoded_path(text: &str) -> String {
    encoded(text, b"_.-~/")
}

fn encoded(text: &str, plain: &[u8]) -> String {
    let one = |byte: u8| {
        let stays = byte.is_ascii_alphanumeric() || plain.contains(&byte);
        if stays { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}
