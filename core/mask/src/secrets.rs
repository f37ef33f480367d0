//! The secrets of one call, which are removed from texts that may repeat them.

use brine_value::{Map, Value};

use crate::MASK;

/// The minimum length of a secret that is removed from any text. A shorter one is removed after its name only, since it
/// may be part of other words.
const MIN_LENGTH: usize = 4;

/// The secrets of one call, by the names of their arguments.
#[derive(Default)]
pub struct Secrets(Vec<(String, String)>);

impl Secrets {
    pub(crate) fn add(&mut self, name: &str, value: &Value) {
        let text = match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => other.to_string(),
        };
        if !text.is_empty() && text != MASK {
            self.0.push((name.to_owned(), text));
        }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the secrets from a message.
    pub fn scrub(&self, text: &str) -> String {
        // A longer secret may contain a shorter one.
        let mut secrets: Vec<&(String, String)> = self.0.iter().collect();
        secrets.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        secrets.into_iter().fold(text.to_owned(), |text, (name, secret)| {
            if secret.len() >= MIN_LENGTH {
                text.replace(secret.as_str(), MASK)
            } else {
                text.replace(&format!("{name}={secret}"), &format!("{name}={MASK}"))
            }
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
        self.0.iter().any(|(name, secret)| {
            if secret.len() >= MIN_LENGTH { text.contains(secret) } else { text.contains(&format!("{name}={secret}")) }
        })
    }
}
