//! pacman: Arch's package manager. It has no holds, and its repositories are not managed, as in Salt.

use std::cmp::Ordering;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::manager::{Database, Desired, Files, Listed, Packages, Removal, Upgrade, Versions};
use super::options::Options;
use super::versions::resolve;

/// Arch's package manager.
pub struct Pacman;

const QUIET: [&str; 2] = ["--noprogressbar", "--noconfirm"];

fn pacman(context: &Context, words: &[&str], more: &[String], options: &Options) -> Result<Output, CallError> {
    let mut command = vec!["pacman".to_owned()];
    command.extend(words.iter().map(|word| (*word).to_owned()));
    command.extend_from_slice(more);
    command.extend(options.root.iter().flat_map(|root| ["-r".to_owned(), root.clone()]));
    run(context, &command, &[])
}

fn arguments(names: &[String]) -> Result<Vec<String>, CallError> {
    names.iter().map(|name| argument(name)).collect()
}

fn error_output(output: &Output) -> Vec<String> {
    if output.retcode == 0 || output.stderr.is_empty() { Vec::new() } else { vec![output.stderr.clone()] }
}

/// Parses names and versions, from lines such as `brine-one 1.1-1`.
fn pairs(text: &str) -> Versions {
    let pair = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        // Some derivatives report downloads among the packages.
        ["downloading", file] if file.contains(".db") => None,
        [name, version] => Some((name.to_owned(), version.to_owned())),
        _ => None,
    };
    text.lines().filter_map(pair).collect()
}

/// Returns the databases that were refreshed, and whether each was updated.
fn refreshed(text: &str) -> Map {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("::"));
    let report = lines.filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = match words[..] {
            ["downloading", name, ..] | [name, ..] => name.split('.').next()?,
            [] => return None,
        };
        let is_new = line.contains("downloading");
        (is_new || line.contains("is up to date")).then(|| (name.into(), is_new.into()))
    });
    report.collect()
}

/// Returns the versions of a package in lines such as `core bash 5.2-1 [installed]`.
fn repository_versions(text: &str, name: &str, from: &[String]) -> Vec<String> {
    let version = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [repo, package, version, ..]
            if package == name && (from.is_empty() || from.iter().any(|source| source == repo)) =>
        {
            Some(version.to_owned())
        }
        _ => None,
    };
    text.lines().filter_map(version).collect()
}

impl Database for Pacman {
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        let output = run(context, &["vercmp".to_owned(), argument(a)?, argument(b)?], &[])?;
        match output.stdout.trim().parse::<i64>() {
            Ok(order) => Ok(order.cmp(&0)),
            Err(_) => Err(CallError::Execution(format!("the versions '{a}' and '{b}' cannot be compared"))),
        }
    }

    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError> {
        let output = pacman(context, &["-Qqo"], &[argument(path)?], &Options::default())?;
        Ok(output.stdout.lines().next().unwrap_or_default().to_owned())
    }

    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError> {
        let output = pacman(context, &["-Ql"], &arguments(names)?, &Options::default())?;
        let files = output.stdout.lines().filter_map(|line| line.split_once(' ')).map(|(_, file)| file.to_owned());
        Ok(Files { errors: output.stderr.lines().map(str::to_owned).collect(), files: files.collect() })
    }
}

impl Packages for Pacman {
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError> {
        // Without packages, its exit status is a failure.
        let packages = pairs(&pacman(context, &["-Q"], &[], options)?.stdout).into_iter();
        Ok(packages.map(|(name, version)| (name, vec![version.as_str().into()])).collect())
    }

    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError> {
        let mut versions = Versions::new();
        // One unknown name would hide the others.
        for name in arguments(names)? {
            let words = ["-Sp", "--needed", "--print-format", "%n %v"];
            let output = pacman(context, &words, std::slice::from_ref(&name), options)?;
            // Its dependencies are reported, too.
            versions.extend(pairs(&output.stdout).remove_entry(&name));
        }
        Ok(versions)
    }

    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError> {
        Ok(repository_versions(&pacman(context, &["-Sl"], &[], options)?.stdout, name, &options.from))
    }

    fn refreshes(&self) -> bool {
        false
    }

    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        let (desired, errors) = resolve(context, self, desired, options)?;
        // As in Salt: nothing is installed if a package is not available.
        if !errors.is_empty() || desired.is_empty() {
            return Ok(errors);
        }
        let mut words = vec!["-S"];
        words.extend(options.sysupgrade.then_some("-u"));
        words.extend(QUIET);
        words.extend((!options.reinstall).then_some("--needed"));
        words.extend(options.download_only.then_some("--downloadonly"));
        let target = |(name, version): &Desired| {
            let name = argument(name)?;
            Ok(version.as_ref().map_or_else(|| name.clone(), |version| format!("{name}={version}")))
        };
        let targets = desired.iter().map(target).collect::<Result<Vec<_>, CallError>>()?;
        Ok(error_output(&pacman(context, &words, &targets, options)?))
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        let path = path.display().to_string();
        let output = pacman(context, &["-Qp"], std::slice::from_ref(&path), &Options::default())?;
        let message = || CallError::Execution(format!("{path} is not a valid package: {}", output.stderr.trim()));
        pairs(&output.stdout).pop_first().ok_or_else(message)
    }

    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError> {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let words = [&["-U"][..], &QUIET].concat();
        Ok(error_output(&pacman(context, &words, &paths, options)?))
    }

    fn upgrades(&self, context: &Context, _dist: bool, options: &Options) -> Result<Versions, CallError> {
        let output = pacman(context, &["-S", "-p", "-u", "--print-format", "%n %v"], &[], options)?;
        if output.retcode != 0 {
            let message = format!("{}{}", output.stderr, output.stdout);
            return Err(CallError::Execution(format!("Error listing upgrades: {message}")));
        }
        let installed = self.installed(context, options)?;
        let mut newer = pairs(&output.stdout);
        // A new dependency is not an upgrade.
        newer.retain(|name, _| installed.contains_key(name));
        Ok(newer)
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { names, .. } = upgrade;
        options.refuse_dry_run("pacman")?;
        let mut words = [if names.is_empty() { &["-Su"][..] } else { &["-S"] }, &QUIET].concat();
        words.extend(options.download_only.then_some("--downloadonly"));
        let output = pacman(context, &words, &arguments(names)?, options)?;
        Ok(if output.retcode == 0 { Vec::new() } else { vec![format!("{}{}", output.stderr, output.stdout)] })
    }

    fn remove(&self, context: &Context, removal: Removal, options: &Options) -> Result<Vec<String>, CallError> {
        let words = [if removal.purge { &["-Rsc"][..] } else { &["-R"] }, &QUIET].concat();
        Ok(error_output(&pacman(context, &words, &arguments(&removal.names())?, options)?))
    }

    /// Returns by database whether it was updated.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError> {
        let output = pacman(context, &["-Sy"], &[], options)?;
        if output.retcode != 0 {
            return Err(CallError::Execution(format!("Error refreshing package database: {}", output.stderr)));
        }
        Ok(refreshed(&output.stdout).into())
    }
}

#[cfg(test)]
mod tests;
