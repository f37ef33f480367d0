//! Event permissions: the tags that a user may see.
//!
//! ```yaml
//! fred:
//!   - test.*
//!   - events: ['salt/job/*', 'my/app/*']      # globs, which cross slashes
//! ```
//!
//! Users without entries for events see no event by its tag alone, but all of them with `open_events`, as in Salt. Who
//! may call `event_bus.since`, which returns any events, may see them all, unless entries for events limit them. What a
//! user may see beside is decided where events are served (salt-api).

use brine_text::glob::GlobSet;

/// The events that a user may see, compiled: the cost of a decision hardly grows with the number of globs.
#[derive(Debug, Clone, Default)]
pub struct EventPermissions(Tags);

#[derive(Debug, Clone, Default)]
enum Tags {
    #[default]
    None,
    All,
    Matching(GlobSet),
}

impl EventPermissions {
    /// Permits all events: for the master's own user.
    pub fn all() -> Self {
        EventPermissions(Tags::All)
    }

    /// Permits events whose tags match a glob. A glob that does not compile permits nothing and is logged.
    pub fn matching<'a>(globs: impl IntoIterator<Item = &'a str>) -> Self {
        let compiles = |glob: &&str| match GlobSet::new([*glob]) {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(glob, %error, "an entry 'events' of an access list permits nothing");
                false
            }
        };
        let globs: Vec<&str> = globs.into_iter().filter(compiles).collect();
        match GlobSet::new(&globs) {
            Ok(set) => EventPermissions(Tags::Matching(set)),
            Err(error) => {
                tracing::error!(%error, "the entries 'events' of an access list permit nothing");
                EventPermissions::default()
            }
        }
    }

    /// Whether all events are permitted.
    pub fn is_all(&self) -> bool {
        matches!(self.0, Tags::All)
    }

    /// Whether no event is permitted.
    pub fn is_none(&self) -> bool {
        matches!(self.0, Tags::None)
    }
}

/// Whether a user with these permissions may see an event with this tag.
pub fn may_see(permissions: &EventPermissions, tag: &str) -> bool {
    match &permissions.0 {
        Tags::None => false,
        Tags::All => true,
        Tags::Matching(globs) => globs.is_match(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_the_whole_tag() {
        let permissions = EventPermissions::matching(["salt/job/*", "my/[ab]", "exact"]);
        for (tag, seen) in [
            ("salt/job/20261122000000000000/ret/web1", true),
            ("salt/job/", true),
            ("salt/jobs", false),
            ("x/salt/job/1", false),
            ("my/a", true),
            ("my/c", false),
            ("exact", true),
            ("exactly", false),
            ("", false),
        ] {
            assert_eq!(may_see(&permissions, tag), seen, "{tag}");
        }
        assert!(!permissions.is_none());
        assert!(may_see(&EventPermissions::all(), "salt/auth"));
        let none = EventPermissions::default();
        assert!(none.is_none() && !may_see(&none, "salt/auth"));
        assert!(!may_see(&EventPermissions::matching([]), ""));
    }
}
