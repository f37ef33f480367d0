//! `external_auth`: the systems that know users and their passwords, and the entries of each user there.

use std::fmt;

use brine_target::Pcre;
use brine_text::glob::fnmatch;
use brine_value::{Map, Value};

use crate::backends::{self, Backend, BackendError};

/// What a user shows to be authenticated.
#[derive(Clone)]
pub struct Credentials {
    /// The system that knows the user, such as `pam` or `file`.
    pub eauth: String,
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("eauth", &self.eauth)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// A user whom a system has authenticated.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// The system.
    pub eauth: String,
    /// The user's name.
    pub username: String,
    /// The user's groups, as far as the system tells them.
    pub groups: Vec<String>,
    /// Entries that the system itself has for the user; those of the configuration are left out then, as in Salt.
    pub entries: Option<Vec<Value>>,
}

/// Why a user is not authenticated. The difference is for the master's log alone: clients are told the same in each case.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// `external_auth` does not name the system.
    #[error("external_auth has no '{0}'")]
    NotConfigured(String),
    /// Brine does not know the system.
    #[error("external_auth '{0}' is not supported: expected one of {known}", known = backends::NAMES.join(", "))]
    Unsupported(String),
    /// The user or the password is wrong.
    #[error("the user name or password is wrong")]
    Denied,
    /// The system cannot be asked.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// The configured systems.
pub struct ExternalAuth {
    systems: Vec<(String, Map)>,
    options: Map,
}

impl ExternalAuth {
    /// Reads `external_auth` from the options of a master.
    pub fn new(options: &Map) -> Self {
        let configured = options.get("external_auth").and_then(Value::as_map);
        let system = |(name, users): (&Value, &Value)| {
            Some((name.as_str()?.to_owned(), users.as_map().cloned().unwrap_or_default()))
        };
        let systems = configured.into_iter().flatten().filter_map(system).collect();
        ExternalAuth { systems, options: options.clone() }
    }

    /// Returns what keeps each configured system from authenticating anybody.
    pub fn check(&self) -> Vec<AuthError> {
        self.systems.iter().filter_map(|(name, _)| self.backend(name).err()).collect()
    }

    fn system(&self, name: &str) -> Result<&Map, AuthError> {
        let found = self.systems.iter().find(|(known, _)| known == name);
        found.map(|(_, users)| users).ok_or_else(|| AuthError::NotConfigured(name.to_owned()))
    }

    fn backend(&self, name: &str) -> Result<Box<dyn Backend>, AuthError> {
        let users = self.system(name)?;
        backends::open(name, users, &self.options)?.ok_or_else(|| AuthError::Unsupported(name.to_owned()))
    }

    /// Authenticates a user, which may take as long as the system takes.
    pub fn authenticate(&self, credentials: &Credentials) -> Result<Identity, AuthError> {
        if credentials.username.is_empty() {
            return Err(AuthError::Denied);
        }
        let backend = self.backend(&credentials.eauth)?;
        let proven = backend.authenticate(&credentials.username, &credentials.password)?;
        let proven = proven.ok_or(AuthError::Denied)?;
        let of_config = |entries: Vec<Value>| {
            let users = self.system(&credentials.eauth).ok()?;
            let own = users.get(credentials.username.as_str()).and_then(Value::as_list).unwrap_or_default();
            let all: Vec<Value> = own.iter().cloned().chain(entries).collect();
            (!all.is_empty()).then_some(all)
        };
        Ok(Identity {
            eauth: credentials.eauth.clone(),
            username: credentials.username.clone(),
            groups: proven.groups,
            entries: proven.entries.and_then(of_config),
        })
    }

    /// Returns the entries of `publisher_acl` for a user of this machine.
    pub fn entries_of_publisher(&self, publisher_acl: &Map, user: &str) -> Vec<Value> {
        entries_of(publisher_acl, user, &[], self.is_permissive())
    }

    fn is_permissive(&self) -> bool {
        self.options.get("permissive_acl").is_some_and(Value::is_truthy)
    }

    /// Returns the entries in force for a user: the user's own, those of the groups, and those of `*` for users without
    /// own entries (for all users with `permissive_acl`). `None` if the system is not configured any more.
    pub fn entries(&self, identity: &Identity) -> Option<Vec<Value>> {
        let users = self.system(&identity.eauth).ok()?;
        if let Some(entries) = &identity.entries {
            return Some(entries.clone());
        }
        Some(entries_of(users, &identity.username, &identity.groups, self.is_permissive()))
    }
}

