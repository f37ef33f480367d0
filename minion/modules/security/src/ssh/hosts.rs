//! `ssh` functions on known hosts.

use brine_context::Context;
use brine_function::{Args, CallResult, function};
use brine_value::{Value, map};

use super::known;

/// Return the entries of a host in a known hosts file.
///
/// CLI Example:
///
///     salt '*' ssh.get_known_host_entries <user> <hostname>
#[function]
pub fn get_known_host_entries(
    context: &Context,
    /// User whose keys they are.
    #[required]
    user: Option<String>,
    /// Host name or address.
    hostname: String,
    /// Path of the file, relative to the user's home directory.
    config: Option<String>,
    /// Port of the server.
    port: Option<u16>,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
) -> CallResult {
    let host = known::KnownHost { name: hostname, port, hash: fingerprint_hash_type, ..Default::default() };
    match known::File::of(user.as_deref(), config.as_deref()) {
        Ok(file) => Ok(known::describe(&file.entries(context, &host)?)),
        Err(error) => Ok(known::Outcome::Failed(error).into()),
    }
}

/// Retrieve the keys of a host from the host itself.
///
/// CLI Example:
///
///     salt '*' ssh.recv_known_host_entries <hostname> enc=<enc> port=<port>
#[function]
pub fn recv_known_host_entries(
    context: &Context,
    /// Host name or address.
    hostname: String,
    /// Type of the key.
    enc: Option<String>,
    /// Port of the server.
    port: Option<u16>,
    /// Whether the names in the file are hashed.
    #[default(true)]
    hash_known_hosts: bool,
    /// Seconds to wait for the server.
    #[default(5)]
    timeout: u32,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
) -> CallResult {
    let host = known::KnownHost { name: hostname, port, enc, hash: fingerprint_hash_type, ..Default::default() };
    Ok(known::describe(&known::scan(context, &host, hash_known_hosts, timeout)?))
}

/// Check whether a host would have to be added to a known hosts file (`add`), updated (`update`), or neither
/// (`exists`).
///
/// CLI Example:
///
///     salt '*' ssh.check_known_host <user> <hostname> key='AAAA...FAaQ=='
#[function]
pub fn check_known_host(
    context: &Context,
    /// User whose keys they are.
    user: Option<String>,
    /// Host name or address.
    hostname: Option<String>,
    /// Key.
    key: Option<String>,
    /// Fingerprint of the key.
    fingerprint: Option<String>,
    /// Path of the file, relative to the user's home directory.
    config: Option<String>,
    /// Port of the server.
    port: Option<u16>,
    /// Hash of fingerprints: `sha256` by default, `md5`.
    fingerprint_hash_type: Option<String>,
) -> CallResult {
    let Some(name) = hostname.filter(|name| !name.is_empty()) else { return Ok(no_hostname()) };
    let host = known::KnownHost { name, port, key, fingerprint, hash: fingerprint_hash_type, enc: None };
    let file = match known::File::of(user.as_deref(), config.as_deref()) {
        Ok(file) => file,
        Err(error) => return Ok(known::Outcome::Failed(error).into()),
    };
    let needs = match file.contains(context, &host)? {
        None => "add",
        Some(false) => "update",
        Some(true) => "exists",
    };
    Ok(needs.into())
}

/// The arguments of `ssh.set_known_host`.
#[derive(Args)]
pub struct SetKnownHostArgs {
    /// User whose `~/.ssh/known_hosts` is managed; that of the system by default.
    user: Option<String>,
    /// Name of the host.
    hostname: Option<String>,
    #[args]
    of_host: known::HostArgs,
}

/// Add the key of a host to a known hosts file.
///
/// CLI Example:
///
///     salt '*' ssh.set_known_host <user> fingerprint='xx:xx:..:xx' enc='ssh-rsa'
#[function]
pub fn set_known_host(context: &Context, #[args] args: SetKnownHostArgs) -> CallResult {
    let Some(name) = args.hostname.filter(|name| !name.is_empty()) else { return Ok(no_hostname()) };
    let host = known::KnownHost {
        name,
        port: args.of_host.port,
        enc: args.of_host.enc,
        key: args.of_host.key,
        fingerprint: args.of_host.fingerprint,
        hash: args.of_host.fingerprint_hash_type,
    };
    match known::File::of(args.user.as_deref(), args.of_host.config.as_deref()) {
        Ok(file) => Ok(file.set(context, &host, args.of_host.hash_known_hosts, args.of_host.timeout)?.into()),
        Err(error) => Ok(known::Outcome::Failed(error).into()),
    }
}

/// Remove a host from a known hosts file.
///
/// CLI Example:
///
///     salt '*' ssh.rm_known_host <user> <hostname>
#[function]
pub fn rm_known_host(
    context: &Context,
    /// User whose keys they are.
    user: Option<String>,
    /// Host name or address.
    hostname: Option<String>,
    /// Path of the file, relative to the user's home directory.
    config: Option<String>,
    /// Port of the server.
    port: Option<u16>,
) -> CallResult {
    let Some(name) = hostname.filter(|name| !name.is_empty()) else { return Ok(no_hostname()) };
    match known::File::of(user.as_deref(), config.as_deref()) {
        Ok(file) => Ok(file.remove(context, &known::KnownHost { name, port, ..Default::default() })?.into()),
        Err(error) => Ok(known::Outcome::Failed(error).into()),
    }
}

/// Hash the host names in a known hosts file.
///
/// CLI Example:
///
///     salt '*' ssh.hash_known_hosts
#[function]
pub fn hash_known_hosts(
    context: &Context,
    /// User whose keys they are.
    user: Option<String>,
    /// Path of the file, relative to the user's home directory.
    config: Option<String>,
) -> CallResult {
    match known::File::of(user.as_deref(), config.as_deref()) {
        Ok(file) => file.hash_names(context),
        Err(error) => Ok(known::Outcome::Failed(error).into()),
    }
}

fn no_hostname() -> Value {
    map! {"status" => "error", "error" => "hostname argument required"}.into()
}
