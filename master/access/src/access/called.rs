//! Permissions of functions that the arguments of other functions name, such as that of `salt.execute`.

use std::sync::Arc;

use brine_auth::{Acl, CallKind, JobRequest};
use brine_carriers::{all_called, called};
use brine_function::Args;
use brine_function::carriers::{Called, Place};
use brine_master_custom::Kind;
use brine_master_facts::{Facts, ResolveError};
use brine_master_store::storage::Storage;
use brine_value::Value;
use brine_wire::PublishRequest;

use super::{Access, User, functions, minions_of};

/// The runner function that calls hosts through `salt-ssh`.
const SSH: &str = "runner.ssh.cmd";

impl Access {
    /// Whether a limited user may call a function of the master, and the functions that its arguments name.
    pub(super) async fn permits_call(&self, user: &User, acl: Acl, call: &AskedCall) -> bool {
        if self.is_kept_out(user.name(), &call.name, &call.args) {
            return false;
        }
        let Some(named) = call.named(&acl) else { return false };
        if named.is_empty() {
            return true;
        }
        let facts = Arc::clone(&self.facts);
        let permitted = self.storage.run(move |storage| permits_named(&acl, &named, &facts, storage)).await;
        matches!(permitted, Ok(Ok(true)))
    }

    /// Whether the user, or a function that the arguments lead to, is blacklisted, or whether they lead too far.
    pub(super) fn is_kept_out(&self, user: &str, name: &str, args: &Args) -> bool {
        all_called(name, args).is_none_or(|names| {
            self.blacklist.has_user(user) || self.blacklist.has_function(names.iter().map(String::as_str))
        })
    }
}

/// A call of a function of the master, of which the permission is asked for.
pub(super) struct AskedCall {
    kind: CallKind,
    /// The name of the function with the prefix `runner.` or `wheel.`.
    pub name: String,
    pub args: Args,
}

impl AskedCall {
    pub(super) fn new(registry: Kind, function: &str, args: Args) -> Self {
        let kind = match registry {
            Kind::Runner => CallKind::Runner,
            Kind::Wheel => CallKind::Wheel,
        };
        AskedCall { kind, name: format!("{}.{function}", registry.name()), args }
    }

    /// Returns the functions that the arguments name and that need a permission, too; `None` if the entries do not permit
    /// the function itself.
    pub(super) fn named(&self, acl: &Acl) -> Option<Vec<Called>> {
        if self.name == SSH && permits_ssh(acl, &self.args) {
            return Some(Vec::new());
        }
        let (_, function) = self.name.split_once('.')?;
        let is_permitted = acl.permits_call(self.kind, function, &self.args.positional, &self.args.keyword);
        is_permitted.then(|| called(&self.name, &self.args))
    }
}

/// Whether entries permit functions that arguments name.
pub(super) fn permits_named(
    acl: &Acl,
    named: &[Called],
    facts: &Facts,
    storage: &Storage,
) -> Result<bool, ResolveError> {
    for one in named {
        let minions = match &one.place {
            Place::Minions { tgt, tgt_type } => facts.possible_minions(storage, tgt_type, tgt.clone())?,
            Place::Same | Place::Host | Place::Runner | Place::Wheel => Vec::new(),
        };
        if !acl.permits_called(one, &minions, |target| minions_of(facts, storage, target)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether entries for functions on all minions permit a call through `salt-ssh`. Its hosts are not minions, so entries
/// for specific minions do not apply. All arguments must be named, and have the types that the runner function expects.
fn permits_ssh(acl: &Acl, args: &Args) -> bool {
    let Some(fun) = args.keyword.get("fun").and_then(Value::as_str) else { return false };
    let is_plain = args.positional.is_empty() && args.keyword.get("raw_shell").is_none_or(|raw| *raw == false.into());
    let arguments = match (args.keyword.get("arg"), args.keyword.get("kwarg")) {
        (None, None) => &[],
        (Some(Value::List(arguments)), None) => arguments.as_slice(),
        _ => return false,
    };
    is_plain && acl.permits_job(&JobRequest { functions: vec![(fun, arguments)], minions: &[] }, |_| None)
}

/// Returns the names of the functions that the arguments of a job name; `None` if they lead too far.
pub(super) fn calls_of(request: &PublishRequest) -> Option<Vec<String>> {
    let names = functions(&request.fun);
    let is_list = request.fun.as_list().is_some();
    let mut all = Vec::new();
    for (index, function) in names.iter().enumerate() {
        let own = match request.arg.get(index) {
            Some(Value::List(own)) if is_list => own.as_slice(),
            _ if is_list => &[],
            _ => request.arg.as_slice(),
        };
        all.extend(all_called(function, &Args::from_wire(own))?);
    }
    Some(all)
}
