//! apk: Alpine's package manager. It has no holds, and its repositories are not managed.

use std::cmp::Ordering;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::Value;

use super::manager::{Database, Desired, Files, Listed, Packages, Removal, Upgrade, Versions};
use super::options::Options;
use super::versions::resolve;

/// Alpine's package manager.
pub struct Apk;

fn apk(context: &Context, words: &[&str], more: &[String], options: &Options) -> Result<Output, CallError> {
    let mut command = vec!["apk".to_owned()];
    command.extend(options.root.iter().flat_map(|root| ["--root".to_owned(), root.clone()]));
    command.extend(words.iter().map(|word| (*word).to_owned()));
    command.extend_from_slice(more);
    run(context, &command, &[])
}

fn error_output(output: &Output) -> Vec<String> {
    if output.retcode == 0 {
        return Vec::new();
    }
    // Some of its errors are written to the standard output.
    let message = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    vec![message.clone()]
}

/// Splits `brine-one-1.0-r0` into name and version: a version has a release, and no other `-`.
fn split(text: &str) -> Option<(String, String)> {
    let (rest, release) = text.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    Some((name.to_owned(), format!("{version}-{release}")))
}

/// Returns the packages that apk would install or change, from lines such as `(1/2) Upgrading brine-one (1.0-r0 ->
/// 1.1-r0)`.
fn planned(text: &str, verbs: &[&str]) -> Versions {
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let is_match = words.next()?.starts_with('(') && verbs.contains(&words.next()?);
        let name = words.next().filter(|_| is_match)?;
        let version = words.next_back()?.trim_matches(['(', ')']);
        Some((name.to_owned(), version.to_owned()))
    };
    text.lines().filter_map(one).collect()
}

/// Returns the versions of a package in the output of `apk policy`, newest first.
fn policy(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    lines.filter(|version| !version.starts_with(' ')).map(str::to_owned).collect()
}

fn arguments(names: &[String]) -> Result<Vec<String>, CallError> {
    names.iter().map(|name| argument(name)).collect()
}

impl Database for Apk {
    fn compare(&self, context: &Context, a: &str, b: &str) -> Result<Ordering, CallError> {
        if a == b {
            return Ok(Ordering::Equal);
        }
        let output = apk(context, &["version", "-t"], &[argument(a)?, argument(b)?], &Options::default())?;
        match output.stdout.trim() {
            "<" => Ok(Ordering::Less),
            "=" => Ok(Ordering::Equal),
            ">" => Ok(Ordering::Greater),
            _ => Err(CallError::Execution(format!("the versions '{a}' and '{b}' cannot be compared"))),
        }
    }

    fn owner(&self, context: &Context, path: &str) -> Result<String, CallError> {
        let output = apk(context, &["info", "-W"], &[argument(path)?], &Options::default())?;
        // `/bin/sh is owned by busybox-1.36.1-r5`, also after the target of a link.
        let owner = output.stdout.lines().find_map(|line| split(line.rsplit_once(" is owned by ")?.1.trim()));
        Ok(owner.map(|(name, _)| name).unwrap_or_default())
    }

    fn files(&self, context: &Context, names: &[String]) -> Result<Files, CallError> {
        let names = match names {
            [] => self.list(context, &Options::default())?.into_keys().collect(),
            names => names.to_vec(),
        };
        let mut listing = Files::default();
        for name in arguments(&names)? {
            let output = apk(context, &["info", "-L"], &[name], &Options::default())?;
            let files = output.stdout.lines().filter(|line| !line.is_empty() && !line.ends_with(" contains:"));
            listing.files.extend(files.map(|file| format!("/{file}")));
            listing.errors.extend(output.stderr.lines().map(str::to_owned));
        }
        Ok(listing)
    }
}

impl Packages for Apk {
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError> {
        let output = apk(context, &["info", "-v"], &[], options)?;
        let packages = output.stdout.lines().filter_map(|line| split(line.trim()));
        Ok(packages.map(|(name, version)| (name, vec![version.as_str().into()])).collect())
    }

    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError> {
        let mut versions = Versions::new();
        for name in names {
            versions.extend(
                self.available(context, name, options)?.into_iter().next().map(|newest| (name.clone(), newest)),
            );
        }
        Ok(versions)
    }

    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError> {
        let mut versions = policy(&apk(context, &["policy"], &[argument(name)?], options)?.stdout);
        // Repositories may list an older version first.
        let mut sorted: Vec<String> = Vec::new();
        for version in versions.drain(..) {
            let mut index = 0;
            while let Some(other) = sorted.get(index)
                && self.compare(context, &version, other)? != Ordering::Greater
            {
                index += 1;
            }
            sorted.insert(index, version);
        }
        Ok(sorted)
    }

    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        options.refuse_download_only("apk")?;
        let (desired, mut errors) = resolve(context, self, desired, options)?;
        let target = |(name, version): &Desired| {
            let name = argument(name)?;
            Ok(version.as_ref().map_or_else(|| name.clone(), |version| format!("{name}={version}")))
        };
        let targets = desired.iter().map(target).collect::<Result<Vec<_>, CallError>>()?;
        if !targets.is_empty() {
            let mut words = vec!["add"];
            words.extend(options.skip_verify.then_some("--allow-untrusted"));
            errors.extend(error_output(&apk(context, &words, &targets, options)?));
            if options.reinstall {
                let names: Vec<String> = desired.into_iter().map(|(name, _)| name).collect();
                errors.extend(error_output(&apk(context, &["fix", "--reinstall"], &names, options)?));
            }
        }
        Ok(errors)
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        // A package is an archive whose `.PKGINFO` describes it.
        let path = path.display().to_string();
        let words = ["tar", "-xzOf", &path, ".PKGINFO"].map(str::to_owned);
        let output = run(context, &words, &[])?;
        let field = |name: &str| {
            let mut fields = output.stdout.lines().filter_map(|line| line.split_once(" = "));
            fields.find_map(|(key, value)| (key == name).then(|| value.trim().to_owned()))
        };
        let message = || CallError::Execution(format!("{path} is not a valid package: {}", output.stderr.trim()));
        field("pkgname").zip(field("pkgver")).ok_or_else(message)
    }

    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError> {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Ok(error_output(&apk(context, &["add", "--allow-untrusted"], &paths, options)?))
    }

    fn upgrades(&self, context: &Context, _dist: bool, options: &Options) -> Result<Versions, CallError> {
        Ok(planned(&apk(context, &["upgrade", "--simulate"], &[], options)?.stdout, &["Upgrading"]))
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { names, .. } = upgrade;
        options.refuse_download_only("apk")?;
        options.refuse_dry_run("apk")?;
        if names.is_empty() {
            return Ok(error_output(&apk(context, &["upgrade"], &[], options)?));
        }
        Ok(error_output(&apk(context, &["add", "--upgrade"], &arguments(names)?, options)?))
    }

    fn remove(&self, context: &Context, removal: Removal, options: &Options) -> Result<Vec<String>, CallError> {
        let words = if removal.purge { &["del", "--purge"][..] } else { &["del"] };
        Ok(error_output(&apk(context, words, &arguments(&removal.names())?, options)?))
    }

    /// Returns whether the refresh succeeded.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError> {
        let output = apk(context, &["update"], &[], options)?;
        match output.retcode {
            0 => Ok(true.into()),
            _ => Err(CallError::Execution(error_output(&output).join("\n"))),
        }
    }
}

#[cfg(test)]
mod tests;
