//! `saltutil`: people's own modules, from the file server to the master.
//!
//! The master's templates and orchestrations use them through the execution functions of its host, whose `saltutil` does
//! the work. There are no custom runner and wheel functions, engines and the like: these functions refuse.

use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value};

use super::RunnerContext;

/// The types that the master's host uses, beside all of which `sync_all` copies.
macro_rules! sync_functions {
    ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {
        $(
            $(#[$doc])*
            ///
            /// saltenv: the environments, as a list or separated by commas (base). extmod_whitelist, extmod_blacklist:
            /// names of the only modules to copy, and of those to leave out.
            #[function]
            pub fn $name(
                context: &RunnerContext,
                #[default("base".into())] saltenv: Value,
                #[default] extmod_whitelist: Value,
                #[default] extmod_blacklist: Value,
            ) -> CallResult {
                sync(context, stringify!($name), $kind, [saltenv, extmod_whitelist, extmod_blacklist])
            }
        )*

        /// Runner functions of `saltutil`.
        pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("saltutil", [sync_all, $($name),*]);
    };
}

sync_functions! {
    /// Refused: the master has no custom cache drivers.
    sync_cache "cache";
    /// Copy `_clouds` from the file server to the master.
    sync_clouds "clouds";
    /// Refused: the master has no custom stores of tokens.
    sync_eauth_tokens "tokens";
    /// Copy `_engines` from the file server to the master; Brine does not use them.
    sync_engines "engines";
    /// Copy `_executors` from the file server to the master.
    sync_executors "executors";
    /// Refused: the master has no custom file servers.
    sync_fileserver "fileserver";
    /// Copy `_grains` from the file server to the master.
    sync_grains "grains";
    /// Copy `_modules` from the file server to the master.
    sync_modules "modules";
    /// Copy `_output` from the file server to the master.
    sync_output "output";
    /// Copy `_pillar` from the file server to the master.
    sync_pillar "pillar";
    /// Copy `_proxy` from the file server to the master.
    sync_proxymodules "proxymodules";
    /// Refused: queues are in the master's store.
    sync_queues "queues";
    /// Copy `_renderers` from the file server to the master.
    sync_renderers "renderers";
    /// Copy `_returners` from the file server to the master.
    sync_returners "returners";
    /// Refused: the master has no custom rosters.
    sync_roster "roster";
    /// Refused: the master has no custom runner functions.
    sync_runners "runners";
    /// Copy `_sdb` from the file server to the master.
    sync_sdb "sdb";
    /// Copy `_serializers` from the file server to the master.
    sync_serializers "serializers";
    /// Copy `_states` from the file server to the master.
    sync_states "states";
    /// Copy `_thorium` from the file server to the master; Brine does not use them.
    sync_thorium "thorium";
    /// Copy `_tops` from the file server to the master.
    sync_tops "tops";
    /// Copy `_utils` from the file server to the master.
    sync_utils "utils";
    /// Refused: the master has no custom wheel functions.
    sync_wheel "wheel";
    /// Copy `_wrapper` from the file server to the master.
    sync_wrapper "wrapper";
}

/// Copy people's own modules of all types from the file server to the master, for its templates and orchestrations.
/// Return the new and changed modules by type.
///
/// saltenv: the environments, as a list or separated by commas (base). extmod_whitelist, extmod_blacklist: mappings of
/// type to names, of the only modules to copy and of those to leave out.
///
/// CLI Example:
///
///     salt-run saltutil.sync_all
#[function]
pub fn sync_all(
    context: &RunnerContext,
    #[default("base".into())] saltenv: Value,
    #[default] extmod_whitelist: Value,
    #[default] extmod_blacklist: Value,
) -> CallResult {
    sync(context, "sync_all", "all", [saltenv, extmod_whitelist, extmod_blacklist])
}

fn sync(context: &RunnerContext, name: &str, kind: &str, args: [Value; 3]) -> CallResult {
    let function = format!("saltutil.{name}");
    if !context.host()?.functions(None).has(&function) {
        return Err(CallError::execution(format!(
            "Brine's master runs no custom modules of the type {kind}: there is nothing to copy"
        )));
    }
    let names = ["saltenv", "extmod_whitelist", "extmod_blacklist"].map(Value::from);
    let given: Map = names.into_iter().zip(args).filter(|(_, value)| !value.is_nil()).collect();
    context.call_host(&function, Args::keyword(given))
}
