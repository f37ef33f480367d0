//! Signatures of files: OpenPGP ones are verified with `gpg`, others by the execution module that `sig_backend` names,
//! such as `asymmetric`.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError};
use brine_value::{FromValue, Value, map};

use crate::cmd::Scratch;

/// Required signers, and their keyring.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signers {
    /// Fingerprints: one of these keys must have made a valid signature.
    any: Vec<String>,
    /// Fingerprints: each of these keys must have made a valid signature.
    all: Vec<String>,
    keyring: Option<String>,
    home: Option<String>,
    /// The execution module that verifies signatures; `None` for GnuPG.
    backend: Option<String>,
}

impl Signers {
    /// Returns these signers with the module that verifies their signatures; `gpg` without a name.
    pub fn with_backend(self, name: Option<String>) -> Self {
        Signers { backend: name.filter(|name| !name.is_empty() && name != "gpg"), ..self }
    }

    /// Whether GnuPG verifies signatures: it takes one at a time, from a file.
    pub fn is_gpg(&self) -> bool {
        self.backend.is_none()
    }

    /// Verifies the content by the function `verify` of the module `sig_backend`. Signatures that are text are passed on
    /// as they are written.
    fn verify_by(&self, context: &Context, backend: &str, content: &[u8], signatures: &[Value]) -> Result<(), String> {
        let function = format!("{backend}.verify");
        if context.minion.functions.get(&function).is_none() {
            return Err(format!("Cannot verify signatures because the {backend} module was not loaded"));
        }
        let path = |file: &Scratch| Value::from(file.path().display().to_string());
        let file = |bytes: &[u8]| Scratch::new(bytes, None).map_err(|error| error.to_string());
        let content = file(content)?;
        let (mut files, mut arguments) = (Vec::new(), Vec::new());
        for signature in signatures {
            arguments.push(match signature {
                Value::Bytes(bytes) => {
                    let file = file(bytes)?;
                    let path = path(&file);
                    files.push(file);
                    path
                }
                written => written.clone(),
            });
        }
        let list = |keys: &[String]| Value::List(keys.iter().map(|key| key.as_str().into()).collect());
        let arguments = map! {
            "filename" => path(&content), "signature" => arguments, "keyring" => self.keyring.clone(),
            "gnupghome" => self.home.clone(), "signed_by_any" => list(&self.any), "signed_by_all" => list(&self.all),
        };
        let report = context.call(&function, Args::keyword(arguments)).map_err(CallError::message)?;
        if report.get("res") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        let message = report.get("message").map(ToString::to_string).unwrap_or_default();
        Err(format!("The file's signature could not be verified: {message}"))
    }

    /// Parses a state's arguments.
    pub fn new(any: &Value, all: &Value, keyring: Option<String>, home: Option<String>) -> Self {
        let list = |value: &Value| match value {
            Value::List(_) => Vec::from_value(value).unwrap_or_default(),
            value if value.is_truthy() => vec![value.to_string()],
            _ => Vec::new(),
        };
        Signers { any: list(any), all: list(all), keyring, home, backend: None }
    }

    /// Verifies that the content has the required signatures, inline without `signatures`, which are detached ones.
    pub fn verify(&self, context: &Context, content: &[u8], signatures: &[Value]) -> Result<(), String> {
        if let Some(backend) = &self.backend {
            return self.verify_by(context, backend, content, signatures);
        }
        let signature = match signatures {
            [] => None,
            [Value::Bytes(signature)] => Some(signature.as_slice()),
            _ => return Err(format!("GnuPG verifies one detached signature, not {}", signatures.len())),
        };
        let file = |bytes: &[u8]| Scratch::new(bytes, None).map_err(|error| error.to_string());
        let content = file(content)?;
        let signature = signature.map(file).transpose()?;
        let mut words: Vec<String> = vec!["gpg".into(), "--status-fd".into(), "1".into()];
        // In batch mode, gpg stops at the first signature that is not good.
        let checks_all = !(self.any.is_empty() && self.all.is_empty());
        words.push(if checks_all { "--no-batch" } else { "--batch" }.into());
        words.push("--no-tty".into());
        if let Some(home) = &self.home {
            words.extend(["--homedir".into(), home.clone()]);
        }
        if let Some(keyring) = &self.keyring {
            words.extend(["--no-default-keyring".into(), "--keyring".into(), keyring.clone()]);
        }
        words.push("--verify".into());
        words.extend(signature.iter().chain([&content]).map(|file| file.path().display().to_string()));
        let output = run(context, &words, &[]).map_err(|error| error.to_string())?;
        let report = self.check_signers(&output.stdout);
        if report.is_err() {
            tracing::error!("{}", output.stderr);
        }
        report.map_err(|reason| format!("The file's signature could not be verified: {reason}"))
    }

    /// Checks the status lines of `gpg` against the required signers.
    fn check_signers(&self, status: &str) -> Result<(), String> {
        let valid = signers_of(status);
        let has_signed = |signer: &String| valid.iter().any(|key| key.eq_ignore_ascii_case(signer));
        if self.any.is_empty() && self.all.is_empty() && valid.is_empty() {
            return Err("The signature could not be verified.".into());
        }
        if !self.any.is_empty() && !self.any.iter().any(has_signed) {
            return Err("None of the public keys listed in signed_by_any provided a valid signature".into());
        }
        match self.all.iter().find(|signer| !has_signed(signer)) {
            Some(signer) => {
                Err(format!("Public key {signer} has not provided a valid signature, but was listed in signed_by_all"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the key fingerprints of all good signatures. For an expired or revoked key, `gpg` reports a valid
/// signature, but not a good one.
fn signers_of(status: &str) -> Vec<&str> {
    let mut is_good = false;
    let mut signers = Vec::new();
    for line in status.lines().filter_map(|line| line.strip_prefix("[GNUPG:] ")) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("NEWSIG") => is_good = false,
            Some("GOODSIG") => is_good = true,
            // The primary key is the last field; the first is the signing subkey.
            Some("VALIDSIG") if std::mem::take(&mut is_good) => signers.extend(words.last()),
            _ => {}
        }
    }
    signers
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn required_signers_decide() {
        let status = "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 11AA Somebody\n\
            [GNUPG:] VALIDSIG 55EE 2026-11-21 1795000000 0 4 0 1 8 00 11AA\n\
            [GNUPG:] NEWSIG\n[GNUPG:] ERRSIG 22BB 1 8 00 1795000000 9 22BB\n\
            [GNUPG:] NEWSIG\n[GNUPG:] REVKEYSIG 33CC Somebody\n\
            [GNUPG:] VALIDSIG 33CC 2026-11-21 1795000000 0 4 0 1 8 00 33CC\n\
            [GNUPG:] NEWSIG\n[GNUPG:] EXPKEYSIG 44DD Somebody\n\
            [GNUPG:] VALIDSIG 44DD 2026-11-21 1795000000 0 4 0 1 8 00 44DD\n";
        let none = Value::Nil;
        for (any, all, is_good) in [
            (none.clone(), none.clone(), true),
            (list!["22BB", "11AA"], none.clone(), true),
            ("11aa".into(), none.clone(), true),
            (list!["22BB"], none.clone(), false),
            (list!["33CC", "44DD"], none.clone(), false),
            (none.clone(), list!["11AA"], true),
            (none.clone(), list!["11AA", "22BB"], false),
        ] {
            let signers = Signers::new(&any, &all, None, None);
            assert_eq!(signers.check_signers(status).is_ok(), is_good, "{any} {all}");
        }
        assert!(Signers::default().check_signers("[GNUPG:] BADSIG 11AA Somebody\n").is_err());
    }
}
