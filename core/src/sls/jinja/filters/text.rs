//! Text: quoting, encoding, digests, times, paths.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Rest, Value as JinjaValue};
use minijinja::{Environment, Error};
use rand::seq::IndexedRandom;
use sha2::Digest;

use super::super::value::{text, to_jinja};
use super::{Args, Options, defined, failed};
use crate::value::Value;

/// How long a text may be that is made from nothing.
const MAX_LENGTH: usize = 1 << 20;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__percent__", percent);
    environment.add_filter("quote", |value: JinjaValue| quote(&text(&value)));
    environment.add_filter("path_join", |first: String, rest: Rest<String>| {
        // Unlike in Python, a later part that is absolute does not throw away what is before it.
        let parts = rest.iter().map(|part| part.trim_start_matches('/'));
        parts.fold(PathBuf::from(first), |path, part| path.join(part)).to_string_lossy().into_owned()
    });
    environment
        .add_filter("center", |value: JinjaValue, width: Option<usize>| center(&text(&value), width.unwrap_or(80)));
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", |value: JinjaValue| url_encode(&text(&value)));
    environment.add_filter("int", int);
    environment.add_filter("float", |value: JinjaValue, default: Option<f64>| -> Result<f64, Error> {
        let value = defined(&value)?;
        let parsed = value.as_str().and_then(|text| text.trim().parse().ok());
        let number = parsed.or_else(|| value.as_f64()).or_else(|| value.as_bool().map(|b| f64::from(u8::from(b))));
        Ok(number.or(default).unwrap_or_default())
    });
    environment.add_filter("wordcount", |value: JinjaValue| text(&value).split_whitespace().count());
    environment.add_filter("contains_whitespace", |text: String| text.contains(char::is_whitespace));
    environment.add_filter("base64_encode", |value: JinjaValue| {
        STANDARD.encode(value.as_bytes().map_or_else(|| text(&value).into_bytes(), <[u8]>::to_vec))
    });
    environment.add_filter("base64_decode", |text: String| -> Result<String, Error> {
        let bytes = STANDARD.decode(text.trim()).map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    environment.add_filter("sha1", |value: JinjaValue| hex(&sha1::Sha1::digest(text(&value))));
    environment.add_filter("sha256", |value: JinjaValue| hex(&sha2::Sha256::digest(text(&value))));
    environment.add_filter("sha512", |value: JinjaValue| hex(&sha2::Sha512::digest(text(&value))));
    for name in ["random_str", "rand_str"] {
        environment.add_filter(name, |length: usize| random(length));
    }
    for name in ["strftime", "date_format"] {
        environment.add_filter(name, |value: JinjaValue, format: Option<String>| {
            defined(&value).and_then(|value| strftime(&value, format.as_deref().unwrap_or("%Y-%m-%d")))
        });
    }
    for name in ["to_num", "str_to_num"] {
        environment.add_filter(name, |value: JinjaValue| number(&text(&value)).unwrap_or(value));
    }
    environment.add_filter("is_hex", |text: String| {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(&text);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
    });
    environment.add_filter("to_bytes", |text: String| JinjaValue::from_bytes(text.into_bytes()));
    environment.add_filter("to_snake_case", |text: String| snake_case(&text));
    environment
        .add_filter("to_camelcase", |text: String, upper: Option<bool>| camel_case(&text, upper.unwrap_or(false)));
    environment.add_filter("ipwrap", |text: String| match text.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => text,
    });
    environment.add_filter("is_ip", |text: String| is_address(&text, |_| true));
    environment.add_filter("is_ipv4", |text: String| is_address(&text, std::net::IpAddr::is_ipv4));
    environment.add_filter("is_ipv6", |text: String| is_address(&text, std::net::IpAddr::is_ipv6));
}

/// `'%s' % value`.
fn percent(pattern: JinjaValue, value: JinjaValue) -> Result<JinjaValue, Error> {
    let Some(pattern) = pattern.as_str() else { return Err(failed("only texts are formatted with %")) };
    let args = if value.is_tuple() { value.try_iter()?.collect() } else { vec![value] };
    format(FormatStyle::Printf, pattern, &args).map(JinjaValue::from)
}

/// As Python's `shlex.quote`.
fn quote(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

fn center(text: &str, width: usize) -> String {
    let missing = width.min(MAX_LENGTH).saturating_sub(text.chars().count());
    let left = missing / 2;
    std::format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left))
}

