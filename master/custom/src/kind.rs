//! The two registries of functions of the master: runner and wheel functions.

use brine_ids::Jid;

/// The registry of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The registry of runner functions, called by `salt-run`.
    Runner,
    /// The registry of wheel functions, which manage the master.
    Wheel,
}

impl Kind {
    /// Returns the name of the registry.
    pub fn name(self) -> &'static str {
        self.labels().1
    }

    /// Returns the prefix of the tags of a call's events.
    pub fn tag(self, jid: &Jid) -> String {
        format!("salt/{}/{jid}", self.labels().0)
    }

    /// Returns the name of the registry in tags, and in function names.
    pub fn labels(self) -> (&'static str, &'static str) {
        match self {
            Kind::Runner => ("run", "runner"),
            Kind::Wheel => ("wheel", "wheel"),
        }
    }
}
