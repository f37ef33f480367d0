//! `x509.csr_managed`.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, function};
use brine_value::{Map, Value};
use brine_x509::{Request, changes as extension_changes};

use super::{Content, FileArgs, Managed};
use crate::x509::build::{self, with_short_names};
use crate::x509::deprecated::remove_without_effect;
use crate::x509::encode::is_pem;
use crate::x509::source::failed;

/// Ensure that a file has a certificate signing request as described.
///
/// SLS Example:
///
///     /etc/pki/web.csr:
///       x509.csr_managed:
///         - private_key: /etc/pki/web.key
///         - CN: web1.example.com
///         - subjectAltName: DNS:web1.example.com
#[function]
pub fn csr_managed(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// Private key of the subject.
    private_key: Value,
    /// Password of the key.
    private_key_passphrase: Option<String>,
    /// Hash function of the signature.
    #[default("sha256".into())]
    digest: String,
    /// `pem` or `der`.
    #[default("pem".into())]
    encoding: String,
    #[args] file: FileArgs,
    /// `subject`, or attributes of it such as `CN`, and the extensions of the execution function `x509.create_csr`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut args = remove_without_effect(kwargs);
    args.entry("digest".into()).or_insert(digest.into());
    args.insert("private_key".into(), private_key);
    args.insert("private_key_passphrase".into(), private_key_passphrase.into());
    let managed = Managed { context, name: &name, file: &file, noun: "certificate signing request" };
    managed.result(state(&managed, &with_short_names(args), &encoding))
}

fn state(managed: &Managed<'_>, args: &Map, encoding: &str) -> Result<StateReturn, CallError> {
    let as_text = is_pem(encoding)?;
    let before = match managed.inspect()? {
        Ok(before) => before,
        Err(ended) => return Ok(ended),
    };
    let (changes, current) = managed.compared(&before, Request::load, |(request, was_text), changes| {
        let (plan, key, digest) = build::request(args)?;
        if request.digest().is_some_and(|current| current != digest) {
            changes.insert("digest".into(), build::text(args, "digest").into());
        }
        if was_text != as_text {
            changes.insert("encoding".into(), encoding.into());
        }
        if request.public_key().map_err(failed)? != key.public().map_err(failed)? {
            changes.insert("private_key".into(), true.into());
        }
        if request.subject != plan.subject {
            changes.insert("subject_name".into(), plan.subject.show().into());
        }
        if let Some(differences) = extension_changes(&request.extensions, &plan.extensions) {
            changes.insert("extensions".into(), differences.into());
        }
        Ok(request)
    })?;
    let only_form = changes.keys().all(|key| key.as_str() == Some("encoding"));
    let exists = current.is_some();
    managed.finish(before, changes, exists, move || {
        let request = if let Some(request) = current.filter(|_| only_form) {
            request
        } else {
            let (plan, key, digest) = build::request(args)?;
            plan.sign(&key, digest).map_err(failed)?
        };
        let bytes = if as_text { request.to_pem().into_bytes() } else { request.der().to_vec() };
        Ok(Content { bytes, is_text: as_text })
    })
}
