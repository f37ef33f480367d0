//! `host`: states of host names.

use std::net::IpAddr;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, list, map};

use crate::hosts::Hosts;

/// State functions of `host`.
pub static FUNCTIONS: Functions<StateContext> = registry!("host", [present, absent, only]);

/// Ensure that a host name has these addresses; with `clean`, no others.
///
/// The file is `/etc/hosts`. Other names of the same address stay.
///
/// SLS Example:
///
///     db.example.com:
///       host.present:
///         - ip: 10.0.0.5
///         - names:
///           - db.example.com
///           - db
///
///     cache:
///       host.present:
///         - ip:
///           - 10.0.0.6
///           - fd00::6
///         - clean: True
#[function]
pub fn present(
    context: &StateContext,
    /// Host name.
    name: String,
    /// Address, or list of addresses, of the host.
    ip: Vec<String>,
    /// Comment at the end of the line.
    #[default]
    comment: String,
    /// Whether the host name is removed from other addresses.
    #[default(false)]
    clean: bool,
) -> CallResult {
    let hosts = Hosts::read(&context.call)?;
    let plan = Plan::new(&hosts, &name, &ip, &comment, clean);
    plan.apply(context, &name, &comment).map(Into::into)
}

/// Ensure that a host name does not have these addresses.
///
/// SLS Example:
///
///     old.example.com:
///       host.absent:
///         - ip: 10.0.0.9
#[function]
pub fn absent(
    context: &StateContext,
    /// Host name.
    name: String,
    /// Address, or list of addresses, from which the name is removed.
    ip: Vec<String>,
) -> CallResult {
    let (mut result, mut comments, mut changes) = (None, Vec::new(), Map::new());
    for address in &ip {
        if !Hosts::read(&context.call)?.has(address, &name) {
            result = Some(true);
            comments.push(format!("Host {name} ({address}) already absent"));
        } else if context.test {
            comments.push(format!("Host {name} ({address}) needs to be removed"));
        } else {
            let is_removed = call(context, "hosts.rm_host", address, &name)?;
            result = Some(is_removed);
            if is_removed {
                changes = map! {"host" => &name};
                comments.push(format!("Removed host {name} ({address})"));
            } else {
                comments.push("Failed to remove host".into());
            }
        }
    }
    Ok(StateReturn { result, changes, ..StateReturn::ok(&name, comments.join("\n")) }.into())
}

/// Ensure that an address has these host names and no others.
///
/// SLS Example:
///
///     127.0.1.1:
///       host.only:
///         - hostnames:
///           - web1.example.com
///           - web1
#[function]
pub fn only(
    context: &StateContext,
    /// Address.
    name: String,
    /// Host name, or list of host names, of the address.
    hostnames: Vec<String>,
) -> CallResult {
    let old = Hosts::read(&context.call)?.aliases(&name).join(" ");
    let new = hostnames.iter().map(|name| name.trim()).collect::<Vec<_>>().join(" ");
    let outcome = if old == new {
        StateReturn::ok(&name, format!("IP address {name} already set to \"{new}\""))
    } else if context.test {
        StateReturn::predicted(&name, format!("Would change {name} from \"{old}\" to \"{new}\""))
    } else if call(context, "hosts.set_host", &name, &new)? {
        let comment = format!("successfully changed {name} from \"{old}\" to \"{new}\"");
        StateReturn::ok(&name, comment).with_changes(map! {name.as_str() => map! {"old" => &old, "new" => &new}})
    } else {
        StateReturn::failed(&name, format!("hosts.set_host failed to change {name} from \"{old}\" to \"{new}\""))
    };
    Ok(outcome.into())
}

fn call(context: &StateContext, function: &str, address: &str, with: &str) -> Result<bool, CallError> {
    Ok(context.call.call(function, Args::positional([address.into(), with.into()]))?.is_truthy())
}

/// The pending changes of a host name.
#[derive(Default)]
struct Plan {
    add: Vec<String>,
    comment: Vec<String>,
    remove: Vec<String>,
    comments: Vec<String>,
    warnings: Vec<String>,
    failed: bool,
}

impl Plan {
    fn new(hosts: &Hosts, name: &str, addresses: &[String], comment: &str, clean: bool) -> Self {
        let mut plan = Plan::default();
        for address in addresses.iter().filter(|address| !hosts.addresses.contains_key(*address)) {
            plan.add(address, comment);
        }
        for (address, entry) in &hosts.addresses {
            let has_name = entry.aliases.iter().any(|have| have == name);
            match (addresses.contains(address), has_name) {
                (false, true) if clean => plan.remove.push(address.clone()),
                (false, true) => plan.warnings.push(format!(
                    "Host {name} present for IP address {address}. To get rid of this warning, either run this state \
                     with 'clean' set to True to remove {name} from {address}, or add {address} to the 'ip' argument."
                )),
                (false, false) => {}
                (true, true) if comment.is_empty() || entry.comment.as_deref() == Some(comment) => {
                    plan.comments.push(format!("Host {name} ({address}) already present"));
                }
                (true, true) => plan.comment.push(address.clone()),
                (true, false) if address.parse::<IpAddr>().is_ok() => plan.add(address, comment),
                (true, false) => {
                    plan.failed = true;
                    plan.comments.push(format!("Invalid IP Address for {name} ({address})"));
                }
            }
        }
        plan
    }

    fn add(&mut self, address: &str, comment: &str) {
        self.add.push(address.to_owned());
        self.comment.extend((!comment.is_empty()).then(|| address.to_owned()));
    }

    fn apply(self, context: &StateContext, name: &str, comment: &str) -> Result<StateReturn, CallError> {
        let Plan { mut comments, mut failed, .. } = self;
        let mut changes = Map::new();
        let would = context.test && !(self.add.is_empty() && self.remove.is_empty());
        let steps = [
            (&self.add, "hosts.add_host", "added", name),
            (&self.comment, "hosts.set_comment", "comment_added", comment),
            (&self.remove, "hosts.rm_host", "removed", name),
        ];
        for (addresses, function, key, with) in steps {
            let mut changed = Map::new();
            for address in addresses {
                let has_succeeded = context.test || call(context, function, address, with)?;
                comments.push(match (key, context.test, has_succeeded) {
                    ("added", true, _) => format!("Host {name} ({address}) would be added"),
                    ("added", _, true) => format!("Added host {name} ({address})"),
                    ("added", _, false) => format!("Failed to add host {name} ({address})"),
                    ("removed", true, _) => format!("Host {name} ({address}) would be removed"),
                    ("removed", _, true) => format!("Removed host {name} ({address})"),
                    ("removed", _, false) => format!("Failed to remove host {name} ({address})"),
                    (_, true, _) => format!("Comment for {address} ({comment}) would be added"),
                    (_, _, true) => format!("Set comment for host {address} ({comment})"),
                    (_, _, false) => format!("Failed to add comment for host {address} ({comment})"),
                });
                failed |= !has_succeeded;
                if has_succeeded {
                    changed.insert(address.into(), list![with]);
                }
            }
            if !changed.is_empty() {
                changes.insert(key.into(), changed.into());
            }
        }
        let result = if would { None } else { Some(!failed) };
        let mut outcome = StateReturn { result, changes, ..StateReturn::ok(name, comments.join("\n")) };
        if !self.warnings.is_empty() {
            outcome.more.insert("warnings".into(), Value::from(self.warnings));
        }
        Ok(outcome)
    }
}
