//! The symptoms of the commonest mistakes, and where the documentation explains them.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// The page whose sections explain the symptoms.
pub const PAGE: &str = "troubleshooting";

/// Parts of messages, and the anchors of their sections.
pub const SYMPTOMS: &[(&str, &str)] = &[
    ("No return received", "no-minion-matches-the-target"),
    ("Minion did not return", "there-is-no-return"),
    ("The key glob '", "a-minion-does-not-appear"),
    ("resolving the name '", "a-minion-does-not-appear"),
    ("No matching sls found for '", "a-state-or-function-is-not-found"),
    ("' is not available", "a-state-or-function-is-not-found"),
    ("unknown function '", "a-state-or-function-is-not-found"),
    ("unknown runner function '", "a-state-or-function-is-not-found"),
    ("No Top file or master_tops data matches found", "no-top-file-is-found-or-no-state-matches"),
    ("No states found for this minion", "no-top-file-is-found-or-no-state-matches"),
    ("Pillar failed to render", "pillar-is-empty"),
    ("Rendering SLS '", "a-template-fails"),
    ("Address already in use", "a-port-is-in-use"),
    ("has not the mode", "the-daemon-ends-at-once"),
    ("Permission denied", "the-daemon-ends-at-once"),
    ("NATS: no server answers", "a-member-of-a-cluster-finds-no-nats-server"),
    ("Authentication error occurred", "a-token-or-password-is-refused"),
];

/// The sections that were named already.
static NAMED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// Returns the anchor of the section about a message.
pub fn section(message: &str) -> Option<&'static str> {
    SYMPTOMS.iter().find(|(part, _)| message.contains(part)).map(|(_, anchor)| *anchor)
}

/// Returns the line that names the section about a message; `None` if there is none, or it was named before.
pub fn pointer(message: &str) -> Option<String> {
    let anchor = section(message)?;
    let is_new = NAMED.lock().is_ok_and(|mut named| named.insert(anchor));
    is_new.then(|| format!("More: brine docs {PAGE}#{anchor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_named_once() {
        let message = "salt-master: listening failed: Address already in use (os error 98)";
        assert_eq!(pointer(message).as_deref(), Some("More: brine docs troubleshooting#a-port-is-in-use"));
        assert_eq!((pointer(message), pointer("all is well")), (None, None));
    }
}
