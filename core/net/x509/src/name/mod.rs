//! Distinguished names: parses strings as in RFC 4514, lists, mappings and DER; formats and encodes names.

use brine_rsa::Digest;
use brine_value::{Map, Value};

use crate::der::{self, Item, Reader};
use crate::{Result, X509Error, invalid};

/// Salt's names of attributes with their object identifiers, in their order in names that are built from mappings.
const ATTRIBUTES: [(&str, &str); 12] = [
    ("C", "2.5.4.6"),
    ("ST", "2.5.4.8"),
    ("L", "2.5.4.7"),
    ("STREET", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("CN", "2.5.4.3"),
    ("MAIL", EMAIL),
    ("SN", "2.5.4.4"),
    ("GN", "2.5.4.42"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("SERIALNUMBER", "2.5.4.5"),
];
const EMAIL: &str = "1.2.840.113549.1.9.1";
const DOMAIN_COMPONENT: &str = "0.9.2342.19200300.100.1.25";
/// The names that RFC 4514 defines.
const SHORT: [&str; 8] = ["CN", "L", "ST", "O", "OU", "C", "STREET", "UID"];

/// Returns the names of the attributes that a mapping in an argument may contain.
pub fn attribute_names() -> impl Iterator<Item = &'static str> {
    ATTRIBUTES.iter().map(|(name, _)| *name)
}

/// One attribute of a name.
#[derive(Clone, Debug)]
struct Attribute {
    oid: String,
    tag: u8,
    value: String,
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        // As in Salt, the ASN.1 type of the string is ignored.
        self.oid == other.oid && self.value == other.value
    }
}

/// A distinguished name.
#[derive(Clone, Debug)]
pub struct Name {
    parts: Vec<Vec<Attribute>>,
    der: Vec<u8>,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Vec<Attribute>, b: &Vec<Attribute>| a.len() == b.len() && a.iter().all(|one| b.contains(one));
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(|(a, b)| same(a, b))
    }
}

impl Name {
    /// Builds a name from a string as in RFC 4514, a list of its parts, or a mapping of attributes. Attributes in a
    /// mapping that Salt does not know are ignored.
    pub fn of(value: &Value) -> Result<Name> {
        match value {
            Value::Str(text) => {
                let mut parts = parse(text).ok_or_else(|| invalid("Failed parsing rfc4514 dirName string"))?;
                parts.reverse();
                Name::build(parts)
            }
            Value::List(list) => {
                let parts = list.iter().map(|part| one_part(&part.to_string()));
                Name::build(parts.collect::<Result<_>>()?)
            }
            Value::Map(map) => {
                let mut parts = Vec::new();
                for (name, oid) in ATTRIBUTES {
                    if let Some(value) = map.get(&Value::from(name)).filter(|value| !value.is_nil()) {
                        parts.push(vec![attribute(oid.to_owned(), value.to_string())]);
                    }
                }
                Name::build(parts)
            }
            _ => Err(invalid("Need string, list or dict to parse distinguished names")),
        }
    }

    fn build(parts: Vec<Vec<Attribute>>) -> Result<Name> {
        let mut content = Vec::new();
        for part in &parts {
            content.extend(encode_part(part)?);
        }
        Ok(Name { parts, der: der::item(der::SEQUENCE, &content) })
    }

    /// Parses a name in DER.
    pub(crate) fn read(item: &Item<'_>) -> Option<Name> {
        if item.tag != der::SEQUENCE {
            return None;
        }
        let parts = item.inside().all()?.iter().map(read_part).collect::<Option<_>>()?;
        Some(Name { parts, der: item.whole.to_vec() })
    }

    /// Returns the name in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Formats the name as a string as in RFC 4514, its last part first.
    pub fn show(&self) -> String {
        self.parts.iter().rev().map(|part| show_part(part)).collect::<Vec<_>>().join(",")
    }

