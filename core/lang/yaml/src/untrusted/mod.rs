//! Untrusted text in an SLS: text from an event, tracked through one rendering.
//!
//! A guarded template prints an opaque placeholder (a *word*) wherever text from the event was printed. The YAML is
//! parsed with these placeholders, so that its structure comes from the template alone; `fits` then refuses text that
//! YAML would parse as more than the text of its scalar. The placeholders stay in the parsed data until the caller has
//! checked their use ([`Placeholders::parts`]); [`Placeholders::resolve`] replaces them by the text.

mod fits;

use std::fmt::Write;
use std::sync::Arc;

use brine_value::{Map, Value, json};
use parking_lot::Mutex;

pub(super) use fits::{ScalarContext, Style};

/// The maximum number of bytes of untrusted text in one rendering.
const MAX_BYTES: usize = 64 << 20;

/// The cost of a placeholder in bytes, without its text.
const PLACEHOLDER_COST: usize = 128;

/// The position in a template that printed untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The name of the template.
    pub template: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
    /// The tag as written, such as `{{ data['id'] }}`.
    pub tag: Arc<str>,
}

/// The error of refused untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UntrustedError {
    /// The name of the template.
    pub template: Arc<str>,
    /// The line in that template, counted from 1.
    pub line: usize,
    /// The cause, and the filter to use instead.
    pub message: String,
}

impl UntrustedError {
    /// Builds an error about this position in a template.
    pub fn new(origin: &Origin, message: String) -> Self {
        UntrustedError { template: Arc::clone(&origin.template), line: origin.line, message }
    }
}

/// A key that a mapping has twice once the placeholders of its keys are replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found conflicting key '{0}': it comes from the event twice")]
pub struct DuplicateKey(String);

/// The form in which a value was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A number, boolean or null, whose text YAML resolves to its type.
    Typed,
    /// The output of an encoder such as `yaml_encode`. If it is a whole scalar, it is decoded as a node.
    Yaml,
    /// The output of `json`.
    Json,
    /// A mapping without an encoder. If it is a whole scalar, it is that mapping. (A list could add targets where the
    /// template means one id.)
    Data,
    /// A key of a mapping that was printed whole.
    Key,
}

#[derive(Debug)]
struct Placeholder {
    text: Arc<str>,
    kind: Kind,
    /// The value of [`Kind::Data`].
    data: Option<Value>,
    origin: Origin,
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Placeholder>,
    bytes: usize,
}

/// The placeholders of one rendering, with the untrusted text of each.
#[derive(Debug, Clone)]
pub struct Placeholders {
    /// The prefix of each placeholder: random letters that a sender cannot guess.
    prefix: Arc<str>,
    table: Arc<Mutex<Table>>,
}

/// The character after the number in a placeholder.
const END: char = 'q';

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text of the template.
    Own(&'t str),
    /// Untrusted text.
    Untrusted {
        /// The text.
        text: Arc<str>,
        /// The position in the template that printed it.
        origin: Origin,
    },
}

/// A piece of a text: text of the template, or the placeholder with this number.
enum Piece<'t> {
    Trusted(&'t str),
    Placeholder(usize),
}

impl Default for Placeholders {
    fn default() -> Self {
        Placeholders::new()
    }
}

impl Placeholders {
    /// Creates an empty table with a random prefix.
    pub fn new() -> Self {
        // A letter that is neither an escape in YAML nor the start of a number, then letters alone.
        let mut prefix = String::from("q");
        let mut random = rand::random::<u128>();
        for _ in 0..24 {
            prefix.push(char::from(b'a' + (random & 15) as u8));
            random >>= 4;
        }
        Placeholders { prefix: prefix.into(), table: Arc::default() }
    }

    /// Whether no untrusted text was printed.
    pub fn is_empty(&self) -> bool {
        self.table.lock().entries.is_empty()
    }

    /// Whether this text contains a placeholder.
    pub fn touches(&self, text: &str) -> bool {
        // Most texts in a file are shorter than a placeholder.
        text.len() > self.prefix.len() && text.contains(&*self.prefix)
    }

    /// Adds a text and returns its placeholder, or `None` if the rendering exceeds its limit.
    pub fn add(&self, text: Arc<str>, kind: Kind, origin: Origin) -> Option<String> {
        self.push(text, kind, None, origin)
    }

    /// Adds a mapping and its text, as [`Placeholders::add`] does.
    pub fn add_data(&self, text: Arc<str>, data: Value, origin: Origin) -> Option<String> {
        self.push(text, Kind::Data, Some(data), origin)
    }

