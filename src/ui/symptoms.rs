//! Where the documentation explains the commonest mistakes and the findings of `--check` and `brine doctor`.

use std::collections::BTreeSet;
use std::sync::Mutex;

use brine_config::{MasterConfig, MinionConfig};

/// Parts of messages, and the sections that explain them: a page, `#`, and the anchor of the heading.
pub const SYMPTOMS: &[(&str, &str)] = &[
    ("No return received", "troubleshooting#no-minion-matches-the-target"),
    ("Minion did not return", "troubleshooting#there-is-no-return"),
    ("The key glob '", "troubleshooting#a-minion-does-not-appear"),
    ("resolving the name '", "troubleshooting#a-minion-does-not-appear"),
    ("No matching sls found for '", "troubleshooting#a-state-or-function-is-not-found"),
    ("' is not available", "troubleshooting#a-state-or-function-is-not-found"),
    ("unknown function '", "troubleshooting#a-state-or-function-is-not-found"),
    ("unknown runner function '", "troubleshooting#a-state-or-function-is-not-found"),
    ("No Top file or master_tops data matches found", "troubleshooting#no-top-file-is-found-or-no-state-matches"),
    ("No states found for this minion", "troubleshooting#no-top-file-is-found-or-no-state-matches"),
    ("Pillar failed to render", "troubleshooting#pillar-is-empty"),
    ("Rendering SLS '", "troubleshooting#a-template-fails"),
    ("Address already in use", "troubleshooting#a-port-is-in-use"),
    ("has not the mode", "troubleshooting#the-daemon-ends-at-once"),
    ("Permission denied", "troubleshooting#the-daemon-ends-at-once"),
    ("NATS: no server answers", "troubleshooting#a-member-of-a-cluster-finds-no-nats-server"),
    ("Authentication error occurred", "troubleshooting#a-token-or-password-is-refused"),
];

/// Parts of findings about a configuration, and the pages or sections that explain them. A finding about another option
/// leads to the reference of that option.
pub const OPTIONS: &[(&str, &str)] = &[
    (" is in use: stop the process", "troubleshooting#a-port-is-in-use"),
    ("the master does not answer", "troubleshooting#a-minion-does-not-appear"),
    ("does not answer: ", "troubleshooting#a-minion-does-not-appear"),
    ("has no address", "troubleshooting#a-minion-does-not-appear"),
    ("accept it there", "troubleshooting#a-minion-does-not-appear"),
    ("the reactor entry '", "reactor#entries"),
    ("option 'reactor'", "reactor#entries"),
    ("a limit has no effect", "reactor#limits"),
    ("a rule over time is skipped", "rules#functions"),
    ("external_auth '", "access#passwords-and-tokens-external_auth"),
    ("external_auth is empty", "access#passwords-and-tokens-external_auth"),
    ("option 'cluster'", "cluster#set-up"),
    ("option 'engines'", "extending#engines"),
    ("option 'beacons'", "reference/beacons"),
    ("option 'nodegroups'", "how-to/choose-machines#a-group-with-a-name"),
    ("netapi_enable_clients names", "api#options"),
    ("' of the API", "api#options"),
];

/// Kinds of findings of `brine doctor`, and the pages or sections that explain them.
pub const FINDINGS: &[(&str, &str)] = &[
    ("not-installed", "install"),
    ("user-missing", "troubleshooting#the-daemon-ends-at-once"),
    ("directory-invalid", "troubleshooting#the-daemon-ends-at-once"),
    ("directory-owner", "troubleshooting#the-daemon-ends-at-once"),
    ("directory-mode", "troubleshooting#the-daemon-ends-at-once"),
    ("directory-untrusted", "troubleshooting#the-daemon-ends-at-once"),
    ("key-unreadable", "troubleshooting#the-daemon-ends-at-once"),
    ("key-owner", "troubleshooting#the-daemon-ends-at-once"),
    ("key-mode", "troubleshooting#the-daemon-ends-at-once"),
    ("unit-failed", "troubleshooting#the-daemon-ends-at-once"),
    ("daemon-down", "troubleshooting#the-daemon-ends-at-once"),
    ("certificate-unreadable", "api#options"),
    ("certificate-expired", "api#options"),
    ("certificate-expires", "api#options"),
    ("certificate-names", "api#options"),
    ("port-taken", "troubleshooting#a-port-is-in-use"),
    ("port-closed", "troubleshooting#what-needs-a-restart"),
    ("descriptors-exhausted", "scaling#what-a-minion-costs"),
    ("descriptors-low", "scaling#what-a-minion-costs"),
    ("name-unresolved", "troubleshooting#a-minion-does-not-appear"),
    ("master-unreachable", "troubleshooting#a-minion-does-not-appear"),
    ("publish-unreachable", "troubleshooting#a-minion-does-not-appear"),
    ("minion-key-pending", "troubleshooting#a-minion-does-not-appear"),
    ("master-refuses", "troubleshooting#a-minion-does-not-appear"),
    ("minion-never-connected", "troubleshooting#a-minion-does-not-appear"),
    ("minion-not-connected", "troubleshooting#a-minion-does-not-appear"),
    ("master-key-changed", "how-to/accept-keys#the-other-direction"),
    ("minion-key-refused", "troubleshooting#a-key-is-denied-or-rejected"),
    ("key-denied", "troubleshooting#a-key-is-denied-or-rejected"),
    ("keys-doubled", "troubleshooting#a-key-is-denied-or-rejected"),
    ("keys-pending", "how-to/accept-keys"),
    ("minion-silent", "troubleshooting#there-is-no-return"),
    ("minion-away", "troubleshooting#there-is-no-return"),
    ("dead-letters", "how-to/retry-failed-reactions"),
    ("reactor-behind", "reactor#watching-and-testing"),
    ("version-newer", "upgrade"),
    ("versions-mixed", "upgrade"),
];

