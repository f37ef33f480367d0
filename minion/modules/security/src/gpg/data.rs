//! `gpg`: signatures and encryption of texts and files.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::files;
use brine_value::{Value, map};

use super::keyring::{HomeArgs, Keyring, Outcome};
use super::{checked_names, names, passphrase};

/// Execution functions of `gpg` that sign, verify, encrypt and decrypt.
pub static FUNCTIONS: Functions<Context> = registry!("gpg", [sign, verify, encrypt, decrypt]);

/// The arguments of `gpg.sign`.
#[derive(Args)]
pub struct SignArgs {
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Id of the signing key, by default the first secret key.
    pub keyid: Option<String>,
    /// Text to sign.
    pub text: Option<String>,
    /// File to sign.
    pub filename: Option<String>,
    /// File to which the signed data is written.
    pub output: Option<String>,
    /// Whether the key needs the passphrase `gpg_passphrase` of the pillar.
    #[default(false)]
    pub use_passphrase: bool,
    /// Directory of the keychain.
    pub gnupghome: Option<String>,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
}

/// Sign a text or a file, and return it with the signature.
///
/// CLI Example:
///
///     salt '*' gpg.sign text='Hello there.  How are you?'
#[function]
pub fn sign(context: &Context, #[args] args: SignArgs) -> CallResult {
    let passphrase = passphrase(context, args.use_passphrase)?;
    let input = content(args.text, args.filename.as_deref())?;
    let home = HomeArgs { user: args.user, gnupghome: args.gnupghome };
    let key = args.keyid.map(|key| argument(&key)).transpose()?;
    let mut words = vec!["--yes", "--armor"];
    if let Some(key) = &key {
        words.extend(["--local-user", key]);
    }
    words.push("--clearsign");
    let outcome = Keyring::open(context, &home, args.keyring)?.run(&words, passphrase.as_deref(), Some(&input))?;
    if outcome.output.retcode != 0 {
        context.set_retcode(outcome.output.retcode);
        tracing::error!(jid = context.job.jid, "gpg: signing failed: {}", outcome.errors());
    }
    if let (Some(path), false) = (&args.output, outcome.output.stdout.is_empty()) {
        write_output(path, &outcome.output.stdout)?;
    }
    Ok(outcome.output.stdout.into())
}

/// The arguments of `gpg.verify`.
#[derive(Args)]
pub struct VerifyArgs {
    /// Signed text.
    pub text: Option<String>,
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Signed file.
    pub filename: Option<String>,
    /// Directory of the keychain.
    pub gnupghome: Option<String>,
    /// File with the signature, if it is not in the signed file.
    pub signature: Option<String>,
    /// Model of trust, such as `pgp` or `always`.
    pub trustmodel: Option<String>,
    /// Fingerprints of keys of which one must have signed.
    #[default]
    pub signed_by_any: Value,
    /// Fingerprints of keys that must all have signed.
    #[default]
    pub signed_by_all: Value,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
}

const TRUST_MODELS: [&str; 7] = ["pgp", "classic", "tofu", "tofu+pgp", "direct", "always", "auto"];

