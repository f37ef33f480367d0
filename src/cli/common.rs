//! Groups of options that several tools share, and what every tool does with them first.

use std::path::PathBuf;

use anyhow::Context;
use brine_core::config::{DEFAULT_DIRECTORY, Loaded, MasterConfig, MinionConfig, Warning};
use brine_core::value::FromValue;
use brine_core::{Map, Value};
use clap::{ArgAction, Args};
use tracing::level_filters::LevelFilter;

use super::logging;
use super::privileges::{self, Owned};
use crate::output::{self, Outputter};
use crate::ui::{ColourChoice, Ui, print_plain_error};

/// What every tool has.
#[derive(Args, Debug)]
pub struct CommonOptions {
    /// Show the version and exit
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// The folder of the configuration
    #[arg(short, long, value_name = "DIR", env = "SALT_CONFIG_DIR", hide_env = true, default_value = DEFAULT_DIRECTORY)]
    config_dir: PathBuf,
    #[command(flatten)]
    log: LogOptions,
}

/// What is logged, and where.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logging options")]
#[expect(clippy::struct_field_names, reason = "they are the names of the options")]
struct LogOptions {
    /// What is logged to stderr: all, garbage, trace, debug, profile, info, warning, error, critical, quiet
    #[arg(short, long, value_name = "LEVEL", value_parser = logging::level)]
    log_level: Option<LevelFilter>,
    /// Log to this file as well
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// What is logged to the file
    #[arg(long, value_name = "LEVEL", value_parser = logging::level)]
    log_file_level: Option<LevelFilter>,
}

impl CommonOptions {
    /// Reads the master's configuration, starts logging as it and the options say, and tells what
    /// seems wrong with it. `overrides` are options of the command line that count before the files.
    pub fn start_with_master(&self, overrides: &Map) -> anyhow::Result<MasterConfig> {
        let Loaded { config, warnings } = MasterConfig::load(&self.config_dir, overrides)?;
        self.start(&config.log_level, config.log_level_logfile.as_deref(), &warnings)?;
        Ok(config)
    }

    /// Reads the minion's configuration, otherwise as [`CommonOptions::start_with_master`].
    pub fn start_with_minion(&self, overrides: &Map) -> anyhow::Result<MinionConfig> {
        let Loaded { mut config, warnings } = MinionConfig::load(&self.config_dir, overrides)?;
        // Templates ask for whom the minion works.
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.name);
        if config.opts.get("user").is_none_or(Value::is_nil) {
            config.opts.insert("user".into(), user.into());
        }
        config.opts.entry("sudo_user".into()).or_insert_with(|| "".into());
        self.start(&config.log_level, config.log_level_logfile.as_deref(), &warnings)?;
        Ok(config)
    }

    /// Returns the log file of the command line.
    pub fn log_file(&self) -> Option<PathBuf> {
        self.log.log_file.clone()
    }

    /// As [`CommonOptions::start_with_master`]; what has no effect is told too, which the tools leave to the daemon. The
    /// environment is that of the user whom root will change to.
    pub fn start_daemon_with_master(&self, user: Option<&str>) -> anyhow::Result<MasterConfig> {
        let Loaded { config, warnings } = MasterConfig::load(&self.config_dir, &of_user(user))?;
        privileges::take_environment(config.user.as_deref())?;
        self.start(&config.log_level, config.log_level_logfile.as_deref(), &warnings)?;
        tell_unused(&warnings);
        Ok(config)
    }

    /// As [`CommonOptions::start_daemon_with_master`] for the minion.
    pub fn start_daemon_with_minion(&self, user: Option<&str>) -> anyhow::Result<MinionConfig> {
        let Loaded { config, warnings } = MinionConfig::load(&self.config_dir, &of_user(user))?;
        privileges::take_environment(config.user.as_deref())?;
        self.start(&config.log_level, config.log_level_logfile.as_deref(), &warnings)?;
        tell_unused(&warnings);
        Ok(config)
    }

    /// As [`CommonOptions::start_with_master`], for tools that change the master's files: root becomes the user of the
    /// configuration.
    pub fn start_as_user_of_master(&self) -> anyhow::Result<MasterConfig> {
        let Loaded { config, warnings } = MasterConfig::load(&self.config_dir, &Map::new())?;
        privileges::take_environment(config.user.as_deref())?;
        self.start(&config.log_level, config.log_level_logfile.as_deref(), &warnings)?;
        let directories = vec![config.pki_dir.as_path(), &config.cachedir, &config.sock_dir];
        let owned = Owned { directories, existing: self.log_file().into_iter().collect(), ..Owned::default() };
        privileges::take_user(config.user.as_deref(), &owned, false)?;
        Ok(config)
    }

    /// Returns the path of the main file of the configuration.
    pub fn config_file(&self, name: &str) -> PathBuf {
        self.config_dir.join(name)
    }

    /// Starts logging without any configuration.
    pub fn start_without_config(&self) -> anyhow::Result<()> {
        self.start("warning", None, &[])
    }

    fn start(&self, level: &str, file_level: Option<&str>, warnings: &[Warning]) -> anyhow::Result<()> {
        let read = |word: &str| logging::level(word).map_err(anyhow::Error::msg);
        let console = match self.log.log_level {
            Some(level) => level,
            None => read(level).context("option 'log_level'")?,
        };
        let file_level = match (self.log.log_file_level, file_level) {
            (Some(level), _) => level,
            (None, Some(word)) => read(word).context("option 'log_level_logfile'")?,
            (None, None) => console,
        };
        logging::start(console, self.log.log_file.as_deref().map(|file| (file, file_level)))?;
        for warning in warnings {
            match warning {
                Warning::NoDirectory(_) => print_plain_error(format_args!("WARNING: {warning}")),
                Warning::Unknown { .. } => tracing::warn!("{warning}"),
                Warning::Unused { .. } => {}
            }
        }
        Ok(())
    }
}

