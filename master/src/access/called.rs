//! Permissions of functions that the arguments of other functions name, such as that of `salt.execute`.

use std::sync::Arc;

use brine_auth::{Acl, CallKind, JobRequest};
use brine_carriers::{all_called, called};
use brine_function::Args;
use brine_function::carriers::{Called, Place};
use brine_value::Value;
use brine_wire::PublishRequest;

use super::{Access, Caller, functions, minions_of};
use crate::facts::Targets;
use crate::runner_calls::Kind;

/// The runner function that calls hosts through `salt-ssh`.
const SSH: &str = "runner.ssh.cmd";

impl Access {
    /// Whether a limited user may call a function of the master, and the functions that its arguments name.
    pub(super) async fn permits_call(
        &self,
        caller: &Caller,
        acl: Acl,
        (kind, registry): (CallKind, Kind),
        function: &str,
        args: &Args,
    ) -> bool {
        let name = format!("{}.{function}", registry.name());
        let Some(names) = all_called(&name, args) else { return false };
        if self.is_blacklisted(caller, names.iter().map(String::as_str)) {
            return false;
        }
        if name == SSH && permits_ssh(&acl, args) {
            return true;
        }
        if !acl.permits_call(kind, function, &args.positional, &args.keyword) {
            return false;
        }
        let mut all = Vec::new();
        for one in called(&name, args) {
            let minions = match &one.place {
                Place::Minions { tgt, tgt_type } => {
                    let request = PublishRequest {
                        tgt: tgt.clone(),
                        tgt_type: tgt_type.clone(),
                        ..PublishRequest::new("", "", "")
                    };
                    let Ok(Targets { minions, .. }) = self.facts.possible_targets(&request).await else { return false };
                    minions
                }
                Place::Same | Place::Host | Place::Runner | Place::Wheel => Vec::new(),
            };
            all.push((one, minions));
        }
        if all.is_empty() {
            return true;
        }
        let facts = Arc::clone(&self.facts);
        let permitted = self.storage.run(move |storage| {
            let permits = |(one, minions): &(Called, Vec<String>)| {
                acl.permits_called(one, minions, |target| minions_of(&facts, storage, target))
            };
            all.iter().all(permits)
        });
        permitted.await.unwrap_or(false)
    }
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
