//! Signing keys of apt's repositories.

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value};

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> = registry!("pkg", [add_repo_key, del_repo_key]);

/// The arguments of `pkg.add_repo_key`.
#[derive(Args)]
pub struct AddRepoKeyArgs {
    /// Path or URL of the key.
    path: Option<String>,
    /// Text of the key.
    text: Option<String>,
    /// Key server to receive the key from.
    keyserver: Option<String>,
    /// Id of the key on the key server.
    keyid: Option<String>,
    /// Environment of the file server.
    #[default("base".to_owned())]
    saltenv: String,
    /// Whether the program `apt-key` is used where there is one.
    #[default(true)]
    aptkey: bool,
    /// Directory of key files.
    keydir: Option<String>,
    /// Name of the key file.
    keyfile: Option<String>,
}

/// Add a signing key of repositories: from a file, a string, or a key server.
///
/// CLI Example:
///
///     salt '*' pkg.add_repo_key 'salt://apt/sources/test.key'
#[function]
pub fn add_repo_key(context: &Context, #[args] args: AddRepoKeyArgs) -> CallResult {
    let keys = Keys {
        by_apt_key: args.aptkey && has_apt_key(),
        directory: args.keydir.unwrap_or_else(|| KEYRINGS.into()).into(),
    };
    let result = match (args.path, args.text, args.keyserver, args.keyid) {
        (Some(path), ..) => keys.add_file(context, &path, &args.saltenv, args.keyfile.as_deref()),
        (_, Some(text), ..) => apt_key_add(context, text.as_bytes()),
        (_, _, Some(server), Some(id)) => keys.receive(context, &server, &id, args.keyfile.as_deref()),
        (_, _, Some(server), None) => {
            Err(CallError::Execution(format!("No keyid or keyid too short for keyserver: {server}")))
        }
        (_, _, None, Some(id)) => Err(CallError::Execution(format!("No keyserver specified for keyid: {id}"))),
        (None, None, None, None) => {
            Err(CallError::Execution("add_repo_key() takes at least 1 argument (0 given)".into()))
        }
    };
    match result {
        Ok(()) => Ok(true.into()),
        Err(CallError::Execution(error)) => {
            tracing::error!(jid = context.job.jid, error, "adding a signing key of a repository failed");
            Ok(false.into())
        }
        Err(error) => Err(error),
    }
}

/// Remove a signing key of repositories. `name` and `keyid_ppa` are without effect: keys of PPAs are named by `keyid`.
///
/// CLI Example:
///
///     salt '*' pkg.del_repo_key keyid=0123ABCD
#[function]
pub fn del_repo_key(
    context: &Context,
    /// Without effect: keys of PPAs are named by `keyid`.
    name: Option<String>,
    /// Whether the keyring of all repositories is used.
    #[default(true)]
    aptkey: bool,
    /// Directory of keys.
    keydir: Option<String>,
    /// `keyid`: id of the key, required.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = name;
    let Some(id) = kwargs.get("keyid").filter(|id| id.is_truthy()).map(ToString::to_string) else {
        return Err(CallError::Execution("keyid or keyid_ppa and PPA name must be passed".into()));
    };
    let keys =
        Keys { by_apt_key: aptkey && has_apt_key(), directory: keydir.unwrap_or_else(|| KEYRINGS.into()).into() };
    keys.delete(context, &id)
}

const KEYRINGS: &str = "/etc/apt/keyrings";

/// Whether the program `apt-key` stores keys.
pub fn has_apt_key() -> bool {
    brine_host::programs::find_program("apt-key").is_some()
}

/// Adds the key named by the arguments.
pub fn add_key(context: &Context, signed_by: &str, saltenv: &str, aptkey: bool, kwargs: &Map) -> Result<(), CallError> {
    let text = |key: &str| kwargs.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let signed_by = Path::new(signed_by);
    let directory =
        signed_by.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new(KEYRINGS));
    let file = signed_by.file_name().and_then(|name| name.to_str());
    let keys = Keys { by_apt_key: aptkey, directory: directory.to_owned() };
    if let Some(ids) = kwargs.get("keyid") {
        let Some(server) = text("keyserver").filter(|_| ids.is_truthy()) else {
            return Err(CallError::Execution("both keyserver and keyid options required.".into()));
        };
        let one = [ids.clone()];
        for id in ids.as_list().unwrap_or(&one) {
            // YAML parses an id of digits only as an integer.
            let id = id.as_i64().map_or_else(|| id.to_string(), |number| format!("{number:#x}"));
            let failed = |_| CallError::Execution(format!("Error: Could not add key: {id}"));
            keys.receive(context, &server, &id, file).map_err(failed)?;
        }
    } else if let Some(url) = text("key_url") {
        keys.add_file(context, &url, saltenv, file)?;
    } else if let Some(key) = text("key_text") {
        apt_key_add(context, key.as_bytes())?;
    }
    Ok(())
}

