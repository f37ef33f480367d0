//! The options `auth.ldap.*`, with Salt's names and defaults.

use std::path::PathBuf;

use brine_value::{FromValue, Map, Value};
use ldap3::{Scope, dn_escape, ldap_escape};

/// The delimiters of the user name's placeholder in a template.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const USERNAME: &str = "username";

/// An invalid option and the reason.
type Invalid = (&'static str, String);

/// A template with placeholders `{{ username }}`, as the pieces of text between them.
#[derive(Debug, PartialEq)]
pub(super) struct Template(Vec<String>);

impl Template {
    fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (inside, after) = after.split_once(CLOSE).unwrap_or(("", ""));
            if inside.trim() != USERNAME {
                return Err("is invalid: expected no template but {{ username }}".to_owned());
            }
            pieces.push(before.to_owned());
            rest = after;
        }
        if rest.contains("{%") {
            return Err("is invalid: expected no template but {{ username }}".to_owned());
        }
        pieces.push(rest.to_owned());
        Ok(Template(pieces))
    }

    fn has_username(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the attributes that are compared with the user's name.
    fn attributes(&self) -> impl Iterator<Item = String> {
        let before = self.0.split_last().map_or(&[][..], |(_, before)| before);
        before.iter().filter_map(|piece| {
            // Also `~=` and the matching rule of `attribute:rule:=`.
            let compared = piece.trim_end().strip_suffix('=')?.trim_end_matches(['~', '<', '>']);
            let start = compared.rfind(['(', ',', '+', '&', '|', '!']).map_or(0, |at| at + 1);
            let attribute = compared[start..].split(':').next()?.trim();
            (!attribute.is_empty()).then(|| attribute.to_owned())
        })
    }

    /// Returns the template as a DN for this user.
    pub fn name(&self, user: &str) -> String {
        self.0.join(dn_escape(user).as_ref())
    }

    /// Returns the template as a filter for this user. Enclosing parentheses are optional.
    pub fn filter(&self, user: &str) -> String {
        let filter = self.0.join(ldap_escape(user).as_ref());
        if filter.starts_with('(') { filter } else { format!("({filter})") }
    }
}

/// The schema of groups.
#[derive(Debug, PartialEq)]
pub(super) enum Directory {
    /// Groups list the names of their members (`auth.ldap.activedirectory`), as in Active Directory.
    Active,
    /// Groups are searched by a separate filter (`auth.ldap.freeipa`).
    FreeIpa { base: String, filter: Template },
    /// Groups of posixGroup and similar classes, below this DN.
    Other { base: String },
}

/// The LDAP options.
#[derive(Debug)]
pub(super) struct Settings {
    /// The URLs of the servers, in order of preference.
    pub servers: Vec<String>,
    pub starttls: bool,
    pub verify: bool,
    /// The file with trusted certificate authorities, which replace those of the host.
    pub ca_bundle: Option<PathBuf>,
    pub basedn: String,
    pub scope: Scope,
    /// The DN and password with which the master binds itself.
    pub master: Option<(String, String)>,
    /// The template of a user's DN, if no search is needed.
    pub user_dn: Option<Template>,
    /// The filter that finds a user's entry.
    pub filter: Option<Template>,
    /// The attribute with the name of a user, in groups or in the user's entry.
    pub account: String,
    /// The attributes that may hold the name of a user in its entry, best first.
    pub names: Vec<String>,
    pub person: String,
    pub group_class: String,
    pub group_attribute: String,
    pub directory: Directory,
    pub strip_domains: Vec<String>,
}