/// The sections of this process.
static NOTED: Mutex<Sections> = Mutex::new(Sections { named: BTreeSet::new(), waiting: Vec::new() });

/// Sections that are named once.
#[derive(Default)]
struct Sections {
    /// Those that were named already.
    named: BTreeSet<String>,
    /// Those of them that are not printed yet.
    waiting: Vec<String>,
}

impl Sections {
    fn note(&mut self, section: String) {
        if self.named.insert(section.clone()) {
            self.waiting.push(section);
        }
    }

    fn take(&mut self) -> Vec<String> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|section| format!("More: brine docs {section}")).collect()
    }
}

/// Returns the section about a message.
pub fn section(message: &str) -> Option<&'static str> {
    of(SYMPTOMS, message)
}

/// Returns the page or section about a finding of a configuration.
pub fn of_configuration(message: &str) -> Option<String> {
    let section = of(OPTIONS, message).or_else(|| section(message));
    section.map(str::to_owned).or_else(|| option(message))
}

/// Returns the page or section about a finding of `brine doctor` of a kind.
pub fn of_finding(kind: &str, message: &str) -> Option<String> {
    let section = FINDINGS.iter().find(|(name, _)| *name == kind).map(|(_, section)| (*section).to_owned());
    section.or_else(|| of_configuration(message))
}

fn of(table: &[(&str, &'static str)], message: &str) -> Option<&'static str> {
    table.iter().find(|(part, _)| message.contains(part)).map(|(_, section)| *section)
}

/// Returns the reference of the option that a message is about.
fn option(message: &str) -> Option<String> {
    let name = message.split_once("option '")?.1.split_once('\'')?.0;
    let mut options = MasterConfig::docs().iter().chain(MinionConfig::docs());
    options.any(|option| option.name == name).then(|| format!("option {name}"))
}

/// Notes that the documentation explains a message, if it does and was not named before: [`take`] returns where.
pub fn note(message: &str) {
    of_message(message).into_iter().for_each(note_section);
}

/// Returns the page or section about a message of a tool.
fn of_message(message: &str) -> Option<String> {
    // An error about an option ends the start of every tool.
    let section = section(message).map(str::to_owned);
    section.or_else(|| message.contains(": option '").then(|| of_configuration(message)).flatten())
}

/// Notes that a page or section explains something, if it was not named before.
pub fn note_section(section: String) {
    if let Ok(mut noted) = NOTED.lock() {
        noted.note(section);
    }
}

/// Returns the lines that name the sections that were noted, once.
pub fn take() -> Vec<String> {
    NOTED.lock().map(|mut noted| noted.take()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_named_once() {
        let mut sections = Sections::default();
        for message in [
            "salt-master: listening failed: Address already in use (os error 98)",
            "salt-api: listening failed: Address already in use (os error 98)",
            "all is well",
        ] {
            if let Some(section) = of_message(message) {
                sections.note(section);
            }
        }
        assert_eq!(sections.take(), ["More: brine docs troubleshooting#a-port-is-in-use"]);
        assert!(sections.take().is_empty());
    }

    #[test]
    fn findings_lead_to_their_option() {
        for (message, expected) in [
            ("option 'renderer': no such renderer", Some("option renderer")),
            ("option 'beacons': 'load': option 'averages' is missing", Some("reference/beacons")),
            ("option 'ret_port': 0.0.0.0:4506 is in use: stop the process", Some("troubleshooting#a-port-is-in-use")),
            ("unknown option 'worker_thread'", None),
            ("/etc/salt/pki/master: no master key", None),
        ] {
            assert_eq!(of_configuration(message).as_deref(), expected, "{message}");
        }
        assert_eq!(of_finding("disk-full", "/ is full"), None);
        assert_eq!(of_finding("port-taken", "x").as_deref(), Some("troubleshooting#a-port-is-in-use"));
        assert_eq!(of_finding("config-broken", "option 'user': x").as_deref(), Some("option user"));
    }
}