/// Returns the entries of `external_auth` or `publisher_acl` for a user. Names are globs or regular expressions; with `%`
/// at the end they are groups; with `^` at the start options of the system.
pub(crate) fn entries_of(users: &Map, user: &str, groups: &[String], permissive: bool) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut is_named = false;
    for (name, of_name) in users {
        let Some(name) = name.as_str().filter(|name| !name.starts_with('^')) else { continue };
        let holds = match name.strip_suffix('%') {
            Some(group) => groups.iter().any(|own| own == group),
            None if name == "*" => permissive,
            None => {
                let holds = is_meant(name, user);
                is_named |= holds;
                holds
            }
        };
        if holds {
            entries.extend(of_name.as_list().unwrap_or_default().iter().cloned());
        }
    }
    if !permissive && !is_named {
        entries.extend(users.get("*").and_then(Value::as_list).unwrap_or_default().iter().cloned());
    }
    entries
}

/// Returns whether an expression means a user: the name itself, a glob, or a regular expression for the whole name.
pub(crate) fn is_meant(expression: &str, user: &str) -> bool {
    expression == user
        || fnmatch(expression, user)
        || Pcre::parse(&format!("^(?:{expression})$")).is_ok_and(|pattern| pattern.is_match(user))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    fn external(systems: Map) -> ExternalAuth {
        ExternalAuth::new(&map! {"external_auth" => systems, "sharedsecret" => "s3cret"})
    }

    fn credentials(eauth: &str, username: &str, password: &str) -> Credentials {
        Credentials { eauth: eauth.into(), username: username.into(), password: password.into() }
    }

    #[test]
    fn users_have_their_own_entries_those_of_their_groups_or_those_of_everybody() {
        let users = map! {
            "^filename" => "/x",
            "fred" => list!["test.*"],
            "f*" => list!["pkg.*"],
            "ops%" => list!["cmd.run"],
            "*" => list!["sys.doc"],
        };
        for (user, groups, permissive, expected) in [
            ("fred", &[][..], false, list!["test.*", "pkg.*"]),
            ("frida", &["ops"], false, list!["pkg.*", "cmd.run"]),
            ("ann", &["ops"], false, list!["cmd.run", "sys.doc"]),
            ("ann", &[], false, list!["sys.doc"]),
            ("fred", &[], true, list!["test.*", "pkg.*", "sys.doc"]),
            ("ops%", &[], false, list!["sys.doc"]),
            ("^filename", &[], false, list!["sys.doc"]),
        ] {
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            assert_eq!(Value::from(entries_of(&users, user, &groups, permissive)), expected, "{user} {groups:?}");
        }
    }

    #[test]
    fn names_are_globs_or_regular_expressions() {
        for (expression, user, meant) in [
            ("fred", "fred", true),
            ("fr*", "fred", true),
            ("fr(ed|ida)", "frida", true),
            ("fr", "fred", false),
            ("^(?!sudo_).*$", "fred", true),
            ("^(?!sudo_).*$", "sudo_fred", false),
            ("(", "fred", false),
        ] {
            assert_eq!(is_meant(expression, user), meant, "{expression} {user}");
        }
    }

    #[test]
    fn only_configured_systems_authenticate() {
        let external = external(map! {
            "sharedsecret" => map! {"fred" => list!["test.*"]},
            "kerberos" => Map::new(),
        });
        let identity = external.authenticate(&credentials("sharedsecret", "fred", "s3cret")).unwrap();
        assert_eq!(identity.username, "fred");
        assert_eq!(external.entries(&identity), Some(vec!["test.*".into()]));
        for (eauth, user, password, reason) in [
            ("sharedsecret", "fred", "wrong", "the user name or password is wrong"),
            ("sharedsecret", "fred", "", "the user name or password is wrong"),
            ("sharedsecret", "", "s3cret", "the user name or password is wrong"),
            ("auto", "fred", "x", "external_auth has no 'auto'"),
            (
                "kerberos",
                "fred",
                "x",
                "external_auth 'kerberos' is not supported: expected one of auto, file, sharedsecret",
            ),
        ] {
            let error = external.authenticate(&credentials(eauth, user, password)).unwrap_err();
            assert_eq!(error.to_string(), reason, "{eauth}");
        }
        assert_eq!(external.check().len(), 1);
        let gone = Identity { eauth: "pam".into(), ..identity };
        assert_eq!(external.entries(&gone), None);
    }

    #[test]
    fn passwords_are_in_no_debug_text() {
        assert!(!format!("{:?}", credentials("file", "fred", "hunter2")).contains("hunter2"));
    }
}
