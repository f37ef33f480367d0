//! Dumps values as YAML, as PyYAML does for Salt: sorted keys, plain scalars where they resolve to the same type, lists
//! not indented below their key.

use base64::Engine;
use brine_value::{Map, Value, python};
use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};

use super::data::Dates;
use super::scalar;

/// The layout of [`dump`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether everything is in flow style on one line, `{a: [1, 2]}`, instead of block style.
    pub flow: bool,
    /// Without `flow`: whether collections of scalars are in flow style.
    pub flow_leaves: bool,
    /// Whether non-ASCII characters are escaped.
    pub ascii: bool,
    /// The number of spaces of each level, from 2 to 9.
    pub indent: u8,
    /// Whether mappings keep their order.
    pub keep_order: bool,
    /// Whether the text begins with `---`.
    pub explicit_start: bool,
    /// The column near which lines are folded.
    pub width: u16,
}

impl Style {
    /// Block style, as in the outputter `yaml`, and for `yaml(False)` in templates.
    pub const BLOCK: Style = Style {
        flow: false,
        flow_leaves: false,
        ascii: false,
        indent: 2,
        keep_order: false,
        explicit_start: false,
        width: 80,
    };
    /// Flow style, as for `yaml` in templates.
    pub const FLOW: Style = Style { flow: true, ..Style::BLOCK };
    /// Flow style for collections of scalars, block style for others.
    pub const LEAVES: Style = Style { flow_leaves: true, ..Style::BLOCK };
}

/// Dumps a value as YAML with a final line end.
///
/// Omits the line `...` that PyYAML writes after a scalar document, as Salt removes it wherever it shows the output.
///
/// # Examples
/// ```
/// use brine_yaml::{Style, dump};
/// use brine_value::{list, map};
///
/// let value = map! {"b" => list![1, "yes"], "a" => map! {"mode" => "0644"}}.into();
/// assert_eq!(dump(&value, Style::BLOCK), "a:\n  mode: '0644'\nb:\n- 1\n- 'yes'\n");
/// assert_eq!(dump(&value, Style::FLOW), "{a: {mode: '0644'}, b: [1, 'yes']}\n");
/// assert_eq!(dump(&value, Style::LEAVES), "a: {mode: '0644'}\nb: [1, 'yes']\n");
/// ```
pub fn dump(value: &Value, style: Style) -> String {
    dump_data(value, &Dates::default(), style)
}

/// Dumps a value as [`dump`]; texts that are dates are written as such.
pub fn dump_data(value: &Value, dates: &Dates, style: Style) -> String {
    let mut out = Vec::new();
    let mut emitter = Emitter::new();
    emitter.set_output_string(&mut out);
    emitter.set_unicode(!style.ascii);
    emitter.set_indent(style.indent.into());
    emitter.set_width(style.width.into());
    let mut events = vec![Event::stream_start(Encoding::Utf8), Event::document_start(None, &[], !style.explicit_start)];
    write(value, style, Some(dates), &mut events);
    events.extend([Event::document_end(true), Event::stream_end()]);
    for event in events {
        // The emitter fails only on misordered events and failing outputs, neither of which occurs here.
        if emitter.emit(event).is_err() {
            break;
        }
    }
    drop(emitter);
    let text = escaped(String::from_utf8(out).unwrap_or_default());
    match text.strip_suffix("...\n") {
        Some(before) if before.ends_with('\n') && !matches!(value, Value::List(_) | Value::Map(_)) => before.to_owned(),
        _ => text,
    }
}

/// Whether a text has characters that PyYAML escapes, and the emitter here does not: those beyond the first plane, whose
/// bytes begin so.
fn is_beyond(text: &str) -> bool {
    text.bytes().any(|byte| byte >= 0xf0)
}

/// Escapes the characters that [`is_beyond`] finds; they are in double quotes alone.
fn escaped(text: String) -> String {
    if !is_beyond(&text) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c > '\u{ffff}' {
            out += &format!("\\U{:08X}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn write(value: &Value, style: Style, dates: Option<&Dates>, events: &mut Vec<Event>) {
    match value {
        Value::Nil => events.push(scalar("null", "null")),
        Value::Bool(b) => events.push(scalar("bool", if *b { "true" } else { "false" })),
        Value::Int(_) | Value::UInt(_) | Value::Big(_) => events.push(scalar("int", &value.to_string())),
        Value::Float(f) => events.push(scalar("float", &float(*f))),
        Value::Str(text) => {
            events.push(scalar(if dates.is_some_and(|dates| dates.is_date) { "timestamp" } else { "str" }, text));
        }
        Value::Bytes(bytes) => events.push(binary(bytes)),
        Value::List(items) => {
            let flow = style.flow || (style.flow_leaves && items.iter().all(is_scalar));
            let layout = if flow { SequenceStyle::Flow } else { SequenceStyle::Block };
            events.push(Event::sequence_start(None, None, true, layout));
            for (index, item) in items.iter().enumerate() {
                write(item, style, dates.and_then(|dates| dates.inside.get(&index.into())), events);
            }
            events.push(Event::sequence_end());
        }
        Value::Map(map) => {
            let flow = style.flow || (style.flow_leaves && map.values().all(is_scalar));
            let layout = if flow { MappingStyle::Flow } else { MappingStyle::Block };
            events.push(Event::mapping_start(None, None, true, layout));
            for (key, value) in if style.keep_order { map.iter().collect() } else { sorted(map) } {
                let dates = dates.and_then(|dates| dates.inside.get(key));
                match key {
                    Value::Str(text) if dates.is_some_and(|dates| dates.is_key) => {
                        events.push(scalar("timestamp", text));
                    }
                    key => write(key, style, None, events),
                }
                write(value, style, dates, events);
            }
            events.push(Event::mapping_end());
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Map(_))
}

/// Builds a scalar of this type. It is plain if the plain text resolves to this type.
fn scalar(name: &str, text: &str) -> Event {
    let read_as = scalar::kind(text).tag();
    let tag = format!("tag:yaml.org,2002:{name}");
    let style = if is_beyond(text) { ScalarStyle::DoubleQuoted } else { ScalarStyle::Any };
    Event::scalar(None, Some(&tag), text, read_as == name, name == "str", style)
}

/// Builds a block scalar of Base64, in lines of 76 characters.
fn binary(bytes: &[u8]) -> Event {
    let digits = base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut text = String::with_capacity(digits.len() + digits.len() / 76 + 1);
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(76));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    Event::scalar(None, Some("tag:yaml.org,2002:binary"), &text, false, false, ScalarStyle::Literal)
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = python::repr(&Value::Float(number));
    // YAML 1.1 requires a point in the mantissa.
    if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
}

/// Returns the entries sorted by key, or in their order if Python could not compare the keys.
fn sorted(map: &Map) -> Vec<(&Value, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    if map.keys().all(|key| matches!(key, Value::Str(_) | Value::Bytes(_))) {
        if map.keys().all(|key| matches!(key, Value::Str(_))) || map.keys().all(|key| matches!(key, Value::Bytes(_))) {
            entries.sort_by_key(|(key, _)| key.as_bytes());
        }
    } else if map.keys().all(|key| number(key).is_some()) {
        entries.sort_by(|(a, _), (b, _)| number(a).unwrap_or_default().total_cmp(&number(b).unwrap_or_default()));
    }
    entries
}

fn number(key: &Value) -> Option<f64> {
    key.as_bool().map(|b| f64::from(u8::from(b))).or_else(|| key.as_f64())
}
