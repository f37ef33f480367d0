//! The identity of the master: its id, its key pair, and the signature of its public key for new minions
//! (`master_sign_pubkey`).

use std::path::PathBuf;

use base64::{Engine, prelude::BASE64_STANDARD};
use brine_config::{InvalidOption, MasterConfig};
use brine_crypt::{CryptError, PrivateKey, SignatureAlgorithm};
use brine_ids::{InvalidMinionId, MinionId};
use brine_master_store::keys::KeyState;
use brine_system::files::{self, FileError};
use brine_value::Value;

/// Salt's default key storage, the only one that Brine supports.
const KEYS_IN_FILES: &str = "localfs_key";

/// The error of a key pair that cannot be used. The message also says what to do.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key is invalid, or has another passphrase.
    #[error(transparent)]
    Key(#[from] CryptError),
    /// An option does not fit.
    #[error(transparent)]
    Option(#[from] InvalidOption),
}

/// The master's key, and the signature of its public key.
pub struct Identity {
    /// The key pair.
    pub private_key: PrivateKey,
    /// The PEM text as sent to minions: without the trailing newline, as prepared signatures expect.
    pub public_key_pem: String,
    public_key_signature: KeySignature,
}

/// The signature of the master's public key.
enum KeySignature {
    Nothing,
    /// Created for each minion with this key.
    Key(Box<PrivateKey>),
    /// A prepared signature, in Base64.
    Prepared(String),
}

impl Identity {
    /// Reads the keys and generates missing ones.
    pub fn load_or_generate(config: &MasterConfig) -> Result<Self, IdentityError> {
        Self::check(config)?;
        let name = key_name(config);
        let pass = passphrase("key_pass", config.key_pass.as_deref())?;
        let accepted = config.pki_dir.join(KeyState::Accepted.directory());
        let knows_minions = std::fs::read_dir(accepted).is_ok_and(|mut entries| entries.next().is_some());
        if knows_minions && !config.pki_dir.join(format!("{name}.pem")).exists() {
            let pki_dir = config.pki_dir.display();
            tracing::error!(%pki_dir, "minions are accepted here, but the master's key is missing: they would refuse a new one");
        }
        let private_key = PrivateKey::load_or_generate_with(&config.pki_dir, &name, config.keysize, pass)?;
        let public_key_pem = private_key.public().to_pem().trim_end().to_owned();
        Ok(Identity { private_key, public_key_pem, public_key_signature: public_key_signature(config)? })
    }

    /// Reads the master's key without generating one.
    pub fn load(config: &MasterConfig) -> Result<Option<PrivateKey>, IdentityError> {
        Self::check(config)?;
        if config.master_sign_pubkey && config.master_use_pubkey_signature {
            public_key_signature(config)?;
        } else if config.master_sign_pubkey {
            let file = config.pki_dir.join(format!("{}.pem", config.master_sign_key_name));
            PrivateKey::load(file, passphrase("signing_key_pass", config.signing_key_pass.as_deref())?)?;
        }
        let file = config.pki_dir.join(format!("{}.pem", key_name(config)));
        Ok(PrivateKey::load(file, passphrase("key_pass", config.key_pass.as_deref())?)?)
    }

    /// Checks that the configured key options are supported and can be read. Otherwise new keys would be generated,
    /// which minions reject.
    pub fn check(config: &MasterConfig) -> Result<(), IdentityError> {
        let text = |option| config.opts.get(option).filter(|value| value.is_truthy()).map(Value::to_string);
        if let Some(driver) = text("keys.cache_driver").filter(|driver| driver != KEYS_IN_FILES) {
            let reason =
                format!("the keys are kept by '{driver}'; Brine reads '{KEYS_IN_FILES}', files below pki_dir, alone");
            return Err(InvalidOption { option: "keys.cache_driver", reason }.into());
        }
        if text("cluster_id").is_some() {
            let reason =
                "Salt's clusters on a shared file system are not supported: use 'cluster' (docs/cluster.md)".into();
            return Err(InvalidOption { option: "cluster_id", reason }.into());
        }
        passphrase("key_pass", config.key_pass.as_deref())?;
        passphrase("signing_key_pass", config.signing_key_pass.as_deref().filter(|_| config.master_sign_pubkey))?;
        Ok(())
    }

    /// Returns the signature of the public key, if minions get one.
    pub fn signature(&self, algorithm: SignatureAlgorithm) -> Result<Option<String>, CryptError> {
        Ok(match &self.public_key_signature {
            KeySignature::Nothing => None,
            KeySignature::Prepared(text) => Some(text.clone()),
            KeySignature::Key(key) => {
                Some(BASE64_STANDARD.encode(key.sign(self.public_key_pem.as_bytes(), algorithm)?))
            }
        })
    }
}

/// Returns the base name of the key's files. Salt 3008 names them after the host and links `master.pem` to them. The
/// link is broken if the directory was moved.
fn key_name(config: &MasterConfig) -> String {
    let master = config.pki_dir.join("master.pem");
    let beside = |link: PathBuf| Some(link.file_stem()?.to_str()?.to_owned());
    let moved = std::fs::read_link(&master).ok().filter(|_| !master.exists()).and_then(beside);
    let moved = moved.filter(|name| config.pki_dir.join(format!("{name}.pem")).exists());
    moved.unwrap_or_else(|| "master".to_owned())
}

/// Returns a literal passphrase. `sdb://` URIs are rejected.
fn passphrase<'a>(option: &'static str, passphrase: Option<&'a str>) -> Result<Option<&'a str>, InvalidOption> {
    match passphrase {
        Some(text) if text.starts_with("sdb://") => {
            let reason = "sdb:// is not supported: set the passphrase itself, in a file of master.d that only the master's user can read";
            Err(InvalidOption { option, reason: reason.into() })
        }
        passphrase => Ok(passphrase.filter(|text| !text.is_empty())),
    }
}

fn public_key_signature(config: &MasterConfig) -> Result<KeySignature, IdentityError> {
    if !config.master_sign_pubkey {
        return Ok(KeySignature::Nothing);
    }
    if !config.master_use_pubkey_signature {
        let pass = passphrase("signing_key_pass", config.signing_key_pass.as_deref())?;
        let (directory, name) = (&config.pki_dir, &config.master_sign_key_name);
        let key = PrivateKey::load_or_generate_with(directory, name, config.keysize, pass)?;
        return Ok(KeySignature::Key(Box::new(key)));
    }
    let id = own_id(config)?;
    let names = config.master_pubkey_signature.clone().map_or_else(
        || vec!["master_pubkey_signature".to_owned(), format!("{id}_pubkey_signature")],
        |name| vec![name],
    );
    let paths: Vec<PathBuf> = names.iter().map(|name| config.pki_dir.join(name)).collect();
    for path in &paths {
        if let Some(text) = files::read_if_exists(path)? {
            return Ok(KeySignature::Prepared(text.trim().to_owned()));
        }
    }
    let reason = format!("there is no signature in {}", paths[0].display());
    Err(InvalidOption { option: "master_use_pubkey_signature", reason }.into())
}

/// Returns the id of the master's own jobs: the option `id`, or as in Salt the host name with `_master`; with the domain
/// of `append_domain`.
pub fn own_id(config: &MasterConfig) -> Result<MinionId, InvalidOption> {
    let (name, suffix) = if let Some(id) = &config.id {
        (id.clone(), "")
    } else {
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        (name.unwrap_or_else(|| "localhost".into()), "_master")
    };
    let id = brine_ids::with_domain(&name, &config.append_domain);
    let invalid = |error: InvalidMinionId| InvalidOption { option: "id", reason: error.to_string() };
    format!("{id}{suffix}").parse().map_err(invalid)
}

#[cfg(test)]
mod tests;
