//! `x509`: signing policies, and certificates that another minion signs by one of its policies.
//!
//! A minion that requests a certificate is not trusted: none of its arguments makes this minion read or write a file,
//! or use a key that the policy does not name.

use std::time::Duration;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, list, map};
use brine_x509::{Certificate, pretty_hex};

use super::build::{self, get, has_attributes, with_short_names};
use super::source::{self, SourceAccess, execution, failed};

/// Execution functions of `x509` on signing policies.
pub static FUNCTIONS: Functions<Context> = registry!("x509", [get_signing_policy, sign_remote_certificate]);

const POLICIES: &str = "x509_signing_policies";
/// The timeout of a request to another minion.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Arguments that only the policy may set.
const POLICY_ONLY: [&str; 8] = [
    "ca_server",
    "copypath",
    "prepend_cn",
    "private_key",
    "private_key_passphrase",
    "signing_cert",
    "signing_private_key",
    "signing_private_key_passphrase",
];

/// Return a signing policy of this minion, or of the minion `ca_server`.
///
/// CLI Example:
///
///     salt '*' x509.get_signing_policy www
#[function]
pub fn get_signing_policy(
    context: &Context,
    /// Name of the signing policy.
    signing_policy: String,
    /// Id of the minion that signs.
    ca_server: Option<String>,
) -> CallResult {
    Ok(resolved(context, Some(&signing_policy), ca_server.as_deref())?.into())
}

/// Sign a certificate for another minion by a signing policy. Other minions call it through `ca_server`.
///
/// CLI Example:
///
///     salt '*' x509.sign_remote_certificate www kwargs="{'public_key': '/etc/pki/www.key'}"
#[function]
pub fn sign_remote_certificate(
    context: &Context,
    /// Name of the signing policy.
    signing_policy: String,
    /// The arguments of `x509.create_certificate`.
    kwargs: Map,
    /// Return the policy without its key instead.
    #[default(false)]
    get_signing_policy_only: bool,
    #[keywords] _more: Map,
) -> CallResult {
    let (data, errors) = match signed(context, &signing_policy, kwargs, get_signing_policy_only) {
        Ok(data) => (data, Vec::new()),
        Err(Rejected::Reported(message)) => (Value::Nil, vec![Value::from(message)]),
        Err(Rejected::Logged(error)) => {
            tracing::error!(signing_policy, "signing a certificate failed: {error}");
            let reported = "Failed building the signing policy. See CA server log for details.";
            (Value::Nil, vec![reported.into()])
        }
    };
    Ok(map! {"data" => data, "errors" => errors}.into())
}

/// The reason for not signing a certificate.
enum Rejected {
    /// Returned to the requesting minion.
    Reported(String),
    /// Only logged on this minion.
    Logged(String),
}

fn signed(context: &Context, name: &str, mut kwargs: Map, only_policy: bool) -> Result<Value, Rejected> {
    let reported = |message: &str| Rejected::Reported(message.to_owned());
    let mut policy = local(context, name);
    if policy.is_empty() {
        return Err(reported("signing_policy must be specified and defined on signing minion"));
    }
    if let Some(minions) = policy.shift_remove(&Value::from("minions")) {
        // The master sets the id of the minion that publishes a job; ids in the request itself are ignored.
        let id = context.job.load.get("id").and_then(Value::as_str);
        let id = id.ok_or_else(|| reported("minion sending this request could not be identified"))?;
        if !matches(context, &minions.to_string(), id).map_err(|error| Rejected::Logged(error.message()))? {
            return Err(reported("minion not permitted to use specified signing policy"));
        }
    }
    if only_policy {
        policy.shift_remove(&Value::from("signing_private_key"));
        policy.shift_remove(&Value::from("signing_private_key_passphrase"));
        if let Some(certificate) = policy.get_mut(&Value::from("signing_cert")) {
            let loaded = source::certificate(certificate).map_err(|error| Rejected::Reported(error.message()))?;
            *certificate = Value::Bytes(loaded.der().to_vec());
        }
        return Ok(policy.into());
    }
    for name in POLICY_ONLY {
        kwargs.shift_remove(&Value::from(name));
    }
    let args = merged(policy, kwargs);
    let signed = || {
        let certificate = build::certificate(&args, SourceAccess::Data, false)?.sign()?;
        copy(&certificate, &args)?;
        Ok(Value::Bytes(certificate.der().to_vec()))
    };
    signed().map_err(|error: CallError| Rejected::Reported(error.message()))
}

/// Whether a minion may use a policy: its id matches a glob, or the master confirms that a compound target matches it.
fn matches(context: &Context, pattern: &str, id: &str) -> Result<bool, CallError> {
    if !pattern.contains('@') {
        return Ok(fnmatch(pattern, id));
    }
    let args = Args { positional: vec!["match.compound_matches".into()], keyword: map! {"arg" => list![pattern, id]} };
    let matched = context.call("publish.runner", args)?;
    if matched.is_nil() {
        return Err(execution(
            "Could not check minion match for compound expression. Is this minion allowed to run `match.compound_matches` on \
             the master?",
        ));
    }
    let matched = matched.get("res").ok_or_else(|| execution("Invalid return value of match.compound_matches."))?;
    Ok(matched.as_str() == Some(id))
}

