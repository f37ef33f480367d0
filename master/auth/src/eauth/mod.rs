//! `external_auth`: the authentication backends, and the entries of each user in them.

use std::fmt;
use std::sync::Arc;

use brine_value::{Map, Value};

use crate::backends::{self, Backend, BackendError, CustomAuthModules};
use crate::names::{UserName, fold, is_normal, names_user};

/// The maximum sizes of user input, in bytes; longer names would fill logs and the throttle's memory.
const MAX_NAME: usize = 256;
const MAX_PASSWORD: usize = 4096;

/// A name and password to verify.
#[derive(Clone)]
pub struct Credentials {
    /// The backend, such as `pam` or `file`.
    pub eauth: String,
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: String,
}

impl Credentials {
    /// Whether these can be valid credentials: not too long, and without characters that some backends ignore in names.
    /// Such a character would let different names refer to the same account.
    pub fn are_plausible(&self) -> bool {
        let Credentials { eauth, username, password } = self;
        let is_name = |name: &str| {
            let is_trimmed = name.trim().len() == name.len();
            !name.is_empty() && name.len() <= MAX_NAME && is_trimmed && !name.chars().any(char::is_control)
        };
        is_name(eauth) && is_name(username) && password.len() <= MAX_PASSWORD
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("eauth", &self.eauth)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// An authenticated user. Only a successful login creates one, and tokens keep it.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    pub(crate) eauth: String,
    pub(crate) username: UserName,
    pub(crate) groups: Vec<String>,
    pub(crate) entries: Option<Vec<Value>>,
}

impl Identity {
    /// Reads the identity in the data of a token, which the master has created for an authenticated user.
    pub fn of_token(token: &Map) -> Option<Self> {
        let text = |name: &str| token.get(name).and_then(Value::as_str);
        let groups = token.get("groups").and_then(Value::as_list).unwrap_or_default();
        Some(Identity {
            eauth: text("eauth")?.to_owned(),
            username: UserName::found(text("name")?),
            groups: groups.iter().map(ToString::to_string).collect(),
            entries: token.get("auth_list").and_then(Value::as_list).map(<[Value]>::to_vec),
        })
    }

    /// Returns the identity that a user would have after a login, to explain its permissions. It authorises nothing.
    pub fn assumed(eauth: &str, user: &str, groups: Vec<String>) -> Self {
        Identity { eauth: eauth.to_owned(), username: UserName::found(user), groups, entries: None }
    }

    /// Returns the identity with these entries in place of those of the configuration.
    #[must_use]
    pub fn with_entries(self, entries: Option<Vec<Value>>) -> Self {
        Identity { entries, ..self }
    }

    /// Returns the backend.
    pub fn eauth(&self) -> &str {
        &self.eauth
    }

    /// Returns the user's name, in the spelling of the backend.
    pub fn username(&self) -> &UserName {
        &self.username
    }

    /// Returns the user's groups, if the backend provides them.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns the entries that the backend itself provides, or that are fixed in a token. As in Salt, those of the
    /// configuration are then ignored.
    pub fn entries(&self) -> Option<&[Value]> {
        self.entries.as_deref()
    }
}

/// The reason why a user is not authenticated. It is only logged: clients receive the same message in each case.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// `external_auth` does not name the backend.
    #[error("external_auth has no '{0}'")]
    NotConfigured(String),
    /// The backend is not supported.
    #[error(
        "external_auth '{0}' is not supported: expected one of {known} or a custom module in _auth; a custom web service can authenticate these users by 'rest'",
        known = backends::NAMES.join(", ")
    )]
    Unsupported(String),
    /// The name or password cannot belong to a user.
    #[error(
        "the user name or password is invalid: expected a name of 1 to {MAX_NAME} bytes without control characters or spaces at its ends, and a password of at most {MAX_PASSWORD}"
    )]
    Implausible,
    /// The name is not in the canonical form, and the backend cannot return that form.
    #[error("the user name is not normalised: expected the composed characters of Unicode's form NFKC")]
    NotNormal,
    /// The name differs from a configured one in its case alone, and the backend cannot decide whether both are one user.
    #[error("external_auth names '{0}': this user logs in by that spelling alone")]
    OtherSpelling(String),
    /// The backend was unusable at the start of the master, but is available now.
    #[error("external_auth '{0}' could not be used when the master started: restart the master")]
    Restart(String),
    /// The account of a user who was authenticated earlier is locked, expired or deleted.
    #[error("the account is no longer valid")]
    Expired,
    /// The user is unknown or the password is wrong.
    #[error("the user name or password is wrong")]
    Denied,
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// The configured backends.
pub struct ExternalAuth {
    systems: Vec<System>,
    options: Map,
    modules: Option<Arc<dyn CustomAuthModules>>,
}

