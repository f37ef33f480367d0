//! What a package manager can do, and which one this host has.
//!
//! [`Packages`] is what every manager has; [`Locks`] and [`Repositories`] are what some have. Which is behind them is
//! decided by the grains `os_family` and `os`, in [`packages`] alone.

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

/// Names and versions; the versions of a package that is installed more than once have commas between them.
pub type Versions = BTreeMap<String, String>;

/// A package and the version that it should have, if that matters.
pub type Wanted = (String, Option<String>);

/// All that is installed, by name; of each package its versions in order.
pub type Listed = BTreeMap<String, Vec<Installed>>;

/// One version of a package that is installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The whole version, with epoch and release.
    pub version: String,
    /// More about it, where the manager tells.
    pub details: Option<Details>,
}

/// What `attr` of `pkg.list_pkgs` tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The epoch, if there is one.
    pub epoch: Option<String>,
    /// The version alone.
    pub version: String,
    /// The release, if there is one.
    pub release: Option<String>,
    /// The architecture.
    pub arch: String,
    /// When it was installed, in seconds.
    pub installed: Option<i64>,
}

impl From<&str> for Installed {
    fn from(version: &str) -> Self {
        Installed { version: version.to_owned(), details: None }
    }
}

/// The package manager of this host.
pub fn packages(context: &Context) -> Result<&'static dyn Packages, CallError> {
    /// Systems with dnf that call themselves a family of their own.
    const WITH_DNF: [&str; 8] =
        ["amazon", "xcp", "xenserver", "virtuozzolinux", "virtuozzo", "issabel pbx", "openeuler", "vmware photon os"];
    let os = context.grains().get("os").map(|os| os.to_string().to_lowercase()).unwrap_or_default();
    match context.os_family().as_str() {
        "Debian" => Ok(&Apt),
        "RedHat" => Ok(&Dnf),
        "Suse" => Ok(&Zypper),
        "Alpine" => Ok(&Apk),
        "Arch" => Ok(&Pacman),
        _ if WITH_DNF.contains(&os.as_str()) => Ok(&Dnf),
        family => Err(CallError::Execution(format!(
            "there is no package manager for the os_family '{family}': apt, dnf, zypper, apk and pacman are known"
        ))),
    }
}

/// What a package manager can do. Who changes packages gets back what the manager complained of: nothing if all went well.
pub trait Packages: Sync {
    /// The packages that are installed.
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError>;

    /// The same, as names and versions.
    fn installed(&self, context: &Context, options: &Options) -> Result<Versions, CallError> {
        let joined = |versions: Vec<Installed>| {
            versions.into_iter().map(|installed| installed.version).collect::<Vec<_>>().join(",")
        };
        Ok(self.list(context, options)?.into_iter().map(|(name, versions)| (name, joined(versions))).collect())
    }

    /// The packages of which only configuration is left.
    fn left_over(&self, _context: &Context) -> Result<Versions, CallError> {
        Ok(Versions::new())
    }

    /// Whether configuration may be left over.
    fn keeps_configuration(&self) -> bool {
        false
    }

    /// The newest versions that could be installed, of those packages that are known.
    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError>;

    /// All versions of a package that could be installed, the newest first.
    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError>;

    /// Whether questions about newer versions ask the repositories before, where that is not said.
    fn refreshes(&self) -> bool {
        true
    }

    /// The version that would come if a package is asked for with this one, as far as the manager tells it before.
    fn foreseen(
        &self,
        _context: &Context,
        _name: &str,
        _version: &str,
        _options: &Options,
    ) -> Result<Option<String>, CallError> {
        Ok(None)
    }

    /// Installs packages, each with a version or the newest.
    fn install(&self, context: &Context, wanted: &[Wanted], options: &Options) -> Result<Vec<String>, CallError>;

    /// The name and version of the package in a file.
    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError>;

    /// Installs packages that are files.
    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError>;

    /// The new versions that there are; with `dist` also those for which other packages must come or go.
    fn upgrades(&self, context: &Context, dist: bool, options: &Options) -> Result<Versions, CallError>;

