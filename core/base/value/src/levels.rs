//! How deep values may nest.
//!
//! What others send is refused beyond [`MAX_LEVELS`], so that whoever puts it into further lists and mappings, up to
//! [`WRAPPERS`] levels, hands it to decoders that take it: those of Brine end at
//! [`msgpack::MAX_DEPTH`](crate::msgpack::MAX_DEPTH), common ones of JSON at 128.

use super::{Map, Value};

/// The maximum number of levels of lists and mappings in an event, from its body inwards. The return of a job is one
/// level below the body, its arguments are two.
pub const MAX_LEVELS: usize = 100;
/// The number of levels that readers of events, returns and jobs may add.
pub const WRAPPERS: usize = 16;
/// The maximum number of levels of what is passed on to readers although no new event may have them: events in journals
/// of earlier versions, results of runner functions.
pub const OLD_LEVELS: usize = 128;

const _: () = assert!(OLD_LEVELS + WRAPPERS <= crate::msgpack::MAX_DEPTH);

/// The error of a mapping that nests too deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it nests deeper than {MAX_LEVELS} levels of lists and mappings")]
pub struct TooDeep;

/// Whether a value nests deeper than this many levels. A list or mapping without members is one level, a number none.
pub fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::List(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Map(map) => is_map_deeper(map, levels),
        _ => false,
    }
}

/// Whether a mapping nests deeper than this many levels, as [`is_deeper`].
pub fn is_map_deeper(map: &Map, levels: usize) -> bool {
    levels == 0 || map.iter().any(|(key, value)| is_deeper(key, levels - 1) || is_deeper(value, levels - 1))
}

/// Checks the body of an event.
///
/// # Errors
/// It nests deeper than [`MAX_LEVELS`].
pub fn check(body: &Map) -> Result<(), TooDeep> {
    if is_map_deeper(body, MAX_LEVELS) { Err(TooDeep) } else { Ok(()) }
}

/// Returns a mapping of this many levels, for tests of what reads deep values.
pub fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::from(1), |inner, _| Value::from(Map::from_iter([(Value::from("a"), inner)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list, map};

    #[test]
    fn levels_are_lists_and_mappings() {
        for (value, levels) in [
            (Value::from(1), 0),
            (list![], 1),
            (Value::map(), 1),
            (list![1, list![2]], 2),
            (map! {"a" => 1, "b" => list![map! {}]}.into(), 3),
            (nested(MAX_LEVELS + 1), MAX_LEVELS + 1),
        ] {
            assert!(!is_deeper(&value, levels) && (levels == 0 || is_deeper(&value, levels - 1)), "{levels}");
            let packed = crate::msgpack::pack(&value);
            for limit in [0, 1, 2, 3, 99, 100, 101, 102] {
                let deeper = crate::msgpack::is_deeper(&packed, limit);
                assert_eq!(deeper, Ok(levels > limit), "{levels} {limit}");
                if value.as_map().is_some() {
                    assert_eq!(crate::msgpack::is_map_deeper(&packed, limit), deeper, "{levels} {limit}");
                }
            }
        }
        assert_eq!(check(nested(MAX_LEVELS).as_map().unwrap()), Ok(()));
        assert_eq!(check(nested(MAX_LEVELS + 1).as_map().unwrap()), Err(TooDeep));
    }

    #[test]
    fn encoded_values_of_any_depth_are_checked_without_recursion() {
        let packed = [vec![0x91; 1_000_000], vec![0xc0]].concat();
        assert_eq!(crate::msgpack::is_deeper(&packed, MAX_LEVELS), Ok(true));
        assert!(crate::msgpack::unpack(&packed).is_err());
        let flat = crate::msgpack::pack(&(0..1000).map(|_| list![list![]]).collect::<Value>());
        assert_eq!(crate::msgpack::is_deeper(&flat, 3), Ok(false));
        assert_eq!(crate::msgpack::is_deeper(&flat, 2), Ok(true));
    }
}
