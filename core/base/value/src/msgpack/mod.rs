//! Values as msgpack, as Salt encodes them: strings as `str`, bytes as `bin`.
//!
//! Decodes untrusted input: depth is bounded, and input that might exceed its memory [`Budget`] is scanned first and
//! refused before anything is allocated.

use rmp::Marker;

use super::{Map, Value};

/// The maximum nesting depth of decoded containers. What peers send nests less, see [`Budget::depth`], and what becomes
/// an event still less, see [`levels`](crate::levels): whoever wraps it breaks no reader.
pub const MAX_DEPTH: usize = 160;
/// The maximum nesting depth of messages of peers.
pub const PEER_DEPTH: usize = 128;

/// The maximum memory of decoded values, beyond the bytes of their strings. A value takes some eighty bytes, however
/// small its encoding is: a list of a million nils is one megabyte of msgpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub usize);

impl Budget {
    /// For this installation's own data: the store, files, replies of the minion's master.
    pub const TRUSTED: Budget = Budget(1 << 30);
    /// For messages of authenticated peers.
    pub const AUTHENTICATED: Budget = Budget(256 << 20);
    /// For messages of unauthenticated peers. A list target of 200,000 minions fits.
    pub const UNAUTHENTICATED: Budget = Budget(16 << 20);

    /// Returns the maximum nesting depth: [`MAX_DEPTH`] of this installation's own data, [`PEER_DEPTH`] of other data.
    pub fn depth(self) -> usize {
        if self == Budget::TRUSTED { MAX_DEPTH } else { PEER_DEPTH }
    }
}

/// Estimated cost of a map entry beyond its key and value: hash and index.
const ENTRY_COST: u64 = 24;
/// Estimated allocator overhead of a string or list.
const STRING_COST: u64 = 16;
/// Estimated cost of a mapping beyond its entries: its index, and allocator overhead.
const MAP_COST: u64 = 64;

/// The maximum memory per byte of input: that of a mapping of one entry, in three bytes.
#[allow(clippy::cast_possible_truncation, reason = "small constants")]
const MAX_PER_BYTE: usize = (3 * size_of::<Value>() + (ENTRY_COST + MAP_COST) as usize).div_ceil(3);

/// The reason why bytes are not exactly one msgpack value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// The input ends inside a value.
    #[error("msgpack ends early at byte {0}")]
    Truncated(usize),
    /// Bytes follow the value.
    #[error("msgpack has {0} bytes after its value")]
    Trailing(usize),
    /// Containers nest deeper than this.
    #[error("msgpack nests deeper than {0}")]
    TooDeep(usize),
    /// A byte that msgpack reserves.
    #[error("msgpack has the reserved marker at byte {0}")]
    Reserved(usize),
    /// The value is not a mapping where one is required.
    #[error("msgpack is not a map")]
    NotAMap,
    /// The decoded value would take more memory than its [`Budget`].
    #[error("msgpack needs {needed} bytes of memory, {limit} are allowed")]
    TooLarge {
        /// The estimated memory of all values, in bytes.
        needed: u64,
        /// The budget in bytes.
        limit: usize,
    },
}

/// Encodes a value.
pub fn pack(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    pack_into(&mut out, value);
    out
}

/// Encodes a mapping.
pub fn pack_map(map: &Map) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    pack_map_into(&mut out, map);
    out
}

// Writing into a `Vec` cannot fail, hence the discarded results below.

/// Encodes a value and appends it to `out`.
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
            _ = rmp::encode::write_array_len(out, length(items.len()));
            for item in items {
                pack_into(out, item);
            }
        }
        Value::Map(map) => pack_map_into(out, map),
    }
}

/// Encodes the header of a mapping of this many entries and appends it to `out`.
pub fn pack_map_len(out: &mut Vec<u8>, len: usize) {
    _ = rmp::encode::write_map_len(out, length(len));
}

/// Returns a length as msgpack encodes it. Longer lists and mappings, of 64 GB and more, are not built.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Encodes a mapping and appends it to `out`.
pub fn pack_map_into(out: &mut Vec<u8>, map: &Map) {
    pack_map_len(out, map.len());
    for (key, value) in map {
        pack_into(out, key);
        pack_into(out, value);
    }
}

/// Decodes exactly one value of this installation's own data.
pub fn unpack(input: &[u8]) -> Result<Value, UnpackError> {
    unpack_within(input, Budget::TRUSTED)
}

