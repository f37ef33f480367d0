//! The interface of package managers, and the selection of this host's.
//!
//! [`Packages`] is implemented by every manager, [`Locks`] and [`Repositories`] by some. The grains `os_family` and
//! `os` select the implementation, in [`packages`] only.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_value::{Map, Value};

use super::apk::Apk;
use super::apt::Apt;
use super::dnf::Dnf;
use super::options::Options;
use super::pacman::Pacman;
use super::zypper::Zypper;

/// Names and versions; several installed versions of a package are separated by commas.
pub type Versions = BTreeMap<String, String>;

/// A package and its desired version, if any.
pub type Desired = (String, Option<String>);

/// All installed packages by name, each with its versions in order.
pub type Listed = BTreeMap<String, Vec<Installed>>;

/// An installed version of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Full version, with epoch and release.
    pub version: String,
    /// Details, where the manager reports them.
    pub details: Option<Details>,
}

/// Attributes of a package for `attr` of `pkg.list_pkgs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The epoch, if there is one.
    pub epoch: Option<String>,
    /// Version without epoch and release.
    pub version: String,
    /// The release, if there is one.
    pub release: Option<String>,
    /// The architecture.
    pub arch: String,
    /// Time of installation, in Unix seconds.
    pub installed: Option<i64>,
}

impl From<&str> for Installed {
    fn from(version: &str) -> Self {
        Installed { version: version.to_owned(), details: None }
    }
}

/// Returns the package manager of this host.
pub fn packages(context: &Context) -> Result<&'static dyn Packages, CallError> {
    /// Systems with dnf whose `os_family` is not RedHat.
    const DNF_SYSTEMS: [&str; 8] =
        ["amazon", "xcp", "xenserver", "virtuozzolinux", "virtuozzo", "issabel pbx", "openeuler", "vmware photon os"];
    let os = context.grains().get("os").map(|os| os.to_string().to_lowercase()).unwrap_or_default();
    match context.os_family().as_str() {
        "Debian" => Ok(&Apt),
        "RedHat" => Ok(&Dnf),
        "Suse" => Ok(&Zypper),
        "Alpine" => Ok(&Apk),
        "Arch" => Ok(&Pacman),
        _ if DNF_SYSTEMS.contains(&os.as_str()) => Ok(&Dnf),
        family => Err(CallError::Execution(format!(
            "the os_family '{family}' has no supported package manager: expected apt, dnf, zypper, apk or pacman"
        ))),
    }
}

/// A manager's order of versions, names of packages, and records of their files.
pub trait Database {
    /// Compares versions in the manager's order.
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError>;

    /// Returns the name without the architecture, if that is the host's.
    fn normal_name(&self, _context: &Context, name: &str) -> String {
        name.to_owned()
    }

    /// Returns the package that owns a file; an empty string if there is none.
    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError>;

    /// Returns the files of packages, and errors.
    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError>;

    /// Whether it is the database of rpm.
    fn is_rpm(&self) -> bool {
        false
    }
}

/// Packages to upgrade: the named ones, or all.
#[derive(Debug, Clone, Copy)]
pub struct Upgrade<'a> {
    /// Names of packages; none for all.
    pub names: &'a [String],
    /// Whether other packages may be installed or removed for it.
    pub dist: bool,
}

/// Packages to remove.
#[derive(Debug, Clone, Copy)]
pub struct Removal<'a> {
    /// The packages; one with a version is only removed in that version.
    pub targets: &'a [Desired],
    /// Whether their configuration is removed, too.
    pub purge: bool,
}