/// Returns a policy of this minion: of its pillar, its configuration or its grains. Empty if there is none.
fn local(context: &Context, name: &str) -> Map {
    let of = |source: &Map| source.get(&Value::from(POLICIES)).cloned();
    let configured = brine_config::opts::modules::x509_signing_policies(&context.opts()).into();
    let sources = [of(&context.pillar()), Some(configured), of(&context.grains())];
    let named = |policies: &Value| policies.get(name).filter(|policy| policy.is_truthy()).cloned();
    match sources.iter().flatten().find_map(named) {
        Some(Value::Map(policy)) => policy,
        Some(Value::List(parts)) => {
            parts.iter().filter_map(Value::as_map).flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        _ => Map::new(),
    }
}

/// Returns a policy of this minion or of another one, with short names. Empty without a name.
pub fn resolved(context: &Context, name: Option<&str>, ca_server: Option<&str>) -> Result<Map, CallError> {
    let Some(name) = name else { return Ok(Map::new()) };
    let policy = match ca_server {
        None => local(context, name),
        Some(server) => {
            let mut policy = match call_ca_server(context, server, name, Map::new(), true)? {
                Value::Map(policy) => policy,
                _ => Map::new(),
            };
            if let Some(certificate) = policy.get_mut(&Value::from("signing_cert")) {
                let loaded = source::stored_certificate(certificate, None, SourceAccess::Data)?;
                *certificate = loaded.certificate.to_pem().into();
            }
            policy
        }
    };
    Ok(with_short_names(policy))
}

/// Merges a policy into arguments; values of the policy take precedence. The subject of the arguments is only used as
/// far as the policy leaves it open.
pub fn merged(policy: Map, args: Map) -> Map {
    let (mut policy, mut args) = (with_short_names(policy), with_short_names(args));
    let subject = Value::from("subject");
    if args.contains_key(&subject) && !policy.is_empty() {
        if has_attributes(&policy) {
            args.shift_remove(&subject);
        } else {
            match (policy.get(&subject), args.get_mut(&subject)) {
                (Some(Value::Map(fixed)), Some(Value::Map(requested))) => {
                    requested.extend(fixed.clone());
                    policy.shift_remove(&subject);
                }
                (Some(Value::List(fixed)), Some(Value::List(requested))) => {
                    requested.splice(0..0, fixed.clone());
                    policy.shift_remove(&subject);
                }
                _ => {}
            }
        }
    }
    args.extend(policy);
    args
}

/// Stores a copy of a certificate in the directory `copypath`, if that argument is set.
pub fn copy(certificate: &Certificate, args: &Map) -> Result<(), CallError> {
    let Some(directory) = build::text(args, "copypath") else { return Ok(()) };
    let serial = pretty_hex(&certificate.serial).replace(':', "").to_lowercase();
    let serial = serial.trim_start_matches('0');
    let name = match certificate.subject.get("CN").filter(|_| get(args, "prepend_cn").is_some()) {
        Some(name) if name.contains('/') || name.contains('\0') => {
            return Err(execution(format!(
                "prepend_cn failed: the common name '{name}' cannot be part of a file name"
            )));
        }
        Some(name) => format!("{name}-{serial}.crt"),
        None => format!("{serial}.crt"),
    };
    let path = std::path::Path::new(&directory).join(name);
    super::pems::write(&certificate.to_pem(), &path.display().to_string(), true, Some("CERTIFICATE")).map(|_| ())
}

/// Requests a certificate from another minion, by one of its policies.
pub fn request(context: &Context, server: &str, policy: &str, mut args: Map) -> Result<Certificate, CallError> {
    // Keys and requests are sent as data; the private key stays here.
    let key = match get(&args, "private_key") {
        Some(key) => {
            let key = source::private_key(key, build::text(&args, "private_key_passphrase").as_deref())?;
            Some(key.public().map_err(failed)?.to_der())
        }
        None => match get(&args, "public_key") {
            Some(key) => Some(source::public_key_only(key)?.to_der()),
            None => None,
        },
    };
    let csr = get(&args, "csr").map(|csr| source::request(csr, SourceAccess::Files)).transpose()?;
    for name in POLICY_ONLY {
        args.shift_remove(&Value::from(name));
    }
    if let Some(key) = key {
        args.insert("public_key".into(), Value::Bytes(key));
    }
    if let Some(csr) = csr {
        args.insert("csr".into(), Value::Bytes(csr.der().to_vec()));
    }
    let reply = call_ca_server(context, server, policy, args, false)?;
    let loaded = source::stored_certificate(&reply, None, SourceAccess::Data);
    loaded
        .map(|loaded| loaded.certificate)
        .map_err(|_| execution(format!("ca_server did not return a certificate: {reply}")))
}

fn call_ca_server(
    context: &Context,
    server: &str,
    policy: &str,
    args: Map,
    only_policy: bool,
) -> Result<Value, CallError> {
    let arg = list![policy, args, only_policy];
    let positional = vec![server.into(), "x509.sign_remote_certificate".into()];
    let keyword = map! {"arg" => arg, "timeout" => TIMEOUT.as_secs()};
    let returned = context.call("publish.publish", Args { positional, keyword })?;
    let reply = returned.as_map().and_then(|returned| returned.values().next());
    let reply = reply.ok_or_else(|| {
        execution(
            "ca_server did not respond. Salt master must permit peers to call the sign_remote_certificate function.",
        )
    })?;
    let Some(data) = reply.get("data") else {
        tracing::error!("the return of ca_server is invalid: {reply}");
        return Err(execution("Received invalid return value from ca_server. See minion log for details"));
    };
    let errors = reply.get("errors").and_then(Value::as_list).unwrap_or_default();
    if !errors.is_empty() {
        let errors = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        return Err(execution(format!("ca_server reported errors:\n{errors}")));
    }
    Ok(data.clone())
}
