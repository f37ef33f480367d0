//! `key`: fingerprints of the minion's key and of its master's.

use std::path::Path;

use brine_context::{Context, MASTER_KEY, Module};
use brine_digest::Digest;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `key`.
pub static FUNCTIONS: Functions<Context> = registry!("key", [finger, finger_master]);

/// Return the fingerprint of the minion's public key, by `hash_type` or the option of that name.
///
/// CLI Example:
///
///     salt '*' key.finger
#[function]
pub fn finger(
    context: &Context,
    /// Hash of the fingerprint; that of the option `hash_type` by default.
    hash_type: Option<String>,
) -> CallResult {
    fingerprint(context, "minion.pub", hash_type)
}

/// Return the fingerprint of the master's public key that this minion has stored, by `hash_type` or the option of that
/// name. `master_finger` expects the fingerprint by sha256.
///
/// CLI Example:
///
///     salt '*' key.finger_master
#[function]
pub fn finger_master(
    context: &Context,
    /// Hash of the fingerprint; that of the option `hash_type` by default.
    hash_type: Option<String>,
) -> CallResult {
    fingerprint(context, MASTER_KEY, hash_type)
}

/// Returns the fingerprint of a key file; an empty string if there is no such file.
fn fingerprint(context: &Context, name: &str, hash_type: Option<String>) -> Result<Value, CallError> {
    let configured = || brine_config::opts::modules::hash_type(&context.opts());
    let kind = hash_type.unwrap_or_else(configured);
    let digest = Digest::named(&kind).ok_or_else(|| {
        CallError::Execution(format!("hash_type is invalid: expected sha256 or another hash, got {kind}"))
    })?;
    of_file(&context.config().pki_dir.join(name), digest).map(Value::from)
}

fn of_file(path: &Path, digest: Digest) -> Result<String, CallError> {
    let Some(pem) = files::read_if_exists(path).map_err(CallError::execution)? else { return Ok(String::new()) };
    let lines: Vec<&str> = pem.split_inclusive('\n').filter(|line| !line.trim().is_empty()).collect();
    // Hash the lines between the first and the last one, as Salt does.
    let body = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default().concat();
    let hash = brine_digest::hex(digest.of_reader(&mut body.as_bytes()).map_err(CallError::execution)?);
    let pairs: Vec<&str> = hash.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok()).collect();
    Ok(pairs.join(":"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_config::MinionConfig;
    use brine_crypt::PrivateKey;
    use brine_function::Args;

    use super::*;
    use crate::testing;

    #[test]
    fn fingerprints_are_those_of_the_key_files() {
        let directory = tempfile::tempdir().unwrap();
        let key = PrivateKey::load_or_generate(directory.path(), "minion", 2048).unwrap();
        let mut context = testing::context(&[]);
        let config = MinionConfig { pki_dir: directory.path().to_owned(), ..Default::default() };
        Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
        let call = |fun: &str, args: &[&str]| {
            let args = Args::positional(args.iter().map(|arg| Value::from(*arg)));
            context.call(fun, args).map(|value| value.to_string())
        };
        assert_eq!(call("key.finger", &[]), Ok(key.public().fingerprint()));
        assert_eq!(call("key.finger", &["md5"]).unwrap().len(), 16 * 3 - 1);
        assert_eq!(call("key.finger_master", &[]), Ok(String::new()));
        std::fs::copy(directory.path().join("minion.pub"), directory.path().join(MASTER_KEY)).unwrap();
        assert_eq!(call("key.finger_master", &["sha256"]), Ok(key.public().fingerprint()));
        assert!(call("key.finger", &["crc"]).is_err());
    }
}
