//! Execution and state modules. They are split into seven crates, so that a change to one recompiles little else:
//! `databases` (also message brokers), `files` (files and commands), `network`, `packages`, `security` (keys, certificates,
//! access control), `system` (accounts, services, disks) and `salt` (the minion itself, its data and jobs).
//!
//! Each crate has one directory per module: `mod.rs` contains the execution functions, `state.rs` or `state/` the state
//! functions. Backends, tests and transcripts are in the same directory.
//!
//! To add a module, create its directory with a static `MODULE`, and declare it in the `lib.rs` of its crate.

use brine_context::Modules;

pub use brine_modules_salt::{is_success, mine_result, sync_types};

/// The functions of all modules.
pub static MODULES: Modules = Modules(&[
    brine_modules_databases::MODULES,
    brine_modules_files::MODULES,
    brine_modules_network::MODULES,
    brine_modules_packages::MODULES,
    brine_modules_salt::MODULES,
    brine_modules_security::MODULES,
    brine_modules_system::MODULES,
]);

#[cfg(test)]
mod testing {
    brine_testing::with_modules!(super::MODULES);
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use super::*;

    #[test]
    fn availability_depends_on_the_host() {
        for (grains, module, reason) in [
            (map! {"os_family" => "RedHat"}, "debconf", Some("debconf state only runs on Debian systems")),
            (map! {"kernel" => "Linux"}, "service", None),
            (map! {}, "file", None),
            (
                map! {"kernel" => "FreeBSD", "osfinger" => "FreeBSD-13"},
                "service",
                Some("No service execution module loaded: check support for service management on FreeBSD-13 "),
            ),
        ] {
            let mut context = testing::state_context(true, &[]).call;
            context.own_grains = Some(std::sync::Arc::new(grains));
            assert_eq!(MODULES.unavailable(&context, module).as_deref(), reason, "{module}");
        }
    }

    #[test]
    fn all_functions_have_documentation() {
        let documented = testing::context(&[]).call("sys.doc", Args::default()).unwrap();
        assert!(documented.as_map().unwrap().len() > 500);
    }
}