impl Settings {
    pub fn new(options: &Map) -> Result<Self, Invalid> {
        let text = |name: &'static str| {
            let value = options.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
            value.filter(|value| !value.is_empty())
        };
        let or = |name, default: &str| text(name).unwrap_or_else(|| default.to_owned());
        let flag = |name: &'static str| match options.get(name) {
            None | Some(Value::Nil) => Ok(false),
            Some(value) => {
                bool::from_value(value).ok_or((name, format!("is invalid: expected a boolean, got '{value}'")))
            }
        };
        let template = |name: &'static str| {
            text(name).map(|text| Template::parse(&text)).transpose().map_err(|reason| (name, reason))
        };
        // Attributes and classes are inserted into filters.
        let word = |name: &'static str, default: &str| {
            let value = or(name, default);
            let is_word = value.chars().all(|c| c.is_ascii_alphanumeric() || "-;.:".contains(c));
            if is_word { Ok(value) } else { Err((name, format!("is invalid: expected an attribute, got '{value}'"))) }
        };
        let (tls, starttls) = (flag("auth.ldap.tls")?, flag("auth.ldap.starttls")?);
        if tls && starttls {
            return Err(("auth.ldap.starttls", "is invalid: expected either tls or starttls".to_owned()));
        }
        if flag("auth.ldap.auth_by_group_membership_only")? {
            let reason = "is refused: it authenticates everyone without a password".to_owned();
            return Err(("auth.ldap.auth_by_group_membership_only", reason));
        }
        let (binddn, bindpw) = (template("auth.ldap.binddn")?, text("auth.ldap.bindpw"));
        let filter = template("auth.ldap.filter")?;
        let (master, user_dn) = match (binddn, bindpw) {
            (Some(name), Some(password)) if !name.has_username() => (Some((name.0.concat(), password)), None),
            (Some(_), Some(_)) => {
                let reason = "is invalid: expected a name without {{ username }}, because bindpw is set".to_owned();
                return Err(("auth.ldap.binddn", reason));
            }
            (Some(name), None) if name.has_username() => (None, Some(name)),
            (Some(_), None) => {
                let reason = "is invalid: expected {{ username }} in it, or a password in auth.ldap.bindpw".to_owned();
                return Err(("auth.ldap.binddn", reason));
            }
            (None, _) if flag("auth.ldap.anonymous")? => (None, None),
            (None, _) => {
                let reason =
                    "is missing: expected the name of users' entries, such as uid={{ username }},dc=example, or \
                              the master's own, with auth.ldap.bindpw and auth.ldap.filter"
                        .to_owned();
                return Err(("auth.ldap.binddn", reason));
            }
        };
        let basedn = or("auth.ldap.basedn", "");
        if user_dn.is_none() && !filter.as_ref().is_some_and(Template::has_username) {
            let reason =
                "is missing or without {{ username }}: expected a filter such as uid={{ username }}".to_owned();
            return Err(("auth.ldap.filter", reason));
        }
        let account = word("auth.ldap.accountattributename", "memberUid")?;
        let mut names = vec![account.clone()];
        for attribute in [&filter, &user_dn].into_iter().flatten().flat_map(Template::attributes) {
            if !names.iter().any(|name| name.eq_ignore_ascii_case(&attribute)) {
                names.push(attribute);
            }
        }
        let directory = if flag("auth.ldap.activedirectory")? {
            Directory::Active
        } else if flag("auth.ldap.freeipa")? {
            let missing = |name: &'static str| (name, "is missing: auth.ldap.freeipa needs it".to_owned());
            Directory::FreeIpa {
                base: text("auth.ldap.group_basedn").ok_or_else(|| missing("auth.ldap.group_basedn"))?,
                filter: template("auth.ldap.group_filter")?.ok_or_else(|| missing("auth.ldap.group_filter"))?,
            }
        } else {
            // An empty unit selects the whole directory.
            let unit = options.get("auth.ldap.groupou").map_or_else(|| "Groups".to_owned(), ToString::to_string);
            let is_whole = unit.is_empty() || unit == Value::Nil.to_string();
            Directory::Other { base: if is_whole { basedn.clone() } else { format!("ou={unit},{basedn}") } }
        };
        let scope = match or("auth.ldap.scope", "2").as_str() {
            "0" => Scope::Base,
            "1" => Scope::OneLevel,
            "2" => Scope::Subtree,
            other => return Err(("auth.ldap.scope", format!("is invalid: expected 0, 1 or 2, got '{other}'"))),
        };
        Ok(Settings {
            servers: servers(text("auth.ldap.uri"), &or("auth.ldap.server", "localhost"), text("auth.ldap.port"), tls)?,
            starttls,
            verify: !flag("auth.ldap.no_verify")?,
            ca_bundle: text("auth.ldap.ca_bundle").map(PathBuf::from),
            basedn,
            scope,
            master,
            user_dn,
            filter,
            account,
            names,
            person: word("auth.ldap.persontype", "person")?,
            group_class: word("auth.ldap.groupclass", "posixGroup")?,
            group_attribute: word("auth.ldap.groupattribute", "memberOf")?,
            directory,
            strip_domains: options
                .get("auth.ldap.minion_stripdomains")
                .and_then(Value::as_list)
                .unwrap_or_default()
                .iter()
                .map(|domain| domain.to_string().to_lowercase())
                .collect(),
        })
    }
}

/// Returns the URLs of the servers.
fn servers(uri: Option<String>, host: &str, port: Option<String>, tls: bool) -> Result<Vec<String>, Invalid> {
    let Some(uri) = uri else {
        let (scheme, default) = if tls { ("ldaps", "636") } else { ("ldap", "389") };
        let port = port.unwrap_or_else(|| default.to_owned());
        if port.parse::<u16>().is_err() {
            return Err(("auth.ldap.port", format!("is invalid: expected a port, got '{port}'")));
        }
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        let host = if is_bare_v6 { format!("[{host}]") } else { host.to_owned() };
        return Ok(vec![format!("{scheme}://{host}:{port}")]);
    };
    let all: Vec<String> = uri.split_whitespace().map(str::to_owned).collect();
    let is_known = |one: &String| {
        let address = ["ldap://", "ldaps://", "ldapi://"].iter().find_map(|scheme| one.strip_prefix(scheme));
        address.is_some_and(|rest| !rest.is_empty())
    };
    if all.iter().all(is_known) {
        Ok(all)
    } else {
        Err(("auth.ldap.uri", format!("is invalid: expected URLs such as ldaps://ldap.example.com, got '{uri}'")))
    }
}

#[cfg(test)]
mod tests;
