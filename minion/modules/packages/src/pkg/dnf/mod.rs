//! dnf, and yum and tdnf: the package managers of the RedHat family.

pub(super) mod groups;
mod locks;
mod repositories;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::CallError;
use brine_host::process::{self, Output};
use brine_host::programs::{argument, program};
use brine_value::Value;

use super::manager::{Desired, Listed, Locks, Operation, Packages, Removal, Repositories, Upgrade, Versions};
use super::options::Options;
use super::rpm;
use super::versions::{compare, resolve};

/// The RedHat family's package manager.
pub struct Dnf;

/// The program of this host. Their command lines differ slightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Dnf5,
    Dnf,
    Tdnf,
    Yum,
}

impl Program {
    fn of_host(context: &Context) -> Result<Self, CallError> {
        let there = |program: &Program| context.minion.programs.find(program.name()).is_some();
        [Program::Dnf5, Program::Dnf, Program::Tdnf, Program::Yum].into_iter().find(there).ok_or_else(|| {
            CallError::Execution("neither dnf nor yum is installed: packages of this host cannot be managed".into())
        })
    }

    fn name(self) -> &'static str {
        match self {
            Program::Dnf5 => "dnf5",
            Program::Dnf => "dnf",
            Program::Tdnf => "tdnf",
            Program::Yum => "yum",
        }
    }

    /// Whether it is any version of dnf.
    fn is_dnf(self) -> bool {
        matches!(self, Program::Dnf5 | Program::Dnf)
    }

    fn run<S: Into<String>>(self, context: &Context, words: impl IntoIterator<Item = S>) -> Result<Output, CallError> {
        let mut command = vec![self.name().to_owned()];
        command.extend(words.into_iter().map(Into::into));
        run(context, &command, &[])
    }

    /// Changes packages, and returns the errors in the program's output.
    fn change(self, context: &Context, words: Vec<String>) -> Result<Vec<String>, CallError> {
        let mut command = vec![self.name().to_owned()];
        command.extend(words);
        let program = process::Program { merge: true, ..program(&command, &[]) };
        let output = context.run_program(&program).map_err(CallError::execution)?;
        Ok(if output.retcode == 0 { Vec::new() } else { vec![output.stdout] })
    }
}

/// Returns the arguments for repositories and settings.
fn settings(options: &Options) -> Vec<String> {
    let mut words = Vec::new();
    let mut each = |flag: &str, values: &[String]| words.extend(values.iter().map(|value| format!("--{flag}={value}")));
    if options.from.is_empty() {
        each("disablerepo", &options.disable);
        each("enablerepo", &options.enable);
    } else {
        each("disablerepo", &["*".to_owned()]);
        each("enablerepo", &[options.from.join(",")]);
    }
    each("disableexcludes", options.disable_excludes.as_slice());
    each("branch", options.branch.as_slice());
    each("setopt", &options.settings);
    words
}

/// A package in a list of dnf.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: String,
    version: String,
}

/// Parses lists such as `zsh.x86_64   5.8-9   base`. Rows with long names are wrapped.
fn rows(text: &str, own_arch: &str) -> Vec<Row> {
    const HEADERS: [&str; 5] =
        ["installed packages", "available packages", "available upgrades", "updated packages", "upgraded packages"];
    let lines = text.lines().filter(|line| !HEADERS.contains(&line.trim().to_lowercase().as_str()));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let row = |words: &[&str]| {
        let [name, version, _] = words else { return None };
        let (name, arch) = name.rsplit_once('.').unwrap_or((name, own_arch));
        let name = rpm::resolved(name, arch, own_arch);
        Some(Row { name, version: version.trim_end_matches('-').to_owned() })
    };
    words.chunks(3).filter_map(row).collect()
}

/// Packages by the operation that they need, each as a command-line argument.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    install: Vec<(String, String)>,
    downgrade: Vec<(String, String)>,
    reinstall: Vec<(String, String)>,
}