/// Storage of keys.
struct Keys {
    /// By the program `apt-key`, which trusts them for every repository.
    by_apt_key: bool,
    /// Otherwise the directory of key files.
    directory: PathBuf,
}

fn apt_key_add(context: &Context, key: &[u8]) -> Result<(), CallError> {
    let file = brine_modules_files::cmd::Scratch::new(key, None)?;
    let output = run(context, &strings(&["apt-key", "add", &file.path().display().to_string()]), &[])?;
    if !output.stdout.to_uppercase().starts_with("OK") {
        return Err(CallError::Execution(format!("Error: failed to add key:\n{}", output.stderr)));
    }
    Ok(())
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Keys {
    fn directory(&self) -> Result<&Path, CallError> {
        user_files::create_dir_all(&self.directory)
            .map_err(|error| CallError::Execution(format!("{}: {error}", self.directory.display())))?;
        Ok(&self.directory)
    }

    /// Adds a key from a file or a web server. An armored key is converted to binary, unless its file name ends with
    /// `.asc`.
    fn add_file(&self, context: &Context, url: &str, saltenv: &str, name: Option<&str>) -> Result<(), CallError> {
        let missing = || CallError::Execution(format!("Error: file not found: {url}"));
        let key =
            brine_context::files::content(context, url, saltenv).map_err(CallError::execution)?.ok_or_else(missing)?;
        if self.by_apt_key {
            return apt_key_add(context, &key)
                .map_err(|_| CallError::Execution(format!("Error: failed to add key from {url}")));
        }
        let name = name.or_else(|| Path::new(url).file_name().and_then(|name| name.to_str())).ok_or_else(missing)?;
        let target = self.directory()?.join(name);
        let is_readable = key.trim_ascii_start().starts_with(b"-----BEGIN PGP");
        let key = if is_readable && target.extension().is_none_or(|ending| ending != "asc") {
            binary(context, &key)?
        } else {
            key
        };
        files::write_atomic(&target, &key, 0o644).map_err(CallError::execution)
    }

    fn receive(&self, context: &Context, server: &str, id: &str, name: Option<&str>) -> Result<(), CallError> {
        let command = if self.by_apt_key {
            strings(&["apt-key", "adv", "--batch", "--keyserver", server, "--logger-fd", "1", "--recv-keys", id])
        } else {
            let name = name.ok_or_else(|| {
                CallError::Execution(
                    "You must define the name of the key file to save the key. See keyfile argument".into(),
                )
            })?;
            let file = self.directory()?.join(name);
            if listed(context, &file)?.iter().any(|have| have.ends_with(id.trim_start_matches("0x"))) {
                return Ok(());
            }
            let file = file.display().to_string();
            strings(&["gpg", "--no-default-keyring", "--keyring", &file, "--keyserver", server, "--recv-keys", id])
        };
        let output = run(context, &command, &[])?;
        match output.retcode {
            0 => Ok(()),
            _ => Err(CallError::Execution(format!("Error: key retrieval failed: {}", output.stderr))),
        }
    }

    fn delete(&self, context: &Context, id: &str) -> Result<Value, CallError> {
        if self.by_apt_key {
            let output = run(context, &strings(&["apt-key", "del", id]), &[])?;
            return match output.retcode {
                0 => Ok(id.into()),
                _ => Err(CallError::Execution(format!("Failed to remove keyid {id}: {}", output.stderr))),
            };
        }
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if listed(context, &entry.path())?.iter().any(|have| have.ends_with(id)) {
                user_files::remove_file(entry.path()).map_err(CallError::execution)?;
                return Ok(id.into());
            }
        }
        Ok(false.into())
    }
}

/// Returns the ids of the keys in a file.
fn listed(context: &Context, file: &Path) -> Result<Vec<String>, CallError> {
    let command =
        ["gpg", "--no-default-keyring", "--keyring", &file.display().to_string(), "--list-keys", "--with-colons"];
    let output = run(context, &strings(&command), &[])?;
    let keys = output.stdout.lines().filter(|line| line.starts_with("pub:"));
    Ok(keys.filter_map(|line| line.split(':').nth(4)).map(str::to_owned).collect())
}

/// Converts an armored key to binary.
fn binary(context: &Context, key: &[u8]) -> Result<Vec<u8>, CallError> {
    let (readable, target) =
        (brine_modules_files::cmd::Scratch::new(key, None)?, brine_modules_files::cmd::Scratch::new(b"", None)?);
    let path = |scratch: &brine_modules_files::cmd::Scratch| scratch.path().display().to_string();
    let command = ["gpg", "--yes", "--output", &path(&target), "--dearmor", &path(&readable)];
    let output = run(context, &strings(&command), &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("gpg failed to read the key: {}", output.stderr)));
    }
    std::fs::read(target.path()).map_err(CallError::execution)
}
