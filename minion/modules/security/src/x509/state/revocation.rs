//! `x509.crl_managed`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};
use brine_x509::{
    PrivateKey, RevocationList, RevocationPlan, changes as extension_changes, digest, entry_changes, named,
};

use super::{Content, FileArgs, Managed};
use crate::x509::build::{self, CrlInput};
use crate::x509::create::CRL_DAYS;
use crate::x509::encode::is_pem;
use crate::x509::source::failed;
use crate::x509::{days_from_now, deprecated, reject_unknown_kwargs};

/// The default number of days before the next list is due at which a list is renewed, as in Salt before 3009.
const DAYS_REMAINING: i64 = 30;
const CRL_NUMBER: &str = "cRLNumber";

/// The arguments of `x509.crl_managed`.
#[derive(Args)]
pub struct CrlArgs {
    /// Path of the list.
    name: String,
    /// Private key of the authority.
    signing_private_key: Value,
    /// The revoked certificates, as in `x509.create_crl`.
    revoked: Vec<Value>,
    /// Days before the next list is due at which the list is renewed; 0 never renews it.
    #[default(DAYS_REMAINING)]
    days_remaining: i64,
    /// Certificate of the authority.
    #[default]
    signing_cert: Value,
    /// Password of the key.
    signing_private_key_passphrase: Option<String>,
    /// Whether certificates that have expired are listed.
    #[default(false)]
    include_expired: bool,
    /// Days until the next list is due.
    #[default(CRL_DAYS)]
    days_valid: i64,
    /// Hash function of the signature.
    #[default("sha256".into())]
    digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    /// Extensions, as in `x509.create_crl`; the number `auto` counts the lists.
    extensions: Option<Map>,
    /// Without effect, as in Salt.
    #[default]
    text: Value,
    #[args]
    file: FileArgs,
    /// No further arguments.
    #[keywords]
    kwargs: Map,
}

/// Ensure that a file has a certificate revocation list as described, and renew it before the next one is due.
///
/// SLS Example:
///
///     /etc/pki/ca.crl:
///       x509.crl_managed:
///         - signing_private_key: /etc/pki/ca.key
///         - signing_cert: /etc/pki/ca.crt
///         - days_valid: 30
///         - days_remaining: 7
///         - revoked:
///           - certificate: /etc/pki/old.crt
///             reason: cessationOfOperation
#[function]
pub fn crl_managed(context: &StateContext, #[args] args: CrlArgs) -> CallResult {
    reject_unknown_kwargs(&args.kwargs)?;
    deprecated::all_without_effect(&[("text", &args.text)]);
    let managed = Managed { context, name: &args.name, file: &args.file, noun: "certificate revocation list" };
    managed.result(state(&managed, &args))
}

fn built(args: &CrlArgs, extensions: &Map) -> Result<(RevocationPlan, PrivateKey), CallError> {
    build::revocation_list(&CrlInput {
        signing_private_key: &args.signing_private_key,
        passphrase: args.signing_private_key_passphrase.as_deref(),
        signing_cert: &args.signing_cert,
        revoked: &args.revoked,
        include_expired: args.include_expired,
        days_valid: args.days_valid,
        extensions,
    })
}

fn state(managed: &Managed<'_>, args: &CrlArgs) -> Result<StateReturn, CallError> {
    let as_text = is_pem(&args.encoding)?;
    let hash = digest(&args.digest).map_err(failed)?;
    let mut extensions = args.extensions.clone().unwrap_or_default();
    let number = Value::from(CRL_NUMBER);
    let counts = extensions.get(&number).and_then(Value::as_str) == Some("auto");
    if counts {
        extensions.shift_remove(&number);
    }
    let before = match managed.inspect()? {
        Ok(before) => before,
        Err(ended) => return Ok(ended),
    };
    let (changes, current) = managed.compared(&before, RevocationList::load, |(mut list, was_text), changes| {
        if list.digest().is_some_and(|current| current != hash) {
            changes.insert("digest".into(), args.digest.as_str().into());
        }
        if was_text != as_text {
            changes.insert("encoding".into(), args.encoding.as_str().into());
        }
        let is_due = list.next_update.is_some_and(|next| next < days_from_now(args.days_remaining));
        if args.days_remaining != 0 && is_due {
            changes.insert("expiration".into(), true.into());
        }
        let last = list.number();
        if counts {
            // With `auto`, the number of the current list is not compared.
            list.extensions.retain(|one| Some(&one.oid[..]) != named(CRL_NUMBER).map(|extension| extension.oid));
        }
        changes.extend(compared(&list, args, &extensions)?);
        Ok((list, last))
    })?;
    let only_form = changes.keys().all(|key| key.as_str() == Some("encoding"));
    let exists = current.is_some();
    managed.finish(before, changes, exists, move || {
        let last = current.as_ref().and_then(|(_, last)| *last);
        let list = if let Some((list, _)) = current.filter(|_| only_form) {
            list
        } else {
            if counts {
                extensions.insert(number, last.map_or(1, |last| last.saturating_add(1)).into());
            }
            let (plan, key) = built(args, &extensions)?;
            plan.sign(&key, hash).map_err(failed)?
        };
        let bytes = if as_text { list.to_pem().into_bytes() } else { list.der().to_vec() };
        Ok(Content { bytes, is_text: as_text })
    })
}

fn compared(list: &RevocationList, args: &CrlArgs, extensions: &Map) -> Result<Map, CallError> {
    let mut changes = Map::new();
    let (plan, key) = built(args, extensions)?;
    if list.issuer != plan.issuer {
        changes.insert("issuer_name".into(), plan.issuer.show().into());
    }
    if !list.is_signed_by(&key.public().map_err(failed)?) {
        changes.insert("public_key".into(), true.into());
    }
    if let Some(differences) = entry_changes(&list.entries, &plan.entries) {
        changes.insert("revocations".into(), differences.into());
    }
    if let Some(differences) = extension_changes(&list.extensions, &plan.extensions) {
        changes.insert("extensions".into(), differences.into());
    }
    Ok(changes)
}