/// `truncate(length=255, killwords=False, end='...', leeway=5)`.
fn truncate(value: JinjaValue, args: Args) -> Result<String, Error> {
    let options = Options::new(&args)?;
    let number = |place, name, default| {
        let given = options.get(place, name).and_then(|value| value.as_i64());
        given.map_or(default, |given| usize::try_from(given).unwrap_or(0))
    };
    let (length, leeway) = (number(0, "length", 255), number(3, "leeway", 5));
    let end = options.get(2, "end").map_or_else(|| "...".to_owned(), |end| end.to_string());
    let text = text(&value);
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept: String = text.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = if options.flag(1, "killwords", false) {
        &kept
    } else {
        kept.rsplit_once(' ').map_or(&*kept, |(words, _)| words)
    };
    Ok(std::format!("{kept}{end}"))
}

/// `int(default=0, base=10)`: never fails on a value.
fn int(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let base = options.get(1, "base").and_then(|base| base.as_i64()).and_then(|base| u32::try_from(base).ok());
    let base = base.filter(|base| (2..=36).contains(base)).unwrap_or(10);
    let number = match defined(&value)? {
        Value::Str(text) => {
            let text = text.trim().replace('_', "");
            let digits = match base {
                16 => text.trim_start_matches("0x"),
                8 => text.trim_start_matches("0o"),
                2 => text.trim_start_matches("0b"),
                _ => &text,
            };
            let float = || digits.parse::<f64>().ok().filter(|float| float.is_finite()).map(|float| float as i64);
            i64::from_str_radix(digits, base).ok().or_else(float)
        }
        Value::Bool(b) => Some(i64::from(b)),
        Value::Float(float) => Some(float as i64).filter(|_| float.is_finite()),
        Value::Int(n) => Some(n),
        Value::UInt(_) => return Ok(value),
        _ => None,
    };
    Ok(number.map_or_else(
        || options.get(0, "default").map_or_else(|| JinjaValue::from(0), |default| to_jinja(&default)),
        JinjaValue::from,
    ))
}

fn url_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex(&[byte]).to_uppercase());
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing into a `String` cannot fail.
        _ = write!(out, "{byte:02x}");
        out
    })
}

fn random(length: usize) -> Result<String, Error> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if length > MAX_LENGTH {
        return Err(failed(format_args!("a random text may have at most {MAX_LENGTH} characters")));
    }
    let mut rng = rand::rng();
    Ok((0..length).filter_map(|_| LETTERS.choose(&mut rng)).map(|byte| char::from(*byte)).collect())
}

/// The local time of an epoch in seconds, or of a text that says a date.
fn strftime(value: &Value, format: &str) -> Result<String, Error> {
    let zone = jiff::tz::TimeZone::system();
    let seconds = match value {
        Value::Str(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    let time = match (seconds, value) {
        (Some(seconds), _) => {
            let span = jiff::SignedDuration::try_from_secs_f64(seconds).map_err(failed)?;
            jiff::Timestamp::from_duration(span).map_err(failed)?.to_zoned(zone)
        }
        (None, Value::Str(text)) if matches!(text.trim(), "" | "now") => jiff::Zoned::now(),
        (None, Value::Str(text)) => {
            let date: jiff::civil::DateTime = text.trim().parse().map_err(failed)?;
            date.to_zoned(zone).map_err(failed)?
        }
        (None, other) => return Err(failed(format_args!("a {} is no time", other.type_name()))),
    };
    jiff::fmt::strtime::format(format, &time).map_err(failed)
}

fn number(text: &str) -> Option<JinjaValue> {
    let text = text.trim();
    text.parse::<i64>().map(JinjaValue::from).or_else(|_| text.parse::<f64>().map(JinjaValue::from)).ok()
}

fn snake_case(text: &str) -> String {
    let mut out = String::new();
    let mut lower_before = false;
    for c in text.chars() {
        if c.is_uppercase() && lower_before {
            out.push('_');
        }
        lower_before = c.is_lowercase() || c.is_numeric();
        out.extend(c.to_lowercase());
    }
    out
}

fn camel_case(text: &str, upper: bool) -> String {
    let mut out = String::new();
    for (i, word) in text.split('_').enumerate() {
        let mut chars = word.chars();
        match chars.next() {
            Some(first) if upper || i > 0 => {
                out.extend(first.to_uppercase());
                out.push_str(chars.as_str());
            }
            _ => out.push_str(word),
        }
    }
    out
}

fn is_address(text: &str, holds: impl Fn(&std::net::IpAddr) -> bool) -> bool {
    let address = text.split_once('/').map_or(text, |(address, _)| address);
    address.parse().is_ok_and(|address| holds(&address))
}
