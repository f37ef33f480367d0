//! Values as msgpack, as Salt writes it: text as `str`, bytes as `bin`.
//!
//! Reading takes input from strangers: depth and sizes are bounded, nothing is reserved that the
//! input does not hold.

use rmp::Marker;

use super::{Map, Value};

/// How deep containers may nest in what is read.
pub const MAX_DEPTH: usize = 128;

/// Why bytes are not one msgpack value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// The input ends inside a value.
    #[error("msgpack ends early at byte {0}")]
    Truncated(usize),
    /// The value is whole, and bytes follow it.
    #[error("msgpack has {0} bytes after its value")]
    Trailing(usize),
    /// Containers nest deeper than [`MAX_DEPTH`].
    #[error("msgpack nests deeper than {MAX_DEPTH}")]
    TooDeep,
    /// A byte that msgpack reserves.
    #[error("msgpack has the reserved marker at byte {0}")]
    Reserved(usize),
    /// The value is not a mapping where one must be.
    #[error("msgpack is not a map")]
    NotAMap,
}

/// Packs a value.
pub fn pack(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    pack_into(&mut out, value);
    out
}

/// Packs a mapping.
pub fn pack_map(map: &Map) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    pack_map_into(&mut out, map);
    out
}

// Writing into a `Vec` cannot fail, hence the discarded results below.

/// Packs a value behind what is already in `out`.
pub fn pack_into(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Nil => _ = rmp::encode::write_nil(out),
        Value::Bool(b) => _ = rmp::encode::write_bool(out, *b),
        Value::Int(n) => _ = rmp::encode::write_sint(out, *n),
        Value::UInt(n) => _ = rmp::encode::write_uint(out, *n),
        Value::Big(n) => _ = rmp::encode::write_str(out, &n.to_string()),
        Value::Float(f) => _ = rmp::encode::write_f64(out, *f),
        Value::Str(s) => _ = rmp::encode::write_str(out, s),
        Value::Bytes(b) => _ = rmp::encode::write_bin(out, b),
        Value::List(items) => {
            _ = rmp::encode::write_array_len(out, items.len() as u32);
            for item in items {
                pack_into(out, item);
            }
        }
        Value::Map(map) => pack_map_into(out, map),
    }
}

/// Packs a mapping behind what is already in `out`.
pub fn pack_map_into(out: &mut Vec<u8>, map: &Map) {
    _ = rmp::encode::write_map_len(out, map.len() as u32);
    for (key, value) in map {
        pack_into(out, key);
        pack_into(out, value);
    }
}

/// Reads exactly one value.
pub fn unpack(input: &[u8]) -> Result<Value, UnpackError> {
    let mut reader = Reader { input, at: 0 };
    let value = reader.value(0)?;
    match input.len() - reader.at {
        0 => Ok(value),
        rest => Err(UnpackError::Trailing(rest)),
    }
}

/// Reads exactly one mapping.
pub fn unpack_map(input: &[u8]) -> Result<Map, UnpackError> {
    match unpack(input)? {
        Value::Map(map) => Ok(map),
        _ => Err(UnpackError::NotAMap),
    }
}

/// Where the entries of a packed mapping are, without reading them: for looking at, and adding to, a
/// body that otherwise stays packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key, if it is text.
    pub key: Option<&'a str>,
    /// The packed value.
    pub value: &'a [u8],
    /// Where the packed value starts in the input.
    pub offset: usize,
}

/// The packed entries of one mapping that fills the whole input. Checks all of it.
pub fn entries(input: &[u8]) -> Result<Vec<Entry<'_>>, UnpackError> {
    let mut found = Vec::new();
    scan(input, |entry| found.push(entry))?;
    Ok(found)
}

