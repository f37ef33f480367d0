//! `pkg`: the packages of this host.
//!
//! `manager.rs` says what a package manager can do; apt, dnf, zypper, apk and pacman are behind it, one file or folder
//! each. What calls and states share stands in `work.rs`, which versions are good in `versions.rs`.

mod apk;
mod apt;
mod dnf;
mod holds;
mod manager;
mod options;
mod pacman;
mod queries;
mod repositories;
mod rpm;
mod versions;
mod work;
mod zypper;

pub use apt::KEYS;
pub use holds::FUNCTIONS as HOLDS;
#[cfg(test)]
pub use holds::Told;
pub use manager::{Doing, Installed, Locks, Packages, Repositories, Versions, Wanted, packages};
#[cfg(test)]
pub use manager::{Files, Listed};
pub use options::Options;
pub use queries::FUNCTIONS as QUERIES;
pub use repositories::FUNCTIONS as REPOSITORIES;
#[cfg(test)]
pub use versions::resolve;
pub use versions::{LATEST, newer, or_newer, satisfies};
pub use work::{
    Done, FUNCTIONS, changes, full_trouble, install, install_files, named_files, package_files, remove, trouble,
    upgrade, wanted,
};
