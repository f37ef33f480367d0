//! `saltutil`: copies custom modules from the file server to the master.
//!
//! Runner and wheel modules run in the master, execution, state, pillar and tops modules on its host. Other types are
//! copied as well, for Salt's programs that run next to Brine.

use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::RunnerContext;

/// The types that `sync_all` copies, in Salt's order.
const ALL: &[&str] = &[
    "clouds",
    "modules",
    "states",
    "grains",
    "renderers",
    "returners",
    "output",
    "proxymodules",
    "runners",
    "wheel",
    "engines",
    "thorium",
    "queues",
    "pillar",
    "utils",
    "sdb",
    "cache",
    "fileserver",
    "tops",
    "tokens",
    "serializers",
    "executors",
    "wrapper",
    "roster",
];

macro_rules! sync_functions {
    ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {
        $(
            $(#[$doc])*
            #[function]
            pub fn $name(
                context: &RunnerContext,
                /// Environments of the file server, as a list or separated by commas.
                #[default("base".into())]
                saltenv: Value,
                /// Names of the only modules to copy.
                #[default]
                extmod_whitelist: Value,
                /// Names of modules to leave out.
                #[default]
                extmod_blacklist: Value,
            ) -> CallResult {
                let mut synced = sync(context, &[$kind], [saltenv, extmod_whitelist, extmod_blacklist])?;
                Ok(synced.swap_remove($kind).unwrap_or_default())
            }
        )*

        /// Runner functions of `saltutil`.
        pub static FUNCTIONS: Functions<RunnerContext> = registry!("saltutil", [sync_all, $($name),*]);
    };
}

sync_functions! {
    /// Copy `_auth` from the file server to the master. Salt has no such function, and `sync_all` leaves this type out.
    ///
    /// CLI Example:
    ///
    ///     salt-run saltutil.sync_auth
    sync_auth "auth";
    /// Copy `_cache` from the file server to the master, for the option `cache`.
    sync_cache "cache";
    /// Copy `_clouds` from the file server to the master.
    sync_clouds "clouds";
    /// Copy `_tokens` from the file server to the master, for the option `eauth_tokens`.
    sync_eauth_tokens "tokens";
    /// Copy `_engines` from the file server to the master.
    sync_engines "engines";
    /// Copy `_executors` from the file server to the master.
    sync_executors "executors";
    /// Copy `_fileserver` from the file server to the master.
    sync_fileserver "fileserver";
    /// Copy `_grains` from the file server to the master.
    sync_grains "grains";
    /// Copy `_matchers` from the file server to the master, for targets of pillar top files. Salt has no such function,
    /// and `sync_all` leaves this type out.
    ///
    /// CLI Example:
    ///
    ///     salt-run saltutil.sync_matchers
    sync_matchers "matchers";
    /// Copy `_modules` from the file server to the master.
    sync_modules "modules";
    /// Copy `_output` from the file server to the master.
    sync_output "output";
    /// Copy `_pillar` from the file server to the master.
    sync_pillar "pillar";
    /// Copy `_proxy` from the file server to the master.
    sync_proxymodules "proxymodules";
    /// Copy `_queues` from the file server to the master; Brine does not use them.
    sync_queues "queues";
    /// Copy `_renderers` from the file server to the master.
    sync_renderers "renderers";
    /// Copy `_returners` from the file server to the master.
    sync_returners "returners";
    /// Copy `_roster` from the file server to the master, for `salt-ssh`.
    sync_roster "roster";
    /// Copy `_runners` from the file server to the master, and load them.
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
    /// Copy `_wheel` from the file server to the master, and load them.
    sync_wheel "wheel";
    /// Copy `_wrapper` from the file server to the master.
    sync_wrapper "wrapper";
}

/// Copy the custom modules of all types from the file server to the master.
/// Return the new and changed modules by type.
///
/// CLI Example:
///
///     salt-run saltutil.sync_all
#[function]
pub fn sync_all(
    context: &RunnerContext,
    /// The environments, as a list or separated by commas (base).
    #[default("base".into())]
    saltenv: Value,
    /// Mappings of type to names, of the only modules to copy and of those to leave out.
    #[default]
    extmod_whitelist: Value,
    /// Mappings of type to names, of the only modules to copy and of those to leave out.
    #[default]
    extmod_blacklist: Value,
) -> CallResult {
    Ok(sync(context, ALL, [saltenv, extmod_whitelist, extmod_blacklist])?.into())
}

fn sync(context: &RunnerContext, kinds: &[&'static str], args: [Value; 3]) -> Result<Map, CallError> {
    let names = ["saltenv", "extmod_whitelist", "extmod_blacklist"].map(Value::from);
    let keyword: Map = names.into_iter().zip(args).filter(|(_, value)| !value.is_nil()).collect();
    let synced = context.host()?.sync(kinds, Args::keyword(keyword))?;
    context.calls.custom.refresh();
    Ok(synced)
}
