//! `ldap`: users and groups of an LDAP directory, configured by Salt's options `auth.ldap.*` (`settings/`). The
//! user's entry is either searched by `filter`, with the master's own `binddn` and `bindpw`, or named by `binddn`. The
//! password must then bind as that entry. Group lookups support OpenLDAP's schemas, Active Directory and FreeIPA, as in
//! Salt.
//!
//! User input is escaped wherever it becomes part of a DN or filter. The name of an authenticated user is the one in its
//! entry: directories ignore case and more, so that many names find one entry.

mod settings;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_value::{Map, Value};
use ldap3::{Ldap as Connection, LdapConnAsync, LdapConnSettings, LdapError, Scope, SearchEntry, SearchOptions};
use rustls::ClientConfig;

use super::{Backend, BackendError, Proven, tls};
use crate::names::{UserName, fold};
use settings::{Directory, Settings, Template};

/// The deadline of a whole login: connecting, binding and searching.
const DEADLINE: Duration = Duration::from_secs(10);
/// The maximum number of groups of a user.
const MAX_GROUPS: i32 = 10_000;
/// The maximum number of computers of an organisational unit.
const MAX_COMPUTERS: i32 = 100_000;
/// Bind result codes that mean an invalid user or password, or a locked or expired account: constraintViolation,
/// noSuchObject, invalidDNSyntax, inappropriateAuthentication, invalidCredentials, insufficientAccessRights,
/// unwillingToPerform.
const DENIALS: &[u32] = &[19, 32, 34, 48, 49, 50, 53];
/// The result code of a search below an entry that does not exist.
const NO_SUCH_OBJECT: u32 = 32;
/// The prefix of entries for the computers of an organisational unit.
const UNIT: &str = "ldap(";

