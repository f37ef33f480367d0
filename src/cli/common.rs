//! Groups of options that several tools share, and the start of every tool: configuration, logging, user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use brine_agent::identity;
use brine_config::opts::{master as master_opts, minion as minion_opts, shared};
use brine_config::{DEFAULT_DIRECTORY, Loaded, MasterConfig, MinionConfig, Warning};
use brine_context::Mask;
use brine_modules::MODULES;
use brine_value::{Map, Value};
use clap::{ArgAction, Args};
use tracing::level_filters::LevelFilter;

use super::custom_outputters::CustomOutputters;
use super::log_file::LogFile;
use super::log_format::{self, LineFormat};
use super::logging::{self, GranularLevels};
use super::privileges::{self, OwnedPaths};
use super::saltfile;
use super::sdb;
use crate::output::{self, Outputter};
use crate::ui::{ColourChoice, Colours, Ui, print_plain_error};

/// The options that every tool logs at level debug: paths and addresses, no secrets.
const LOGGED_OPTIONS: &[&str] = &[
    "id",
    "user",
    "root_dir",
    "pki_dir",
    "cachedir",
    "sock_dir",
    "log_file",
    "log_level",
    "master",
    "master_port",
    "interface",
    "publish_port",
    "ret_port",
    "ciphers",
    "worker_threads",
    "file_client",
    "fileserver_backend",
    "file_roots",
    "pillar_roots",
    "renderer",
    "saltenv",
    "pillarenv",
    "timeout",
];

/// Creates the mask of arguments in what a program publishes or returns by itself.
pub fn mask(config: &MasterConfig) -> anyhow::Result<Mask> {
    let mask = Mask::new(&config.masked_names, &config.unmasked_names).context("option 'masked_names'")?;
    Ok(mask.with_parameters(Arc::new(MODULES)))
}

/// The role of the process, which determines its log format and warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A command line tool. It logs to the file of its daemon if it can write to it.
    Tool,
    /// A daemon: lines on stderr have the time, the log file is created, options without effect are reported.
    Daemon,
    /// `--check`, or the process that starts a daemon in the background. It logs only to stderr.
    BeforeDaemon,
}

/// Common options of all tools.
#[derive(Args, Debug)]
pub struct CommonOptions {
    /// Show the version and exit
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// The configuration directory, which must exist (default: /etc/salt)
    #[arg(short, long, value_name = "DIR", env = "SALT_CONFIG_DIR", hide_env = true)]
    config_dir: Option<PathBuf>,
    #[command(flatten)]
    log: LogOptions,
}

/// The level and destination of logs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logging options")]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
struct LogOptions {
    /// The level of the log on stderr: all, garbage, trace, debug, profile, info, warning, error, critical, quiet
    #[arg(short, long, value_name = "LEVEL", value_parser = logging::level)]
    log_level: Option<LevelFilter>,
    /// The log file (default: the option log_file; salt-key: key_logfile)
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// The level of the log file (default: the option log_level_logfile)
    #[arg(long, value_name = "LEVEL", value_parser = logging::level)]
    log_file_level: Option<LevelFilter>,
}

/// The log options of a configuration.
struct Configured<'a> {
    level: &'a str,
    file_level: Option<&'a str>,
    /// `log_granular_levels`.
    granular: &'a Map,
    file: &'a Path,
    /// Whether the path is not the default.
    is_named: bool,
    console_format: Option<&'a str>,
    console_date: Option<&'a str>,
    file_format: Option<&'a str>,
    file_date: Option<&'a str>,
}

macro_rules! configured {
    ($config:expr, $file:ident, $default:literal) => {
        Configured {
            level: &$config.log_level,
            file_level: $config.log_level_logfile.as_deref(),
            granular: &$config.log_granular_levels,
            file: &$config.$file,
            is_named: $config.$file != $config.root_dir.join($default),
            console_format: $config.log_fmt_console.as_deref(),
            console_date: $config.log_datefmt_console.as_deref().or($config.log_datefmt.as_deref()),
            file_format: $config.log_fmt_logfile.as_deref(),
            file_date: $config.log_datefmt_logfile.as_deref(),
        }
    };
}

