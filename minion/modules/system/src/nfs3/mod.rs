//! `nfs3`: the directories that an NFS server exports. `exports` parses and edits the file.

mod exports;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use self::exports::{Client, Exports};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `nfs3`.
pub static FUNCTIONS: Functions<Context> = registry!("nfs3", [list_exports, del_export, add_export, reload_exports]);

/// Return the exports of a file: the hosts of each path, with their options.
///
/// CLI Example:
///
///     salt '*' nfs3.list_exports
#[function]
pub fn list_exports(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/exports".into())]
    exports: String,
) -> CallResult {
    Ok(Exports::read(&exports)?.describe().into())
}

/// Remove the export of a path, and return the remaining ones.
///
/// CLI Example:
///
///     salt '*' nfs3.del_export path=/media/storage
#[function]
pub fn del_export(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/exports".into())]
    exports: String,
    /// The exported path.
    path: String,
) -> CallResult {
    let mut file = Exports::read(&exports)?;
    if !file.remove(&path) {
        return Err(CallError::Execution(format!("{path} is not exported by {exports}")));
    }
    file.write(&exports)?;
    Ok(file.describe().into())
}

/// Export a path to hosts, and return the added entry. Other hosts of the path stay.
///
/// CLI Example:
///
///     salt '*' nfs3.add_export path=/srv/test hosts=127.0.0.1 options='[rw, no_subtree_check]'
#[function]
pub fn add_export(
    _context: &Context,
    /// Path of the file.
    #[default("/etc/exports".into())]
    exports: String,
    /// The exported path.
    path: String,
    /// Host, network, netgroup, or pattern of hosts.
    hosts: Value,
    /// List of options, such as `rw`.
    #[default]
    options: Value,
) -> CallResult {
    let client = client(&hosts, &options)?;
    let mut file = Exports::read(&exports)?;
    file.add(&path, client.clone())?;
    file.write(&exports)?;
    Ok(client.into())
}

/// Apply the exports file to the running server, and return the output of `exportfs` and whether it succeeded.
///
/// CLI Example:
///
///     salt '*' nfs3.reload_exports
#[function]
pub fn reload_exports(context: &Context) -> CallResult {
    let output = run(context, &["exportfs".into(), "-r".into()], &[])?;
    // Warnings, as about a missing subtree_check, are no failure. Only releases before 2.0 return 0 after one.
    Ok(map! {"stdout" => output.stdout, "stderr" => output.stderr, "result" => output.retcode == 0}.into())
}

/// Parses hosts and options from arguments.
fn client(hosts: &Value, options: &Value) -> Result<Client, CallError> {
    // A list would be written as one word.
    let hosts = hosts.as_str().ok_or_else(|| CallError::execution("hosts is invalid: expected a string"))?;
    Client::new(hosts, if options.is_truthy() { names(options) } else { Vec::new() })
}
