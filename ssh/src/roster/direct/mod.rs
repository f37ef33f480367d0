//! Targets that name a single host, `web1`, `192.0.2.7` or `user@web1`, which may be missing from the roster, and the
//! addition of such a host to the roster file (`--update-roster`).
//!
//! Only the command-line user may name such hosts, because a configured password or key is used to log in.

use std::io::Write;
use std::net::ToSocketAddrs;

use brine_ids::MinionId;
use brine_jinja::Host as Functions;
use brine_target::TargetKind;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::{RosterError, RosterHost, RosterOptions, checked, flat, host};

/// The rosters whose targets are ids. The targets of other rosters already name hosts.
const ROSTERS: &[&str] = &["flat", "ansible", "cache", "dir", "sshconfig", "sshknownhosts"];

/// The hosts of a target.
#[derive(Debug)]
pub enum Found {
    /// Hosts of the roster, perhaps none.
    Known(IndexMap<MinionId, RosterHost>),
    /// A host that is not in the roster; its fields have the default values.
    New(MinionId, Box<RosterHost>),
}

/// The parsed form of a target that names a single host.
struct Named<'a> {
    user: Option<&'a str>,
    name: &'a str,
}

impl<'a> Named<'a> {
    /// Parses `HOST` or `USER@HOST`; `None` for a glob or a target of another type.
    fn parse(tgt: &'a Value, kind: TargetKind) -> Option<Self> {
        let text = tgt.as_str().filter(|text| kind == TargetKind::Glob && !text.contains(['*', '?', '[']))?;
        let (user, name) = match text.rsplit_once('@') {
            Some((user, name)) => (Some(user), name),
            None => (None, text),
        };
        Some(Named { user, name }).filter(|named| !named.name.is_empty() && named.user != Some(""))
    }
}

/// Returns the hosts of a target, as [`super::hosts`] does. As in Salt, a target that matches none of them may name a host of
/// the roster with another user, or any host whose name resolves.
///
/// # Errors
/// The roster or the target is invalid.
pub fn hosts(
    options: &RosterOptions,
    tgt: &Value,
    kind: TargetKind,
    functions: &Functions,
) -> Result<Found, RosterError> {
    let Some(named) = Named::parse(tgt, kind).filter(|_| ROSTERS.contains(&options.roster.as_str())) else {
        return super::hosts(options, tgt, kind, functions).map(Found::Known);
    };
    let hosts = |tgt: &Value| match super::hosts(options, tgt, kind, functions) {
        // A directly named host does not need a roster.
        Err(RosterError::File { path, .. }) if !path.exists() && resolves(named.name) => Ok(IndexMap::new()),
        result => result,
    };
    let entries = hosts(tgt)?;
    if !entries.is_empty() {
        return Ok(Found::Known(entries));
    }
    let invalid = |reason: String| RosterError::Program(format!("the target '{tgt}' is invalid: {reason}"));
    let same = |(id, host): &(MinionId, RosterHost)| id.as_str() == named.name || host.host == named.name;
    if let Some((id, mut host)) = hosts(&"*".into())?.into_iter().find(same) {
        if let Some(user) = named.user {
            // The password in the roster belongs to another user.
            (host.user, host.passwd) = (Some(user.to_owned()), options.passwd.clone());
        }
        let host = checked(id.as_str(), host).map_err(invalid)?;
        return Ok(Found::Known(IndexMap::from([(id, host)])));
    }
    if !resolves(named.name) {
        return Ok(Found::Known(IndexMap::new()));
    }
    let fields = named.user.map_or_else(Map::new, |user| map! {"user" => user});
    let id: MinionId = named.name.parse().map_err(|error| invalid(format!("{error}")))?;
    let host = host(options, named.name, fields).map_err(invalid)?;
    Ok(Found::New(id, Box::new(host)))
}

/// Whether a name resolves to an address.
fn resolves(name: &str) -> bool {
    (name, 22).to_socket_addrs().is_ok_and(|mut addresses| addresses.next().is_some())
}

/// Adds a host to the file of the roster `flat`. Unlike in Salt, the password is not written.
///
/// # Errors
/// The roster is not `flat`, its file cannot be read or written, or the file would not contain the host afterwards.
pub fn add(
    options: &RosterOptions,
    id: &MinionId,
    host: &RosterHost,
    functions: &Functions,
) -> Result<(), RosterError> {
    let path = &options.file;
    let failed = |reason: String| RosterError::Invalid { path: path.clone(), reason };
    let refused = |reason: &str| failed(format!("{id} is not added: {reason}"));
    if options.roster != "flat" {
        return Err(refused("only the roster flat can be changed"));
    }
    let source = if path.exists() { super::read(path)? } else { String::new() };
    let user = host.user.as_deref().unwrap_or("root");
    let is_plain = |c: char| c.is_alphanumeric() || "-_.@:\\".contains(c);
    if ![id.as_str(), &host.host, user].iter().all(|text| text.chars().all(is_plain)) {
        return Err(refused("its name or user has a character that YAML would take for something else"));
    }
    let newline = if source.is_empty() || source.ends_with('\n') { "" } else { "\n" };
    let entry = format!("{newline}'{id}':\n  host: '{}'\n  user: '{user}'\n", host.host);
    // The file may be a template, or not be YAML at all: check the rendered result.
    let rendered = flat::render_source(options, path, &format!("{source}{entry}"), functions)?;
    if rendered.get(id.as_str()).and_then(|fields| fields.get("host")).and_then(Value::as_str) != Some(&host.host) {
        return Err(refused("the file has another form: add the host by hand"));
    }
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(entry.as_bytes())).map_err(|error| refused(&error.to_string()))
}

#[cfg(test)]
mod tests;
