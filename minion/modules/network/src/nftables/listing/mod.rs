//! Listings of a chain: rules with their handles, compared with rules as users write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A rule of a chain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// The number that identifies it in its table.
    pub handle: u64,
    /// Its text as nft prints it.
    pub text: String,
}

/// Parses the output of `nft --handle list chain`.
pub(super) fn parse(listing: &str) -> Vec<Listed> {
    let rule = |line: &str| {
        let (text, handle) = line.trim().rsplit_once(" # handle ")?;
        // The line of the chain itself ends with a brace.
        let is_rule = !text.ends_with('{');
        is_rule.then_some(Listed { handle: handle.parse().ok()?, text: text.to_owned() })
    };
    listing.lines().filter_map(rule).collect()
}

/// Returns whether two rules are the same. nft prints a rule in another form than it was written in: sets are sorted,
/// a set of one element has no braces, names of interfaces are quoted, counters have their values.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    match (tokens(one), tokens(other)) {
        (Ok(one), Ok(other)) => normalized(&one) == normalized(&other),
        _ => false,
    }
}

/// Checks that a text is a part of one command. nft joins its arguments and splits them again by its own grammar, where
/// `;` begins a further command, outside of braces and quotes. The error is a sentence.
pub(super) fn validate(text: &str) -> Result<(), String> {
    let invalid = |expected: &str| Err(format!("rule '{}' is invalid: {expected}", text.escape_debug()));
    if text.chars().any(char::is_control) {
        return invalid("expected one line without control characters");
    }
    let Ok(tokens) = tokens(text) else { return invalid("a quotation mark is not closed") };
    let mut depth = 0_usize;
    for token in &tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => return invalid("a brace is closed that is not open"),
            Token::Close => depth -= 1,
            Token::End if depth == 0 => return invalid("expected one rule, got ';'"),
            Token::Word(word) if word.contains('#') => return invalid("expected no comment, got '#'"),
            _ => {}
        }
    }
    if depth == 0 { Ok(()) } else { invalid("a brace is not closed") }
}

/// A token of nft's grammar.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    Comma,
    End,
}

/// A quotation mark is not closed.
struct Unclosed;

fn tokens(text: &str) -> Result<Vec<Token>, Unclosed> {
    let (mut tokens, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '{' => Token::Open,
            '}' => Token::Close,
            ',' => Token::Comma,
            ';' => Token::End,
            '"' => {
                let mut quoted = String::new();
                loop {
                    match chars.next() {
                        Some('"') => break Token::Quoted(quoted),
                        Some(c) => quoted.push(c),
                        None => return Err(Unclosed),
                    }
                }
            }
            c if c.is_whitespace() => continue,
            c => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"{},;\"".contains(*c)) {
                    word.push(c);
                }
                Token::Word(word)
            }
        });
    }
    Ok(tokens)
}

/// Returns the words of a rule, with a sorted set as one word.
fn normalized(tokens: &[Token]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = tokens;
    while let Some((first, after)) = rest.split_first() {
        let used = match first {
            Token::Open => {
                let length = closing(after);
                words.push(set(&after[..length]));
                length + 2
            }
            Token::Word(_) | Token::Quoted(_) if after.first() == Some(&Token::Comma) => {
                // A set without braces.
                let pairs = after.chunks_exact(2).take_while(|pair| pair[0] == Token::Comma).count();
                words.push(set(&rest[..=2 * pairs]));
                2 * pairs + 1
            }
            Token::Word(word) if word == "counter" => {
                words.push(word.clone());
                let has_values = matches!(after, [Token::Word(packets), _, Token::Word(bytes), _, ..]
                    if packets == "packets" && bytes == "bytes");
                if has_values { 5 } else { 1 }
            }
            // `meta` and `to` may be omitted.
            Token::Word(word) if word == "meta" || word == "to" => 1,
            other => {
                words.push(word(other));
                1
            }
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    words
}

/// Returns the place of the brace that closes these tokens.
fn closing(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    let place = tokens.iter().position(|token| {
        match token {
            Token::Open => depth += 1,
            Token::Close if depth == 0 => return true,
            Token::Close => depth -= 1,
            _ => {}
        }
        false
    });
    place.unwrap_or(tokens.len())
}

/// Formats a set of elements, which may have several words each, in a fixed order.
fn set(tokens: &[Token]) -> String {
    let element = |tokens: &[Token]| tokens.iter().map(word).collect::<Vec<_>>().join(" ");
    let mut elements: Vec<String> = tokens.split(|token| *token == Token::Comma).map(element).collect();
    elements.retain(|element| !element.is_empty());
    elements.sort();
    elements.dedup();
    elements.join(",")
}

fn word(token: &Token) -> String {
    match token {
        Token::Word(word) => value(word),
        // A name in quotes is the name; other text is not to be confused with words.
        Token::Quoted(text) if text.chars().all(|c| c.is_alphanumeric() || "_.-@*".contains(c)) => text.clone(),
        Token::Quoted(text) => format!("\"{text}\""),
        Token::Open => "{".into(),
        Token::Close => "}".into(),
        Token::Comma => ",".into(),
        Token::End => ";".into(),
    }
}

/// Returns a word as nft prints it: networks by their first address, numbers in one base.
fn value(word: &str) -> String {
    let word = word.strip_prefix(':').filter(|port| !port.is_empty()).unwrap_or(word);
    if let Some(number) = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        return number.to_string();
    }
    let (address, length) = match word.split_once('/') {
        Some((address, length)) => (address, length.parse().ok()),
        None => (word, Some(128)),
    };
    let (Ok(address), Some(length)) = (address.parse::<IpAddr>(), length) else { return word.to_owned() };
    let (network, bits) = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0);
            (IpAddr::from(Ipv4Addr::from_bits(address.to_bits() & mask)), 32)
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0);
            (IpAddr::from(Ipv6Addr::from_bits(address.to_bits() & mask)), 128)
        }
    };
    if length >= bits { network.to_string() } else { format!("{network}/{length}") }
}

#[cfg(test)]
mod tests;
