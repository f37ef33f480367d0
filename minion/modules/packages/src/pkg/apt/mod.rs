//! apt: Debian's package manager.
//!
//! The output of programs is parsed by separate functions, so that it can be tested without changing the
//! host. `repositories.rs`, `keys.rs` and `sources.rs` manage repositories, `selections.rs` holds;
//! `upkeep/` contains the functions that are specific to apt.

pub(super) mod keys;
mod repositories;
pub(super) mod selections;
mod sources;
#[cfg(test)]
mod tests;
pub(super) mod upkeep;

use std::cmp::Ordering;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_text::glob::fnmatch;
use brine_value::{Map, Value};

use super::manager::{Database, Desired, Files, Listed, Locks, Packages, Removal, Repositories, Upgrade, Versions};
use super::options::Options;
use super::versions::resolve;
use selections::select;
pub use selections::selections;

/// Debian's package manager.
pub struct Apt;

/// Fails on systems without apt; `function` is the name in the error.
pub fn debian(context: &Context, function: &str) -> Result<(), CallError> {
    if context.os_family() == "Debian" { Ok(()) } else { Err(CallError::NotAvailable(format!("pkg.{function}"))) }
}

/// Returns the error output of apt as one item; none on success.
fn error_output(output: &Output) -> Vec<String> {
    if output.retcode == 0 { Vec::new() } else { vec![output.stderr.trim().to_owned()] }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const QUIET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("UCF_FORCE_CONFFOLD", "1"),
];

/// Returns the apt-get command line; by default, configuration files with local changes are kept.
fn apt_get(options: &Options) -> Vec<String> {
    let mut command = words(&["apt-get", "-q", "-y"]);
    let choices: &[&str] = if options.force_conf_new { &["confnew"] } else { &["confold", "confdef"] };
    for choice in choices {
        command.extend(["-o".to_owned(), format!("DPkg::Options::=--force-{choice}")]);
    }
    command
}

impl Database for Apt {
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        if a == b {
            return Ok(Ordering::Equal);
        }
        let (a, b) = (argument(a)?, argument(b)?);
        for (operator, order) in [("lt", Ordering::Less), ("eq", Ordering::Equal), ("gt", Ordering::Greater)] {
            if run(context, &words(&["dpkg", "--compare-versions", &a, operator, &b]), &[])?.retcode == 0 {
                return Ok(order);
            }
        }
        Err(CallError::Execution(format!("the versions '{a}' and '{b}' cannot be compared")))
    }

    fn normal_name(&self, context: &Context, name: &str) -> String {
        let grains = context.grains();
        let own = grains.get("osarch").map(ToString::to_string).unwrap_or_default();
        match name.rsplit_once(':') {
            Some((bare, arch)) if [own.as_str(), "all", "any"].contains(&arch) => bare.to_owned(),
            _ => name.to_owned(),
        }
    }

    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError> {
        let output = run(context, &words(&["dpkg", "-S", &argument(path)?]), &[])?;
        Ok(output.stdout.split(':').next().unwrap_or_default().to_owned())
    }

    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError> {
        let names = match names {
            [] => self.list(context, &Options::default())?.into_keys().collect(),
            names => names.to_vec(),
        };
        let mut listing = Files::default();
        for name in names {
            let output = run(context, &words(&["dpkg", "-L", &argument(&name)?]), &[])?;
            if output.retcode == 0 {
                listing.files.extend(output.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned));
            } else {
                listing.errors.push(format!("Package {name} is not installed."));
            }
        }
        listing.files.sort();
        listing.files.dedup();
        Ok(listing)
    }
}

impl Packages for Apt {
    fn list(&self, context: &Context, _options: &Options) -> Result<Listed, CallError> {
        let packages = dpkg_list(context, "installed")?.into_iter();
        Ok(packages.map(|(name, version)| (name, vec![version.as_str().into()])).collect())
    }

    fn removed_with_configuration(&self, context: &Context) -> Result<Versions, CallError> {
        dpkg_list(context, "config-files")
    }

    fn keeps_configuration(&self) -> bool {
        true
    }

    fn candidates(&self, context: &Context, names: &[String], _options: &Options) -> Result<Versions, CallError> {
        Ok(policy(&query(context, names)?))
    }

