//! Types of sets, with the options that they can be created with.

use brine_function::CallError;
use brine_value::{Map, Value};

use super::program::word;

/// Options of all types.
const ALL: [&str; 3] = ["timeout", "counters", "skbinfo"];
/// Options without a value.
const FLAGS: [&str; 2] = ["counters", "skbinfo"];
/// Options of most hashes.
const HASH: &[&str] = &["family", "hashsize", "maxelem", "netmask"];

const TYPES: [(&str, &[&str]); 15] = [
    ("bitmap:ip", &["range", "netmask"]),
    ("bitmap:ip,mac", &["range"]),
    ("bitmap:port", &["range"]),
    ("hash:ip", HASH),
    ("hash:mac", &["hashsize", "maxelem"]),
    ("hash:ip,port", HASH),
    ("hash:ip,port,ip", HASH),
    ("hash:ip,port,net", HASH),
    ("hash:net", HASH),
    ("hash:net,net", HASH),
    ("hash:net,iface", HASH),
    ("hash:net,port", HASH),
    ("hash:net,port,net", HASH),
    ("hash:ip,mark", &["family", "markmask", "hashsize", "maxelem"]),
    ("list:set", &["size"]),
];

/// A type of sets.
pub(super) struct SetType {
    name: &'static str,
    options: &'static [&'static str],
}

impl SetType {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (name, options) = TYPES.into_iter().find(|(candidate, _)| *candidate == name)?;
        Some(SetType { name, options })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether its elements are of one IP version.
    pub(super) fn has_family(&self) -> bool {
        self.options.contains(&"family")
    }

    /// Returns a required option that is missing.
    pub(super) fn missing(&self, arguments: &Map) -> Option<&'static str> {
        let is_missing = self.options.contains(&"range") && !arguments.contains_key("range");
        is_missing.then_some("range")
    }

    /// Returns the words of the given options. Others are ignored.
    pub(super) fn words(&self, arguments: &Map) -> Result<Vec<String>, CallError> {
        let options = self.options.iter().filter(|option| **option != "family").chain(&ALL);
        let mut words = Vec::new();
        for option in options {
            let Some(value) = arguments.get(*option) else { continue };
            if !FLAGS.contains(option) {
                words.extend([(*option).to_owned(), word(option, &value.to_string())?]);
            } else if value.is_truthy() {
                words.push((*option).to_owned());
            }
        }
        Ok(words)
    }
}

/// Options of elements, with the option of the set that they require.
const OF_ELEMENTS: [(&str, &str); 7] = [
    ("timeout", "timeout"),
    ("packets", "counters"),
    ("bytes", "counters"),
    ("comment", "comment"),
    ("skbmark", "skbinfo"),
    ("skbprio", "skbinfo"),
    ("skbqueue", "skbinfo"),
];

/// Returns the option of a set that an option of its elements requires.
pub(super) fn required_by(option: &str) -> Option<&'static str> {
    OF_ELEMENTS.iter().find(|(name, _)| *name == option).map(|(_, required)| *required)
}

/// Returns the given options of an element of a set of this type, with their values.
pub(super) fn element_options(arguments: &Map, kind: &str) -> Result<Vec<(String, String)>, CallError> {
    let mut options = Vec::new();
    for (name, _) in OF_ELEMENTS {
        let Some(value) = arguments.get(name).filter(|value| !value.is_nil() && value.as_str() != Some("")) else {
            continue;
        };
        options.push((name.to_owned(), word(name, &value.to_string())?));
    }
    if kind.contains("net") && arguments.get("nomatch").is_some_and(Value::is_truthy) {
        options.push(("nomatch".into(), String::new()));
    }
    Ok(options)
}
