//! The result of `restartcheck`: a text with commands, or a list of packages.

use indexmap::IndexMap;

/// A package whose processes use deleted files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Init scripts.
    pub scripts: Vec<String>,
    /// Units of systemd.
    pub units: Vec<String>,
    /// A line for each process and file.
    pub processes: Vec<String>,
    /// The name of the first process, or of its service.
    pub process: String,
}

impl Package {
    /// Creates a package from the name of a process.
    pub fn of_process(process: String) -> Self {
        Package { process, ..Package::default() }
    }

    fn is_restartable(&self) -> bool {
        !self.scripts.is_empty() || !self.units.is_empty()
    }
}

type Named<'p> = Vec<(&'p String, &'p Package)>;

/// The packages and services to restart.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether a newer kernel is installed.
    pub restart_host: bool,
    /// The packages by name; that of a process without a package is its own.
    pub packages: IndexMap<String, Package>,
    /// Services that no package restarts.
    pub services: Vec<String>,
}

impl Report {
    /// Returns the packages with a service, and those without.
    fn split(&self) -> (Named<'_>, Named<'_>) {
        self.packages.iter().partition(|(_, package)| package.is_restartable())
    }

    /// Returns the names of the packages, those with a service first.
    pub fn names(&self) -> Vec<String> {
        let (with, without) = self.split();
        let mut names: Vec<String> = with.into_iter().chain(without).map(|(name, _)| name.clone()).collect();
        names.extend(self.restart_host.then(|| "System restart required.".to_owned()));
        names
    }

    /// Returns the text, in Salt's words.
    pub fn text(&self) -> String {
        let (with, without) = self.split();
        let (mut units, mut scripts) = (Vec::new(), Vec::new());
        for (_, package) in &with {
            if package.scripts.is_empty() {
                units.extend(package.units.iter().map(|unit| format!("systemctl restart {unit}")));
            }
            scripts.extend(package.scripts.iter().map(|script| format!("service {script} restart")));
        }
        units.extend(self.services.iter().map(|service| format!("systemctl restart {service}")));
        let processes = |packages: &Named<'_>| {
            let lines = packages.iter().map(|(name, package)| format!("{name}:\n{}\n", package.processes.join("\n")));
            lines.collect::<Vec<_>>().concat()
        };
        let mut text = String::new();
        if self.restart_host {
            text += "System restart required.\n\n";
        }
        if !self.packages.is_empty() {
            let count = self.packages.len();
            text +=
                &format!("Found {count} processes using old versions of upgraded files.\nThese are the packages:\n");
        }
        if !with.is_empty() {
            text += &format!(
                "Of these, {} seem to contain systemd service definitions or init scripts which can be used to restart \
                 them:\n{}",
                with.len(),
                processes(&with)
            );
            if !units.is_empty() {
                text += &format!("\n\nThese are the systemd services:\n{}", units.join("\n"));
            }
            if !scripts.is_empty() {
                text += &format!("\n\nThese are the initd scripts:\n{}", scripts.join("\n"));
            }
        }
        if !without.is_empty() {
            text += &format!(
                "\n\nThese processes {} do not seem to have an associated init script to restart them:\n{}",
                without.len(),
                processes(&without)
            );
        }
        text
    }
}
