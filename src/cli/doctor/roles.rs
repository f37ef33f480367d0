//! The daemons that this host has: by the configuration, what runs, and the units.

use std::path::{Path, PathBuf};

use brine_agent::identity;
use brine_bus::SocketNames;
use brine_config::{Loaded, MasterConfig, MinionConfig, Warning};
use brine_context::minion_id;
use brine_doctor::finding::quoted;
use brine_doctor::{Examination, Finding, Installation, Role, kinds, processes, unit};
use brine_value::Map;

/// A role with its configuration.
pub(super) enum Configured {
    Master(Box<MasterConfig>),
    Minion(Box<MinionConfig>),
}

/// The roles of this host.
pub(super) struct Host {
    pub configured: Vec<Configured>,
    /// The files of the configurations.
    pub files: Vec<PathBuf>,
    /// What was found while their configurations were read.
    pub findings: Vec<Finding>,
}

impl Host {
    /// Finds the roles, or takes those that are wanted, and reads their configurations.
    pub fn find(directory: &Path, wanted: &[Role]) -> Self {
        let mut host = Host { configured: Vec::new(), files: Vec::new(), findings: Vec::new() };
        let roles: Vec<Role> = match wanted {
            [] => [Role::Master, Role::Minion].into_iter().filter(|role| is_here(directory, *role)).collect(),
            wanted => wanted.to_vec(),
        };
        if roles.is_empty() {
            let what = format!("there is neither a master nor a minion with the configuration {}", directory.display());
            host.findings.push(
                Finding::new(&kinds::NOT_INSTALLED, Role::Minion, what)
                    .at(directory.display())
                    .because("it has no file master or minion, and no daemon or unit uses it")
                    .mended_by(
                        "brine doctor -c DIR   # DIR has the file master or minion; to set one up, see docs/install.md",
                    ),
            );
        }
        for role in roles {
            match role {
                Role::Master => host.add_master(directory),
                Role::Minion => host.add_minion(directory),
            }
        }
        host
    }

    fn add_master(&mut self, directory: &Path) {
        match MasterConfig::load(directory, &Map::new()) {
            Ok(Loaded { config, warnings, files }) => {
                self.files.extend(files);
                self.findings.extend(of_warnings(Role::Master, directory, &warnings));
                self.configured.push(Configured::Master(Box::new(config)));
            }
            Err(error) => self.findings.push(invalid(Role::Master, directory, &error)),
        }
    }

    fn add_minion(&mut self, directory: &Path) {
        match MinionConfig::load(directory, &Map::new()) {
            Ok(Loaded { mut config, warnings, files }) => {
                self.files.extend(files);
                self.findings.extend(of_warnings(Role::Minion, directory, &warnings));
                // A function that returns the id is not called.
                if config.id_function.as_map().is_none_or(Map::is_empty)
                    && let Err(error) = identity::identify(&mut config)
                {
                    self.findings.push(invalid(Role::Minion, directory, &error));
                }
                self.configured.push(Configured::Minion(Box::new(config)));
            }
            Err(error) => self.findings.push(invalid(Role::Minion, directory, &error)),
        }
    }
}

/// Whether this host has a daemon with this configuration, or should have one.
fn is_here(directory: &Path, role: Role) -> bool {
    let name = role.name();
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    let drop_ins = std::fs::read_dir(directory.join(format!("{name}.d")));
    directory.join(name).exists()
        || drop_ins.is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "conf"))
        })
        || !processes::daemons(&format!("salt-{name}"), directory, |uid| trusted.contains(&uid)).is_empty()
        || unit::find(name, directory).is_some_and(|unit| unit.is_enabled || unit.is_active || unit.failure.is_some())
}

fn invalid(role: Role, directory: &Path, error: &dyn std::fmt::Display) -> Finding {
    let file = directory.join(role.name());
    Finding::new(&kinds::CONFIG_INVALID, role, format!("the configuration of the {} cannot be read", role.name()))
        .at(file.display())
        .because(error.to_string().replace('\n', " | "))
        .mended_by(format!("${{EDITOR:-vi}} {}", quoted(&file)))
}

/// Returns the findings about options that are probably misspelt. Options without effect are no trouble.
fn of_warnings(role: Role, directory: &Path, warnings: &[Warning]) -> Vec<Finding> {
    let misspelt = warnings.iter().filter(|warning| matches!(warning, Warning::Unknown { nearest: Some(_), .. }));
    misspelt
        .map(|warning| {
            Finding::new(&kinds::CONFIG_WARNING, role, warning)
                .at(directory.join(role.name()).display())
                .because(format!("salt-{} --check", role.name()))
        })
        .collect()
}

impl Configured {
    /// Returns the role.
    pub fn role(&self) -> Role {
        match self {
            Configured::Master(_) => Role::Master,
            Configured::Minion(_) => Role::Minion,
        }
    }

    /// Returns the options of the configuration.
    pub fn opts(&self) -> &Map {
        match self {
            Configured::Master(config) => &config.opts,
            Configured::Minion(config) => &config.opts,
        }
    }

    /// Returns the files, ports and names.
    pub fn installation(&self) -> Installation {
        match self {
            Configured::Master(config) => Installation::master(config),
            Configured::Minion(config) => {
                let sockets = minion_id(config).map(|id| SocketNames::minion(id.as_str()));
                let sockets = sockets.map_or_else(|_| Vec::new(), |names| vec![names.pull, names.publish]);
                Installation::minion(config, &sockets)
            }
        }
    }

    /// Returns the examination of the options, as `--check` does it.
    pub fn check_options(&self, installation: &Installation) -> Examination {
        let file = installation.config_dir.join(self.role().name());
        match self {
            Configured::Master(config) => {
                let config = config.clone();
                let examine = move || {
                    let found = brine_master::check_options(&config, brine_master_runners::MODULES);
                    brine_doctor::of_options(Role::Master, file, found)
                };
                ("options", Box::new(examine))
            }
            Configured::Minion(config) => {
                let config = config.clone();
                let examine = move || brine_doctor::of_options(Role::Minion, file, brine_agent::check_options(&config));
                ("options", Box::new(examine))
            }
        }
    }
}