    fn available(&self, context: &Context, name: &str, _options: &Options) -> Result<Vec<String>, CallError> {
        Ok(version_table(&query(context, &[name.to_owned()])?))
    }

    fn predicted_version(
        &self,
        context: &Context,
        name: &str,
        version: &str,
        options: &Options,
    ) -> Result<Option<String>, CallError> {
        Ok(self.available(context, name, options)?.into_iter().find(|one| one == version || fnmatch(version, one)))
    }

    /// Held packages are changed, too, as in Salt, and held again afterwards.
    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        let (desired, mut errors) = resolve(context, self, desired, options)?;
        if desired.is_empty() {
            return Ok(errors);
        }
        let mut held = self.held(context, options)?;
        held.retain(|(held, _)| desired.iter().any(|(name, _)| name == held));
        select(context, &held, "install")?;
        let output = run(context, &install_command(&desired, options), QUIET);
        select(context, &held, "hold")?;
        errors.extend(error_output(&output?));
        Ok(errors)
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        let path = path.display().to_string();
        let output = run(context, &words(&["dpkg-deb", "--showformat=${Package} ${Version}", "--show", &path]), &[])?;
        let message = || CallError::Execution(format!("{path} is not a valid package: {}", output.stderr.trim()));
        let (name, version) = output.stdout.trim().split_once(' ').ok_or_else(message)?;
        Ok((name.to_owned(), version.to_owned()))
    }

    fn install_files(&self, context: &Context, paths: &[&Path], _options: &Options) -> Result<Vec<String>, CallError> {
        // As in Salt: the dependencies must be installed.
        let mut command = words(&["dpkg", "--force-confold", "--force-confdef", "--install"]);
        command.extend(paths.iter().map(|path| path.display().to_string()));
        Ok(error_output(&run(context, &command, QUIET)?))
    }

    fn upgrades(&self, context: &Context, dist: bool, _options: &Options) -> Result<Versions, CallError> {
        let command = words(&["apt-get", "--just-print", if dist { "dist-upgrade" } else { "upgrade" }]);
        Ok(planned(&run(context, &command, QUIET)?.stdout))
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { names, dist } = upgrade;
        if !names.is_empty() {
            let desired: Vec<Desired> = names.iter().map(|name| (name.clone(), None)).collect();
            return self.install(context, &desired, options);
        }
        let mut command = apt_get(options);
        command.extend(options.skip_verify.then(|| "--allow-unauthenticated".to_owned()));
        command.extend(partial(options));
        command.push(if dist { "dist-upgrade" } else { "upgrade" }.to_owned());
        Ok(error_output(&run(context, &command, QUIET)?))
    }

    fn remove(&self, context: &Context, removal: Removal, _options: &Options) -> Result<Vec<String>, CallError> {
        let mut command = words(&["apt-get", "-q", "-y", if removal.purge { "purge" } else { "remove" }]);
        for (name, _) in removal.targets {
            command.push(argument(name)?);
        }
        Ok(error_output(&run(context, &command, QUIET)?))
    }

    /// Returns the result by repository: true for updated, null for unchanged, false for failed.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError> {
        if is_current(Path::new(LISTS), options.cache_valid_time) {
            return Ok(Value::map());
        }
        let output = run(context, &words(&["apt-get", "-q", "update"]), QUIET)?;
        if output.retcode != 0 {
            return Err(CallError::Execution(error_output(&output).join("\n")));
        }
        Ok(refreshed(&output.stdout).into())
    }

    fn locks(&self) -> Option<&dyn Locks> {
        Some(self)
    }

    fn repositories(&self) -> Option<&dyn Repositories> {
        Some(self)
    }
}

/// Returns the output of `apt-cache policy` for packages.
fn query(context: &Context, names: &[String]) -> Result<String, CallError> {
    let mut command = words(&["apt-cache", "-q", "policy"]);
    for name in names {
        command.push(argument(name)?);
    }
    Ok(run(context, &command, &[])?.stdout)
}