/// Decodes exactly one value within a memory budget.
pub fn unpack_within(input: &[u8], budget: Budget) -> Result<Value, UnpackError> {
    if input.len().saturating_mul(MAX_PER_BYTE) > budget.0 {
        let needed = Reader::new(input).skip(1)?;
        if needed > budget.0 as u64 {
            return Err(UnpackError::TooLarge { needed, limit: budget.0 });
        }
    }
    let mut reader = Reader { depth: budget.depth(), ..Reader::new(input) };
    let value = reader.value(0)?;
    match input.len() - reader.at {
        0 => Ok(value),
        rest => Err(UnpackError::Trailing(rest)),
    }
}

/// Decodes exactly one mapping of this installation's own data.
pub fn unpack_map(input: &[u8]) -> Result<Map, UnpackError> {
    unpack_map_within(input, Budget::TRUSTED)
}

/// Decodes exactly one mapping within a memory budget.
pub fn unpack_map_within(input: &[u8], budget: Budget) -> Result<Map, UnpackError> {
    match unpack_within(input, budget)? {
        Value::Map(map) => Ok(map),
        _ => Err(UnpackError::NotAMap),
    }
}

/// An entry of an encoded mapping, for inspecting and extending data without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key, if it is a string.
    pub key: Option<&'a str>,
    /// The encoded value.
    pub value: &'a [u8],
    /// The offset of the encoded value in the input.
    pub offset: usize,
}

/// Returns the encoded entries of exactly one mapping. Validates the whole input.
pub fn entries(input: &[u8]) -> Result<Vec<Entry<'_>>, UnpackError> {
    let mut entries = Vec::new();
    scan(input, |entry| entries.push(entry))?;
    Ok(entries)
}

/// Validates that the input is exactly one mapping and passes each encoded entry to `visit`. Returns the number of
/// entries and the length of the mapping's header.
pub fn scan<'a>(input: &'a [u8], mut visit: impl FnMut(Entry<'a>)) -> Result<(u32, usize), UnpackError> {
    Reader::new(input).scan(&mut visit)
}

/// Whether exactly one encoded mapping nests deeper than this many levels. Validates the whole input, as [`scan`].
pub fn is_map_deeper(input: &[u8], levels: usize) -> Result<bool, UnpackError> {
    let mut reader = Reader::new(input);
    reader.scan(&mut |_| ())?;
    // Few containers cannot nest deep. The mapping itself is not among those skipped.
    Ok(reader.containers >= levels && Reader::new(input).is_deeper(levels)?)
}

/// Whether exactly one encoded value nests deeper than this many levels, as [`levels::is_deeper`](crate::levels::is_deeper).
/// Validates the whole input.
pub fn is_deeper(input: &[u8], levels: usize) -> Result<bool, UnpackError> {
    let mut reader = Reader::new(input);
    reader.skip(1)?;
    match input.len() - reader.at {
        // Few containers cannot nest deep.
        0 => Ok(reader.containers > levels && Reader::new(input).is_deeper(levels)?),
        rest => Err(UnpackError::Trailing(rest)),
    }
}

/// Returns the content of an encoded string or bytes without decoding it; `None` for other types.
pub fn content(packed: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(packed);
    let length = match reader.marker().ok()? {
        Marker::FixStr(n) => n.into(),
        Marker::Str8 | Marker::Bin8 => reader.length(1).ok()?,
        Marker::Str16 | Marker::Bin16 => reader.length(2).ok()?,
        Marker::Str32 | Marker::Bin32 => reader.length(4).ok()?,
        _ => return None,
    };
    reader.bytes(length).ok()
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    /// The number of values for which memory may still be reserved. Each value takes at least one byte, so an announced
    /// number beyond the length of the input is false.
    reservable: usize,
    /// The maximum depth of [`Reader::value`].
    depth: usize,
    /// The number of lists and mappings that [`Reader::skip`] has skipped.
    containers: usize,
}

impl<'a> Reader<'a> {
    fn new(input: &'a [u8]) -> Self {
        Reader { input, at: 0, reservable: input.len(), depth: MAX_DEPTH, containers: 0 }
    }

    /// Returns the number of announced values, or pairs of values, to reserve memory for.
    fn reserve(&mut self, announced: usize, values: usize) -> usize {
        let reserved = announced.min(self.reservable / values);
        self.reservable -= reserved * values;
        reserved
    }

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