impl Plan {
    /// Adds a package, by the order of its version relative to the installed ones.
    fn add(&mut self, target: (String, String), orders: &[Ordering], reinstall: bool) {
        // Several kernels are installed in parallel, so an older one is not a downgrade.
        let is_older = !orders.is_empty()
            && orders.iter().all(|order| *order == Ordering::Less)
            && !["kernel", "kernel-devel"].contains(&target.0.as_str());
        match (reinstall && orders.contains(&Ordering::Equal), is_older) {
            (true, _) => self.reinstall.push(target),
            (_, true) => self.downgrade.push(target),
            _ => self.install.push(target),
        }
    }
}

impl Dnf {
    /// Returns a package with its version as a command-line argument: without the epoch, the architecture last.
    fn package_argument(context: &Context, name: &str, version: &str, keep_epoch: bool) -> Result<String, CallError> {
        let version = if keep_epoch { version } else { version.split_once(':').map_or(version, |(_, rest)| rest) };
        let own = rpm::own_arch(context);
        let (bare, arch) = rpm::split_arch(name).filter(|(_, arch)| rpm::is_arch(arch) && *arch != own).unzip();
        let arch = arch.map(|arch| format!(".{arch}")).unwrap_or_default();
        Ok(format!("{}-{version}{arch}", argument(bare.unwrap_or(name))?))
    }

    fn plan(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Plan, CallError> {
        let installed = self.list(context, options)?;
        let mut plan = Plan::default();
        for (name, version) in desired {
            let have = installed.get(name).map(Vec::as_slice).unwrap_or_default();
            let Some(version) = version else {
                let target = (name.clone(), argument(name)?);
                let again = options.reinstall && !have.is_empty();
                if again { &mut plan.reinstall } else { &mut plan.install }.push(target);
                continue;
            };
            let ignore = options.ignore_epoch == Some(true);
            let mut orders = Vec::new();
            for installed in have {
                orders.push(compare(context, self, (version, &installed.version), ignore)?);
            }
            let target = (name.clone(), Dnf::package_argument(context, name, version, ignore)?);
            plan.add(target, &orders, options.reinstall);
        }
        Ok(plan)
    }

    fn execute(
        &self,
        context: &Context,
        plan: &Plan,
        how: (&[Desired], &Options),
        errors: &mut Errors,
    ) -> Result<(), CallError> {
        let program = Program::of_host(context)?;
        self.step(context, program, "install", &plan.install, how, errors)?;
        self.step(context, program, "downgrade", &plan.downgrade, how, errors)?;
        self.step(context, program, "reinstall", &plan.reinstall, how, errors)
    }

    /// Runs one step of a plan. Held packages are released for it, or omitted with an error.
    fn step(
        &self,
        context: &Context,
        program: Program,
        verb: &str,
        targets: &[(String, String)],
        (held, options): (&[Desired], &Options),
        errors: &mut Errors,
    ) -> Result<(), CallError> {
        let is_held = |name: &String| held.iter().any(|(held, _)| held == name);
        let (locked, free): (Vec<_>, Vec<_>) = targets.iter().partition(|(name, _)| is_held(name));
        let mut words: Vec<String> = free.iter().map(|(_, word)| word.clone()).collect();
        let locked_names: Vec<Desired> = locked.iter().map(|(name, _)| (name.clone(), None)).collect();
        if options.update_holds && !locked.is_empty() {
            self.set(context, &locked_names, false, options)?;
            words.extend(locked.iter().map(|(_, word)| word.clone()));
        } else {
            errors.prevented.extend(locked_names.iter().map(|(name, _)| name.clone()));
        }
        let mut messages = Ok(Vec::new());
        if !words.is_empty() {
            let mut command = vec!["-y".to_owned()];
            let best = ["--best".to_owned(), "--allowerasing".to_owned()];
            command.extend(best.iter().filter(|_| program == Program::Dnf && verb == "install").cloned());
            command.extend(settings(options));
            command.extend(options.skip_verify.then(|| "--nogpgcheck".to_owned()));
            command.extend(options.download_only.then(|| "--downloadonly".to_owned()));
            command.push(verb.to_owned());
            command.extend(best.into_iter().filter(|_| program == Program::Dnf5 && verb == "install"));
            command.extend(words);
            messages = program.change(context, command);
        }
        // Hold the packages again, whether the step succeeded or not.
        if options.update_holds && !locked_names.is_empty() {
            self.set(context, &locked_names, true, options)?;
        }
        errors.messages.extend(messages?);
        Ok(())
    }

    /// Returns the rows of a list. dnf treats an empty list as a failure, this does not.
    fn rows(&self, context: &Context, words: Vec<String>, options: &Options) -> Result<Vec<Row>, CallError> {
        let mut command = vec!["--quiet".to_owned()];
        command.extend(settings(options));
        command.extend(words);
        let output = Program::of_host(context)?.run(context, command)?;
        Ok(if output.retcode == 0 { rows(&output.stdout, &rpm::own_arch(context)) } else { Vec::new() })
    }
}

/// Errors in the steps of a plan.
#[derive(Debug, Default)]
struct Errors {
    messages: Vec<String>,
    /// Held packages that were omitted.
    prevented: Vec<String>,
}

impl Errors {
    fn all(mut self) -> Vec<String> {
        if !self.prevented.is_empty() {
            self.messages.push(format!(
                "The following package(s) could not be updated because they are being held: {}. Set 'update_holds' to True \
                 to temporarily unhold these packages so that they can be updated.",
                self.prevented.join(", ")
            ));
        }
        self.messages
    }
}

fn words(words: &[&str], more: &[String]) -> Result<Vec<String>, CallError> {
    let more = more.iter().map(|word| argument(word));
    words.iter().map(|word| Ok((*word).to_owned())).chain(more).collect()
}

impl rpm::RpmBased for Dnf {}

impl Packages for Dnf {
    fn list(&self, context: &Context, options: &Options) -> Result<Listed, CallError> {
        rpm::list(context, options)
    }

