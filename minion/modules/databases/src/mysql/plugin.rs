//! Server plugins.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::connection::ConnectionArgs;
use super::quote::{identifier, literal};
use super::resultset::field;
use super::server::plugin_state;
use super::session::done;

/// Execution functions of `mysql` about plugins.
pub static FUNCTIONS: Functions<Context> = registry!("mysql", [plugins_list, plugin_add, plugin_remove, plugin_status]);

/// Return the plugins with their `name` and `status`.
///
/// CLI Example:
///
///     salt '*' mysql.plugins_list
#[function]
pub fn plugins_list(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let set = connection.session(context)?.query("SHOW PLUGINS")?;
    let plugin = |row: &Vec<Option<String>>| {
        let column = |index: usize| field(row.get(index).and_then(|value| value.as_deref()));
        Value::from(map! {"name" => column(0), "status" => column(1)})
    };
    Ok(set.rows.iter().map(plugin).collect::<Vec<_>>().into())
}

/// Install a plugin from a library of the server's plugin directory; `soname` is its file, by default NAME`.so`.
///
/// CLI Example:
///
///     salt '*' mysql.plugin_add auth_socket
#[function]
pub fn plugin_add(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    /// Name of the library of the plugin.
    soname: Option<String>,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let session = connection.session(context)?;
    if plugin_state(&session, required(&name)?)?.is_some() {
        return Ok(true.into());
    }
    let file = soname.filter(|file| !file.is_empty()).unwrap_or_else(|| format!("{name}.so"));
    let statement = format!("INSTALL PLUGIN {} SONAME {}", identifier(&name), literal(&file));
    done(session.execute(&[statement]).map_err(CallError::from))
}

/// Uninstall a plugin.
///
/// CLI Example:
///
///     salt '*' mysql.plugin_remove auth_socket
#[function]
pub fn plugin_remove(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let session = connection.session(context)?;
    if plugin_state(&session, required(&name)?)?.is_none() {
        return Ok(true.into());
    }
    done(session.execute(&[format!("UNINSTALL PLUGIN {}", identifier(&name))]).map_err(CallError::from))
}

/// Return the status of a plugin, such as `ACTIVE`; an empty string if it is not installed.
///
/// CLI Example:
///
///     salt '*' mysql.plugin_status auth_socket
#[function]
pub fn plugin_status(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    Ok(plugin_state(&connection.session(context)?, required(&name)?)?.unwrap_or_default().into())
}

fn required(name: &str) -> Result<&str, CallError> {
    if name.is_empty() {
        return Err(CallError::Execution("plugin name is invalid: expected a name, got an empty string".into()));
    }
    Ok(name)
}