    /// Reads a big-endian number of `n` bytes.
    fn number(&mut self, n: usize) -> Result<u64, UnpackError> {
        Ok(self.bytes(n)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a length of `n` bytes.
    fn length(&mut self, n: usize) -> Result<usize, UnpackError> {
        usize::try_from(self.number(n)?).map_err(|_| UnpackError::Truncated(self.input.len()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], UnpackError> {
        let end = UnpackError::Truncated(self.input.len());
        self.bytes(N)?.try_into().map_err(|_| end)
    }

    fn text(&mut self, n: usize) -> Result<Value, UnpackError> {
        let bytes = self.bytes(n)?;
        // Python 2 peers and binary returns put bytes that are not UTF-8 into `str`.
        Ok(std::str::from_utf8(bytes).map_or_else(|_| Value::Bytes(bytes.to_vec()), Value::from))
    }

    fn list(&mut self, n: usize, depth: usize) -> Result<Value, UnpackError> {
        let mut items = Vec::with_capacity(self.reserve(n, 1));
        for _ in 0..n {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, n: usize, depth: usize) -> Result<Value, UnpackError> {
        let mut map = Map::with_capacity(self.reserve(n, 2));
        for _ in 0..n {
            let key = self.value(depth + 1)?;
            map.insert(key, self.value(depth + 1)?);
        }
        Ok(Value::Map(map))
    }

    /// Decodes Salt's extension type 78, a date and time, as a string; other types as bytes.
    fn ext(&mut self, n: usize) -> Result<Value, UnpackError> {
        let kind = self.number(1)?;
        let bytes = self.bytes(n)?;
        match std::str::from_utf8(bytes) {
            Ok(text) if kind == 78 => Ok(Value::from(text)),
            _ => Ok(Value::Bytes(bytes.to_vec())),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, UnpackError> {
        if depth > self.depth {
            return Err(UnpackError::TooDeep(self.depth));
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
            Marker::I8 => Value::Int(i8::from_be_bytes(self.array()?).into()),
            Marker::I16 => Value::Int(i16::from_be_bytes(self.array()?).into()),
            Marker::I32 => Value::Int(i32::from_be_bytes(self.array()?).into()),
            Marker::I64 => Value::Int(i64::from_be_bytes(self.array()?)),
            Marker::F32 => Value::Float(f32::from_be_bytes(self.array()?).into()),
            Marker::F64 => Value::Float(f64::from_bits(self.number(8)?)),
            Marker::FixStr(n) => self.text(n.into())?,
            Marker::Str8 => self.length(1).and_then(|n| self.text(n))?,
            Marker::Str16 => self.length(2).and_then(|n| self.text(n))?,
            Marker::Str32 => self.length(4).and_then(|n| self.text(n))?,
            Marker::Bin8 => self.length(1).and_then(|n| self.bytes(n))?.to_vec().into(),
            Marker::Bin16 => self.length(2).and_then(|n| self.bytes(n))?.to_vec().into(),
            Marker::Bin32 => self.length(4).and_then(|n| self.bytes(n))?.to_vec().into(),
            Marker::FixArray(n) => self.list(n.into(), depth)?,
            Marker::Array16 => self.length(2).and_then(|n| self.list(n, depth))?,
            Marker::Array32 => self.length(4).and_then(|n| self.list(n, depth))?,
            Marker::FixMap(n) => self.map(n.into(), depth)?,
            Marker::Map16 => self.length(2).and_then(|n| self.map(n, depth))?,
            Marker::Map32 => self.length(4).and_then(|n| self.map(n, depth))?,
            Marker::FixExt1 => self.ext(1)?,
            Marker::FixExt2 => self.ext(2)?,
            Marker::FixExt4 => self.ext(4)?,
            Marker::FixExt8 => self.ext(8)?,
            Marker::FixExt16 => self.ext(16)?,
            Marker::Ext8 => self.length(1).and_then(|n| self.ext(n))?,
            Marker::Ext16 => self.length(2).and_then(|n| self.ext(n))?,
            Marker::Ext32 => self.length(4).and_then(|n| self.ext(n))?,
            Marker::Reserved => return Err(UnpackError::Reserved(start)),
        })
    }

    /// Skips `count` values without building them. Returns the memory that they would take. Does not recurse, so the
    /// depth is not limited.
    fn skip(&mut self, count: u64) -> Result<u64, UnpackError> {
        let mut open = count;
        let (mut values, mut strings, mut entries, mut maps) = (0u64, 0u64, 0u64, 0u64);
        while open > 0 {
            open -= 1;
            values += 1;
            let start = self.at;
            let marker = self.marker()?;
            // The number of bytes after the marker, without the members of a container.
            let content = match marker {
                Marker::Null | Marker::True | Marker::False | Marker::FixPos(_) | Marker::FixNeg(_) => continue,
                Marker::U8 | Marker::I8 => 1,
                Marker::U16 | Marker::I16 => 2,
                Marker::U32 | Marker::I32 | Marker::F32 => 4,
                Marker::U64 | Marker::I64 | Marker::F64 => 8,
                Marker::FixStr(n) => {
                    strings += 1;
                    n.into()
                }
                Marker::Str8 | Marker::Bin8 => self.announced(1, &mut strings)?,
                Marker::Str16 | Marker::Bin16 => self.announced(2, &mut strings)?,
                Marker::Str32 | Marker::Bin32 => self.announced(4, &mut strings)?,
                // One byte more than announced: the extension's type.
                Marker::Ext8 => self.announced(1, &mut strings)? + 1,
                Marker::Ext16 => self.announced(2, &mut strings)? + 1,
                Marker::Ext32 => self.announced(4, &mut strings)? + 1,
                Marker::FixExt1 | Marker::FixExt2 | Marker::FixExt4 | Marker::FixExt8 | Marker::FixExt16 => {
                    strings += 1;
                    match marker {
                        Marker::FixExt1 => 2,
                        Marker::FixExt2 => 3,
                        Marker::FixExt4 => 5,
                        Marker::FixExt8 => 9,
                        _ => 17,
                    }
                }
                Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                    let len = match marker {
                        Marker::FixArray(n) => n.into(),
                        Marker::Array16 => self.number(2)?,
                        _ => self.number(4)?,
                    };
                    self.containers += 1;
                    strings += u64::from(len > 0);
                    open += len;
                    0
                }
                Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                    let len = match marker {
                        Marker::FixMap(n) => n.into(),
                        Marker::Map16 => self.number(2)?,
                        _ => self.number(4)?,
                    };
                    self.containers += 1;
                    maps += u64::from(len > 0);
                    entries += len;
                    open += 2 * len;
                    0
                }
                Marker::Reserved => return Err(UnpackError::Reserved(start)),
            };
            self.bytes(content)?;
            // More values are announced than bytes are left: fail early.
            if open > (self.input.len() - self.at) as u64 {
                return Err(UnpackError::Truncated(self.input.len()));
            }
        }
        Ok(values * size_of::<Value>() as u64 + strings * STRING_COST + entries * ENTRY_COST + maps * MAP_COST)
    }

    /// Validates that the input is exactly one mapping: see [`scan`].
    fn scan(&mut self, visit: &mut impl FnMut(Entry<'a>)) -> Result<(u32, usize), UnpackError> {
        let len = match self.marker()? {
            Marker::FixMap(n) => u32::from(n),
            Marker::Map16 => u16::from_be_bytes(self.array()?).into(),
            Marker::Map32 => u32::from_be_bytes(self.array()?),
            _ => return Err(UnpackError::NotAMap),
        };
        let header = self.at;
        for _ in 0..len {
            let key_start = self.at;
            let key = match self.marker()? {
                Marker::FixStr(n) => std::str::from_utf8(self.bytes(n.into())?).ok(),
                Marker::Str8 => {
                    let n = self.length(1)?;
                    std::str::from_utf8(self.bytes(n)?).ok()
                }
                _ => {
                    self.at = key_start;
                    self.skip(1)?;
                    None
                }
            };
            let offset = self.at;
            self.skip(1)?;
            visit(Entry { key, value: &self.input[offset..self.at], offset });
        }
        match self.input.len() - self.at {
            0 => Ok((len, header)),
            rest => Err(UnpackError::Trailing(rest)),
        }
    }

    /// Whether the next value nests deeper than this many levels.
    fn is_deeper(&mut self, levels: usize) -> Result<bool, UnpackError> {
        // The number of values to come in each open container.
        let mut open: Vec<u64> = Vec::new();
        loop {
            let start = self.at;
            let members = match self.marker()? {
                Marker::FixArray(n) => Some(n.into()),
                Marker::Array16 => Some(self.number(2)?),
                Marker::Array32 => Some(self.number(4)?),
                Marker::FixMap(n) => Some(2 * u64::from(n)),
                Marker::Map16 => Some(2 * self.number(2)?),
                Marker::Map32 => Some(2 * self.number(4)?),
                _ => None,
            };
            if let Some(members) = members {
                if open.len() == levels {
                    return Ok(true);
                }
                open.push(members);
            } else {
                self.at = start;
                self.skip(1)?;
            }
            while open.last() == Some(&0) {
                open.pop();
            }
            let Some(left) = open.last_mut() else { return Ok(false) };
            *left -= 1;
        }
    }

    /// Reads the announced length of a string, and counts the string in `strings`.
    fn announced(&mut self, n: usize, strings: &mut u64) -> Result<usize, UnpackError> {
        *strings += 1;
        self.length(n)
    }
}

#[cfg(test)]
mod tests;
