//! Mutates inputs, reproducibly by a seed.

/// The maximum length of an input.
const MAX_LENGTH: usize = 1 << 16;
/// The maximum number of mutations of one input.
const MAX_MUTATIONS: u64 = 8;
/// Bytes with a special meaning for decoders and parsers.
const TOKENS: &[&[u8]] = &[
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xc0",
    b"\xc1",
    b"\xca",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xd9\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\x7f\xff\xff\xff",
    b"\xdc\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff\xdf\xff\xff\xff\xff",
    b"\x91\x91\x91\x91\x91\x91\x91\x91",
    b"\xc9\x00\x00\x00\x01",
    b"\x02\xff",
    b"\x03\x00\x00\x00\x00\xff\xff\xff\xff",
    b"\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\n\n",
    b"\r\n",
    b"\t",
    b"  ",
    b"../",
    b"{{",
    b"}}",
    b"{%",
    b"%}",
    b"{#",
    b"for x in ",
    b"range(9**9)",
    b"| ",
    b"[0]",
    b"(",
    b")",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!",
    b"? ",
    b": ",
    b"- ",
    b"|\n",
    b">\n",
    b"\"",
    b"'",
    b"#",
    b"---\n",
    b"1e999",
    b"0x",
    b"-0",
    b".inf",
    b"~",
    b"\xe2\x80\xae",
    b"\xc2\x85",
];

/// A source of pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a source from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_number() % end.max(1) as u64) as usize
    }
}

/// Mutates an input in place, with pieces of another one.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.next_number() % MAX_MUTATIONS {
        let at = random.below(input.len() + 1);
        let end = (at + 1 + random.below(16)).min(input.len());
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.below(256) as u8,
            2 => _ = input.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied()),
            3 if at < end => _ = input.drain(at..end),
            4 if at < end => {
                let piece = input[at..end].repeat(1 + random.below(64));
                _ = input.splice(at..at, piece);
            }
            5 => input.truncate(at),
            6 if !other.is_empty() => {
                let from = random.below(other.len());
                let to = (from + 1 + random.below(64)).min(other.len());
                _ = input.splice(at..at, other[from..to].iter().copied());
            }
            7 if at < end => input[at..end].fill([0x00, 0xff, 0x7f, 0x80][random.below(4)]),
            8 if at + 4 <= input.len() => {
                let length = [0, 1, 0xffff, 0x7fff_ffff, u32::MAX][random.below(5)];
                input[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
            _ => {}
        }
    }
    input.truncate(MAX_LENGTH);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_reproducible_and_bounded() {
        let run = |seed| {
            let (mut random, mut input) = (Random::new(seed), b"seed".to_vec());
            for _ in 0..1000 {
                mutate(&mut input, b"other", &mut random);
                assert!(input.len() <= MAX_LENGTH);
            }
            (input, random.next_number())
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