pub(super) struct Ldap {
    settings: Settings,
    deadline: Duration,
    /// Loaded at the first login, because reading the host's certificates is slow.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Ldap {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        let invalid = |(option, reason)| BackendError::Option { system: "ldap", option, reason };
        let settings = Settings::new(options).map_err(invalid)?;
        Ok(Ldap { settings, deadline: DEADLINE, tls: OnceLock::new() })
    }

    /// Runs LDAP operations within the deadline.
    fn converse<T>(&self, conversation: impl Future<Output = Result<T, LdapError>>) -> Result<T, BackendError> {
        let failed = |reason: String| BackendError::Server { server: self.settings.servers.join(" "), reason };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let limited = runtime.block_on(async { tokio::time::timeout(self.deadline, conversation).await });
        let answered = limited.map_err(|_| failed(format!("no answer within {:?}", self.deadline)))?;
        answered.map_err(|error| failed(description(&error)))
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, LdapError> {
        let made = self.tls.get_or_init(|| tls::client(self.settings.ca_bundle.as_deref(), self.settings.verify));
        made.clone().map_err(|reason| std::io::Error::other(reason).into())
    }

    /// Connects to the first server that can be reached.
    async fn connect(&self) -> Result<Connection, LdapError> {
        let mut last = None;
        for server in &self.settings.servers {
            let mut settings = LdapConnSettings::new().set_no_tls_verify(!self.settings.verify);
            if self.settings.starttls || server.starts_with("ldaps:") {
                settings = settings.set_starttls(self.settings.starttls).set_config(self.tls()?);
            }
            // Leave time for the other servers within the deadline.
            if self.settings.servers.len() > 1 {
                settings = settings.set_conn_timeout(self.deadline / 3);
            }
            match LdapConnAsync::with_settings(settings, server).await {
                Ok((connection, ldap)) => {
                    // Ends with the runtime of the login.
                    tokio::spawn(connection.drive());
                    return Ok(ldap);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(LdapError::EmptyUnixPath))
    }

    /// Connects, and binds as the master itself if a DN and password are configured.
    async fn connect_as_master(&self) -> Result<Connection, LdapError> {
        let mut ldap = self.connect().await?;
        if let Some((name, password)) = &self.settings.master {
            ldap.simple_bind(name, password).await?.success()?;
        }
        Ok(ldap)
    }

    /// Returns the user's entry with the attributes of its name; `None` if no entry or more than one matches.
    async fn search_entry(&self, filter: &Template, user: &str) -> Result<Option<SearchEntry>, LdapError> {
        let mut ldap = self.connect_as_master().await?;
        let (base, filter) = (&self.settings.basedn, filter.filter(user));
        let mut entries = search(&mut ldap, base, self.settings.scope, &filter, &self.name_attributes(), 2).await?;
        if entries.len() > 1 {
            tracing::error!(user, "auth.ldap.filter matches more than one entry for a user: authentication refused");
            return Ok(None);
        }
        Ok(entries.pop().filter(|entry| !entry.dn.is_empty()))
    }

    /// Returns the user's entry if its user may read it; other errors are ignored.
    async fn own_entry(&self, ldap: &mut Connection, dn: &str) -> Option<SearchEntry> {
        search(ldap, dn, Scope::Base, "(objectClass=*)", &self.name_attributes(), 1).await.ok()?.pop()
    }

    fn name_attributes(&self) -> Vec<&str> {
        self.settings.names.iter().map(String::as_str).collect()
    }

    async fn login(&self, user: &str, password: &str) -> Result<Option<Proven>, LdapError> {
        let Settings { user_dn, filter, names, .. } = &self.settings;
        let (dn, searched) = match (user_dn, filter) {
            (Some(template), _) => (template.name(user), None),
            (None, Some(filter)) => match self.search_entry(filter, user).await? {
                Some(entry) => (entry.dn.clone(), Some(entry)),
                None => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        let mut ldap = self.connect().await?;
        let bound = ldap.simple_bind(&dn, password).await?;
        if DENIALS.contains(&bound.rc) {
            tracing::info!(name = dn, result = bound.rc, "the LDAP server refuses a user");
            return Ok(None);
        }
        bound.success()?;
        let name = match searched {
            Some(entry) => name_in(&entry, names),
            None => match self.own_entry(&mut ldap, &dn).await {
                Some(entry) => name_in(&entry, names),
                None => plain_name(user),
            },
        };
        let Some(name) = name else {
            tracing::error!(
                entry = dn,
                attributes = names.join(","),
                "authentication refused: no readable attribute of the user's entry has its name: set auth.ldap.accountattributename"
            );
            return Ok(None);
        };
        if self.settings.master.is_some() {
            ldap = self.connect_as_master().await?;
        }
        let groups = self.groups(&mut ldap, &name).await?;
        Ok(Some(Proven { name: Some(UserName::found(name)), groups, entries: None }))
    }

    /// Returns the groups of an authenticated user.
    async fn groups(&self, ldap: &mut Connection, user: &str) -> Result<Vec<String>, LdapError> {
        let settings = &self.settings;
        let Settings { account, group_attribute, group_class, person, basedn, .. } = settings;
        let escaped = ldap3::ldap_escape(user);
        let mut groups = Vec::new();
        match &settings.directory {
            Directory::Active => {
                let filter = format!("(&({account}={escaped})(objectClass={person}))");
                let entries = search(ldap, basedn, Scope::Subtree, &filter, &["1.1"], MAX_GROUPS).await?;
                let Some(own) = entries.first() else { return Ok(groups) };
                let name = ldap3::ldap_escape(own.dn.as_str());
                let filter = format!("(&(member={name})(objectClass={group_class}))");
                for entry in search(ldap, basedn, Scope::Subtree, &filter, &["cn"], MAX_GROUPS).await? {
                    groups.extend(values(&entry, "cn").first().cloned());
                }
            }
            Directory::FreeIpa { base, filter } => {
                let attributes = [account.as_str(), group_attribute, "cn"];
                for entry in search(ldap, base, Scope::Subtree, &filter.filter(user), &attributes, MAX_GROUPS).await? {
                    let members = [values(&entry, account), values(&entry, group_attribute)].concat();
                    if members.iter().any(|member| first_value(member) == user) {
                        groups.push(first_value(&entry.dn));
                    }
                }
            }
            Directory::Other { base } => {
                let filter = format!("(&({account}={escaped})(objectClass={group_class}))");
                let attributes = [account.as_str(), "cn", group_attribute];
                for entry in search(ldap, base, Scope::Subtree, &filter, &attributes, MAX_GROUPS).await? {
                    if values(&entry, account).iter().any(|member| member == user) {
                        groups.extend(values(&entry, "cn").first().cloned());
                    }
                    // The entry of the user, which lists its groups.
                    if first_value(&entry.dn) == user {
                        groups.extend(values(&entry, group_attribute).iter().map(|group| first_value(group)));
                    }
                }
            }
        }
        groups.sort();
        groups.dedup();
        Ok(groups)
    }

    /// Returns the minion ids of the computers in the subtree of an entry.
    async fn computers(&self, ldap: &mut Connection, base: &str) -> Result<Vec<String>, LdapError> {
        let entries = search(ldap, base, Scope::Subtree, "(objectClass=computer)", &["cn"], MAX_COMPUTERS).await?;
        let id = |entry: &SearchEntry| {
            let name = values(entry, "cn").first()?.to_lowercase();
            let domains = &self.settings.strip_domains;
            let id = domains.iter().find_map(|domain| name.strip_suffix(domain.as_str())).unwrap_or(&name).to_owned();
            // The id is inserted into a target expression.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            (!id.is_empty() && id.chars().all(is_plain)).then_some(id)
        };
        let mut ids: Vec<String> = entries.iter().filter_map(id).collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn expanded(&self, unit: &str) -> Result<Vec<String>, BackendError> {
        self.converse(async {
            let mut ldap = self.connect_as_master().await?;
            self.computers(&mut ldap, unit).await
        })
    }
}

impl Backend for Ldap {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        // An LDAP bind without a password is anonymous, and would succeed.
        if user.is_empty() || password.is_empty() {
            return Ok(None);
        }
        self.converse(self.login(user, password))
    }

    fn ignores_case(&self) -> bool {
        true
    }

    fn must_expand(&self, entry: &Value) -> bool {
        unit(entry).is_some()
    }

    fn expand(&self, entries: Vec<Value>) -> Vec<Value> {
        let expand = |entry: Value| {
            let Some((unit, rules)) = unit(&entry) else { return Some(entry) };
            match self.expanded(unit) {
                Ok(ids) if ids.is_empty() => None,
                Ok(ids) => Some(Map::from_iter([(format!("L@{}", ids.join(",")).into(), rules.clone())]).into()),
                Err(error) => {
                    tracing::error!(unit, %error, "an entry of external_auth permits nothing: its minions are unknown");
                    None
                }
            }
        };
        entries.into_iter().filter_map(expand).collect()
    }
}

/// Parses an `ldap(..)` entry into the organisational unit and its functions.
fn unit(entry: &Value) -> Option<(&str, &Value)> {
    let (key, rules) = entry.as_map().filter(|map| map.len() == 1)?.iter().next()?;
    Some((key.as_str()?.strip_prefix(UNIT)?.strip_suffix(')')?, rules))
}

/// Searches the directory. A missing base counts as one without entries.
async fn search(
    ldap: &mut Connection,
    base: &str,
    scope: Scope,
    filter: &str,
    attributes: &[&str],
    limit: i32,
) -> Result<Vec<SearchEntry>, LdapError> {
    let result =
        ldap.with_search_options(SearchOptions::new().sizelimit(limit)).search(base, scope, filter, attributes);
    let result = result.await?;
    if result.1.rc == NO_SUCH_OBJECT {
        return Ok(Vec::new());
    }
    let (entries, _) = result.success()?;
    Ok(entries.into_iter().filter(|entry| !entry.is_ref()).map(SearchEntry::construct).collect())
}

/// Returns the values of an attribute. Attribute names are case-insensitive.
fn values(entry: &SearchEntry, attribute: &str) -> Vec<String> {
    let attribute = entry.attrs.iter().find(|(name, _)| name.eq_ignore_ascii_case(attribute));
    attribute.map(|(_, values)| values.clone()).unwrap_or_default()
}

/// Returns the name of a user in its entry, by the first of these attributes that it has. Of several values the one in
/// the DN is the name; it is also the name if no attribute is readable.
fn name_in(entry: &SearchEntry, attributes: &[String]) -> Option<String> {
    let in_dn = |attribute: &str| {
        let (named, _) = entry.dn.split_once('=')?;
        let value = first_value(&entry.dn);
        // Values with escaped characters differ from those of the attribute.
        (named.trim().eq_ignore_ascii_case(attribute) && !value.contains(['\\', '+'])).then_some(value)
    };
    let by_values = attributes.iter().find_map(|attribute| {
        let own = values(entry, attribute);
        let in_dn = in_dn(attribute).and_then(|name| own.iter().find(|value| fold(value) == fold(&name)));
        in_dn.or_else(|| own.iter().min()).cloned()
    });
    by_values.or_else(|| attributes.iter().find_map(|attribute| in_dn(attribute))).filter(|name| !name.is_empty())
}

/// Returns the name of a user whose entry is unreadable and who has typed this name: one spelling for all that the
/// directory takes for equal. Directories ignore some characters, so only names of plain ones are possible.
fn plain_name(typed: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    typed.chars().all(is_plain).then(|| fold(typed))
}

/// Returns the value of the first component of a DN: `admins` of `cn=admins,ou=Groups,dc=example`. A string without `=`
/// is returned unchanged.
fn first_value(name: &str) -> String {
    let mut end = name.len();
    let mut is_escaped = false;
    for (at, c) in name.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let part = &name[..end];
    part.split_once('=').map_or(part, |(_, value)| value).to_owned()
}

/// Formats an error for messages, without DNs and filters.
fn description(error: &LdapError) -> String {
    match error {
        LdapError::LdapResult { result } => format!("it answered with result {}: {}", result.rc, result.text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