    /// Installs all of these, or only those of the packages that are named.
    fn upgrade(
        &self,
        context: &Context,
        names: &[String],
        dist: bool,
        options: &Options,
    ) -> Result<Vec<String>, CallError>;

    /// Removes packages, those with a version only in that version; with `purge` their configuration too.
    fn remove(
        &self,
        context: &Context,
        targets: &[Wanted],
        purge: bool,
        options: &Options,
    ) -> Result<Vec<String>, CallError>;

    /// Asks the repositories what there is, and tells of it as Salt does for this manager.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError>;

    /// Compares versions in the packages' order.
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError>;

    /// The name without the architecture, if that is the host's.
    fn normal_name(&self, _context: &Context, name: &str) -> String {
        name.to_owned()
    }

    /// The package that a file belongs to; an empty text if to none.
    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError>;

    /// The files of packages, and what went wrong.
    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError>;

    /// What is told when changing packages went wrong.
    fn problem(&self, doing: Doing) -> &'static str {
        match doing {
            Doing::Installing | Doing::Reinstalling => "Problem encountered installing package(s)",
            Doing::Removing => "Problem encountered removing package(s)",
            Doing::Upgrading => "Problem encountered upgrading packages",
        }
    }

    /// How packages are kept at their versions, if the manager can.
    fn locks(&self) -> Option<&dyn Locks> {
        None
    }

    /// The repositories, if the manager's are managed.
    fn repositories(&self) -> Option<&dyn Repositories> {
        None
    }
}

/// What was tried with packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Installing them.
    Installing,
    /// Installing what is there again.
    Reinstalling,
    /// Removing them.
    Removing,
    /// Bringing them to newer versions.
    Upgrading,
}

/// The files of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Packages that are not there, in the manager's words.
    pub errors: Vec<String>,
    /// Where the files are.
    pub files: Vec<String>,
}

/// Keeping packages at their versions.
pub trait Locks {
    /// The packages that are held, and at which version where that is written down.
    fn held(&self, context: &Context, options: &Options) -> Result<Vec<Wanted>, CallError>;

    /// Holds packages, or lets them go: of each a mapping of `name`, `changes`, `result` and `comment`.
    fn set(&self, context: &Context, wanted: &[Wanted], hold: bool, options: &Options) -> Result<Map, CallError>;

    /// The packages that are held, as `pkg.list_holds` tells.
    fn told(&self, _context: &Context, _full: bool, _options: &Options) -> Result<Vec<String>, CallError> {
        Err(CallError::NotAvailable("pkg.list_holds".into()))
    }

    /// Whether a hold at another version is another hold.
    fn by_version(&self) -> bool {
        false
    }
}

/// The places that packages come from.
pub trait Repositories {
    /// All of them, by the name that the manager has for them.
    fn all(&self, context: &Context, args: &Map) -> Result<Map, CallError>;

    /// One of them; an empty mapping if it is not there.
    fn one(&self, context: &Context, repo: &str, args: &Map) -> Result<Map, CallError>;

    /// Takes one away, and tells of it.
    fn delete(&self, context: &Context, repo: &str, args: &Map) -> Result<Value, CallError>;

    /// Writes one, or changes it, and tells of it.
    fn modify(&self, context: &Context, repo: &str, args: Map) -> Result<Value, CallError>;

    /// The name that a state's name and arguments mean; arguments are brought to the manager's form.
    fn named(&self, name: &str, args: &mut Map) -> String;

    /// The repository that the arguments of a state describe, to be compared with what there is.
    fn described(&self, _repo: &str, args: &Map) -> Map {
        args.clone()
    }

    /// Whether what there is differs from what is described.
    fn differs(&self, have: &Map, wanted: &Map, args: &Map) -> bool;

    /// Whether a repository that was found is the one that a state wants to be rid of.
    fn is_meant(&self, _repo: &str, _found: &Map) -> bool {
        true
    }

    /// Removes the key that a repository was signed with.
    fn delete_key(&self, _context: &Context, _args: &Map) -> Result<Value, CallError> {
        Err(CallError::NotAvailable("pkg.del_repo_key".into()))
    }

    /// Whether keys of repositories are managed.
    fn has_keys(&self) -> bool {
        false
    }
}
