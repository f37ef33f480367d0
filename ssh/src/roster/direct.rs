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

use super::{Host, RosterError, RosterOptions, checked, flat, host};

/// The rosters whose targets are ids. The targets of other rosters already name hosts.
const ROSTERS: &[&str] = &["flat", "ansible", "cache", "dir", "sshconfig", "sshknownhosts"];

/// The hosts of a target.
#[derive(Debug)]
pub enum Found {
    /// Hosts of the roster, perhaps none.
    Known(IndexMap<MinionId, Host>),
    /// A host that is not in the roster; its fields have the default values.
    New(MinionId, Box<Host>),
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
    let known = |tgt: &Value| match super::hosts(options, tgt, kind, functions) {
        // A directly named host does not need a roster.
        Err(RosterError::File { path, .. }) if !path.exists() && resolves(named.name) => Ok(IndexMap::new()),
        known => known,
    };
    let found = known(tgt)?;
    if !found.is_empty() {
        return Ok(Found::Known(found));
    }
    let invalid = |reason: String| RosterError::Program(format!("the target '{tgt}' is invalid: {reason}"));
    let same = |(id, host): &(MinionId, Host)| id.as_str() == named.name || host.host == named.name;
    if let Some((id, mut host)) = known(&"*".into())?.into_iter().find(same) {
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
pub fn add(options: &RosterOptions, id: &MinionId, host: &Host, functions: &Functions) -> Result<(), RosterError> {
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
mod tests {
    use brine_value::list;

    use super::super::tests::options;
    use super::*;

    #[test]
    fn a_target_may_name_a_host_with_another_user_or_one_that_is_in_no_roster() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("roster");
        std::fs::write(&path, "web1: {host: 192.0.2.1, passwd: of me, user: me}\n'a@b': 192.0.2.9\n").unwrap();
        let mut options = options(path);
        options.passwd = Some("own".into());
        let of = |tgt: Value, kind: &str, options: &RosterOptions| match hosts(
            options,
            &tgt,
            kind.parse().unwrap(),
            &Functions::new(),
        ) {
            Ok(Found::Known(hosts)) => {
                let shown = |(id, host): (MinionId, Host)| {
                    format!("{id} {}@{} {}", host.user.unwrap(), host.host, host.passwd.unwrap())
                };
                hosts.into_iter().map(shown).collect::<Vec<_>>().join(", ")
            }
            Ok(Found::New(id, host)) => format!("new {id} {}@{}", host.user.unwrap(), host.host),
            Err(error) => error.to_string(),
        };
        for (tgt, kind, expected) in [
            ("web*", "glob", "web1 me@192.0.2.1 of me"),
            ("web1", "glob", "web1 me@192.0.2.1 of me"),
            ("192.0.2.1", "glob", "web1 me@192.0.2.1 of me"),
            ("you@web1", "glob", "web1 you@192.0.2.1 own"),
            ("you@192.0.2.1", "glob", "web1 you@192.0.2.1 own"),
            ("a@b", "glob", "a@b default@192.0.2.9 own"),
            ("127.0.0.1", "glob", "new 127.0.0.1 default@127.0.0.1"),
            ("you@127.0.0.1", "glob", "new 127.0.0.1 you@127.0.0.1"),
            ("you@corp@127.0.0.1", "glob", "new 127.0.0.1 you@corp@127.0.0.1"),
            ("::1", "glob", "new ::1 default@::1"),
            ("you@no.such.invalid", "glob", ""),
            ("you@127.0.0.*", "glob", ""),
            ("127.0.0.1", "pcre", ""),
            ("@127.0.0.1", "glob", ""),
            ("you@", "glob", ""),
            ("-oProxyCommand=id@web1", "glob", "the target '-oProxyCommand=id@web1' is invalid: 'user' of web1"),
            ("-oX@127.0.0.1", "glob", "the target '-oX@127.0.0.1' is invalid: 'user' of 127.0.0.1"),
        ] {
            let found = of(tgt.into(), kind, &options);
            assert!(if expected.is_empty() { found.is_empty() } else { found.starts_with(expected) }, "{tgt}: {found}");
        }
        assert_eq!(of(list!["127.0.0.1"], "list", &options), "");
        // Without a roster file only directly named hosts exist.
        options.file = directory.path().join("none");
        assert_eq!(of("127.0.0.1".into(), "glob", &options), "new 127.0.0.1 default@127.0.0.1");
        assert!(of("web1.invalid".into(), "glob", &options).starts_with("reading the roster"));
        // The targets of these rosters already name hosts.
        options.roster = "scan".into();
        options.scan.0 = vec![1];
        assert_eq!(of("127.0.0.1".into(), "glob", &options), "");
    }

    #[test]
    fn a_new_host_is_added_to_a_roster_that_stays_readable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("roster");
        let options = options(path.clone());
        let id: MinionId = "db1".parse().unwrap();
        let new = |user: &str| Host { host: "db1".into(), user: Some(user.into()), ..Host::default() };
        for (before, user, expected) in [
            (None, "me", Ok("'db1':\n  host: 'db1'\n  user: 'me'\n")),
            (Some("web1: a"), "me", Ok("web1: a\n'db1':\n  host: 'db1'\n  user: 'me'\n")),
            (
                Some("{% if 0 %}\nx: y\n{% endif %}\n"),
                r"corp\me",
                Ok("{% if 0 %}\nx: y\n{% endif %}\n'db1':\n  host: 'db1'\n  user: 'corp\\me'\n"),
            ),
            (Some("a: b\n"), "{{ x }}", Err("a character that YAML would take")),
            (Some("a: b\n"), "x'y", Err("a character that YAML would take")),
            (Some("{a: b}\n"), "me", Err("roster")),
            (Some("a: |\n  {# text\n"), "me", Err("roster")),
            (Some("#!json\n{\"a\": \"b\"}\n"), "me", Err("roster")),
        ] {
            std::fs::remove_file(&path).ok();
            if let Some(before) = before {
                std::fs::write(&path, before).unwrap();
            }
            let added = add(&options, &id, &new(user), &Functions::new());
            let after = std::fs::read_to_string(&path).unwrap_or_default();
            match (added, expected) {
                (Ok(()), Ok(expected)) => assert_eq!(after, expected),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{error}");
                    assert_eq!(Some(after.as_str()), before);
                }
                (added, _) => panic!("{before:?}: {added:?}"),
            }
        }
        let other = RosterOptions { roster: "ansible".into(), ..options };
        assert!(
            add(&other, &id, &new("me"), &Functions::new()).unwrap_err().to_string().contains("only the roster flat")
        );
    }
}
