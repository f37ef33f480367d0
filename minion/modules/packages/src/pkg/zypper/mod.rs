//! zypper: the package manager of the Suse family.

mod locks;
mod repositories;
#[cfg(test)]
mod tests;
mod xml;

use std::path::Path;
use std::time::Duration;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::{Output, cancelled_within};
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::manager::{Desired, Listed, Locks, Packages, Removal, Repositories, Upgrade, Versions};
use super::options::{Options, is_true};
use super::rpm;
use super::versions::resolve;
use xml::{Element, elements, named};

/// The Suse family's package manager.
pub struct Zypper;

/// Exit statuses that are not failures: patches are available, a restart is needed, nothing to refresh, a
/// repository was skipped, a script of a package failed.
const SUCCESS_STATUSES: [i64; 8] = [0, 6, 100, 101, 102, 103, 106, 107];
/// Exit status if another zypper is running.
const LOCKED_STATUS: i64 = 7;
/// Interval and number of retries while another zypper is running.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_secs(5);
const MAX_LOCK_RETRIES: usize = 120;
/// Maximum number of packages per call.
const MAX_PACKAGES_PER_CALL: usize = 200;

/// Options of a call of zypper.
#[derive(Debug, Clone, Copy, Default)]
struct Call {
    /// Whether the output is XML.
    xml: bool,
    /// Whether repositories may be refreshed.
    refreshable: bool,
    /// Whether the call only reads, and needs no lock.
    read_only: bool,
}

impl Call {
    /// Runs zypper and returns its output, or an error if it fails.
    fn run(self, context: &Context, options: &Options, words: &[String]) -> Result<String, CallError> {
        let output = self.output(context, options, words)?;
        if SUCCESS_STATUSES.contains(&output.retcode) || options.ignore_repo_failure {
            return Ok(output.stdout);
        }
        Err(CallError::Execution(format!("Zypper command failure: {}", self.error_output(&output))))
    }

    fn error_output(self, output: &Output) -> String {
        let answer = if self.xml {
            let elements = elements(&output.stdout);
            let errors = named(&elements, "message").filter(|message| message.attribute("type") == "error");
            let errors: Vec<&str> = errors.map(|message| message.text.as_str()).collect();
            if errors.is_empty() { output.stderr.trim().to_owned() } else { errors.join("\n") }
        } else {
            format!("{}{}", output.stderr.trim(), output.stdout.trim())
        };
        if answer.is_empty() { "Check Zypper's logs.".into() } else { answer }
    }

    fn output(self, context: &Context, options: &Options, words: &[String]) -> Result<Output, CallError> {
        let mut command = vec!["zypper".to_owned(), "--non-interactive".to_owned()];
        command.extend(self.xml.then(|| "--xmlout".to_owned()));
        let is_said = words.iter().any(|word| word == "--no-refresh");
        command.extend((!self.refreshable && !is_said).then(|| "--no-refresh".to_owned()));
        command.extend(options.root.iter().flat_map(|root| ["--root".to_owned(), root.clone()]));
        command.extend_from_slice(words);
        let env: &[(&str, &str)] =
            if self.read_only && !self.refreshable { &[("ZYPP_READONLY_HACK", "1")] } else { &[] };
        for _ in 0..MAX_LOCK_RETRIES {
            let output = run(context, &command, env)?;
            if output.retcode != LOCKED_STATUS || cancelled_within(&context.job.cancel, LOCK_RETRY_INTERVAL) {
                return Ok(output);
            }
            tracing::info!(jid = context.job.jid, "waiting for another zypper process");
        }
        run(context, &command, env)
    }