/// Verify the signature of a text or a file.
///
/// CLI Example:
///
///     salt '*' gpg.verify filename='/path/to/important.file'
#[function]
pub fn verify(context: &Context, #[args] args: VerifyArgs) -> CallResult {
    let home = HomeArgs { user: args.user, gnupghome: args.gnupghome };
    let (any, all) = (names(&args.signed_by_any), names(&args.signed_by_all));
    let mut words: Vec<String> = Vec::new();
    if let Some(model) = &args.trustmodel {
        if !TRUST_MODELS.contains(&model.as_str()) {
            let models = TRUST_MODELS.join(", ");
            let message = format!("Invalid trustmodel defined: {model}. Use one of: {models}");
            return Ok(map! {"res" => false, "message" => message}.into());
        }
        words.extend(["--trust-model".to_owned(), model.clone()]);
    }
    if !any.is_empty() || !all.is_empty() {
        // In batch mode, gpg stops at the first invalid signature; here all signatures are evaluated.
        words.push("--no-batch".to_owned());
    }
    words.push("--verify".to_owned());
    let input = match (args.text, args.filename, args.signature) {
        (Some(text), ..) => Some(text),
        (None, Some(file), None) => {
            words.push(argument(&file)?);
            None
        }
        (None, Some(file), Some(signature)) => {
            words.extend([argument(&signature)?, argument(&file)?]);
            None
        }
        (None, None, _) => return Err(CallError::Execution("filename or text must be passed.".into())),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = Keyring::open(context, &home, args.keyring)?.run(&words, None, input.as_deref())?;
    let signatures = signatures(&outcome);
    if any.is_empty() && all.is_empty() {
        let valid =
            signatures.first().filter(|_| outcome.output.retcode == 0 && signatures.iter().all(Signature::is_valid));
        let Some(one) = valid else {
            return Ok(map! {"res" => false, "message" => "The signature could not be verified."}.into());
        };
        let (user, key) = (one.username.as_str(), one.keyid.as_str());
        return Ok(map! {
            "res" => true, "username" => user, "key_id" => key, "trust_level" => one.trust,
            "message" => "The signature is verified.",
        }
        .into());
    }
    let has_signed = |key: &String| signatures.iter().any(|one| one.is_valid() && one.fingerprint == *key);
    let (is_done, message) = if !any.is_empty() && !any.iter().any(has_signed) {
        (false, "None of the public keys listed in signed_by_any provided a valid signature".to_owned())
    } else if let Some(key) = all.iter().find(|key| !has_signed(key)) {
        (false, format!("Public key {key} has not provided a valid signature, but was listed in signed_by_all"))
    } else {
        (true, "All required keys have provided a signature".to_owned())
    };
    let signatures: Vec<Value> = signatures.into_iter().map(Signature::into_value).collect();
    Ok(map! {"res" => is_done, "message" => message, "signatures" => signatures}.into())
}

/// A signature, as reported by gpg's status lines.
#[derive(Debug, Default, PartialEq)]
struct Signature {
    username: String,
    keyid: String,
    /// The fingerprint of the primary key; empty unless gpg has reported `VALIDSIG`.
    fingerprint: String,
    trust: Option<&'static str>,
    status: &'static str,
}

impl Signature {
    fn is_valid(&self) -> bool {
        self.status == "signature valid" && !self.fingerprint.is_empty() && self.trust.is_some()
    }

    fn into_value(self) -> Value {
        let fingerprint = Some(self.fingerprint).filter(|text| !text.is_empty());
        map! {
            "username" => self.username, "key_id" => self.keyid, "fingerprint" => fingerprint,
            "trust_level" => self.trust, "status" => self.status,
        }
        .into()
    }
}

fn signatures(outcome: &Outcome) -> Vec<Signature> {
    let mut signatures: Vec<Signature> = Vec::new();
    for (name, rest) in &outcome.status {
        if name == "NEWSIG" {
            signatures.push(Signature::default());
            continue;
        }
        let Some(one) = signatures.last_mut() else { continue };
        let status = match name.as_str() {
            "GOODSIG" => "signature good",
            "VALIDSIG" => "signature valid",
            "BADSIG" => "signature bad",
            "ERRSIG" => "signature error",
            "EXPSIG" => "signature expired",
            "EXPKEYSIG" => "key expired",
            "REVKEYSIG" => "key revoked",
            _ => "",
        };
        match name.as_str() {
            "VALIDSIG" => {
                rest.rsplit(' ').next().unwrap_or_default().clone_into(&mut one.fingerprint);
                // `VALIDSIG` also follows `EXPSIG`, `EXPKEYSIG` and `REVKEYSIG`, whose status takes precedence.
                if one.status == "signature good" {
                    one.status = status;
                }
            }
            _ if !status.is_empty() => {
                let (keyid, username) = rest.split_once(' ').unwrap_or((rest, ""));
                keyid.clone_into(&mut one.keyid);
                one.username = if name == "ERRSIG" { String::new() } else { username.to_owned() };
                one.status = status;
            }
            "TRUST_EXPIRED" => one.trust = Some("Expired"),
            "TRUST_UNDEFINED" => one.trust = Some("Undefined"),
            "TRUST_NEVER" => one.trust = Some("Never"),
            "TRUST_MARGINAL" => one.trust = Some("Marginal"),
            "TRUST_FULLY" => one.trust = Some("Fully"),
            "TRUST_ULTIMATE" => one.trust = Some("Ultimate"),
            _ => {}
        }
    }
    signatures
}

/// The arguments of `gpg.encrypt`.
#[derive(Args)]
pub struct EncryptArgs {
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Keys of the recipients, who can decrypt the data.
    #[default]
    pub recipients: Value,
    /// Text to encrypt.
    pub text: Option<String>,
    /// File to encrypt.
    pub filename: Option<String>,
    /// File to which the encrypted data is written.
    pub output: Option<String>,
    /// Whether the data is also signed, or the id of the signing key.
    #[default]
    pub sign: Value,
    /// Whether the signing key needs the passphrase `gpg_passphrase` of the pillar.
    #[default(false)]
    pub use_passphrase: bool,
    /// Whether keys of unknown trust are used.
    #[default(false)]
    pub always_trust: bool,
    /// Directory of the keychain.
    pub gnupghome: Option<String>,
    /// Whether the result is the encrypted text alone.
    #[default(false)]
    pub bare: bool,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
}

/// Encrypt a text or a file.
///
/// CLI Example:
///
///     salt '*' gpg.encrypt text='Hello there.  How are you?' recipients=recipient@example.com
#[function]
pub fn encrypt(context: &Context, #[args] args: EncryptArgs) -> CallResult {
    let passphrase = passphrase(context, args.use_passphrase)?;
    let input = content(args.text, args.filename.as_deref())?;
    let home = HomeArgs { user: args.user, gnupghome: args.gnupghome };
    let recipients = checked_names(&args.recipients)?;
    if recipients.is_empty() {
        return Err(CallError::Execution(
            "no recipient is named: set 'recipients' to the keys that can decrypt it".into(),
        ));
    }
    let mut words = vec!["--armor"];
    for recipient in &recipients {
        words.extend(["--recipient", recipient]);
    }
    let key = args.sign.as_str().map(argument).transpose()?;
    if args.sign.is_truthy() {
        words.push("--sign");
    }
    if let Some(key) = &key {
        words.extend(["--local-user", key]);
    }
    if args.always_trust {
        words.push("--always-trust");
    }
    words.push("--encrypt");
    let outcome = Keyring::open(context, &home, args.keyring)?.run(&words, passphrase.as_deref(), Some(&input))?;
    if outcome.output.retcode != 0 {
        return Ok(failed(context, &outcome, args.bare, "encryption failed"));
    }
    write_or_return(outcome.output.stdout, args.output.as_deref(), args.bare, "Encrypted data")
}

/// The arguments of `gpg.decrypt`.
#[derive(Args)]
pub struct DecryptArgs {
    /// User whose keychain is used; `salt` is `gpgkeys` in the configuration directory.
    pub user: Option<String>,
    /// Encrypted text.
    pub text: Option<String>,
    /// Encrypted file.
    pub filename: Option<String>,
    /// File to which the decrypted data is written.
    pub output: Option<String>,
    /// Whether the key needs the passphrase `gpg_passphrase` of the pillar.
    #[default(false)]
    pub use_passphrase: bool,
    /// Directory of the keychain.
    pub gnupghome: Option<String>,
    /// Whether the result is the decrypted text alone.
    #[default(false)]
    pub bare: bool,
    /// File of the keyring, instead of that of the keychain.
    pub keyring: Option<String>,
}

/// Decrypt a text or a file.
///
/// CLI Example:
///
///     salt '*' gpg.decrypt filename='/path/to/important.file.gpg'
#[function]
pub fn decrypt(context: &Context, #[args] args: DecryptArgs) -> CallResult {
    let passphrase = passphrase(context, args.use_passphrase)?;
    let home = HomeArgs { user: args.user, gnupghome: args.gnupghome };
    let mut words = vec!["--decrypt".to_owned()];
    let input = match (args.text, args.filename) {
        (Some(text), _) => Some(text),
        (None, Some(file)) => {
            words.push(argument(&file)?);
            None
        }
        (None, None) => return Err(CallError::Execution("filename or text must be passed.".into())),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = Keyring::open(context, &home, args.keyring)?.run(&words, passphrase.as_deref(), input.as_deref())?;
    if outcome.status("DECRYPTION_OKAY").is_none() {
        return Ok(failed(context, &outcome, args.bare, "decryption failed"));
    }
    write_or_return(outcome.output.stdout, args.output.as_deref(), args.bare, "Decrypted data")
}

fn failed(context: &Context, outcome: &Outcome, bare: bool, what: &str) -> Value {
    tracing::error!(jid = context.job.jid, "gpg: {what}: {}", outcome.errors());
    if bare {
        return false.into();
    }
    map! {"res" => false, "comment" => format!("{what}.\nPlease check the salt-minion log.")}.into()
}

/// Returns the text as the result of an operation, or writes it to `output` with mode 0600 and returns a message with
/// that path. With `bare`, the result is the text alone instead of a mapping.
pub(super) fn write_or_return(text: String, output: Option<&str>, bare: bool, what: &str) -> CallResult {
    if let Some(path) = output {
        write_output(path, &text)?;
    }
    Ok(match (bare, output) {
        (true, _) => text.into(),
        (false, Some(path)) => map! {"res" => true, "comment" => format!("{what} has been written to {path}")}.into(),
        (false, None) => map! {"res" => true, "comment" => text}.into(),
    })
}

/// Writes a result to a file with mode 0600, which replaces a link at the path.
pub(super) fn write_output(path: &str, text: &str) -> Result<(), CallError> {
    files::write_atomic(Path::new(path), text.as_bytes(), 0o600).map_err(CallError::execution)
}

/// Returns the text, or else the content of the file.
fn content(text: Option<String>, file: Option<&str>) -> Result<String, CallError> {
    match (text, file) {
        (Some(text), _) => Ok(text),
        (None, Some(path)) => files::read_to_string(Path::new(path)).map_err(CallError::execution),
        (None, None) => Err(CallError::Execution("filename or text must be passed.".into())),
    }
}