impl Removal<'_> {
    /// Returns the names of the packages.
    pub fn names(&self) -> Vec<String> {
        self.targets.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// A package manager. Methods that change packages return its error messages: none on success.
pub trait Packages: Database + Sync {
    /// Returns the installed packages.
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError>;

    /// Returns the installed packages as names and versions.
    fn installed(&self, context: &Context, options: &Options) -> Result<Versions, CallError> {
        let joined = |versions: Vec<Installed>| {
            versions.into_iter().map(|installed| installed.version).collect::<Vec<_>>().join(",")
        };
        Ok(self.list(context, options)?.into_iter().map(|(name, versions)| (name, joined(versions))).collect())
    }

    /// Returns the removed packages whose configuration is left.
    fn removed_with_configuration(&self, _context: &Context) -> Result<Versions, CallError> {
        Ok(Versions::new())
    }

    /// Whether removed packages may leave configuration.
    fn keeps_configuration(&self) -> bool {
        false
    }

    /// Returns the newest available versions of packages; unknown packages are left out.
    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError>;

    /// Returns all available versions of a package, newest first.
    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError>;

    /// Whether queries for upgrades refresh the repositories by default.
    fn refreshes(&self) -> bool {
        true
    }

    /// Returns the version that would be installed for a requested one, if the manager can predict it.
    fn predicted_version(
        &self,
        _context: &Context,
        _name: &str,
        _version: &str,
        _options: &Options,
    ) -> Result<Option<String>, CallError> {
        Ok(None)
    }

    /// Installs packages, each in a version or the newest.
    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError>;

    /// Returns the name and version of a package file.
    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError>;

    /// Installs package files.
    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError>;

    /// Returns the available upgrades; with `dist` also those that install or remove other packages.
    fn upgrades(&self, context: &Context, dist: bool, options: &Options) -> Result<Versions, CallError>;

    /// Installs upgrades.
    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError>;

    /// Removes packages.
    fn remove(&self, context: &Context, removal: Removal, options: &Options) -> Result<Vec<String>, CallError>;

    /// Refreshes the repositories, and returns the result as Salt does for this manager.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError>;

    /// Returns the message of a failed operation.
    fn problem(&self, doing: Operation) -> &'static str {
        match doing {
            Operation::Installing | Operation::Reinstalling => "Problem encountered installing package(s)",
            Operation::Removing => "Problem encountered removing package(s)",
            Operation::Upgrading => "Problem encountered upgrading packages",
        }
    }

    /// Returns the holds of the manager, if it has any.
    fn locks(&self) -> Option<&dyn Locks> {
        None
    }

    /// Returns the repositories, if the manager's are managed.
    fn repositories(&self) -> Option<&dyn Repositories> {
        None
    }
}

/// An operation on packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Installation.
    Installing,
    /// Reinstallation.
    Reinstalling,
    /// Removal.
    Removing,
    /// Upgrade.
    Upgrading,
}

/// Files of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The manager's messages on missing packages.
    pub errors: Vec<String>,
    /// Paths of the files.
    pub files: Vec<String>,
}

/// Holds packages at their versions.
pub trait Locks {
    /// Returns the held packages, with the version where it is recorded.
    fn held(&self, context: &Context, options: &Options) -> Result<Vec<Desired>, CallError>;

    /// Holds or releases packages, and returns for each a mapping of `name`, `changes`, `result` and `comment`.
    fn set(&self, context: &Context, desired: &[Desired], hold: bool, options: &Options) -> Result<Map, CallError>;

    /// Returns the held packages as in `pkg.list_holds`.
    fn list_holds(&self, _context: &Context, _full: bool, _options: &Options) -> Result<Vec<String>, CallError> {
        Err(CallError::NotAvailable("pkg.list_holds".into()))
    }

    /// Whether a hold at another version is another hold.
    fn by_version(&self) -> bool {
        false
    }
}

/// Package repositories.
pub trait Repositories {
    /// Returns all repositories, by the manager's name.
    fn all(&self, context: &Context, args: &Map) -> Result<Map, CallError>;

    /// Returns a repository; an empty mapping if it does not exist.
    fn one(&self, context: &Context, repo: &str, args: &Map) -> Result<Map, CallError>;

    /// Deletes a repository, and returns the result.
    fn delete(&self, context: &Context, repo: &str, args: &Map) -> Result<Value, CallError>;

    /// Adds or changes a repository, and returns the result.
    fn modify(&self, context: &Context, repo: &str, args: Map) -> Result<Value, CallError>;

    /// Returns the name of the repository for a state's name and arguments, which are converted to the manager's form.
    fn named(&self, name: &str, args: &mut Map) -> String;

    /// Returns the repository that the arguments of a state describe, for comparison.
    fn described(&self, _repo: &str, args: &Map) -> Map {
        args.clone()
    }

    /// Whether the current repository differs from the described one.
    fn differs(&self, have: &Map, desired: &Map, args: &Map) -> bool;

    /// Whether an existing repository is the one that a state removes.
    fn is_match(&self, _repo: &str, _found: &Map) -> bool {
        true
    }

    /// Removes the signing key of a repository.
    fn delete_key(&self, _context: &Context, _args: &Map) -> Result<Value, CallError> {
        Err(CallError::NotAvailable("pkg.del_repo_key".into()))
    }

    /// Whether signing keys are managed.
    fn has_keys(&self) -> bool {
        false
    }
}
