//! `config`: the master's configuration.

use brine_config::master_template_opts;
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::Value;
use brine_yaml::traverse;

use super::RunnerContext;

/// Runner functions of `config`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("config", [get]);

/// Return an option of the master's configuration. For `sdb://<profile>/<key>` return the value of that key.
///
/// CLI Example:
///
///     salt-run config.get file_roots:base
#[function(secret)]
pub fn get(
    context: &RunnerContext,
    /// The name of the option; names of nested mappings are separated by the delimiter.
    key: String,
    /// The result if there is no such option.
    #[default("".into())]
    default: Value,
    /// Separator of the keys in `key`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let opts = Value::Map(master_template_opts(&context.master.config));
    match traverse(&opts, &key, &delimiter) {
        Some(Value::Str(uri)) if uri.starts_with("sdb://") => {
            context.call_host("sdb.get", Args::positional([uri.as_str().into()]))
        }
        value => Ok(value.cloned().unwrap_or(default)),
    }
}