impl CommonOptions {
    /// Reads the master's configuration, starts logging, and reports probable mistakes in the configuration.
    /// `overrides` are options of the command line and take precedence over the files.
    pub fn start_with_master(&self, overrides: &Map) -> anyhow::Result<MasterConfig> {
        let loaded = self.load_master(overrides)?;
        self.start(Role::Tool, &configured!(loaded.config, log_file, "var/log/salt/master"))?;
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_with_master`] for `salt-ssh`, which has its own log file.
    pub fn start_ssh(&self) -> anyhow::Result<MasterConfig> {
        let loaded = sdb::master_config(self.directory()?, &Map::new())?;
        self.start(Role::Tool, &configured!(loaded.config, ssh_log_file, "var/log/salt/ssh"))?;
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_with_master`] for `salt-key`, which has its own log file and writes files of
    /// the master: root changes to the user of the configuration.
    pub fn start_with_keys(&self) -> anyhow::Result<MasterConfig> {
        let loaded = self.load_master(&Map::new())?;
        let config = &loaded.config;
        privileges::take_environment(config.user.as_deref())?;
        self.start(Role::Tool, &configured!(config, key_logfile, "var/log/salt/key"))?;
        self.take_user(config, &config.key_logfile)?;
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_with_keys`], with the log file of the master.
    pub fn start_as_user_of_master(&self) -> anyhow::Result<MasterConfig> {
        let loaded = self.load_master(&Map::new())?;
        let config = &loaded.config;
        privileges::take_environment(config.user.as_deref())?;
        self.start(Role::Tool, &configured!(config, log_file, "var/log/salt/master"))?;
        self.take_user(config, &config.log_file)?;
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Reads the master's configuration. Without the option `user`, root acts as the user of the service.
    fn load_master(&self, overrides: &Map) -> anyhow::Result<Loaded<MasterConfig>> {
        let mut loaded = MasterConfig::load(self.directory()?, &saltfile::overridden(overrides))?;
        let config = &mut loaded.config;
        config.user = config.user.take().or_else(|| privileges::user_of_service(&config.store_path()));
        Ok(loaded)
    }

    fn take_user(&self, config: &MasterConfig, log_file: &Path) -> anyhow::Result<()> {
        let directories = vec![config.pki_dir.as_path(), &config.cachedir, &config.sock_dir];
        let owned =
            OwnedPaths { directories, existing: vec![self.log_file(log_file).to_owned()], ..OwnedPaths::default() };
        Ok(privileges::take_user(config.user.as_deref(), &owned, false)?)
    }

    /// Works like [`CommonOptions::start_with_master`] for the minion's configuration.
    pub fn start_with_minion(&self, overrides: &Map) -> anyhow::Result<MinionConfig> {
        let mut loaded = sdb::minion_config(self.directory()?, overrides)?;
        identity::identify(&mut loaded.config)?;
        let opts = &mut loaded.config.opts;
        // Templates read the user of the minion in `opts`.
        if minion_opts::user(opts).is_none() {
            opts.insert("user".into(), privileges::user_name().into());
        }
        opts.entry("sudo_user".into()).or_insert_with(|| "".into());
        self.start(Role::Tool, &configured!(loaded.config, log_file, "var/log/salt/minion"))?;
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_with_master`] for the daemon, which also reports options without effect. The
    /// environment is that of the user that root will change to.
    pub fn start_daemon_with_master(&self, role: Role, user: Option<&str>) -> anyhow::Result<MasterConfig> {
        let loaded = sdb::master_config(self.directory()?, &of_user(user))?;
        privileges::take_environment(loaded.config.user.as_deref())?;
        self.start(role, &configured!(loaded.config, log_file, "var/log/salt/master"))?;
        Ok(report(loaded, role, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_daemon_with_master`] for the API, which has its own log file.
    pub fn start_api(&self, role: Role, user: Option<&str>) -> anyhow::Result<MasterConfig> {
        let mut loaded = sdb::master_config(self.directory()?, &of_user(user))?;
        if user.is_none() && loaded.config.api_user.is_some() {
            loaded.config.user.clone_from(&loaded.config.api_user);
        }
        privileges::take_environment(loaded.config.user.as_deref())?;
        self.start(role, &configured!(loaded.config, api_logfile, "var/log/salt/api"))?;
        // The master reports options without effect.
        Ok(report(loaded, Role::Tool, |config| &config.opts))
    }

    /// Works like [`CommonOptions::start_daemon_with_master`] for the syndic, which has its own log file and user, and
    /// the identity of the minion.
    pub fn start_syndic(&self, role: Role, user: Option<&str>) -> anyhow::Result<(MasterConfig, MinionConfig)> {
        let mut loaded = sdb::master_config(self.directory()?, &of_user(user))?;
        let mut minion = sdb::minion_config(self.directory()?, &Map::new())?.config;
        identity::identify(&mut minion)?;
        if user.is_none() && loaded.config.syndic_user.is_some() {
            loaded.config.user.clone_from(&loaded.config.syndic_user);
        }
        privileges::take_environment(loaded.config.user.as_deref())?;
        self.start(role, &configured!(loaded.config, syndic_log_file, "var/log/salt/syndic"))?;
        // The daemons of master and minion report options without effect.
        Ok((report(loaded, Role::Tool, |config| &config.opts), minion))
    }

    /// Works like [`CommonOptions::start_daemon_with_master`] for the minion.
    pub fn start_daemon_with_minion(&self, role: Role, user: Option<&str>) -> anyhow::Result<MinionConfig> {
        let mut loaded = sdb::minion_config(self.directory()?, &of_user(user))?;
        let origin = identity::identify(&mut loaded.config)?;
        privileges::take_environment(loaded.config.user.as_deref())?;
        self.start(role, &configured!(loaded.config, log_file, "var/log/salt/minion"))?;
        if role == Role::Daemon {
            identity::cache(&loaded.config, &origin);
        }
        Ok(report(loaded, role, |config| &config.opts))
    }

    /// Returns the path of the main configuration file.
    pub fn config_file(&self, name: &str) -> PathBuf {
        self.config_dir.as_deref().unwrap_or(Path::new(DEFAULT_DIRECTORY)).join(name)
    }

    /// Starts logging with the default configuration.
    pub fn start_without_config(&self) -> anyhow::Result<()> {
        self.directory()?;
        let config = MasterConfig { key_logfile: PathBuf::new(), ..MasterConfig::default() };
        self.start(Role::Tool, &configured!(config, key_logfile, "var/log/salt/key"))
    }

    /// Returns the log file: that of the command line, or else the configured one.
    pub fn log_file<'a>(&'a self, configured: &'a Path) -> &'a Path {
        self.log.log_file.as_deref().unwrap_or(configured)
    }

    /// Returns the configuration directory. One on the command line must exist: a daemon with defaults would create
    /// new keys.
    fn directory(&self) -> anyhow::Result<&Path> {
        let Some(named) = self.config_dir.as_deref().filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(Path::new(DEFAULT_DIRECTORY));
        };
        if !named.is_dir() {
            bail!(
                "the configuration directory {} is invalid: it does not exist or is not a directory; name an existing \
                 one with -c or SALT_CONFIG_DIR",
                named.display()
            );
        }
        Ok(named)
    }

    fn start(&self, role: Role, configured: &Configured<'_>) -> anyhow::Result<()> {
        let read = |word: &str| logging::level(word).map_err(anyhow::Error::msg);
        let console = match self.log.log_level {
            Some(level) => level,
            None => read(configured.level).context("option 'log_level'")?,
        };
        let file_level = match (self.log.log_file_level, configured.file_level) {
            (Some(level), _) => level,
            (None, Some(word)) => read(word).context("option 'log_level_logfile'")?,
            (None, None) => console,
        };
        let default = if role == Role::Daemon {
            (log_format::DAEMON_CONSOLE, log_format::DATE_AND_TIME)
        } else {
            (log_format::CONSOLE, log_format::TIME)
        };
        let (levels, mut wrong) = GranularLevels::read(configured.granular);
        let mut format = |option: &str, template: Option<&str>, date: Option<&str>, default: (&str, &str)| {
            LineFormat::parse(template.unwrap_or(default.0), date.unwrap_or(default.1)).or_else(|error| {
                wrong.push(format!("option '{option}': {error}; the default is used"));
                LineFormat::parse(default.0, default.1)
            })
        };
        let on_console = format("log_fmt_console", configured.console_format, configured.console_date, default)?;
        let default = (log_format::FILE, log_format::DATE_AND_TIME);
        let in_file = format("log_fmt_logfile", configured.file_format, configured.file_date, default)?;
        let file =
            self.open(role, configured, file_level, &mut wrong).map(|file| (file, levels.filter(file_level), in_file));
        logging::start((levels.filter(console), on_console), file)?;
        for wrong in wrong {
            tracing::warn!("{wrong}");
        }
        Ok(())
    }

    /// Opens the log file of the options, if they name one.
    fn open(
        &self,
        role: Role,
        configured: &Configured<'_>,
        level: LevelFilter,
        wrong: &mut Vec<String>,
    ) -> Option<LogFile> {
        let path = self.log_file(configured.file);
        if role == Role::BeforeDaemon || level == LevelFilter::OFF || path.as_os_str().is_empty() {
            return None;
        }
        if path.to_string_lossy().contains("://") {
            wrong.push(format!("logging to {} failed: syslog is not supported; name a file", path.display()));
            return None;
        }
        let is_wanted = role == Role::Daemon || self.log.log_file.is_some() || configured.is_named;
        let mut file = LogFile::new(path, is_wanted);
        if is_wanted {
            file.open_now();
        }
        Some(file)
    }
}

/// Returns the override for the user of the command line.
fn of_user(user: Option<&str>) -> Map {
    user.map(|user| ("user".into(), user.into())).into_iter().collect()
}

/// Logs the files that were read and probable mistakes in them, and returns the configuration.
fn report<T>(loaded: Loaded<T>, role: Role, opts: fn(&T) -> &Map) -> T {
    let Loaded { config, warnings, files } = loaded;
    for file in files {
        tracing::debug!(file = %file.display(), "configuration file read");
    }
    for name in LOGGED_OPTIONS {
        if let Some(value) = opts(&config).get(*name).filter(|value| !value.is_nil()) {
            tracing::debug!("option {name}: {value}");
        }
    }
    for warning in &warnings {
        match warning {
            Warning::NoDirectory(_) => print_plain_error(format_args!("WARNING: {warning}")),
            // An option of the operator's own, such as one for pillar: tools warn only if a known name is similar.
            Warning::Unknown { nearest: None, .. } if role == Role::Tool => tracing::debug!("{warning}"),
            Warning::Unknown { .. } => tracing::warn!("{warning}"),
            Warning::Unused { .. } if role == Role::Tool => {}
            Warning::Unused { .. } => tracing::warn!("{warning}"),
        }
    }
    config
}

/// The options of tools that call a function.
#[derive(Args, Debug)]
pub struct CallOptions {
    /// Names of keyword arguments that are passed as strings, separated by commas
    #[arg(long, value_name = "NAMES")]
    no_parse: Option<String>,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub output: OutputArguments,
}

impl CallOptions {
    /// Returns the names of keyword arguments that are passed as strings.
    pub fn no_parse(&self) -> Vec<String> {
        self.no_parse.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect()
    }
}

/// The format of results.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output options")]
pub struct OutputArguments {
    /// The outputter: nested, json, yaml, raw, pprint, table, txt, key, highstate, quiet
    #[arg(long, visible_alias = "output", value_name = "OUTPUTTER")]
    out: Option<String>,
    /// The number of spaces that JSON and YAML are indented by; negative for one line
    #[arg(long, alias = "output-indent", value_name = "N", value_parser = super::usage::integer)]
    out_indent: Option<i64>,
    /// Write the results to this file
    #[arg(long, alias = "output-file", value_name = "FILE")]
    out_file: Option<PathBuf>,
    /// Append to the file instead of replacing it
    #[arg(long, alias = "output-file-append")]
    out_file_append: bool,
    /// Never use colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
    /// Use colours even if stdout is not a terminal
    #[arg(long, alias = "force-colour")]
    force_color: bool,
    /// How states are shown: full, terse, mixed, changes, filter
    #[arg(long, alias = "state_output", value_name = "MODE")]
    state_output: Option<String>,
    /// Whether to show states without changes: True or False
    #[arg(long, alias = "state_verbose", value_name = "BOOL")]
    state_verbose: Option<String>,
}

/// Prints results in the format of the options and the configuration.
pub struct ResultPrinter {
    ui: Ui,
    asked: Option<String>,
    options: output::OutputOptions,
    outputters: CustomOutputters,
}

impl OutputArguments {
    /// Returns the choice of colours; `config` are the `opts` of the configuration.
    pub fn colours(&self, config: &Map) -> ColourChoice {
        let is_coloured = shared::color(config);
        match (self.force_color, self.no_color || !is_coloured) {
            (true, _) => ColourChoice::Always,
            (false, true) => ColourChoice::Never,
            (false, false) => ColourChoice::Auto,
        }
    }

    /// Creates the printer of results; `config` are the `opts` of the configuration. Opens the file of `--out-file`.
    pub fn printer(&self, config: &Map) -> anyhow::Result<ResultPrinter> {
        let mut ui = Ui::new(self.colours(config));
        if let Some(file) = &self.out_file {
            ui.redirect(file, self.out_file_append).with_context(|| format!("writing to {} failed", file.display()))?;
        }
        let mut options = output::OutputOptions { colours: ui.colours(), ..Default::default() };
        options.set_all(config);
        let mut overrides = Map::new();
        overrides.extend(self.out_indent.map(|columns| ("output_indent".into(), columns.into())));
        overrides.extend(self.state_output.as_ref().map(|mode| ("state_output".into(), mode.into())));
        overrides.extend(self.state_verbose.as_ref().map(|word| ("state_verbose".into(), word.into())));
        options.set_all(&overrides);
        let configured = master_opts::output(config);
        let outputters = CustomOutputters::new(config, options.colours != Colours::OFF);
        Ok(ResultPrinter { ui, asked: self.out.clone().or(configured), options, outputters })
    }
}

impl ResultPrinter {
    /// Returns whether the command line or the configuration names an outputter.
    pub fn has_outputter(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns whether no outputter is named, or one of the default ones.
    pub fn is_nested(&self) -> bool {
        matches!(self.asked.as_deref(), None | Some("nested" | "highstate"))
    }

    /// Returns whether returns of states are shown by the highstate outputter.
    pub fn is_highstate(&self) -> bool {
        matches!(self.asked.as_deref(), None | Some("highstate"))
    }

    /// Sets the retcode of the next result: the keys of nested output are red if it is not 0.
    pub fn set_retcode(&mut self, retcode: i64) {
        self.options.retcode = retcode;
    }

    /// Shows a line of progress on a terminal, replacing the previous one.
    pub fn progress(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.ui.progress(text)?)
    }

    /// Removes the line of progress.
    pub fn clear_progress(&mut self) -> anyhow::Result<()> {
        Ok(self.ui.clear_progress()?)
    }

    /// Prints a value with the named outputter, or else with the one of the hint. Prints no line for an empty text.
    pub fn show(&mut self, value: &Value, hint: &str) -> anyhow::Result<()> {
        let asked = self.asked.as_deref();
        let name = Outputter::name(asked, Some(hint)).unwrap_or_default();
        let text = self.outputters.display(name, value, self.options.retcode).unwrap_or_else(|| {
            let outputter = Outputter::select(asked, Some(hint)).unwrap_or_else(|error| {
                tracing::error!("{error}");
                Outputter::Nested
            });
            output::display(value, outputter, &self.options)
        });
        if !text.is_empty() {
            self.ui.print(&text)?;
        }
        Ok(())
    }
}
