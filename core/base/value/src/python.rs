//! Formats values as Python does: `repr()` and `str()`.

use std::fmt::{self, Write};

use super::Value;

/// Returns the result of Python's `repr()`.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    _ = write_repr(value, &mut out);
    out
}

/// Writes the result of Python's `repr()`.
pub fn write_repr(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Nil => out.write_str("None"),
        Value::Bool(true) => out.write_str("True"),
        Value::Bool(false) => out.write_str("False"),
        Value::Int(n) => write!(out, "{n}"),
        Value::UInt(n) => write!(out, "{n}"),
        Value::Big(n) => write!(out, "{n}"),
        Value::Float(f) => write_float(*f, out),
        Value::Str(s) => write_str(s, out),
        Value::Bytes(b) => write_bytes(b, out),
        Value::List(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_str(", ")?;
                }
                write_repr(item, out)?;
            }
            out.write_char(']')
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.write_str(", ")?;
                }
                write_repr(key, out)?;
                out.write_str(": ")?;
                write_repr(value, out)?;
            }
            out.write_char('}')
        }
    }
}

/// Returns the result of `str()` for data from an SLS, whose mappings are ordered: `OrderedDict([('a', 1)])`.
pub fn ordered_str(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        Value::List(items) => format!("[{}]", items.iter().map(ordered_repr).collect::<Vec<_>>().join(", ")),
        Value::Map(map) if map.is_empty() => "OrderedDict()".to_owned(),
        Value::Map(map) => {
            let pair = |(key, value)| format!("({}, {})", ordered_repr(key), ordered_repr(value));
            format!("OrderedDict([{}])", map.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => repr(other),
    }
}

fn ordered_repr(value: &Value) -> String {
    if value.as_str().is_some() { repr(value) } else { ordered_str(value) }
}

fn write_float(f: f64, out: &mut impl Write) -> fmt::Result {
    if f.is_nan() {
        return out.write_str("nan");
    }
    if f.is_infinite() {
        return out.write_str(if f > 0.0 { "inf" } else { "-inf" });
    }
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        // Python writes the exponent with a sign and at least two digits.
        let text = format!("{f:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return write!(out, "{mantissa}e{sign}{digits:0>2}");
    }
    if f.fract() == 0.0 { write!(out, "{f:.1}") } else { write!(out, "{f}") }
}

/// Quotes a string as Python does: single quotes, unless it contains some and no double ones.
fn write_str(text: &str, out: &mut impl Write) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\x{:02x}", c as u32)?,
            c if is_unprintable(c) && (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32)?,
            c if is_unprintable(c) && (c as u32) < 0x10000 => write!(out, "\\u{:04x}", c as u32)?,
            c if is_unprintable(c) => write!(out, "\\U{:08x}", c as u32)?,
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// Whether Python escapes a non-ASCII character in literals: Unicode controls, formats and separators.
fn is_unprintable(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{1680}' | '\u{180e}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}' | '\u{3000}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{13438}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

fn write_bytes(bytes: &[u8], out: &mut impl Write) -> fmt::Result {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' };
    write!(out, "b{}", quote as char)?;
    for byte in bytes {
        match byte {
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            byte if *byte == quote => write!(out, "\\{}", *byte as char)?,
            0x20..0x7f => out.write_char(*byte as char)?,
            byte => write!(out, "\\x{byte:02x}")?,
        }
    }
    out.write_char(quote as char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list, map};

    #[test]
    fn prints_as_python() {
        for (value, text) in [
            (Value::Nil, "None"),
            (Value::from(1.0), "1.0"),
            (Value::from(1e16), "1e+16"),
            (Value::from(0.00001), "1e-05"),
            (Value::from(-1.5e300), "-1.5e+300"),
            (Value::from("it's"), r#""it's""#),
            (Value::from("a\n'\""), r#"'a\n\'"'"#),
            (Value::from(vec![0u8, b'a', 0xff]), r"b'\x00a\xff'"),
            (Value::from("ü"), "'ü'"),
            (Value::from("\u{9b}\u{202e}\u{2028}\u{e0041}"), r"'\x9b\u202e\u2028\U000e0041'"),
            (list![1, "a", true], "[1, 'a', True]"),
            (Value::from(map! {"a" => map!{}, 1 => Value::Nil}), "{'a': {}, 1: None}"),
        ] {
            assert_eq!(repr(&value), text);
        }
        assert_eq!(Value::from("bare").to_string(), "bare");
    }
}
