//! Resolves plain scalars: YAML 1.1 with Salt's rule for leading zeros.
//!
//! `0644` is 644, `22:22` is 1342, a date stays a string, `1e3` is a string.

use brine_value::Value;

/// The type that a plain scalar resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Int,
    Float,
    /// A date, which Salt resolves to a string. A writer must quote it.
    Timestamp,
    /// `<<`
    Merge,
    /// `=`
    Default,
    Text,
}

impl Kind {
    /// Returns the tag name of this kind of plain scalar.
    pub fn tag(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Timestamp => "timestamp",
            Kind::Merge => "merge",
            Kind::Default => "value",
            Kind::Text => "str",
        }
    }
}

/// Resolves a plain scalar, such as `0644`, `yes` or `~`, to Salt's value.
pub fn plain(text: &str) -> Value {
    match kind(text) {
        Kind::Null => Value::Nil,
        Kind::Bool => boolean(text).map_or_else(|| Value::from(text), Value::Bool),
        Kind::Int => int(text).unwrap_or_else(|| Value::from(text)),
        Kind::Float => float(text).map_or_else(|| Value::from(text), Value::Float),
        Kind::Timestamp | Kind::Merge | Kind::Default | Kind::Text => Value::from(text),
    }
}

pub(super) fn kind(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE" | "on"
        | "On" | "ON" | "off" | "Off" | "OFF" => Kind::Bool,
        "<<" => Kind::Merge,
        "=" => Kind::Default,
        _ if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => Kind::Text,
        _ if is_float(text) => Kind::Float,
        _ if is_int(text) => Kind::Int,
        _ if is_timestamp(text) => Kind::Timestamp,
        _ => Kind::Text,
    }
}

/// Parses the content of `!!bool`.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => Some(true),
        "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// Parses the content of `!!int` in an SLS file.
pub(super) fn int(text: &str) -> Option<Value> {
    // Salt drops the leading zeros: `0644` is not the octal number 420.
    let text = match text.strip_prefix('0') {
        Some(rest) if !rest.starts_with(['b', 'x']) => match text.trim_start_matches('0') {
            "" => "0",
            stripped => stripped,
        },
        _ => text,
    };
    int_of_data(text)
}

/// Parses the content of `!!int` in data: `0644` is the octal number 420.
pub(super) fn int_of_data(text: &str) -> Option<Value> {
    let digits = text.replace('_', "");
    let (negative, digits) = sign(&digits);
    let (digits, radix) = match digits.strip_prefix('0') {
        None | Some("") => (digits, 10),
        Some(rest) => match (rest.strip_prefix('b'), rest.strip_prefix('x')) {
            (Some(binary), _) => (binary, 2),
            (_, Some(hexadecimal)) => (hexadecimal, 16),
            _ => (rest, 8),
        },
    };
    if radix != 10 && digits.contains(':') {
        return None;
    }
    Value::whole_number(negative, digits, radix)
}

/// Parses the content of `!!float`.
pub(super) fn float(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (negative, digits) = sign(&text);
    let magnitude = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        // Rust parses these words, but YAML spells them differently.
        "inf" | "infinity" | "nan" => return None,
        _ if digits.contains(':') => digits
            .split(':')
            .map(|place| place.parse::<f64>().ok())
            .try_fold(0.0, |sum, place| Some(sum * 60.0 + place?))?,
        _ => digits.parse().ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn consists_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(allowed)
}

fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// Whether this is `0`..`59`, with or without a leading zero.
fn is_sixtieth(text: &str) -> bool {
    match text.as_bytes() {
        [ones] => digit(*ones),
        [tens, ones] => (b'0'..=b'5').contains(tens) && digit(*ones),
        _ => false,
    }
}

fn is_int(text: &str) -> bool {
    let (_, digits) = sign(text);
    if digits == "0" {
        return true;
    }
    if let Some(rest) = digits.strip_prefix('0') {
        let of = |digits: &str, allowed: fn(u8) -> bool| !digits.is_empty() && consists_of(digits, allowed);
        return match (rest.strip_prefix('b'), rest.strip_prefix('x')) {
            (Some(binary), _) => of(binary, |b| matches!(b, b'0' | b'1' | b'_')),
            (_, Some(hexadecimal)) => of(hexadecimal, |b| b.is_ascii_hexdigit() || b == b'_'),
            _ => of(rest, |b| matches!(b, b'0'..=b'7' | b'_')),
        };
    }
    let mut places = digits.split(':');
    places
        .next()
        .is_some_and(|first| first.starts_with(|c: char| c.is_ascii_digit()) && consists_of(first, digit_or_underscore))
        && places.all(is_sixtieth)
}

fn is_float(text: &str) -> bool {
    let (_, unsigned) = sign(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((before, after)) = unsigned.split_once('.') else { return false };
    let fraction = without_exponent(after);
    if before.is_empty() {
        // A sign is not allowed here: `-.5` is a string.
        return unsigned.len() == text.len()
            && fraction.starts_with(|c: char| c.is_ascii_digit())
            && consists_of(fraction, digit_or_underscore);
    }
    let mut places = before.split(':');
    let leads = places.next().is_some_and(|first| {
        first.starts_with(|c: char| c.is_ascii_digit()) && consists_of(first, digit_or_underscore)
    });
    let sexagesimal = before.contains(':');
    leads && places.all(is_sixtieth) && consists_of(if sexagesimal { after } else { fraction }, digit_or_underscore)
}

/// Removes an exponent such as `e+3` or `E-3` from the end. An exponent must have a sign.
fn without_exponent(text: &str) -> &str {
    match text.split_once(['e', 'E']) {
        Some((fraction, exponent)) => match exponent.strip_prefix(['+', '-']) {
            Some(digits) if !digits.is_empty() && consists_of(digits, digit) => fraction,
            _ => text,
        },
        None => text,
    }
}

/// Whether this is a date, or a date with a time.
fn is_timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    let Some((month, rest)) = rest.split_once('-') else { return false };
    let day_ends = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (day, time) = rest.split_at(day_ends);
    let short = |part: &str| matches!(part.len(), 1 | 2) && consists_of(part, digit);
    if year.len() != 4 || !consists_of(year, digit) || !short(month) || !short(day) {
        return false;
    }
    if time.is_empty() {
        return month.len() == 2 && day.len() == 2;
    }
    let clock = match time.strip_prefix(['T', 't']) {
        Some(clock) => clock,
        None if time.starts_with([' ', '\t']) => time.trim_start_matches([' ', '\t']),
        None => return false,
    };
    let zone_starts = clock.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone_starts);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts: Vec<_> = clock.split(':').collect();
    let right_clock = matches!(parts[..], [hour, minute, second]
        if short(hour) && minute.len() == 2 && consists_of(minute, digit) && second.len() == 2 && consists_of(second, digit));
    right_clock && consists_of(fraction, digit) && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    let zone = text.trim_start_matches([' ', '\t']);
    if text.is_empty() || zone == "Z" {
        return true;
    }
    let Some(offset) = zone.strip_prefix(['+', '-']) else { return false };
    let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "00"));
    matches!(hours.len(), 1 | 2) && consists_of(hours, digit) && minutes.len() == 2 && consists_of(minutes, digit)
}
