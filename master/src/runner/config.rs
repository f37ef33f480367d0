//! `config`: the configuration of the master.

use brine_core::target::traverse;
use brine_core::{Value, functions};

use super::RunnerContext;

functions! {
    module "config", context RunnerContext;

    /// Return an option of the master's configuration.
    ///
    /// key: the name of the option; names of nested mappings are separated by the delimiter.
    /// default: the result if there is no such option.
    ///
    /// CLI Example:
    ///
    ///     salt-run config.get file_roots:base
    fn get(context, key: String, default: Value = "".into(), delimiter: String = ":".into()) {
        let opts = Value::Map(context.master.config.opts.clone());
        Ok(traverse(&opts, &key, &delimiter).cloned().unwrap_or(default))
    }
}