/// The user of the command line counts before that of the configuration.
fn of_user(user: Option<&str>) -> Map {
    user.map(|user| ("user".into(), user.into())).into_iter().collect()
}

fn tell_unused(warnings: &[Warning]) {
    for warning in warnings.iter().filter(|warning| matches!(warning, Warning::Unused { .. })) {
        tracing::warn!("{warning}");
    }
}

/// How results are shown.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output options")]
pub struct OutputArguments {
    /// The outputter: nested, json, yaml, raw, pprint, txt, key, highstate, quiet
    #[arg(long, visible_alias = "output", value_name = "OUTPUTTER")]
    out: Option<String>,
    /// How many blanks JSON and YAML are indented by; negative for one line
    #[arg(long, alias = "output-indent", value_name = "N", value_parser = super::usage::integer)]
    out_indent: Option<i64>,
    /// Write results to this file
    #[arg(long, alias = "output-file", value_name = "FILE")]
    out_file: Option<PathBuf>,
    /// Add to the file instead of replacing it
    #[arg(long, alias = "output-file-append")]
    out_file_append: bool,
    /// No colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
    /// Colours even if stdout is no terminal
    #[arg(long, alias = "force-colour")]
    force_color: bool,
    /// Which states are shown at length: full, terse, mixed, changes, filter
    #[arg(long, alias = "state_output", value_name = "MODE")]
    state_output: Option<String>,
    /// Whether states that changed nothing are shown: True or False
    #[arg(long, alias = "state_verbose", value_name = "BOOL")]
    state_verbose: Option<String>,
}

/// Shows results as the options and the configuration want them.
pub struct Shower {
    ui: Ui,
    asked: Option<String>,
    options: output::OutputOptions,
}

impl OutputArguments {
    /// Whether there is colour; `config` holds Salt's names (`opts`).
    pub fn colours(&self, config: &Map) -> ColourChoice {
        let wanted = config.get("color").and_then(bool::from_value).unwrap_or(true);
        match (self.force_color, self.no_color || !wanted) {
            (true, _) => ColourChoice::Always,
            (false, true) => ColourChoice::Never,
            (false, false) => ColourChoice::Auto,
        }
    }

    /// What shows results; `config` holds Salt's names (`opts`). A file for output is opened here.
    pub fn shower(&self, config: &Map) -> anyhow::Result<Shower> {
        let mut ui = Ui::new(self.colours(config));
        if let Some(file) = &self.out_file {
            ui.redirect(file, self.out_file_append).with_context(|| format!("cannot write to {}", file.display()))?;
        }
        let mut options = output::OutputOptions { colours: ui.colours(), ..Default::default() };
        options.set_all(config);
        let mut given = Map::new();
        given.extend(self.out_indent.map(|columns| ("output_indent".into(), columns.into())));
        given.extend(self.state_output.as_ref().map(|mode| ("state_output".into(), mode.into())));
        given.extend(self.state_verbose.as_ref().map(|word| ("state_verbose".into(), word.into())));
        options.set_all(&given);
        let configured = config.get("output").and_then(Value::as_str).map(str::to_owned);
        Ok(Shower { ui, asked: self.out.clone().or(configured), options })
    }
}

impl Shower {
    /// Whether an outputter was asked for, on the command line or in the configuration.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether no outputter was asked for, or the one that text is shown with by default.
    pub fn is_nested(&self) -> bool {
        matches!(self.asked.as_deref(), None | Some("nested" | "highstate"))
    }

    /// Whether what hints at the highstate outputter is shown by it.
    pub fn is_highstate(&self) -> bool {
        matches!(self.asked.as_deref(), None | Some("highstate"))
    }

    /// Sets the retcode of what is shown next: the keys of nested output are red if it is not 0.
    pub fn set_retcode(&mut self, retcode: i64) {
        self.options.retcode = retcode;
    }

    /// Shows a line of progress on a terminal, in place of the one before.
    pub fn progress(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.ui.progress(text)?)
    }

    /// Removes the line of progress.
    pub fn clear_progress(&mut self) -> anyhow::Result<()> {
        Ok(self.ui.clear_progress()?)
    }

    /// Shows a value with the outputter that was asked for, else with the one that is hinted at. A value
    /// that has no text leaves no empty line.
    pub fn show(&mut self, value: &Value, hint: &str) -> anyhow::Result<()> {
        let outputter = Outputter::select(self.asked.as_deref(), Some(hint)).unwrap_or_else(|error| {
            tracing::error!("{error}");
            Outputter::Nested
        });
        let text = output::display(value, outputter, &self.options);
        if !text.is_empty() {
            self.ui.print(&text)?;
        }
        Ok(())
    }
}