    /// Returns the first value of the attribute with this name of Salt.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, oid) = ATTRIBUTES.iter().find(|(other, _)| *other == name)?;
        self.parts.iter().flatten().find(|attribute| attribute.oid == *oid).map(|attribute| &attribute.value[..])
    }

    /// Returns the attributes that Salt knows, each with its first value.
    pub fn attributes(&self) -> Map {
        attribute_names().filter_map(|name| Some((name.into(), self.get(name)?.into()))).collect()
    }

    /// Returns OpenSSL's old hash of the name, as Salt shows it on little-endian hosts.
    pub fn hash(&self) -> Vec<u8> {
        let mut hash = Digest::Sha1.of(&self.der);
        hash.truncate(4);
        hash.reverse();
        hash
    }
}

/// Parses a relative distinguished name, for distribution points. Returns the content of its DER set.
pub(crate) fn relative(text: &str) -> Result<Vec<u8>> {
    let set = encode_part(&one_part(text)?)?;
    Ok(Reader(&set).next().map(|item| item.content.to_vec()).unwrap_or_default())
}

/// Formats a relative distinguished name from the content of its DER set.
pub(crate) fn show_relative(content: &[u8]) -> Option<String> {
    let set = der::item(der::SET, content);
    Some(show_part(&read_part(&Reader(&set).next()?)?))
}

fn one_part(text: &str) -> Result<Vec<Attribute>> {
    let mut parts = parse(text).ok_or_else(|| invalid(format!("Failed parsing rdn string: {text}")))?;
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => Ok(part),
        _ => Err(invalid("Specified string is not a Relative Distinguished Name, but a Distinguished Name.")),
    }
}

fn attribute(oid: String, value: String) -> Attribute {
    let tag = match &oid[..] {
        "2.5.4.6" | "2.5.4.5" | "2.5.4.46" | "1.3.6.1.4.1.311.60.2.1.3" => der::PRINTABLE_STRING,
        EMAIL | DOMAIN_COMPONENT => der::IA5_STRING,
        _ => der::UTF8_STRING,
    };
    Attribute { oid, tag, value }
}

fn encode_part(part: &[Attribute]) -> Result<Vec<u8>> {
    let mut encoded = part.iter().map(encode_attribute).collect::<Result<Vec<_>>>()?;
    // DER requires that the elements of a set be sorted.
    encoded.sort();
    Ok(der::item(der::SET, &encoded.concat()))
}

fn encode_attribute(Attribute { oid, tag, value }: &Attribute) -> Result<Vec<u8>> {
    let length = value.chars().count();
    let (least, most) = match &oid[..] {
        "2.5.4.6" => (2, 2),
        "2.5.4.3" | "2.5.4.10" | "2.5.4.11" | "2.5.4.5" => (1, 64),
        _ => (1, 32_768),
    };
    if length < least || length > most {
        let what = if least == most {
            "Country name must be a 2 character country code".to_owned()
        } else {
            format!("Attribute's length must be >= {least} and <= {most}, but it was {length}")
        };
        return Err(X509Error::Invalid(what));
    }
    let printable = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?*@&".contains(c);
    let fits = match *tag {
        der::PRINTABLE_STRING => value.chars().all(printable),
        der::IA5_STRING => value.is_ascii(),
        _ => true,
    };
    if !fits {
        return Err(invalid(format!(
            "the attribute {oid} of a name cannot be '{value}': use ASCII letters and digits"
        )));
    }
    let oid = der::oid(oid).ok_or_else(|| invalid(format!("Invalid oid: {oid}")))?;
    Ok(der::sequence(&[&oid, &der::item(*tag, value.as_bytes())]))
}

fn read_part(item: &Item<'_>) -> Option<Vec<Attribute>> {
    if item.tag != der::SET {
        return None;
    }
    let read = |item: &Item<'_>| {
        let mut inside = item.inside();
        let oid = der::dotted(inside.expect(der::OID)?.content)?;
        let value = inside.next()?;
        Some(Attribute { oid, tag: value.tag, value: text(&value) })
    };
    item.inside().all()?.iter().map(read).collect()
}