    fn push(&self, text: Arc<str>, kind: Kind, data: Option<Value>, origin: Origin) -> Option<String> {
        let mut table = self.table.lock();
        // The text of data is about as long as the data.
        let size = if data.is_some() { text.len().checked_mul(2)? } else { text.len() };
        let bytes = table.bytes.checked_add(size)?.checked_add(PLACEHOLDER_COST)?;
        if bytes > MAX_BYTES {
            return None;
        }
        table.bytes = bytes;
        table.entries.push(Placeholder { text, kind, data, origin });
        let mut word = String::with_capacity(self.prefix.len() + 6);
        // Writing into a `String` cannot fail.
        _ = write!(word, "{}{}{END}", self.prefix, table.entries.len() - 1);
        Some(word)
    }

    /// Splits a text into pieces.
    fn pieces<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let count = self.table.lock().entries.len();
        let (mut pieces, mut own, mut at) = (Vec::new(), 0, 0);
        while let Some(offset) = text[at..].find(&*self.prefix) {
            let start = at + offset;
            let behind = &text[start + self.prefix.len()..];
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let number = behind[..digits].parse().ok().filter(|number| *number < count);
            at = start + self.prefix.len() + digits;
            if let (Some(number), true) = (number, behind[digits..].starts_with(END)) {
                if own < start {
                    pieces.push(Piece::Trusted(&text[own..start]));
                }
                pieces.push(Piece::Placeholder(number));
                at += END.len_utf8();
                own = at;
            }
        }
        if own < text.len() {
            pieces.push(Piece::Trusted(&text[own..]));
        }
        pieces
    }

    /// Splits a text into the template's parts and the untrusted parts.
    pub fn parts<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let pieces = self.pieces(text);
        let table = self.table.lock();
        let part = |piece| match piece {
            Piece::Trusted(own) => Part::Own(own),
            Piece::Placeholder(number) => {
                let Placeholder { text, origin, .. }: &Placeholder = &table.entries[number];
                Part::Untrusted { text: Arc::clone(text), origin: origin.clone() }
            }
        };
        pieces.into_iter().map(part).collect()
    }

    /// Replaces the placeholders in a text by their text.
    pub fn reveal(&self, text: &str) -> String {
        if !self.touches(text) {
            return text.to_owned();
        }
        let pieces = self.pieces(text);
        let table = self.table.lock();
        let text = |piece: &Piece<'_>| match piece {
            Piece::Trusted(own) => (*own).to_owned(),
            Piece::Placeholder(number) => table.entries[*number].text.to_string(),
        };
        pieces.iter().map(text).collect()
    }

    /// Whether a text is a key of a mapping that was printed whole, such as `{{ data.kw | json }}`, and not one that the
    /// template printed as a key.
    pub fn is_key_of_whole(&self, text: &str) -> bool {
        match self.pieces(text)[..] {
            [Piece::Placeholder(number)] => self.table.lock().entries[number].kind == Kind::Key,
            _ => false,
        }
    }

    /// Counts captured template output towards the limit of the rendering. Returns whether the limit is kept.
    pub fn spend(&self, bytes: usize) -> bool {
        let mut table = self.table.lock();
        table.bytes = table.bytes.saturating_add(bytes);
        table.bytes <= MAX_BYTES
    }

    /// Replaces all placeholders in a value.
    ///
    /// # Errors
    /// A key of a mapping, at any depth, that is there twice after the replacement.
    pub fn resolve(&self, value: Value) -> Result<Value, DuplicateKey> {
        Ok(match value {
            Value::Str(text) if self.touches(text.as_str()) => self.reveal(text.as_str()).into(),
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| self.resolve(item)).collect::<Result<_, _>>()?)
            }
            Value::Map(map) => Value::Map(self.resolve_map(map)?),
            other => other,
        })
    }

    /// Whether a value contains a placeholder.
    fn are_in(&self, value: &Value) -> bool {
        match value {
            Value::Str(text) => self.touches(text.as_str()),
            Value::List(items) => items.iter().any(|item| self.are_in(item)),
            Value::Map(map) => map.iter().any(|(key, value)| self.are_in(key) || self.are_in(value)),
            _ => false,
        }
    }

    /// As [`Placeholders::resolve`], for a mapping.
    ///
    /// # Errors
    /// As there.
    pub fn resolve_map(&self, map: Map) -> Result<Map, DuplicateKey> {
        if !map.iter().any(|(key, value)| self.are_in(key) || self.are_in(value)) {
            return Ok(map);
        }
        let mut resolved = Map::with_capacity(map.len());
        for (key, value) in map {
            let key = self.resolve(key)?;
            let value = self.resolve(value)?;
            if resolved.contains_key(&key) {
                return Err(DuplicateKey(key.to_string()));
            }
            resolved.insert(key, value);
        }
        Ok(resolved)
    }

    /// Resolves a scalar that contains placeholders.
    ///
    /// # Errors
    /// Text that YAML would parse as more than the text of this scalar.
    pub(super) fn scalar(&self, text: &str, context: ScalarContext, tagged: bool) -> Result<Scalar, UntrustedError> {
        let pieces = self.pieces(text);
        {
            let table = self.table.lock();
            let word = |number: usize| &table.entries[number];
            let alone = match pieces[..] {
                [Piece::Placeholder(number)] => Some(word(number)),
                _ => None,
            };
            if let Some(encoded) = alone.filter(|word| matches!(word.kind, Kind::Yaml | Kind::Json | Kind::Data))
                && context.style == Style::Plain
                && !tagged
            {
                let (text, kind, origin) = (Arc::clone(&encoded.text), encoded.kind, encoded.origin.clone());
                let data = encoded.data.clone();
                drop(table);
                return match data {
                    Some(data) => self.cover(data, &origin).ok_or_else(|| too_much(&origin)),
                    None => self.node(&text, kind, &origin),
                }
                .map(Scalar::Node);
            }
            let parts: Vec<fits::Part<'_>> = pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Trusted(text) => fits::Part { text, word: None },
                    Piece::Placeholder(number) => fits::Part { text: &word(*number).text, word: Some(*number) },
                })
                .collect();
            if let Some((number, cause)) = fits::find_misfit(&parts, context) {
                return Err(refused(&word(number).origin, cause));
            }
            let kinds = || {
                pieces.iter().filter_map(|piece| match piece {
                    Piece::Placeholder(number) => Some(word(*number).kind),
                    Piece::Trusted(_) => None,
                })
            };
            if !(tagged || context.style == Style::Plain && kinds().all(|kind| kind == Kind::Typed)) {
                return Ok(Scalar::Text);
            }
        }
        Ok(Scalar::Resolved(self.reveal(text)))
    }

    /// Decodes the data of an encoded value; its strings become placeholders.
    fn node(&self, text: &str, kind: Kind, origin: &Origin) -> Result<Value, UntrustedError> {
        let value = match kind {
            Kind::Json => json::from_json(text).map_err(|error| error.to_string()),
            _ => crate::load(text).map_err(|error| error.to_string()),
        };
        let value = value.map_err(|error| {
            UntrustedError::new(origin, format!("render failed: `{}` cannot be read back: {error}", origin.tag))
        })?;
        self.cover(value, origin).ok_or_else(|| too_much(origin))
    }

    fn cover(&self, value: Value, origin: &Origin) -> Option<Value> {
        Some(match value {
            Value::Str(text) => self.add(text.as_str().into(), Kind::Text, origin.clone())?.into(),
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| self.cover(item, origin)).collect::<Option<_>>()?)
            }
            Value::Map(map) => {
                let key_of = |key| match key {
                    Value::Str(text) => Some(self.add(text.as_str().into(), Kind::Key, origin.clone())?.into()),
                    other => self.cover(other, origin),
                };
                let entries = map.into_iter().map(|(key, value)| Some((key_of(key)?, self.cover(value, origin)?)));
                Value::Map(entries.collect::<Option<_>>()?)
            }
            other => other,
        })
    }

    /// Returns the error for a placeholder outside of content, as in an alias or a tag.
    pub(super) fn no_content(&self, text: &str) -> Option<UntrustedError> {
        let part = self.parts(text).into_iter().find_map(|part| match part {
            Part::Untrusted { origin, .. } => Some(origin),
            Part::Own(_) => None,
        })?;
        Some(refused(&part, "it names an anchor, an alias or a tag"))
    }
}

/// The result of resolving a scalar with placeholders.
pub(super) enum Scalar {
    /// A string with its placeholders.
    Text,
    /// Plain text without placeholders, to be resolved by YAML's rules.
    Resolved(String),
    /// Data.
    Node(Value),
}

fn refused(origin: &Origin, cause: &str) -> UntrustedError {
    let tag = &origin.tag;
    let advice = "print it alone through `| yaml_encode` or `| json`, without quotes around it";
    UntrustedError::new(
        origin,
        format!(
            "render failed: `{tag}` would change the structure of the file, as the event's text has {cause}: {advice}"
        ),
    )
}

/// Builds the error for a template that exceeds the limit.
pub fn too_much(origin: &Origin) -> UntrustedError {
    let message = format!(
        "render failed: at `{}` the template has printed more than {MAX_BYTES} bytes from the event",
        origin.tag
    );
    UntrustedError::new(origin, message)
}
