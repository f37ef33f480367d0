//! The mask of a master: the configured names of secrets, and the parameters of all functions that it knows.

use std::sync::Arc;

use brine_config::{InvalidOption, MasterConfig};
use brine_function::carriers::Carrier;
use brine_function::{Function, Registry, positional};
use brine_mask::{Mask, Parameters};
use brine_master_custom::HostFunctions;

use crate::MasterModules;

/// Creates the mask of a master. `functions` are the execution functions, which minions have, too.
///
/// # Errors
/// A glob in `masked_names` or `unmasked_names` is invalid.
pub fn mask(
    config: &MasterConfig,
    functions: Option<Arc<dyn HostFunctions>>,
    modules: MasterModules,
) -> Result<Mask, InvalidOption> {
    let mask = Mask::new(&config.masked_names, &config.unmasked_names);
    let mask = mask.map_err(|error| InvalidOption { option: "masked_names", reason: error.to_string() })?;
    Ok(mask.with_parameters(Arc::new(KnownFunctions { host: functions, modules })))
}

/// The parameters of built-in functions: `runner.` and `wheel.` precede the names of those of the master.
struct KnownFunctions {
    host: Option<Arc<dyn HostFunctions>>,
    modules: MasterModules,
}

impl Parameters for KnownFunctions {
    fn positional(&self, function: &str) -> Vec<&'static str> {
        fn of<C>(function: Option<&Function<C>>) -> Vec<&'static str> {
            function.map(|function| positional(function.params())).unwrap_or_default()
        }
        if let Some(name) = function.strip_prefix("runner.") {
            return of(Registry::new(self.modules.runners).get(name));
        }
        if let Some(name) = function.strip_prefix("wheel.") {
            return of(Registry::new(self.modules.wheels).get(name));
        }
        self.host.as_ref().map(|functions| functions.positional_parameters(function)).unwrap_or_default()
    }

    fn carrier(&self, function: &str) -> Option<&'static Carrier> {
        brine_carriers::carrier(function)
    }
}
