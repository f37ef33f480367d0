//! Trims the body of an event that exceeds `max_event_size`, as Salt does: large values become [`TRIMMED`].

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
mod tests {
    use super::*;
    use brine_value::{list, map};

    const LIMIT: usize = 1000;

    fn trimmed(mut body: Map) -> Map {
        assert!(trim(&mut body, LIMIT));
        assert!(msgpack::pack_map(&body).len() <= LIMIT);
        body
    }

    #[test]
    fn a_body_that_fits_is_left_alone() {
        let body = map! {"return" => "x".repeat(900), "jid" => "1"};
        let mut same = body.clone();
        assert!(!trim(&mut same, LIMIT));
        assert_eq!(same, body);
    }

    #[test]
    fn large_values_are_replaced_wherever_they_are_in_mappings() {
        let diff = |text: &str| map! {"a_|-b" => map! {"changes" => map! {"diff" => text}, "result" => true}};
        let body = map! {"return" => diff(&"x".repeat(2000)), "retcode" => 0};
        assert_eq!(trimmed(body), map! {"return" => diff(TRIMMED), "retcode" => 0});
        assert_eq!(trimmed(map! {"return" => "x".repeat(2000)}), map! {"return" => TRIMMED});
    }

    #[test]
    fn the_largest_values_go_first() {
        let body = map! {"return" => map! {"small" => "x".repeat(300), "large" => "y".repeat(800)}};
        let expected = map! {"return" => map! {"small" => "x".repeat(300), "large" => TRIMMED}};
        assert_eq!(trimmed(body), expected);
    }

    #[test]
    fn bodies_that_salt_leaves_too_large_lose_entire_fields() {
        let many: Vec<Value> = (0..100).map(|_| Value::from("0123456789")).collect();
        let body = map! {"jid" => "1", "id" => "web1", "return" => list![many.clone(), many], "retcode" => 0};
        assert_eq!(trimmed(body), map! {"jid" => "1", "id" => "web1", "return" => TRIMMED, "retcode" => 0});
        let mut fields: Map = (0..500).map(|n| (Value::from(format!("field{n}")), Value::from(n))).collect();
        fields.extend(map! {"jid" => "1", "id" => "web1", "return" => "x"});
        let left = trimmed(fields);
        let names: Vec<_> = left.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["jid", "id", "return"]);
    }

    #[test]
    fn the_bound_is_never_below_the_packed_size() {
        for body in [
            map! {"a" => "x".repeat(70_000), "b" => list![1, -1, 1.5, true, Value::Nil, map! {"c" => "ü"}]},
            map! {"a" => u64::MAX, "b" => i64::MIN},
            Map::new(),
        ] {
            let size = msgpack::pack_map(&body).len();
            assert!(size <= 1 || may_exceed(&body, size - 1), "{size}");
        }
    }
}
