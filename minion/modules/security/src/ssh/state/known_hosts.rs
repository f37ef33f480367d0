//! `ssh_known_hosts`: states of known hosts.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use crate::ssh::known::{self, File, KnownHost, Outcome};

/// State functions of `ssh_known_hosts`.
pub static FUNCTIONS: Functions<StateContext> = registry!("ssh_known_hosts", [present, absent]);

/// The arguments of `ssh_known_hosts.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Name of the host.
    name: String,
    /// User whose `~/.ssh/known_hosts` is managed; that of the system by default.
    user: Option<String>,
    #[args]
    of_host: known::HostArgs,
}

/// Ensure that a host is known to a user, or to all, by this key, by the key with this fingerprint, or by the key
/// it presents.
///
/// SLS Example:
///
///     github.com:
///       ssh_known_hosts.present:
///         - user: app
///         - enc: ssh-ed25519
///         - key: AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    let paths = config_path(args.user.as_deref(), args.of_host.config).and_then(|config| {
        if context.test && args.of_host.key.is_some() && args.of_host.fingerprint.is_some() {
            return Err("Specify either \"key\" or \"fingerprint\", not both.".to_owned());
        }
        Ok((File::of(given(args.user.as_deref()), Some(&config))?, config))
    });
    let (file, config) = match paths {
        Ok(paths) => paths,
        Err(error) => return Ok(StateReturn::failed(&args.name, error).into()),
    };
    // Salt writes `None` as the type of a key without `enc`.
    let enc = args.of_host.enc.or_else(|| args.of_host.key.as_deref().and_then(known::type_of_key));
    if args.of_host.key.is_some() && enc.is_none() {
        return Ok(StateReturn::failed(&args.name, "Required argument \"enc\" if using \"key\" argument.").into());
    }
    let host = KnownHost {
        name: args.name,
        port: args.of_host.port,
        enc,
        key: args.of_host.key,
        fingerprint: args.of_host.fingerprint,
        hash: args.of_host.fingerprint_hash_type,
    };
    if context.test {
        return would(context, &file, &host, &config).map(Into::into);
    }
    let name = &host.name;
    let (old, new) = match file.set(&context.call, &host, args.of_host.hash_known_hosts, args.of_host.timeout)? {
        Outcome::Updated { old, new } => (old, new),
        Outcome::Failed(error) => return Ok(StateReturn::failed(name, error).into()),
        Outcome::Exists(_) | Outcome::Removed(_) => {
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

/// Ensure that a host is not known to a user, or to all.
///
/// SLS Example:
///
///     old.example.com:
///       ssh_known_hosts.absent:
///         - user: app
#[function]
pub fn absent(
    context: &StateContext,
    /// Host name or address.
    name: String,
    /// User who does not know the host; without one, it is the file of all users.
    user: Option<String>,
    /// Path of the file, relative to the home directory of the user; `.ssh/known_hosts` by default.
    config: Option<String>,
) -> CallResult {
    let config = match config_path(user.as_deref(), config) {
        Ok(config) => config,
        Err(error) => return Ok(StateReturn::failed(&name, error).into()),
    };
    let host = KnownHost { name, ..KnownHost::default() };
    let name = &host.name;
    let would = || StateReturn::predicted(name, format!("Key for {name} is set to be removed from {config}"));
    let file = match File::of(given(user.as_deref()), Some(&config)) {
        Ok(file) => file,
        // An earlier state may create the user.
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
    let outcome = match file.remove(&context.call, &host)? {
        Outcome::Removed(comment) => {
            StateReturn::ok(name, comment).with_changes(map! {"old" => known::describe(&entries), "new" => Value::Nil})
        }
        Outcome::Failed(error) => StateReturn::failed(name, error),
        Outcome::Exists(_) | Outcome::Updated { .. } => StateReturn::ok(name, ""),
    };
    Ok(outcome.into())
}

/// Returns the user, unless the name is empty.
fn given(user: Option<&str>) -> Option<&str> {
    user.filter(|user| !user.is_empty())
}

/// Returns the path of the file, as reported.
fn config_path(user: Option<&str>, config: Option<String>) -> Result<String, String> {
    let usual = if given(user).is_some() { ".ssh/known_hosts" } else { "/etc/ssh/ssh_known_hosts" };
    let config = config.filter(|config| !config.is_empty()).unwrap_or_else(|| usual.into());
    if given(user).is_none() && !config.starts_with('/') {
        return Err("If not specifying a \"user\", specify an absolute \"config\".".into());
    }
    Ok(config)
}

fn would(context: &StateContext, file: &File, host: &KnownHost, config: &str) -> Result<StateReturn, CallError> {
    let name = &host.name;
    Ok(match file.contains(&context.call, host)? {
        Some(true) => StateReturn::ok(name, format!("Host {name} is already in {config}")),
        None => StateReturn::predicted(name, format!("Key for {name} is set to be added to {config}")),
        Some(false) => StateReturn::predicted(name, format!("Key for {name} is set to be updated in {config}")),
    })
}
