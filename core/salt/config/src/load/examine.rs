//! What is wrong in the text of one configuration file, for tools: files need not be in place.

use std::path::Path;

use super::{BadOption, Options, Warning, got, warning};
use crate::{MasterConfig, MinionConfig};

/// A mistake in one file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The option.
    pub option: String,
    /// One sentence.
    pub message: String,
    /// Whether the daemon refuses to start.
    pub is_error: bool,
}

/// Returns the mistakes in the text of a file of a master, or of a minion: unknown options, those without an effect, and
/// values of a wrong type. A text that is not a mapping has none.
pub fn examine(text: &str, is_master: bool) -> Vec<Mistake> {
    if is_master { examine_as::<MasterConfig>(text) } else { examine_as::<MinionConfig>(text) }
}

fn examine_as<T: Options>(text: &str) -> Vec<Mistake> {
    let Ok(located) = brine_yaml::load_located(text) else { return Vec::new() };
    let Some(options) = located.value.as_map() else { return Vec::new() };
    let warnings = options.iter().filter_map(|(name, value)| {
        let name = name.as_str()?;
        let message = match warning::<T>(Path::new(""), &located, name, value)? {
            Warning::Unknown { nearest: Some(nearest), .. } => {
                format!("unknown option '{name}': did you mean '{nearest}'?")
            }
            Warning::Unknown { .. } => format!("unknown option '{name}'"),
            Warning::Unused { .. } => format!("Salt's option '{name}' has no effect in Brine"),
            Warning::NoDirectory(_) => return None,
        };
        Some(Mistake { option: name.to_owned(), message, is_error: false })
    });
    let wrong = |bad: BadOption| {
        let message = format!("option '{}': expected {}, got {}", bad.name, bad.error.expected, got(&bad, options));
        Mistake { option: bad.name.to_owned(), message, is_error: true }
    };
    let errors = T::from_given(options).err().unwrap_or_default();
    warnings.chain(errors.into_iter().map(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_without_a_directory() {
        let mistakes = |text: &str, is_master: bool| -> Vec<(String, bool)> {
            examine(text, is_master).into_iter().map(|one| (one.message, one.is_error)).collect()
        };
        assert_eq!(
            mistakes("worker_thread: 5\nauto_accept: True\nmy.option: 1\n", true),
            [("unknown option 'worker_thread': did you mean 'worker_threads'?".to_owned(), false)]
        );
        let [(message, true)] = &mistakes("publish_port: many\n", true)[..] else { panic!("no error") };
        assert!(
            message.starts_with("option 'publish_port': expected ") && message.ends_with("got 'many'"),
            "{message}"
        );
        assert_eq!(mistakes("master: salt\nid: web1\n", false), []);
        assert_eq!(mistakes("- a\n", true), []);
        assert_eq!(mistakes("a: [\n", true), []);
    }
}
