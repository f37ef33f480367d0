//! The parts of a value that is larger than a message.

use brine_value::{FromValue, Map, Value, map, msgpack};

use crate::link::token;

/// The first byte of a stored list.
const IN_PARTS: u8 = 1;
/// The maximum number of parts of a value.
const MAX_PARTS: u64 = 1024;

/// The parts of a large value. Each member has two slots for the parts of a value, so that no member overwrites those of
/// another one, or the parts of the current value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartList {
    /// The member that wrote them.
    pub member: String,
    pub is_second: bool,
    /// Their number.
    pub count: u64,
    /// The SHA-256 digest of the whole value.
    pub digest: Vec<u8>,
}

impl PartList {
    /// Returns the key of a part of the value of `key`.
    pub fn key(&self, number: u64, key: &str) -> String {
        format!("parts.{}.{}.{number}.{key}", token(&self.member), u8::from(self.is_second))
    }

    /// Packs the list as a stored value.
    pub fn pack(&self) -> Vec<u8> {
        let form = map! {
            "member" => self.member.as_str(),
            "second" => self.is_second,
            "parts" => self.count,
            "digest" => Value::Bytes(self.digest.clone()),
        };
        [&[IN_PARTS], &msgpack::pack_map(&form)[..]].concat()
    }

    /// Unpacks a stored value; `None` if it is not a valid list.
    pub fn unpack(stored: &[u8]) -> Option<Self> {
        let form: Map = msgpack::unpack_map(stored.strip_prefix(&[IN_PARTS])?).ok()?;
        Some(PartList {
            member: form.get("member")?.as_str()?.to_owned(),
            is_second: bool::from_value(form.get("second")?)?,
            count: u64::from_value(form.get("parts")?).filter(|count| *count <= MAX_PARTS)?,
            digest: form.get("digest")?.as_bytes()?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_parts_round_trip_and_members_have_parts_of_their_own() {
        let list = |member: &str, is_second| PartList { member: member.into(), is_second, count: 2, digest: vec![1] };
        let lists = [list("m1", false), list("m1", true), list("m2", false), list("m2", true)];
        let keys: std::collections::BTreeSet<String> = lists.iter().map(|list| list.key(0, "mine.a")).collect();
        assert_eq!(keys.len(), lists.len());
        for list in lists {
            assert_eq!(PartList::unpack(&list.pack()), Some(list));
        }
        let huge = PartList { count: MAX_PARTS + 1, ..list("m1", false) };
        for junk in [&b""[..], &[0, 1], &[IN_PARTS], &huge.pack()] {
            assert_eq!(PartList::unpack(junk), None);
        }
    }
}
