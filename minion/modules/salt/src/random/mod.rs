//! `random`: random numbers and strings. For a seed, they equal Salt's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_context::{Context, Module};
use brine_digest::random::MersenneTwister;
use brine_digest::{Digest, hex};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Value;
use rand::seq::IndexedRandom;

/// Maximum length of a string.
const MAX_LENGTH: usize = 1 << 20;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `random`.
pub static FUNCTIONS: Functions<Context> =
    registry!("random", [get_str, rand_int, seed, hash, str_encode, sample, shuffle, shadow_hash]);

/// Return a random string of a length: of `chars`, or of the character classes that are enabled.
///
/// CLI Example:
///
///     salt '*' random.get_str 128
///     salt '*' random.get_str 16 punctuation=False
#[function]
pub fn get_str(
    _context: &Context,
    /// Number of characters.
    #[default(20)]
    length: usize,
    /// Characters that are used; otherwise those of the kinds that are chosen.
    chars: Option<String>,
    /// Whether lower-case letters are used.
    #[default(true)]
    lowercase: bool,
    /// Whether upper-case letters are used.
    #[default(true)]
    uppercase: bool,
    /// Whether digits are used.
    #[default(true)]
    digits: bool,
    /// Whether punctuation is used.
    #[default(true)]
    punctuation: bool,
    /// Whether white space is used.
    #[default(false)]
    whitespace: bool,
) -> CallResult {
    let kinds = [
        (lowercase, "abcdefghijklmnopqrstuvwxyz"),
        (uppercase, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        (digits, "0123456789"),
        (punctuation, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        (whitespace, " \t\n\r\x0b\x0c"),
    ];
    let selected_kinds = kinds.iter().filter(|(is_selected, _)| *is_selected).map(|(_, kind)| *kind);
    let from: Vec<char> = chars.unwrap_or_else(|| selected_kinds.collect()).chars().collect();
    if from.is_empty() || length > MAX_LENGTH {
        return Err(CallError::Execution(format!(
            "length or characters are invalid: expected at most {MAX_LENGTH} characters from a set that is not empty, got {length} from {}",
            from.len()
        )));
    }
    let mut random = rand::rng();
    Ok((0..length).filter_map(|_| from.choose(&mut random)).collect::<String>().into())
}

/// Return a random integer from `start` to `end`; `seed` makes it reproducible.
///
/// CLI Example:
///
///     salt '*' random.rand_int 1 10
#[function]
pub fn rand_int(
    _context: &Context,
    /// Smallest number.
    #[default(1)]
    start: i64,
    /// Largest number.
    #[default(10)]
    end: i64,
    /// Seed: the same one gives the same result.
    #[default]
    seed: Value,
) -> CallResult {
    let span = end.checked_sub(start).and_then(|span| u32::try_from(span).ok()).and_then(|span| span.checked_add(1));
    let span = span.ok_or_else(|| {
        CallError::Execution(format!("range is invalid: expected start <= end, got {start} to {end}"))
    })?;
    let below = if seed.is_nil() { rand::random_range(0..span) } else { MersenneTwister::seeded(&seed).below(span) };
    Ok((start + i64::from(below)).into())
}

/// Return a reproducible integer below `range`: by default for this minion's id, otherwise for `hash`.
///
/// CLI Example:
///
///     salt '*' random.seed 60
#[function]
pub fn seed(
    context: &Context,
    /// Number of possible results.
    #[default(10)]
    range: u32,
    /// Text that decides the result; the id of the minion by default.
    #[default]
    hash: Value,
) -> CallResult {
    if range == 0 {
        return Err(CallError::Execution("empty range for randrange()".into()));
    }
    let id = || context.grains().get("id").cloned().unwrap_or_else(|| context.minion.id.as_str().into());
    let from = if hash.is_nil() { id() } else { hash };
    Ok(MersenneTwister::seeded(&from).below(range).into())
}

/// Return the digest of a string.
///
/// CLI Example:
///
///     salt '*' random.hash 'I am a string' md5
#[function]
pub fn hash(
    _context: &Context,
    /// Value.
    value: Value,
    /// Type of the hash.
    #[default("sha512".into())]
    algorithm: String,
) -> CallResult {
    let digest =
        Digest::named(&algorithm).ok_or_else(|| CallError::Execution("You must specify a valid algorithm.".into()))?;
    Ok(hex(digest.of(value.to_string())).into())
}

/// Encode a string, by default as base64.
///
/// CLI Example:
///
///     salt '*' random.str_encode 'I am a new string' base64
#[function]
pub fn str_encode(
    _context: &Context,
    /// Value.
    value: Value,
    /// Encoding, such as `base64`.
    #[default("base64".into())]
    encoder: String,
) -> CallResult {
    match (&value, encoder.as_str()) {
        (Value::Str(text), "base64") => Ok(STANDARD.encode(text.as_str()).into()),
        (Value::Bytes(bytes), "base64") => Ok(STANDARD.encode(bytes).into()),
        _ => Err(CallError::Invocation {
            function: "random.str_encode".into(),
            message: "Value must be an encode-able string".into(),
        }),
    }
}

/// Return a random sample of a list; `seed` makes it reproducible.
///
/// CLI Example:
///
///     salt '*' random.sample '["one", "two"]' 1 seed="something"
#[function]
pub fn sample(
    _context: &Context,
    /// Value.
    value: Vec<Value>,
    /// Number of items.
    size: usize,
    /// Seed: the same one gives the same result.
    #[default]
    seed: Value,
) -> CallResult {
    chosen(&value, size, &seed)
}

/// Return a list in random order; `seed` makes it reproducible.
///
/// CLI Example:
///
///     salt '*' random.shuffle '["one", "two"]' seed="something"
#[function]
pub fn shuffle(
    _context: &Context,
    /// Value.
    value: Vec<Value>,
    /// Seed: the same one gives the same result.
    #[default]
    seed: Value,
) -> CallResult {
    chosen(&value, value.len(), &seed)
}

/// Return the hash of a password for `/etc/shadow`: sha512 or sha256. Without a password, a random one is hashed.
///
/// CLI Example:
///
///     salt '*' random.shadow_hash 'My5alT' 'MyP@asswd' sha512
#[function]
pub fn shadow_hash(
    _context: &Context,
    /// Salt of the hash; a random one by default.
    crypt_salt: Option<String>,
    /// Password; a random one by default.
    password: Option<String>,
    /// Type of the hash.
    #[default("sha512".into())]
    algorithm: String,
) -> CallResult {
    let password = password.unwrap_or_else(brine_crypt::token::nonce);
    Ok(brine_host::passwords::hash(&password, crypt_salt.as_deref(), &algorithm)?.into())
}

/// Returns a number of items, seeded or random.
fn chosen(items: &[Value], count: usize, seed: &Value) -> Result<Value, CallError> {
    let chosen = MersenneTwister::chosen(items, count, seed);
    let none = || CallError::Execution("Sample larger than population or is negative".into());
    Ok(chosen.ok_or_else(none)?.into())
}

#[cfg(test)]
mod tests;
