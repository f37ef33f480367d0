//! `restartcheck`: processes that still use files of upgraded packages. `processes` finds them, `kernel` compares the
//! running kernel with the installed one, `report` formats the result.

mod kernel;
mod processes;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};
use indexmap::IndexMap;

use self::report::{Package, Report};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `restartcheck`.
pub static FUNCTIONS: Functions<Context> = registry!("restartcheck", [restartcheck]);

const DEFAULT_IGNORED: [&str; 2] = ["screen", "systemd"];

/// Return the packages and services to restart because processes use deleted files, such as upgraded libraries, and
/// whether the host is to be restarted because a newer kernel is installed. For Debian and Red Hat and their relatives.
///
/// CLI Example:
///
///     salt '*' restartcheck.restartcheck
///     salt '*' restartcheck.restartcheck ignorelist='[screen]' verbose=False
#[function(name = "restartcheck")]
pub fn restartcheck(
    context: &Context,
    /// Package to ignore, or a list of packages; by default screen and systemd.
    #[default]
    ignorelist: Value,
    /// Path of a file to ignore, or a list of paths.
    #[default]
    blacklist: Value,
    /// PID of a process to ignore, or a list of PIDs.
    #[default]
    excludepid: Value,
    /// Whether the result is a text with commands, instead of a list of packages.
    #[default(true)]
    verbose: bool,
    /// Limit in minutes.
    #[default(5)]
    timeout: u32,
) -> CallResult {
    let ignored = strings(&ignorelist);
    let check = Check {
        context,
        services: &HostServices(context),
        root: Path::new("/"),
        ignored: if ignored.is_empty() { DEFAULT_IGNORED.map(str::to_owned).to_vec() } else { ignored },
        ignored_files: strings(&blacklist),
        ignored_pids: strings(&excludepid).iter().filter_map(|pid| pid.parse().ok()).collect(),
        deadline: Instant::now() + Duration::from_secs(60 * u64::from(timeout)),
    };
    check.run(verbose)
}

/// Returns the items of a list, or a single one.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(ToString::to_string).collect(),
        one if one.is_truthy() => vec![one.to_string()],
        _ => Vec::new(),
    }
}

/// The services of a host.
trait Services {
    /// Returns the running services by the PID of their main process.
    fn main_processes(&self) -> HashMap<u32, String>;

    /// Whether there is a service.
    fn is_known(&self, name: &str) -> bool;
}

/// The services of this host; those without systemd have no known main process.
struct HostServices<'c>(&'c Context);

impl Services for HostServices<'_> {
    fn main_processes(&self) -> HashMap<u32, String> {
        let running = self.0.call("service.get_running", Args::default()).unwrap_or_default();
        let pid = |service: &str| {
            let about = self.0.call("service.show", Args::positional([service.into()])).ok()?;
            about.get("ExecMainPID")?.to_string().parse().ok()
        };
        strings(&running).into_iter().filter_map(|service| Some((pid(&service)?, service))).collect()
    }

    fn is_known(&self, name: &str) -> bool {
        let result = self.0.call("service.available", Args::positional([name.into()]));
        result.is_ok_and(|value| value.is_truthy())
    }
}

/// The settings of a check.
struct Check<'c> {
    context: &'c Context,
    services: &'c dyn Services,
    /// The directory in which `/proc` and the files of packages are.
    root: &'c Path,
    /// Names of packages.
    ignored: Vec<String>,
    ignored_files: Vec<String>,
    ignored_pids: Vec<u32>,
    deadline: Instant,
}

impl Check<'_> {
    fn run(&self, verbose: bool) -> CallResult {
        let Some(is_outdated) = kernel::is_outdated(self.context)? else {
            let comment = "Only available on Debian, Red Hat and NI Linux Real-Time based systems.";
            return Ok(map! {"result" => false, "comment" => comment}.into());
        };
        let mut report = Report { restart_host: is_outdated, packages: IndexMap::new(), services: Vec::new() };
        self.add_packages(&mut report)?;
        if report.packages.is_empty() && !report.restart_host {
            return Ok("No packages seem to need to be restarted.".into());
        }
        for (name, package) in &mut report.packages {
            self.check_deadline()?;
            self.find_services(name, package)?;
            report.services.retain(|service| *service != package.process);
        }
        Ok(if verbose { report.text().into() } else { report.names().into() })
    }

    fn check_deadline(&self) -> Result<(), CallError> {
        if Instant::now() > self.deadline {
            return Err(CallError::execution("Timeout expired."));
        }
        Ok(())
    }

    /// Adds the packages and the services of processes that use deleted files.
    fn add_packages(&self, report: &mut Report) -> Result<(), CallError> {
        let services = self.services.main_processes();
        let mut owners: HashMap<String, String> = HashMap::new();
        for process in processes::with_deleted_files(self.root) {
            self.check_deadline()?;
            if self.ignored_pids.contains(&process.pid) {
                continue;
            }
            let executable = process.executable.trim_end_matches(processes::DELETED);
            let owner = match owners.get(executable) {
                Some(owner) => owner,
                None => owners.entry(executable.to_owned()).or_insert(self.owner(executable)?),
            };
            let package = if owner.is_empty() { &process.name } else { owner }.clone();
            if self.ignored.contains(&package) {
                continue;
            }
            for file in process.files.iter().filter(|file| !self.ignored_files.contains(file)) {
                let mut name = process.name.clone();
                let service = services.get(&process.pid).filter(|service| !report.services.contains(service));
                if let Some(service) = service {
                    report.services.push(service.clone());
                    name.clone_from(service);
                }
                let entry = report.packages.entry(package.clone()).or_insert_with(|| Package::of_process(name));
                let line = format!("\t{} {} (file: {file})", process.pid, process.executable);
                if !entry.processes.contains(&line) {
                    entry.processes.push(line);
                }
            }
        }
        Ok(())
    }

    /// Returns the package of a file; an empty string if there is none.
    fn owner(&self, path: &str) -> Result<String, CallError> {
        let owner = self.context.call("pkg.owner", Args::positional([path.into()]))?;
        Ok(owner.as_str().unwrap_or_default().to_owned())
    }

    /// Finds the init scripts and the units that restart a package: its own, or those named as its process.
    fn find_services(&self, name: &str, package: &mut Package) -> Result<(), CallError> {
        // The name of a process without a package is not known.
        let listed = self.context.call("pkg.file_list", Args::positional([name.into()])).unwrap_or_default();
        for path in listed.get("files").map(strings).unwrap_or_default() {
            if let Some(script) = path.strip_prefix("/etc/init.d/") {
                package.scripts.extend(script.strip_suffix(".sh").is_none().then(|| script.to_owned()));
            }
            let unit = ["/lib/systemd/system/", "/usr/lib/systemd/system/"]
                .iter()
                .find_map(|folder| path.strip_prefix(folder));
            if let Some(unit) = unit.filter(|unit| unit.ends_with(".service") && !unit.contains(".wants")) {
                // A unit that ends by itself does not run.
                let text = std::fs::read_to_string(self.root.join(path.trim_start_matches('/')));
                if text.is_ok_and(|text| !text.lines().any(|line| line.trim() == "Type=oneshot")) {
                    package.units.push(unit.to_owned());
                }
            }
        }
        if package.scripts.is_empty() && package.units.is_empty() {
            let process = package.process.clone();
            if self.services.is_known(&process) {
                let script = self.root.join("etc/init.d").join(&process);
                if script.exists() { &mut package.scripts } else { &mut package.units }.push(process);
            }
        }
        Ok(())
    }
}