/// Checks that the input is exactly one mapping and shows each packed entry to `visit`. Returns the
/// number of entries and the length of the mapping's header.
pub fn scan<'a>(input: &'a [u8], mut visit: impl FnMut(Entry<'a>)) -> Result<(u32, usize), UnpackError> {
    let mut reader = Reader { input, at: 0 };
    let len = match reader.marker()? {
        Marker::FixMap(n) => u32::from(n),
        Marker::Map16 => reader.number(2)? as u32,
        Marker::Map32 => reader.number(4)? as u32,
        _ => return Err(UnpackError::NotAMap),
    };
    let header = reader.at;
    for _ in 0..len {
        let key_start = reader.at;
        let key = match reader.marker()? {
            Marker::FixStr(n) => std::str::from_utf8(reader.bytes(n.into())?).ok(),
            Marker::Str8 => {
                let n = reader.number(1)? as usize;
                std::str::from_utf8(reader.bytes(n)?).ok()
            }
            _ => {
                reader.at = key_start;
                reader.skip(1)?;
                None
            }
        };
        let offset = reader.at;
        reader.skip(1)?;
        visit(Entry { key, value: &input[offset..reader.at], offset });
    }
    match input.len() - reader.at {
        0 => Ok((len, header)),
        rest => Err(UnpackError::Trailing(rest)),
    }
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8], UnpackError> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.input.len());
        let end = end.ok_or(UnpackError::Truncated(self.input.len()))?;
        let bytes = &self.input[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    fn marker(&mut self) -> Result<Marker, UnpackError> {
        self.bytes(1).map(|byte| Marker::from_u8(byte[0]))
    }

    /// A big-endian number of `n` bytes.
    fn number(&mut self, n: usize) -> Result<u64, UnpackError> {
        Ok(self.bytes(n)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self, n: usize) -> Result<Value, UnpackError> {
        let bytes = self.bytes(n)?;
        // Python 2 peers and binary returns put bytes that are no text into `str`.
        Ok(std::str::from_utf8(bytes).map_or_else(|_| Value::Bytes(bytes.to_vec()), Value::from))
    }

    fn list(&mut self, n: usize, depth: usize) -> Result<Value, UnpackError> {
        // Each item takes a byte at least: a length beyond the input is a lie.
        let mut items = Vec::with_capacity(n.min(self.input.len() - self.at));
        for _ in 0..n {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, n: usize, depth: usize) -> Result<Value, UnpackError> {
        let mut map = Map::with_capacity(n.min((self.input.len() - self.at) / 2));
        for _ in 0..n {
            let key = self.value(depth + 1)?;
            map.insert(key, self.value(depth + 1)?);
        }
        Ok(Value::Map(map))
    }

    /// Salt's extension type 78 is a date and time as text; anything else stays bytes.
    fn ext(&mut self, n: usize) -> Result<Value, UnpackError> {
        let kind = self.number(1)?;
        let bytes = self.bytes(n)?;
        match std::str::from_utf8(bytes) {
            Ok(text) if kind == 78 => Ok(Value::from(text)),
            _ => Ok(Value::Bytes(bytes.to_vec())),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, UnpackError> {
        if depth > MAX_DEPTH {
            return Err(UnpackError::TooDeep);
        }
        let start = self.at;
        Ok(match self.marker()? {
            Marker::Null => Value::Nil,
            Marker::True => Value::Bool(true),
            Marker::False => Value::Bool(false),
            Marker::FixPos(n) => Value::from(n),
            Marker::FixNeg(n) => Value::Int(n.into()),
            Marker::U8 => Value::from(self.number(1)?),
            Marker::U16 => Value::from(self.number(2)?),
            Marker::U32 => Value::from(self.number(4)?),
            Marker::U64 => Value::from(self.number(8)?),
            Marker::I8 => Value::Int((self.number(1)? as i8).into()),
            Marker::I16 => Value::Int((self.number(2)? as i16).into()),
            Marker::I32 => Value::Int((self.number(4)? as i32).into()),
            Marker::I64 => Value::Int(self.number(8)? as i64),
            Marker::F32 => Value::Float(f32::from_bits(self.number(4)? as u32).into()),
            Marker::F64 => Value::Float(f64::from_bits(self.number(8)?)),
            Marker::FixStr(n) => self.text(n.into())?,
            Marker::Str8 => self.number(1).and_then(|n| self.text(n as usize))?,
            Marker::Str16 => self.number(2).and_then(|n| self.text(n as usize))?,
            Marker::Str32 => self.number(4).and_then(|n| self.text(n as usize))?,
            Marker::Bin8 => self.number(1).and_then(|n| self.bytes(n as usize))?.to_vec().into(),
            Marker::Bin16 => self.number(2).and_then(|n| self.bytes(n as usize))?.to_vec().into(),
            Marker::Bin32 => self.number(4).and_then(|n| self.bytes(n as usize))?.to_vec().into(),
            Marker::FixArray(n) => self.list(n.into(), depth)?,
            Marker::Array16 => self.number(2).and_then(|n| self.list(n as usize, depth))?,
            Marker::Array32 => self.number(4).and_then(|n| self.list(n as usize, depth))?,
            Marker::FixMap(n) => self.map(n.into(), depth)?,
            Marker::Map16 => self.number(2).and_then(|n| self.map(n as usize, depth))?,
            Marker::Map32 => self.number(4).and_then(|n| self.map(n as usize, depth))?,
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => self.number(1).and_then(|n| self.ext(n as usize))?,
            Marker::Ext16 => self.number(2).and_then(|n| self.ext(n as usize))?,
            Marker::Ext32 => self.number(4).and_then(|n| self.ext(n as usize))?,
            Marker::Reserved => return Err(UnpackError::Reserved(start)),
        })
    }

    /// Steps over `count` values without building them. Not recursive: depth costs nothing here.
    fn skip(&mut self, count: u64) -> Result<(), UnpackError> {
        let mut open = count;
        while open > 0 {
            open -= 1;
            let start = self.at;
            match self.marker()? {
                Marker::Null | Marker::True | Marker::False | Marker::FixPos(_) | Marker::FixNeg(_) => {}
                Marker::U8 | Marker::I8 => _ = self.bytes(1)?,
                Marker::U16 | Marker::I16 | Marker::FixExt1 => _ = self.bytes(2)?,
                Marker::U32 | Marker::I32 | Marker::F32 => _ = self.bytes(4)?,
                Marker::U64 | Marker::I64 | Marker::F64 => _ = self.bytes(8)?,
                Marker::FixStr(n) => _ = self.bytes(n.into())?,
                Marker::Str8 | Marker::Bin8 => _ = self.number(1).and_then(|n| self.bytes(n as usize))?,
                Marker::Str16 | Marker::Bin16 => _ = self.number(2).and_then(|n| self.bytes(n as usize))?,
                Marker::Str32 | Marker::Bin32 => _ = self.number(4).and_then(|n| self.bytes(n as usize))?,
                Marker::FixArray(n) => open += u64::from(n),
                Marker::Array16 => open += self.number(2)?,
                Marker::Array32 => open += self.number(4)?,
                Marker::FixMap(n) => open += 2 * u64::from(n),
                Marker::Map16 => open += 2 * self.number(2)?,
                Marker::Map32 => open += 2 * self.number(4)?,
                Marker::FixExt2 => _ = self.bytes(3)?,
                Marker::FixExt4 => _ = self.bytes(5)?,
                Marker::FixExt8 => _ = self.bytes(9)?,
                Marker::FixExt16 => _ = self.bytes(17)?,
                Marker::Ext8 => _ = self.number(1).and_then(|n| self.bytes(n as usize + 1))?,
                Marker::Ext16 => _ = self.number(2).and_then(|n| self.bytes(n as usize + 1))?,
                Marker::Ext32 => _ = self.number(4).and_then(|n| self.bytes(n as usize + 1))?,
                Marker::Reserved => return Err(UnpackError::Reserved(start)),
            }
            // More values are promised than bytes are left: refuse before counting on.
            if open > (self.input.len() - self.at) as u64 {
                return Err(UnpackError::Truncated(self.input.len()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{list, map};

    /// Any value, for property tests.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            any::<Vec<u8>>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
                prop::collection::vec((inner.clone(), inner), 0..8)
                    .prop_map(|pairs| Value::Map(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(value in any_value()) {
            prop_assert_eq!(unpack(&pack(&value)).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = unpack(&bytes);
            let _ = entries(&bytes);
        }

        #[test]
        fn a_cut_value_is_refused(value in any_value(), cut in any::<prop::sample::Index>()) {
            let packed = pack(&value);
            let cut = cut.index(packed.len());
            prop_assert!(unpack(&packed[..cut]).is_err());
        }
    }

    #[test]
    fn entries_show_packed_values() {
        let packed = pack_map(&map! {"a" => list![1, 2], 5 => "x"});
        let found = entries(&packed).unwrap();
        assert_eq!(found[0].key, Some("a"));
        assert_eq!(unpack(found[0].value), Ok(list![1, 2]));
        assert_eq!(found[1].key, None);
        assert_eq!(unpack(found[1].value), Ok(Value::from("x")));
    }

    #[test]
    fn lies_about_lengths_cost_nothing() {
        for bytes in [&b"\xdd\xff\xff\xff\xff"[..], b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xffab"] {
            assert!(matches!(unpack(bytes), Err(UnpackError::Truncated(_))), "{bytes:?}");
        }
        assert_eq!(unpack(&[0x91; 1000]), Err(UnpackError::TooDeep));
        assert_eq!(unpack(b"\x01\x02"), Err(UnpackError::Trailing(1)));
        assert_eq!(unpack(b"\xc1"), Err(UnpackError::Reserved(0)));
    }
}
