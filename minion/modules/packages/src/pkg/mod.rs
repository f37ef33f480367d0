//! `pkg`: packages of this host.
//!
//! `manager.rs` defines the interface of package managers; apt, dnf, zypper, apk and pacman implement it, one file
//! or directory each. `dpkg/` reads the attributes of installed packages, as `rpm/info.rs`. Code shared by functions and
//! states is in `install/`, version requirements in `versions/`.

mod apk;
mod apt;
mod dnf;
pub(crate) mod dpkg;
mod holds;
mod install;
mod manager;
mod options;
mod pacman;
mod queries;
mod repositories;
mod rpm;
pub(crate) mod state;
mod versions;
mod zypper;

use brine_context::Module;

#[cfg(test)]
pub use holds::HoldResult;
pub use install::{
    error_message, error_message_with_changes, install, install_files, named_files, package_files, remove, requested,
    upgrade,
};
pub use manager::{Desired, Locks, Operation, Packages, Repositories, Versions, packages};
#[cfg(test)]
pub use manager::{Files, Listed};
pub use options::Options;
pub(crate) use options::further;
pub(crate) use rpm::info as rpm_info;
#[cfg(test)]
pub use versions::resolve;
pub use versions::{LATEST, newer, or_newer, satisfies};

pub(super) static MODULE: Module = Module {
    functions: &[
        &apt::keys::FUNCTIONS,
        &apt::selections::FUNCTIONS,
        &apt::upkeep::FUNCTIONS,
        &dnf::groups::FUNCTIONS,
        &holds::FUNCTIONS,
        &queries::FUNCTIONS,
        &repositories::FUNCTIONS,
        &install::FUNCTIONS,
    ],
    states: &[&state::FUNCTIONS, &state::pkgrepo::FUNCTIONS],
    aggregate: Some(("pkg", state::aggregate)),
    ..Module::EMPTY
};