    fn candidates(&self, context: &Context, names: &[String], options: &Options) -> Result<Versions, CallError> {
        if names.is_empty() {
            return Ok(Versions::new());
        }
        let mut versions = Versions::new();
        for row in self.rows(context, words(&["list", "available"], names)?, options)? {
            let is_newest = versions
                .get(&row.name)
                .is_none_or(|have: &String| rpm::evr::compare(&row.version, have) == Ordering::Greater);
            if names.contains(&row.name) && is_newest {
                versions.insert(row.name, row.version);
            }
        }
        Ok(versions)
    }

    fn available(&self, context: &Context, name: &str, options: &Options) -> Result<Vec<String>, CallError> {
        let rows =
            self.rows(context, words(&["--showduplicates", "list", "available"], &[name.to_owned()])?, options)?;
        let mut versions: Vec<String> =
            rows.into_iter().filter(|row| row.name == name).map(|row| row.version).collect();
        versions.sort_by(|a, b| rpm::evr::compare(b, a));
        versions.dedup();
        Ok(versions)
    }

    fn install(&self, context: &Context, desired: &[Desired], options: &Options) -> Result<Vec<String>, CallError> {
        let (desired, messages) = resolve(context, self, desired, options)?;
        let plan = self.plan(context, &desired, options)?;
        // Without the plugin there are no holds.
        let held = self.held(context, options).unwrap_or_default();
        let mut errors = Errors { messages, ..Errors::default() };
        self.execute(context, &plan, (&held, options), &mut errors)?;
        Ok(errors.all())
    }

    fn of_file(&self, context: &Context, path: &Path) -> Result<(String, String), CallError> {
        rpm::of_file(context, path)
    }

