//! DER: reads and writes tags, lengths and values. Every length is checked against the input, and memory is allocated
//! only for bytes that are in the input.

use jiff::SignedDuration;
use jiff::civil::DateTime;

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const OID: u8 = 0x06;
pub(crate) const ENUMERATED: u8 = 0x0a;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const IA5_STRING: u8 = 0x16;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const BMP_STRING: u8 = 0x1e;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// The format of times in arguments and results.
pub(crate) const TIME: &str = "%Y-%m-%d %H:%M:%S";

/// Returns the tag of a context-specific value.
pub(crate) fn context(number: u8) -> u8 {
    0x80 | number
}

/// Returns the tag of a constructed context-specific value, which contains other values.
pub(crate) fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// A DER value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    /// The encoding of tag, length and content.
    pub whole: &'a [u8],
}

impl<'a> Item<'a> {
    /// Returns a reader of the values in the content.
    pub fn inside(&self) -> Reader<'a> {
        Reader(self.content)
    }

    /// Returns the bytes of a non-negative integer without a leading zero; `None` if it is negative or empty.
    pub fn unsigned(&self) -> Option<&'a [u8]> {
        match self.content {
            [] | [0x80..=0xff, ..] => None,
            [0, rest @ ..] if !rest.is_empty() => Some(rest),
            bytes => Some(bytes),
        }
    }

    /// Returns a non-negative integer; `None` if it is negative or has more than 63 bits.
    pub fn small(&self) -> Option<i64> {
        let bytes = self.unsigned().filter(|bytes| bytes.len() <= 8)?;
        i64::try_from(bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))).ok()
    }

    /// Returns the bytes of a bit string; `None` if its length is not a multiple of eight bits.
    pub fn bits(&self) -> Option<&'a [u8]> {
        self.content.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bytes)| bytes)
    }

    /// Returns a time in seconds since 1970.
    pub fn time(&self) -> Option<i64> {
        let text = std::str::from_utf8(self.content).ok()?.strip_suffix('Z')?;
        let text = match self.tag {
            UTC_TIME if text.len() == 12 && text.is_ascii() => {
                let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
                format!("{century}{text}")
            }
            GENERALIZED_TIME => text.to_owned(),
            _ => return None,
        };
        Some(seconds(DateTime::strptime("%Y%m%d%H%M%S", &text).ok()?))
    }
}

/// Reads consecutive values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next value; `None` at the end, or if its tag or length is invalid.
    pub fn next(&mut self) -> Option<Item<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 || rest.len() < count {
                return None;
            }
            let (bytes, rest) = rest.split_at(count);
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        };
        let content = rest.get(..length)?;
        let whole = &self.0[..self.0.len() - rest.len() + length];
        self.0 = &rest[length..];
        Some(Item { tag, content, whole })
    }

    /// Returns the next value if it has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Item<'a>> {
        self.optional(tag)
    }

    /// Returns the next value if it has this tag; otherwise, does not consume it.
    pub fn optional(&mut self, tag: u8) -> Option<Item<'a>> {
        let mut ahead = *self;
        let item = ahead.next().filter(|item| item.tag == tag)?;
        *self = ahead;
        Some(item)
    }

    /// Returns all remaining values; `None` if one is invalid.
    pub fn all(mut self) -> Option<Vec<Item<'a>>> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(self.next()?);
        }
        Some(items)
    }
}

/// Returns the only value of the input, if it has this tag.
pub(crate) fn only(bytes: &[u8], tag: u8) -> Option<Item<'_>> {
    let mut reader = Reader(bytes);
    reader.expect(tag).filter(|_| reader.is_empty())
}

/// Encodes one value.
pub(crate) fn item(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    if content.len() < 0x80 {
        out.push(content.len() as u8);
    } else {
        let bytes = content.len().to_be_bytes();
        let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
        out.push(0x80 | bytes.len() as u8);
        out.extend(bytes);
    }
    out.extend(content);
    out
}

/// Encodes a constructed value with this tag.
pub(crate) fn nested(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    item(tag, &parts.concat())
}

/// Encodes a sequence.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    nested(SEQUENCE, parts)
}

/// Encodes a non-negative integer.
pub(crate) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    item(INTEGER, &unsigned_content(bytes))
}

fn unsigned_content(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    match bytes.first() {
        None => vec![0],
        Some(0x80..=0xff) => [&[0], bytes].concat(),
        Some(_) => bytes.to_vec(),
    }
}

/// Encodes a non-negative integer with this tag.
pub(crate) fn number(tag: u8, number: u64) -> Vec<u8> {
    item(tag, &unsigned_content(&number.to_be_bytes()))
}

/// Encodes bytes as a bit string.
pub(crate) fn bits(bytes: &[u8]) -> Vec<u8> {
    item(BIT_STRING, &[&[0], bytes].concat())
}

/// Encodes named bits as a bit string with this tag, the first bit first.
pub(crate) fn flags(tag: u8, flags: &[bool]) -> Vec<u8> {
    let used = flags.iter().rposition(|flag| *flag).map_or(0, |last| last + 1);
    let mut bytes = vec![0_u8; used.div_ceil(8)];
    for bit in (0..used).filter(|bit| flags[*bit]) {
        bytes[bit / 8] |= 0x80 >> (bit % 8);
    }
    let unused = (bytes.len() * 8 - used) as u8;
    item(tag, &[&[unused], &bytes[..]].concat())
}

