//! Trims the body of an event that exceeds `max_event_size`, as Salt does: large values become [`TRIMMED`]. Values that
//! nest too deep become a message.

use brine_value::levels::{self, MAX_LEVELS, TooDeep};
use brine_value::{Map, Value, msgpack};

/// The replacement of a value that was too large.
pub const TRIMMED: &str = "VALUE_TRIMMED";

/// The fields that remain if trimming values is not enough.
const IDENTITY: &[&str] = &["jid", "id", "fun", "cmd", "return", "retcode", "success", "out", "user"];

/// The maximum size of the header of a packed string, list or mapping, and of a packed number, in bytes.
const HEADER: usize = 5;
const NUMBER: usize = 9;

/// Whether a body may pack to more than `limit` bytes. Adds up upper bounds of its values instead of packing it.
pub fn may_exceed(body: &Map, limit: usize) -> bool {
    let Some(mut room) = limit.checked_sub(HEADER) else { return true };
    !body.iter().all(|(key, value)| fits_in(key, &mut room) && fits_in(value, &mut room))
}

/// Subtracts an upper bound of a value's packed size from `room`; returns false if it exceeds the room.
fn fits_in(value: &Value, room: &mut usize) -> bool {
    let own = match value {
        Value::Str(text) => HEADER + text.len(),
        Value::Bytes(bytes) => HEADER + bytes.len(),
        Value::Big(number) => HEADER + number.to_string().len(),
        Value::List(_) | Value::Map(_) => HEADER,
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => NUMBER,
    };
    let Some(left) = room.checked_sub(own) else { return false };
    *room = left;
    match value {
        Value::List(all) => all.iter().all(|one| fits_in(one, room)),
        Value::Map(all) => all.iter().all(|(key, one)| fits_in(key, room) && fits_in(one, room)),
        _ => true,
    }
}

/// Replaces large values of an event's body by [`TRIMMED`] until it packs to at most `limit` bytes. Returns whether any
/// value was replaced. As in Salt, values larger than half of the limit are replaced first, at any depth of nested
/// mappings, then those larger than 40 %, and so on. If that is not enough, Salt publishes the event anyway; here the
/// largest fields are replaced as a whole.
pub fn trim(body: &mut Map, limit: usize) -> bool {
    let fits = |body: &Map| !may_exceed(body, limit) || msgpack::pack_map(body).len() <= limit;
    if fits(body) {
        return false;
    }
    for tenths in (1..=5).rev() {
        replace_larger(body, limit / 10 * tenths);
        if fits(body) {
            return true;
        }
    }
    let mut fields: Vec<(usize, Value)> =
        body.iter().map(|(name, value)| (msgpack::pack(value).len(), name.clone())).collect();
    fields.retain(|(size, _)| *size > TRIMMED.len() + HEADER);
    fields.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    for (_, name) in fields {
        body.insert(name, TRIMMED.into());
        if fits(body) {
            return true;
        }
    }
    body.retain(|name, _| name.as_str().is_some_and(|name| IDENTITY.contains(&name)));
    true
}

/// Replaces the fields of an event's body that nest deeper than [`MAX_LEVELS`] by a message. Returns whether there are
/// any.
pub fn trim_deep(body: &mut Map) -> bool {
    if levels::check(body).is_ok() {
        return false;
    }
    body.retain(|name, _| !levels::is_deeper(name, MAX_LEVELS - 1));
    for value in body.values_mut().filter(|value| levels::is_deeper(value, MAX_LEVELS - 1)) {
        *value = format!("{TRIMMED}: {TooDeep}").into();
    }
    true
}

/// Replaces what nests too deep in a minion's return, as [`trim_deep`]. A return that does becomes a failure with a
/// message. Returns whether anything was replaced.
pub fn refuse_deep(load: &mut Map) -> bool {
    let is_refused = load.get("return").is_some_and(|value| levels::is_deeper(value, MAX_LEVELS - 1));
    if is_refused {
        load.insert("return".into(), format!("ERROR: the return was refused: {TooDeep}").into());
        load.insert("success".into(), false.into());
        if !load.get("retcode").is_some_and(Value::is_truthy) {
            load.insert("retcode".into(), 1.into());
        }
        // It is the outputter of the refused value.
        load.shift_remove("out");
    }
    trim_deep(load) || is_refused
}

fn replace_larger(values: &mut Map, limit: usize) {
    for value in values.values_mut() {
        match value {
            Value::Map(nested) => replace_larger(nested, limit),
            value if python_size(value) > limit => *value = TRIMMED.into(),
            _ => {}
        }
    }
}

/// Returns the size of a value by Python's `sys.getsizeof`, with which Salt measures it: for a list, without its items.
fn python_size(value: &Value) -> usize {
    match value {
        Value::Str(text) if text.is_ascii() => 49 + text.len(),
        Value::Str(text) => {
            let width = match text.chars().max() {
                Some(c) if u32::from(c) > 0xffff => 4,
                Some(c) if u32::from(c) > 0xff => 2,
                _ => 1,
            };
            74 + width * text.chars().count()
        }
        Value::Bytes(bytes) => 33 + bytes.len(),
        Value::List(all) => 56 + 8 * all.len(),
        _ => 28,
    }
}

#[cfg(test)]
mod tests;