    fn install_files(&self, context: &Context, paths: &[&Path], options: &Options) -> Result<Vec<String>, CallError> {
        let installed = self.list(context, options)?;
        let (mut plan, mut errors) = (Plan::default(), Errors::default());
        for path in paths {
            let (name, version) = self.of_file(context, path)?;
            let have = installed.get(&name).map(Vec::as_slice).unwrap_or_default();
            let orders: Vec<Ordering> =
                have.iter().map(|installed| rpm::evr::compare(&version, &installed.version)).collect();
            plan.add((name, path.display().to_string()), &orders, options.reinstall);
        }
        self.execute(context, &plan, (&[], options), &mut errors)?;
        Ok(errors.all())
    }

    fn upgrades(&self, context: &Context, _dist: bool, options: &Options) -> Result<Versions, CallError> {
        let which = if Program::of_host(context)?.is_dnf() { "--upgrades" } else { "updates" };
        let rows = self.rows(context, vec!["list".into(), which.into()], options)?;
        Ok(rows.into_iter().map(|row| (row.name, row.version)).collect())
    }

    fn upgrade(&self, context: &Context, upgrade: Upgrade, options: &Options) -> Result<Vec<String>, CallError> {
        let Upgrade { names, .. } = upgrade;
        options.refuse_dry_run("dnf")?;
        let program = Program::of_host(context)?;
        let mut command = vec!["--quiet".to_owned(), "-y".to_owned()];
        command.extend(settings(options));
        command.extend((program.is_dnf() && options.keep_obsolete).then(|| "--setopt=obsoletes=False".to_owned()));
        command.extend(options.skip_verify.then(|| "--nogpgcheck".to_owned()));
        command.extend(options.download_only.then(|| "--downloadonly".to_owned()));
        let verb = if options.keep_obsolete && !program.is_dnf() { "update" } else { "upgrade" };
        command.push(if options.minimal { format!("{verb}-minimal") } else { verb.to_owned() });
        command.extend(words(&[], names)?);
        program.change(context, command)
    }

    fn remove(&self, context: &Context, removal: Removal, _options: &Options) -> Result<Vec<String>, CallError> {
        let mut command = vec!["-y".to_owned(), "remove".to_owned()];
        for (name, version) in removal.targets {
            command.push(match version {
                Some(version) => Dnf::package_argument(context, name, version, false)?,
                None => argument(name)?,
            });
        }
        let output = Program::of_host(context)?.run(context, command)?;
        let failed = output.retcode != 0 && !output.stderr.is_empty();
        Ok(if failed { vec![output.stderr] } else { Vec::new() })
    }

    /// True if there are updates, null if there are none, False if the check failed.
    fn refresh(&self, context: &Context, options: &Options) -> Result<Value, CallError> {
        let program = Program::of_host(context)?;
        for verb in [&["clean", "expire-cache"][..], &["check-update"]] {
            let mut command = vec!["--quiet".to_owned(), "--assumeyes".to_owned()];
            command.extend(verb.iter().map(|word| (*word).to_owned()));
            command.extend(settings(options));
            let output = program.run(context, command)?;
            if verb == ["check-update"] {
                return Ok(match output.retcode {
                    100 => true.into(),
                    0 => Value::Nil,
                    _ => false.into(),
                });
            }
        }
        Ok(Value::Nil)
    }

    fn problem(&self, doing: Operation) -> &'static str {
        match doing {
            Operation::Installing => "Error occurred installing package(s)",
            Operation::Reinstalling => "Error occurred installing/reinstalling package(s)",
            Operation::Removing => "Error occurred removing package(s)",
            Operation::Upgrading => "Problem encountered upgrading packages",
        }
    }

    fn locks(&self) -> Option<&dyn Locks> {
        Some(self)
    }

    fn repositories(&self) -> Option<&dyn Repositories> {
        Some(self)
    }
}
