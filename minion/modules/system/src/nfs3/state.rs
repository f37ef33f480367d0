//! `nfs_export`: states of the exports of an NFS server.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::client;
use super::exports::{Client, Exports};

/// State functions of `nfs_export`.
pub static FUNCTIONS: Functions<StateContext> = registry!("nfs_export", [present, absent]);

/// Ensure that a path is exported to exactly these hosts, and apply the file to the running server.
///
/// SLS Example:
///
///     /srv/share:
///       nfs_export.present:
///         - hosts: 10.0.0.0/24
///         - options:
///           - rw
///           - no_subtree_check
#[function]
pub fn present(
    context: &StateContext,
    /// The path.
    name: String,
    /// List of mappings with `hosts`, and a list of `options`.
    #[default]
    clients: Value,
    /// Host, network or pattern of hosts, if there is only one.
    #[default]
    hosts: Value,
    /// List of options for `hosts`.
    #[default]
    options: Value,
    /// Path of the file.
    #[default("/etc/exports".into())]
    exports: String,
) -> CallResult {
    let desired: Vec<Client> = match &clients {
        Value::List(all) if !all.is_empty() => all
            .iter()
            .map(|one| client(one.get("hosts").unwrap_or(&Value::Nil), one.get("options").unwrap_or(&Value::Nil)))
            .collect::<Result<_, CallError>>()?,
        other if other.is_truthy() => {
            return Ok(StateReturn::failed(&name, "clients is invalid: expected a list of mappings").into());
        }
        _ if hosts.is_truthy() => vec![client(&hosts, &options)?],
        _ => return Ok(StateReturn::failed(&name, "Either 'clients' or 'hosts' must be defined").into()),
    };
    let mut file = Exports::read(&exports)?;
    let old = file.clients(&name);
    if old.as_ref() == Some(&desired) {
        return Ok(StateReturn::ok(&name, format!("Export {name} already configured")).into());
    }
    let verb = if old.is_some() { "changed" } else { "added" };
    file.remove(&name);
    for client in &desired {
        file.add(&name, client.clone())?;
    }
    let changes = map! {"old" => old.map(described), "new" => described(desired)};
    if context.test {
        let comment = format!("Export {name} would be {verb}");
        return Ok(StateReturn::predicted(&name, comment).with_changes(changes).into());
    }
    file.write(&exports)?;
    let (is_applied, messages) = reload(context)?;
    let report = if is_applied { StateReturn::ok(&name, messages) } else { StateReturn::failed(&name, messages) };
    Ok(report.with_changes(changes).into())
}

/// Ensure that a path is not exported, and apply the file to the running server.
///
/// SLS Example:
///
///     /srv/share:
///       nfs_export.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// The path.
    name: String,
    /// Path of the file.
    #[default("/etc/exports".into())]
    exports: String,
) -> CallResult {
    let mut file = Exports::read(&exports)?;
    let Some(old) = file.clients(&name) else {
        return Ok(StateReturn::ok(&name, format!("Export {name} already absent")).into());
    };
    let changes = map! {name.as_str() => described(old)};
    if context.test {
        let comment = format!("Export {name} would be removed");
        return Ok(StateReturn::predicted(&name, comment).with_changes(changes).into());
    }
    file.remove(&name);
    file.write(&exports)?;
    let (is_applied, messages) = reload(context)?;
    let report = if is_applied {
        StateReturn::ok(&name, format!("Export {name} removed"))
    } else {
        StateReturn::failed(&name, messages)
    };
    Ok(report.with_changes(changes).into())
}

fn described(clients: Vec<Client>) -> Value {
    clients.into_iter().collect()
}

/// Applies the exports; returns whether that succeeded, and the messages.
fn reload(context: &StateContext) -> Result<(bool, String), CallError> {
    let report = context.call.call("nfs3.reload_exports", Args::default())?;
    let messages = report.get("stderr").map(ToString::to_string).unwrap_or_default();
    Ok((report.get("result").is_some_and(Value::is_truthy), messages))
}
