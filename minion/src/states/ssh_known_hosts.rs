//! `ssh_known_hosts`: hosts whose keys are known as states.

use brine_function::{CallError, functions};
use brine_value::{Value, map};

use super::{StateContext, StateReturn};
use crate::modules::ssh::known::{self, Done, File, Host};

functions! {
    module "ssh_known_hosts", context StateContext;

    /// A host that a user, or all, know by this key, by the key of this fingerprint, or by what the host itself says.
    fn present(
        context,
        name: String,
        user: Option<String> = None,
        fingerprint: Option<String> = None,
        key: Option<String> = None,
        port: Option<u16> = None,
        enc: Option<String> = None,
        config: Option<String> = None,
        hash_known_hosts: bool = true,
        timeout: u32 = 5,
        fingerprint_hash_type: Option<String> = None,
    ) {
        let known = place(user.as_deref(), config).and_then(|config| {
            if context.test && key.is_some() && fingerprint.is_some() {
                return Err("Specify either \"key\" or \"fingerprint\", not both.".to_owned());
            }
            Ok((File::of(given(user.as_deref()), Some(&config))?, config))
        });
        let (file, config) = match known {
            Ok(found) => found,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        if key.is_some() && enc.is_none() {
            return Ok(StateReturn::failed(&name, "Required argument \"enc\" if using \"key\" argument.").into());
        }
        let host = Host { name, port, enc, key, fingerprint, hash: fingerprint_hash_type };
        if context.test {
            return would(context, &file, &host, &config).map(Into::into);
        }
        let name = &host.name;
        let (old, new) = match file.set(&context.call, &host, hash_known_hosts, timeout)? {
            Done::Updated { old, new } => (old, new),
            Done::Failed(error) => return Ok(StateReturn::failed(name, error).into()),
            Done::Exists(_) | Done::Removed(_) => {
                return Ok(StateReturn::ok(name, format!("{name} already exists in {config}")).into());
            }
        };
        let first = new.first();
        let saved = first.map(|entry| entry.key.as_str()).unwrap_or_default();
        let print = first.and_then(|entry| entry.fingerprint.as_deref()).unwrap_or_default();
        let comment = match (&host.key, &host.fingerprint, &host.enc) {
            (Some(_), _, _) => format!("{name}'s key saved to {config} (key: {saved})"),
            (None, Some(_), _) => format!("{name}'s key saved to {config} (fingerprint: {print})"),
            (None, None, Some(enc)) => format!("{name}'s {enc} key saved to {config} (key: {saved})"),
            (None, None, None) => format!("{name}'s key(s) saved to {config}"),
        };
        let changes = map! {"old" => known::describe(&old), "new" => known::describe(&new)};
        Ok(StateReturn::ok(name, comment).with_changes(changes).into())
    }

    /// A host that a user, or all, do not know.
    fn absent(context, name: String, user: Option<String> = None, config: Option<String> = None) {
        let config = match place(user.as_deref(), config) {
            Ok(config) => config,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let host = Host { name, ..Host::default() };
        let name = &host.name;
        let would = || StateReturn::would(name, format!("Key for {name} is set to be removed from {config}"));
        let file = match File::of(given(user.as_deref()), Some(&config)) {
            Ok(file) => file,
            // The user may be one whom a state before would make.
            Err(_) if context.test => return Ok(would().into()),
            Err(error) => return Ok(StateReturn::failed(name, error).into()),
        };
        let entries = file.entries(&context.call, &host)?;
        if entries.is_empty() {
            return Ok(StateReturn::ok(name, "Host is already absent").into());
        }
        if context.test {
            return Ok(would().into());
        }
        let done = match file.remove(&context.call, &host)? {
            Done::Removed(comment) => StateReturn::ok(name, comment)
                .with_changes(map! {"old" => known::describe(&entries), "new" => Value::Nil}),
            Done::Failed(error) => StateReturn::failed(name, error),
            Done::Exists(_) | Done::Updated { .. } => StateReturn::ok(name, ""),
        };
        Ok(done.into())
    }
}

/// A user that is named at all.
fn given(user: Option<&str>) -> Option<&str> {
    user.filter(|user| !user.is_empty())
}

/// The name of the file that is meant, as it is told.
fn place(user: Option<&str>, config: Option<String>) -> Result<String, String> {
    let usual = if given(user).is_some() { ".ssh/known_hosts" } else { "/etc/ssh/ssh_known_hosts" };
    let config = config.filter(|config| !config.is_empty()).unwrap_or_else(|| usual.into());
    if given(user).is_none() && !config.starts_with('/') {
        return Err("If not specifying a \"user\", specify an absolute \"config\".".into());
    }
    Ok(config)
}

fn would(context: &StateContext, file: &File, host: &Host, config: &str) -> Result<StateReturn, CallError> {
    let name = &host.name;
    Ok(match file.knows(&context.call, host)? {
        Some(true) => StateReturn::ok(name, format!("Host {name} is already in {config}")),
        None => StateReturn::would(name, format!("Key for {name} is set to be added to {config}")),
        Some(false) => StateReturn::would(name, format!("Key for {name} is set to be updated in {config}")),
    })
}