struct System {
    name: String,
    users: Map,
    /// `None` if an option is invalid, or the backend is not supported.
    backend: Option<Box<dyn Backend>>,
}

impl ExternalAuth {
    /// Reads `external_auth` from the options of a master, without custom modules.
    pub fn new(options: &Map) -> Self {
        Self::with_modules(options, None)
    }

    /// Reads `external_auth` from the options of a master. Names without a built-in backend refer to custom modules.
    pub fn with_modules(options: &Map, modules: Option<Arc<dyn CustomAuthModules>>) -> Self {
        let configured = options.get("external_auth").and_then(Value::as_map);
        let system = |(name, users): (&Value, &Value)| {
            let (name, users) = (name.as_str()?.to_owned(), users.as_map().cloned().unwrap_or_default());
            let backend = open(&name, &users, options, modules.as_ref()).ok();
            Some(System { name, users, backend })
        };
        let systems = configured.into_iter().flatten().filter_map(system).collect();
        ExternalAuth { systems, options: options.clone(), modules }
    }

    /// Returns the names of the configured backends.
    pub fn systems(&self) -> impl Iterator<Item = &str> {
        self.systems.iter().map(|system| system.name.as_str())
    }

    /// Returns the error of each configured backend that cannot authenticate users.
    pub fn check(&self) -> Vec<AuthError> {
        self.systems.iter().filter_map(|system| self.open(system).err()).collect()
    }

    fn open(&self, system: &System) -> Result<Box<dyn Backend>, AuthError> {
        open(&system.name, &system.users, &self.options, self.modules.as_ref())
    }

    fn system(&self, name: &str) -> Result<&System, AuthError> {
        let system = self.systems.iter().find(|system| system.name == name);
        system.ok_or_else(|| AuthError::NotConfigured(name.to_owned()))
    }

    fn usable(&self, name: &str) -> Result<&dyn Backend, AuthError> {
        let system = self.system(name)?;
        match &system.backend {
            Some(backend) => Ok(backend.as_ref()),
            None => Err(match self.open(system) {
                Err(error) => error,
                // A dependency that was missing at the start is available now.
                Ok(_) => AuthError::Restart(name.to_owned()),
            }),
        }
    }

    fn backend(&self, name: &str) -> Option<&dyn Backend> {
        self.system(name).ok()?.backend.as_deref()
    }

    /// Authenticates a user; blocks until the backend answers.
    pub fn authenticate(&self, credentials: &Credentials) -> Result<Identity, AuthError> {
        if !credentials.are_plausible() {
            return Err(AuthError::Implausible);
        }
        let system = self.system(&credentials.eauth)?;
        let backend = self.usable(&credentials.eauth)?;
        let proven = backend.authenticate(&credentials.username, &credentials.password)?;
        let proven = proven.ok_or(AuthError::Denied)?;
        let username = match proven.name {
            Some(name) => name,
            None => name_as_typed(&system.users, &credentials.username)?,
        };
        let of_config = |entries: Vec<Value>| {
            if backend.replaces_entries() {
                return Some(entries);
            }
            let own = system.users.get(username.as_str()).and_then(Value::as_list).unwrap_or_default();
            let all: Vec<Value> = own.iter().cloned().chain(entries).collect();
            (!all.is_empty()).then_some(all)
        };
        let entries = proven.entries.and_then(of_config);
        Ok(Identity { eauth: credentials.eauth.clone(), username, groups: proven.groups, entries })
    }

    /// Whether a name in the configuration, outside of expressions, means this user of a backend.
    pub fn is_named(&self, identity: &Identity, name: &str) -> bool {
        identity.username.as_str() == name || self.folds(&identity.eauth) && fold(&identity.username) == fold(name)
    }