/// Decodes an ASN.1 string of any type.
pub(crate) fn text(item: &Item<'_>) -> String {
    if item.tag == der::BMP_STRING {
        let units = item.content.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        return char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    }
    match std::str::from_utf8(item.content) {
        Ok(text) => text.to_owned(),
        // Teletex strings are decoded as Latin-1.
        Err(_) => item.content.iter().map(|byte| char::from(*byte)).collect(),
    }
}

fn short_name(oid: &str) -> &str {
    if oid == DOMAIN_COMPONENT {
        return "DC";
    }
    let attribute = ATTRIBUTES.iter().find(|(name, other)| *other == oid && SHORT.contains(name));
    attribute.map_or(oid, |(name, _)| name)
}

fn show_part(part: &[Attribute]) -> String {
    let show = |attribute: &Attribute| format!("{}={}", short_name(&attribute.oid), escaped(&attribute.value));
    part.iter().map(show).collect::<Vec<_>>().join("+")
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    let last = value.chars().count().saturating_sub(1);
    for (index, character) in value.chars().enumerate() {
        match character {
            '\0' => out.push_str("\\00"),
            '\\' | '"' | '+' | ',' | ';' | '<' | '>' => out.extend(['\\', character]),
            '#' | ' ' if index == 0 => out.extend(['\\', character]),
            ' ' if index == last => out.push_str("\\ "),
            other => out.push(other),
        }
    }
    out
}

/// Parses a string as in RFC 4514. Returns the parts in the order of the string.
fn parse(text: &str) -> Option<Vec<Vec<Attribute>>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut parts = vec![Vec::new()];
    let mut rest = text;
    loop {
        let (name, behind) = rest.split_once('=')?;
        let name = name.trim();
        let oid = if name.starts_with(|c: char| c.is_ascii_digit()) {
            der::oid(name).map(|_| name.to_owned())?
        } else if name.eq_ignore_ascii_case("DC") {
            DOMAIN_COMPONENT.to_owned()
        } else {
            let attribute =
                ATTRIBUTES.iter().find(|(other, _)| SHORT.contains(other) && other.eq_ignore_ascii_case(name));
            attribute?.1.to_owned()
        };
        let (value, end, behind) = unescape(behind)?;
        parts.last_mut()?.push(attribute(oid, value));
        rest = behind;
        match end {
            None => return Some(parts),
            Some('+') => {}
            Some(_) => parts.push(Vec::new()),
        }
    }
}

/// Parses a value up to the next separator. Returns the value, the separator, and the rest.
fn unescape(text: &str) -> Option<(String, Option<char>, &str)> {
    let mut value = Vec::new();
    let mut characters = text.char_indices();
    // Spaces after the value are not part of it, unless they are escaped.
    let mut length = 0;
    let end = loop {
        let Some((at, character)) = characters.next() else { break None };
        match character {
            ',' | '+' => break Some((at, character)),
            '"' | ';' | '<' | '>' | '\0' => return None,
            ' ' if value.is_empty() => {}
            ' ' => value.push(b' '),
            '\\' => {
                let rest = &text[at + 1..];
                let escaped = rest.chars().next()?;
                if escaped.is_ascii_hexdigit() {
                    value.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                    characters.next();
                } else {
                    value.extend(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                }
                characters.next();
                length = value.len();
            }
            other => {
                value.extend(other.encode_utf8(&mut [0; 4]).as_bytes());
                length = value.len();
            }
        }
    };
    value.truncate(length);
    let value = String::from_utf8(value).ok()?;
    Some(match end {
        Some((at, separator)) => (value, Some(separator), &text[at + 1..]),
        None => (value, None, ""),
    })
}

#[cfg(test)]
mod tests;