/// Whether a named bit is set in the content of a bit string.
pub(crate) fn flag(content: &[u8], bit: usize) -> bool {
    content.get(1 + bit / 8).is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
}

/// Encodes an object identifier such as `2.5.4.3`; `None` if it is invalid.
pub(crate) fn oid(dotted: &str) -> Option<Vec<u8>> {
    let numbers = dotted.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let [first, second, rest @ ..] = &numbers[..] else { return None };
    if *first > 2 || (*first < 2 && *second > 39) {
        return None;
    }
    let mut content = Vec::new();
    for number in [first.checked_mul(40)?.checked_add(*second)?].iter().chain(rest) {
        let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
        for group in (0..groups).rev() {
            content.push((number >> (7 * group) & 0x7f) as u8 | if group == 0 { 0 } else { 0x80 });
        }
    }
    Some(item(OID, &content))
}

/// Returns the dotted form of an object identifier's content; `None` if it is invalid.
pub(crate) fn dotted(content: &[u8]) -> Option<String> {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in content {
        number = number.checked_mul(128)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    if content.last()? & 0x80 != 0 {
        return None;
    }
    let first = (numbers[0] / 40).min(2);
    let both = [first, numbers[0] - first * 40];
    Some(both.iter().chain(&numbers[1..]).map(ToString::to_string).collect::<Vec<_>>().join("."))
}

// `DateTime` supports the year 9999 to its end, which certificates without an expiry date name; `Timestamp` does not.
fn seconds(time: DateTime) -> i64 {
    time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs()
}

fn civil(seconds: i64) -> Option<DateTime> {
    DateTime::constant(1970, 1, 1, 0, 0, 0, 0).checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Encodes a time: from 1950 to 2049 as UTCTime, with two digits of the year, and otherwise as GeneralizedTime.
pub(crate) fn time(seconds: i64) -> Option<Vec<u8>> {
    let time = civil(seconds)?;
    let (tag, format) = match time.year() {
        1950..=2049 => (UTC_TIME, "%y%m%d%H%M%SZ"),
        0..=9999 => (GENERALIZED_TIME, "%Y%m%d%H%M%SZ"),
        _ => return None,
    };
    Some(item(tag, time.strftime(format).to_string().as_bytes()))
}

/// Encodes a time as GeneralizedTime, with four digits of the year.
pub(crate) fn long_time(seconds: i64) -> Option<Vec<u8>> {
    Some(item(GENERALIZED_TIME, civil(seconds)?.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()))
}

/// Formats a time as `2026-11-25 08:00:00`, in UTC.
pub fn show_time(seconds: i64) -> String {
    civil(seconds).map(|time| time.strftime(TIME).to_string()).unwrap_or_default()
}

/// Parses a time such as `2026-11-25 08:00:00`, in UTC.
pub fn parse_time(text: &str) -> Option<i64> {
    DateTime::strptime(TIME, text).ok().map(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_and_read() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let bytes = item(OCTET_STRING, &vec![7; length]);
            assert_eq!(only(&bytes, OCTET_STRING).unwrap().content.len(), length);
            assert!(only(&bytes[..bytes.len() - 1], OCTET_STRING).is_none());
            assert!(only(&bytes, SEQUENCE).is_none());
        }
        for number in [0, 1, 127, 128, 255, 256, i64::MAX as u64] {
            assert_eq!(only(&super::number(INTEGER, number), INTEGER).unwrap().small(), Some(number as i64));
        }
        for dots in ["2.5.4.3", "1.2.840.113549.1.1.11", "0.9.2342.19200300.100.1.1", "2.999.1"] {
            assert_eq!(dotted(only(&oid(dots).unwrap(), OID).unwrap().content).unwrap(), dots);
        }
        for bad in ["", "1", "3.1", "1.40", "1.a", "1..2", "2.18446744073709551615", "1.2.99999999999999999999"] {
            assert_eq!(oid(bad), None, "{bad}");
        }
        assert_eq!(flags(BIT_STRING, &[true, false, true]), [3, 2, 5, 0xa0]);
        assert_eq!(flags(BIT_STRING, &[false; 9]), [3, 1, 0]);
        assert!(flag(&[7, 0, 0x80], 8) && !flag(&[7, 0, 0x80], 7) && !flag(&[], 0));
    }

    #[test]
    fn times_change_their_form_in_2050() {
        for text in ["1970-01-01 00:00:00", "2049-12-31 23:59:59", "2050-01-01 00:00:00", "9999-12-31 23:59:59"] {
            let seconds = parse_time(text).unwrap();
            let bytes = time(seconds).unwrap();
            assert_eq!(Reader(&bytes).next().unwrap().time(), Some(seconds), "{text}");
            assert_eq!(bytes[0] == UTC_TIME, text < "2050");
            assert_eq!(show_time(seconds), text);
        }
        assert_eq!(parse_time("tomorrow"), None);
    }
}