    /// Whether the backend ignores the case of names.
    fn folds(&self, eauth: &str) -> bool {
        self.backend(eauth).is_some_and(Backend::ignores_case)
    }

    /// Returns the entries of `publisher_acl` for a user of this machine.
    pub fn entries_of_publisher(&self, publisher_acl: &Map, user: &str) -> Vec<Value> {
        entries_of(publisher_acl, user, &[], self.is_permissive(), false)
    }

    fn is_permissive(&self) -> bool {
        self.options.get("permissive_acl").is_some_and(Value::is_truthy)
    }

    /// Returns the effective entries of a user: its own, those of its groups, and those of `*` for users without own
    /// entries (for all users with `permissive_acl`). Returns `None` if the backend is no longer configured.
    pub fn entries(&self, identity: &Identity) -> Option<Vec<Value>> {
        let system = self.system(&identity.eauth).ok()?;
        if let Some(entries) = &identity.entries {
            return Some(entries.clone());
        }
        let folds = self.folds(&identity.eauth);
        Some(entries_of(&system.users, &identity.username, &identity.groups, self.is_permissive(), folds))
    }

    /// Whether the backend has to confirm a previously authenticated user. If so, use [`ExternalAuth::current_entries`]
    /// instead of [`ExternalAuth::entries`].
    pub fn must_ask(&self, identity: &Identity) -> bool {
        // Without the backend the account cannot be checked.
        let Some(backend) = self.backend(&identity.eauth) else { return true };
        let entries = self.entries(identity).unwrap_or_default();
        backend.must_check_account(&identity.username) || entries.iter().any(|entry| backend.must_expand(entry))
    }

    /// Returns the effective entries like [`ExternalAuth::entries`], after the backend has confirmed the account and
    /// resolved entries such as `ldap(OU=web)`. Blocks until the backend answers.
    ///
    /// # Errors
    ///
    /// The backend is no longer configured or does not answer, or the account is locked, expired or deleted.
    pub fn current_entries(&self, identity: &Identity) -> Result<Vec<Value>, AuthError> {
        let backend = self.usable(&identity.eauth)?;
        let entries = self.entries(identity).unwrap_or_default();
        if backend.must_check_account(&identity.username) && !backend.is_account_valid(&identity.username)? {
            return Err(AuthError::Expired);
        }
        Ok(backend.expand(entries))
    }
}

/// Returns the name of a user whose backend accepts names as typed and does not return them. The backend may ignore case:
/// another spelling of a configured name would be a user without its entries, but with its password.
fn name_as_typed(users: &Map, user: &str) -> Result<UserName, AuthError> {
    if !is_normal(user) {
        return Err(AuthError::NotNormal);
    }
    let folded = fold(user);
    let names = || users.keys().filter_map(Value::as_str).filter(|name| !name.starts_with('^') && !name.ends_with('%'));
    match names().find(|name| fold(name) == folded) {
        Some(name) if !names().any(|name| name == user) => Err(AuthError::OtherSpelling(name.to_owned())),
        _ => Ok(UserName::found(user)),
    }
}

fn open(
    name: &str,
    users: &Map,
    options: &Map,
    modules: Option<&Arc<dyn CustomAuthModules>>,
) -> Result<Box<dyn Backend>, AuthError> {
    backends::open(name, users, options, modules)?.ok_or_else(|| AuthError::Unsupported(name.to_owned()))
}

/// Returns the entries of `external_auth` or `publisher_acl` for a user. Names are globs or regular expressions; a
/// trailing `%` marks groups, a leading `^` options of the backend. `folds` is [`Backend::ignores_case`].
pub(crate) fn entries_of(users: &Map, user: &str, groups: &[String], permissive: bool, folds: bool) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut is_named = false;
    for (name, of_name) in users {
        let Some(name) = name.as_str().filter(|name| !name.starts_with('^')) else { continue };
        let holds = match name.strip_suffix('%') {
            Some(group) => groups.iter().any(|own| own == group),
            None if name == "*" => permissive,
            None => {
                let holds = names_user(name, user, folds);
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

#[cfg(test)]
mod tests;
