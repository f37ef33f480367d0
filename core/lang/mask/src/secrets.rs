//! The secrets of one call, which are removed from texts that may repeat them.

use std::borrow::Cow;

use brine_value::{Map, Value};

use crate::MASK;
use crate::texts::Found;

/// The minimum length of a secret that is removed from any text. A shorter one is removed after its name only, since it
/// may be part of other words.
const MIN_LENGTH: usize = 4;

/// The maximum number of secrets that are removed one by one; texts of calls with more are removed as a whole.
const MAX_SECRETS: usize = 1000;

/// The secrets of one call, with the texts around them that identify short ones.
#[derive(Default)]
pub struct Secrets(Vec<Secret>);

struct Secret {
    before: String,
    text: String,
    after: &'static str,
}

impl Secret {
    /// Returns the text that is replaced, and the text around the mask.
    fn replaced(&self) -> (Cow<'_, str>, &str, &str) {
        if self.text.len() >= MIN_LENGTH {
            return (Cow::Borrowed(&self.text), "", "");
        }
        (format!("{}{}{}", self.before, self.text, self.after).into(), &self.before, self.after)
    }
}

impl Secrets {
    /// Adds the value of an argument.
    pub(crate) fn add(&mut self, name: &str, value: &Value) {
        let text = match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => other.to_string(),
        };
        self.push(Secret { before: format!("{name}="), text, after: "" });
    }

    /// Adds a secret within a text.
    pub(crate) fn add_found(&mut self, Found { before, secret, after }: Found<'_>) {
        self.push(Secret { before: before.into_owned(), text: secret.into_owned(), after });
    }

    /// Adds the secrets of a call within the call.
    pub(crate) fn extend(&mut self, other: Secrets) {
        other.0.into_iter().for_each(|secret| self.push(secret));
    }

    fn push(&mut self, secret: Secret) {
        if !secret.text.is_empty() && secret.text != MASK && self.0.len() <= MAX_SECRETS {
            self.0.push(secret);
        }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are too many secrets to remove them one by one.
    fn is_full(&self) -> bool {
        self.0.len() > MAX_SECRETS
    }

    /// Removes the secrets from a message.
    pub fn scrub(&self, text: &str) -> String {
        if self.is_full() {
            return MASK.to_owned();
        }
        // A longer secret may contain a shorter one.
        let mut secrets: Vec<&Secret> = self.0.iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.text.len()));
        secrets.into_iter().fold(text.to_owned(), |text, secret| {
            let (replaced, before, after) = secret.replaced();
            if text.contains(&*replaced) { text.replace(&*replaced, &format!("{before}{MASK}{after}")) } else { text }
        })
    }

    /// Returns a copy of data without the secrets; `None` if it does not contain them. Keys stay as they are.
    pub fn scrub_value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Str(text) if self.is_in(text) => Some(self.scrub(text).into()),
            Value::List(items) => {
                let mut copy: Option<Vec<Value>> = None;
                for (index, item) in items.iter().enumerate() {
                    if let Some(scrubbed) = self.scrub_value(item) {
                        copy.get_or_insert_with(|| items.clone())[index] = scrubbed;
                    }
                }
                copy.map(Value::List)
            }
            Value::Map(map) => {
                let mut copy: Option<Map> = None;
                for (index, (_, value)) in map.iter().enumerate() {
                    if let Some(scrubbed) = self.scrub_value(value) {
                        copy.get_or_insert_with(|| map.clone())[index] = scrubbed;
                    }
                }
                copy.map(Value::Map)
            }
            _ => None,
        }
    }

    fn is_in(&self, text: &str) -> bool {
        self.is_full() || self.0.iter().any(|secret| text.contains(&*secret.replaced().0))
    }
}