    /// Runs zypper and returns the elements of its output.
    fn elements(self, context: &Context, options: &Options, words: &[String]) -> Result<Vec<Element>, CallError> {
        Ok(elements(&Call { xml: true, ..self }.run(context, options, words)?))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the versions in the output of `zypper info`, by package.
fn parse_info(text: &str) -> Versions {
    let (mut versions, mut name) = (Versions::new(), "");
    for line in text.lines() {
        match line.split_once(" : ").map(|(key, value)| (key.trim(), value.trim())) {
            Some(("Name", value)) => name = value,
            Some(("Version", value)) if !name.is_empty() => _ = versions.insert(name.to_owned(), value.to_owned()),
            _ => {}
        }
    }
    versions
}

/// Returns the repositories in the output of `zypper refresh`: true for new, false for unchanged.
fn refreshed(text: &str) -> Map {
    let lines = text.lines().filter_map(|line| {
        let name = line.split('\'').nth(1)?.trim();
        let line = line.trim();
        let is_new = line.starts_with("Building") && line.contains("done");
        let is_old = line.starts_with("Repository") && line.contains("is up to date");
        (is_new || is_old).then(|| (name.into(), is_new.into()))
    });
    lines.collect()
}

/// Returns the packages that zypper did not install because a newer version is installed.
fn downgrades(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("has lower version"));
    let name = |line: &str| line.strip_prefix("The selected package '")?.split('\'').next().map(str::to_owned);
    lines.filter_map(name).collect()
}

/// Formats a requested package: `brine-one=1.0-1`.
fn target((name, version): &Desired) -> Result<String, CallError> {
    let name = argument(name)?;
    Ok(match version {
        Some(version) => format!("{name}={version}"),
        None => name,
    })
}

impl Zypper {
    fn put(&self, context: &Context, targets: &[String], options: &Options) -> Result<(), CallError> {
        let mut command = words(&["--no-refresh"]);
        command.extend(options.skip_verify.then(|| "--no-gpg-checks".to_owned()));
        command.extend(words(&["install", "--auto-agree-with-licenses"]));
        command.extend(options.download_only.then(|| "--download-only".to_owned()));
        command.push(if options.capabilities { "--capability" } else { "--name" }.into());
        if !options.from.is_empty() {
            command.extend(words(&["--force", "--force-resolution"]));
            command.extend(options.from.iter().flat_map(|repo| ["--from".to_owned(), repo.clone()]));
        }
        command.extend((options.recommends == Some(false)).then(|| "--no-recommends".to_owned()));
        command.extend(options.reinstall.then(|| "--force".to_owned()));
        for batch in targets.chunks(MAX_PACKAGES_PER_CALL) {
            let answer = Call::default().run(context, options, &[&command, batch].concat())?;
            let older = downgrades(&answer);
            if !older.is_empty() {
                let force = words(&["--force"]);
                Call::default().run(context, options, &[&command, &force, &older[..]].concat())?;
            }
        }
        Ok(())
    }
}

impl rpm::RpmBased for Zypper {}

impl Packages for Zypper {
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError> {
        let mut listed = rpm::list(context, options)?;
        listed.retain(|name, _| !name.starts_with("gpg-pubkey"));
        Ok(listed)
    }

    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError> {
        let call = Call { read_only: true, ..Call::default() };
        let mut versions = Versions::new();
        for batch in names.chunks(MAX_PACKAGES_PER_CALL) {
            let mut command = words(&["info", "-t", "package"]);
            for name in batch {
                command.push(argument(name)?);
            }
            versions.extend(parse_info(&call.run(context, options, &command)?));
        }
        versions.retain(|name, _| names.contains(name));
        Ok(versions)
    }

    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError> {
        let call = Call { xml: true, read_only: true, ..Call::default() };
        let output = call.output(context, options, &words(&["se", "-xv", &argument(name)?]))?;
        let elements = elements(&output.stdout);
        let is_match = |solvable: &&Element| {
            let repository = solvable.attribute("repository").to_owned();
            solvable.attribute("name") == name
                && solvable.attribute("kind") == "package"
                && (options.from.is_empty() || options.from.contains(&repository))
        };
        let mut versions: Vec<String> = named(&elements, "solvable")
            .filter(is_match)
            .map(|solvable| solvable.attribute("edition").to_owned())
            .collect();
        versions.sort_by(|a, b| rpm::evr::compare(b, a));
        versions.dedup();
        Ok(versions)
    }

    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        let (desired, errors) = resolve(context, self, desired, options)?;
        let targets: Vec<String> = desired.iter().map(target).collect::<Result<_, _>>()?;
        self.put(context, &targets, options)?;
        Ok(errors)
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        rpm::of_file(context, path)
    }

    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError> {
        let targets: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        self.put(context, &targets, options)?;
        Ok(Vec::new())
    }

    fn upgrades(&self, context: &Context, _dist: bool, options: &Options) -> Result<Versions, CallError> {
        let mut command = words(&["list-updates"]);
        command.extend(options.from.iter().flat_map(|repo| ["--repo".to_owned(), repo.clone()]));
        let elements = Call { read_only: true, ..Call::default() }.elements(context, options, &command)?;
        let updates = named(&elements, "update").filter(|update| update.attribute("kind") == "package");
        Ok(updates.map(|update| (update.attribute("name").into(), update.attribute("edition").into())).collect())
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { names, dist } = upgrade;
        let mut command = Vec::new();
        command.extend(options.skip_verify.then(|| "--no-gpg-checks".to_owned()));
        command.push(if dist { "dist-upgrade" } else { "update" }.to_owned());
        command.push("--auto-agree-with-licenses".to_owned());
        command.extend(options.download_only.then(|| "--download-only".to_owned()));
        command.extend(options.dry_run.then(|| "--dry-run".to_owned()));
        let flag = if dist { "--from" } else { "--repo" };
        command.extend(options.from.iter().flat_map(|repo| [flag.to_owned(), repo.clone()]));
        if dist {
            command.extend(options.keep_vendors.then(|| "--no-allow-vendor-change".to_owned()));
            command.extend((options.recommends == Some(false)).then(|| "--no-recommends".to_owned()));
        } else {
            for name in names {
                command.push(argument(name)?);
            }
        }
        let output = Call::default().output(context, options, &command)?;
        let is_good = SUCCESS_STATUSES.contains(&output.retcode) || options.ignore_repo_failure;
        Ok(if is_good { Vec::new() } else { vec![Call::default().error_output(&output)] })
    }

    fn remove(&self, context: &Context, removal: Removal, options: &Options) -> Result<Vec<String>, CallError> {
        for batch in removal.targets.chunks(MAX_PACKAGES_PER_CALL) {
            let mut command = words(&["remove"]);
            for (name, version) in batch {
                let version = version.as_ref().map(|version| format!("-{version}")).unwrap_or_default();
                command.push(argument(name)? + &version);
            }
            Call::default().run(context, options, &command)?;
        }
        Ok(Vec::new())
    }

    /// Returns by repository whether it has changed.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError> {
        let by_pillar = || {
            let force = context.pillar().get("zypper").and_then(|zypper| zypper.get("refreshdb_force")).map(is_true);
            force.unwrap_or(true)
        };
        let mut command = Vec::new();
        command.extend(options.import_keys.then(|| "--gpg-auto-import-keys".to_owned()));
        command.push("refresh".to_owned());
        command.extend(options.force.unwrap_or_else(by_pillar).then(|| "--force".to_owned()));
        for repo in &options.repos {
            command.push(argument(repo)?);
        }
        let answer = Call { refreshable: true, ..Call::default() }.run(context, options, &command)?;
        Ok(refreshed(&answer).into())
    }

    fn locks(&self) -> Option<&dyn Locks> {
        Some(self)
    }

    fn repositories(&self) -> Option<&dyn Repositories> {
        Some(self)
    }
}