/// Returns the versions in a version table of `apt-cache policy`: lines such as ` *** 5.2.15-2+b8 500`, newest
/// first.
fn version_table(text: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| line.trim() != "Version table:").skip(1);
    let version = |line: &str| {
        // The sources of a version are indented further.
        let bare = line.strip_prefix(" *** ").or_else(|| line.strip_prefix("     "))?;
        bare.split(' ').next().filter(|word| !word.is_empty()).map(str::to_owned)
    };
    rows.filter_map(version).collect()
}

fn dpkg_list(context: &Context, state: &str) -> Result<Versions, CallError> {
    let format = "--showformat=${Status} ${Package} ${Version} ${Architecture}\n";
    Ok(dpkg_lines(&run(context, &words(&["dpkg-query", format, "-W"]), &[])?.stdout, state))
}

/// Returns the packages in a state, from lines such as `install ok installed bash 5.2.15-2+b8 amd64`.
fn dpkg_lines(text: &str, state: &str) -> Versions {
    let lines = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, current_state, name, version, _] = fields[..] else { return None };
        (current_state == state).then(|| (name.to_owned(), version.to_owned()))
    });
    lines.collect()
}

/// Returns the candidates in the output of `apt-cache policy`.
fn policy(text: &str) -> Versions {
    let (mut candidates, mut name) = (Versions::new(), "");
    for line in text.lines() {
        if let Some(candidate) = line.strip_prefix("  Candidate: ") {
            if candidate != "(none)" {
                candidates.insert(name.to_owned(), candidate.to_owned());
            }
        } else if !line.starts_with(' ') {
            name = line.trim_end_matches(':');
        }
    }
    candidates
}

/// Returns the versions that apt would install: lines such as `Inst bash [5.2-1] (5.2-2 Debian:12/stable [amd64])`.
fn planned(text: &str) -> Versions {
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        // A package that is not installed is not an upgrade.
        let (_, new) = rest.strip_prefix('[')?.split_once("] (")?;
        Some((name.to_owned(), new.split(' ').next()?.to_owned()))
    });
    lines.collect()
}

/// Returns the repositories that `apt-get update` has fetched.
fn refreshed(text: &str) -> Map {
    let lines = text.lines().filter_map(|line| {
        let (word, rest) = line.split_once(' ')?;
        let result = match word.split(':').next()? {
            "Get" => Value::Bool(true),
            "Hit" => Value::Nil,
            "Err" | "Ign" => Value::Bool(false),
            _ => return None,
        };
        // The size is not part of the name.
        let name = rest.rsplit_once(" [").map_or(rest, |(name, _)| name);
        Some((name.trim().into(), result))
    });
    lines.collect()
}

/// The directory of the lists of packages.
const LISTS: &str = "/var/lib/apt/lists";

/// Whether a directory was changed at most this number of seconds ago.
fn is_current(directory: &Path, seconds: u64) -> bool {
    let changed = std::fs::metadata(directory).and_then(|status| status.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() < seconds))
}

/// Returns the options that limit what `apt-get` does, and that permit older versions.
fn partial(options: &Options) -> impl Iterator<Item = String> {
    let flags = [
        (options.download_only, "--download-only"),
        (options.allow_downgrades, "--allow-downgrades"),
        (options.dry_run, "--dry-run"),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned())
}

fn install_command(desired: &[Desired], options: &Options) -> Vec<String> {
    let mut command = apt_get(options);
    if let Some(recommends) = options.recommends {
        command.push(if recommends { "--install-recommends" } else { "--no-install-recommends" }.into());
    }
    command.extend(options.only_upgrade.then(|| "--only-upgrade".to_owned()));
    command.extend(options.skip_verify.then(|| "--allow-unauthenticated".to_owned()));
    command.extend(options.reinstall.then(|| "--reinstall".to_owned()));
    command.extend(partial(options));
    if !options.from.is_empty() {
        command.extend(["-t".to_owned(), options.from.join(",")]);
    }
    if desired.iter().any(|(_, version)| version.is_some()) {
        // A given version may be an older one.
        command.extend((!options.allow_downgrades).then(|| "--allow-downgrades".to_owned()));
    }
    command.push("install".into());
    command.extend(desired.iter().map(|(name, version)| match version {
        Some(version) => format!("{name}={version}"),
        None => name.clone(),
    }));
    command
}
