//! The daemons that this host has: by the configuration, what runs, and the units.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_agent::identity;
use brine_bus::SocketNames;
use brine_config::{ConfigError, Loaded, MasterConfig, MinionConfig, Warning};
use brine_context::minion_id;
use brine_doctor::finding::quoted;
use brine_doctor::{ConfigFinding, Finding, Installation, Role, kinds, processes, unit};
use brine_master_access::access::root_key_path;
use brine_syndic::Settings;
use brine_value::Map;

/// A role with its configuration.
pub(super) enum Configured {
    Master(Box<MasterConfig>),
    Minion(Box<MinionConfig>),
    Api(Box<MasterConfig>),
    /// The minion's configuration has the id.
    Syndic(Box<MasterConfig>, Box<MinionConfig>),
}

/// The roles of this host.
#[derive(Default)]
pub(super) struct Host {
    pub configured: Vec<Arc<Configured>>,
    /// The files of the configurations.
    pub files: Vec<PathBuf>,
    /// What was found while their configurations were read.
    pub findings: Vec<Finding>,
}

impl Host {
    /// Finds the roles, or takes those that are wanted, and reads their configurations.
    pub fn find(directory: &Path, requested: &[Role]) -> Self {
        let mut host = Host::default();
        let master = MasterConfig::load(directory, &Map::new());
        let of_master = master.as_ref().ok().map(|loaded| &loaded.config);
        let roles: Vec<Role> = match requested {
            // At the same time: each asks the service manager.
            [] => std::thread::scope(|scope| {
                let asked = Role::ALL.map(|role| (role, scope.spawn(move || is_here(directory, role, of_master))));
                asked.into_iter().filter_map(|(role, asked)| asked.join().unwrap_or(false).then_some(role)).collect()
            }),
            requested => requested.to_vec(),
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
        if roles.contains(&Role::Minion) {
            host.add_minion(directory);
        }
        if roles.iter().any(|role| *role != Role::Minion) {
            host.add_master(directory, master, &roles);
        }
        host.configured.sort_by_key(|one| one.role());
        host
    }

    /// Adds the roles that have the configuration of the master.
    fn add_master(&mut self, directory: &Path, loaded: Result<Loaded<MasterConfig>, ConfigError>, roles: &[Role]) {
        let of_master: Vec<Role> = roles.iter().copied().filter(|role| *role != Role::Minion).collect();
        let Loaded { config, warnings, files } = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                // The same file for all of them.
                self.findings.extend(of_master.first().map(|role| invalid(*role, directory, &error)));
                return;
            }
        };
        self.files.extend(files);
        for role in of_master {
            match role {
                Role::Master => {
                    self.findings.extend(of_warnings(Role::Master, directory, &warnings));
                    self.configured.push(Arc::new(Configured::Master(Box::new(config.clone()))));
                }
                Role::Api => self.configured.push(Arc::new(Configured::Api(Box::new(config.clone())))),
                Role::Syndic => {
                    let minion = MinionConfig::load(directory, &Map::new()).map(|loaded| loaded.config);
                    let identified = minion.map_err(|error| error.to_string()).and_then(|mut minion| {
                        identity::identify(&mut minion).map(|_| minion).map_err(|error| error.to_string())
                    });
                    match identified {
                        Ok(minion) => {
                            let syndic = Configured::Syndic(Box::new(config.clone()), Box::new(minion));
                            self.configured.push(Arc::new(syndic));
                        }
                        Err(error) => self.findings.push(invalid(Role::Syndic, directory, &error)),
                    }
                }
                Role::Minion => {}
            }
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
                self.configured.push(Arc::new(Configured::Minion(Box::new(config))));
            }
            Err(error) => self.findings.push(invalid(Role::Minion, directory, &error)),
        }
    }
}

/// Whether this host has a daemon with this configuration, or should have one.
fn is_here(directory: &Path, role: Role, of_master: Option<&MasterConfig>) -> bool {
    let name = role.name();
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    let has_file = || {
        let drop_ins = std::fs::read_dir(directory.join(format!("{name}.d")));
        directory.join(name).exists()
            || drop_ins.is_ok_and(|entries| {
                entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "conf"))
            })
    };
    let is_configured = match role {
        Role::Master | Role::Minion => has_file(),
        Role::Api => {
            of_master.is_some_and(|config| !config.rest_cherrypy.is_empty() || !config.rest_tornado.is_empty())
        }
        // Salt's default value is a placeholder.
        Role::Syndic => of_master
            .is_some_and(|config| !config.syndic_master.is_empty() && config.syndic_master != ["masterofmasters"]),
    };
    // The unit of a syndic waits, enabled, until the master above it is named.
    let is_due = |unit: unit::Unit| unit.is_enabled && role != Role::Syndic || unit.is_active || unit.failure.is_some();
    is_configured
        || !processes::daemons(&format!("salt-{name}"), directory, |uid| trusted.contains(&uid)).is_empty()
        || unit::find(name, directory).is_some_and(is_due)
}

fn invalid(role: Role, directory: &Path, error: &dyn std::fmt::Display) -> Finding {
    let file = directory.join(role.config_file());
    Finding::new(&kinds::CONFIG_INVALID, role, format!("the configuration of the {} cannot be read", role.noun()))
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
            Configured::Api(_) => Role::Api,
            Configured::Syndic(..) => Role::Syndic,
        }
    }

    /// Returns the options of the configuration.
    pub fn opts(&self) -> &Map {
        match self {
            Configured::Master(config) | Configured::Api(config) | Configured::Syndic(config, _) => &config.opts,
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
            Configured::Api(config) => Installation::api(config),
            Configured::Syndic(config, minion) => Installation::syndic(config, minion.master_port),
        }
    }

    /// Returns what is wrong with the options, as `--check` says it.
    pub fn check_options(&self, file: PathBuf) -> Vec<Finding> {
        let findings = match self {
            Configured::Master(config) => brine_master::check_options(config, brine_master_runners::MODULES),
            Configured::Minion(config) => brine_agent::check_options(config),
            Configured::Api(config) => brine_api::check(config),
            Configured::Syndic(config, minion) => {
                let key_file = root_key_path(&config.cachedir, config.user.as_deref());
                let settings = Settings::new((**config).clone(), (**minion).clone(), key_file);
                settings.err().map(ConfigFinding::refused).into_iter().collect()
            }
        };
        brine_doctor::of_options(self.role(), file, findings)
    }
}
