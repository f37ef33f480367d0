//! The arguments that functions of `cmd` share: how a command is run, and which exit statuses count as success.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_context::Context;
use brine_function::{Args, Arguments, CallError};
use brine_host::process::Program;
use brine_text::shell::quote;
use brine_value::{Map, Value};

use super::DEFAULT_SHELL;
use super::scratch::SCRATCH;

/// How a command is run, and which exit statuses count as success.
#[derive(Args)]
pub struct CommandArgs {
    /// Working directory; the home directory of the user by default.
    pub(super) cwd: Option<String>,
    /// Text for standard input.
    pub(super) stdin: Option<String>,
    /// User to run as.
    pub(super) runas: Option<String>,
    /// Not supported, an error: a command has the groups of its user.
    pub(super) group: Option<String>,
    /// Path of the shell; that of the grain `shell` by default.
    pub(super) shell: Option<String>,
    /// Whether the command is run by a shell: the default, except in templates.
    #[default]
    pub(super) python_shell: Value,
    /// Variables of the environment: a mapping, or a list of mappings and names.
    #[default]
    pub(super) env: Value,
    /// Whether `env` is the whole environment.
    #[default(false.into())]
    pub(super) clean_env: Value,
    /// Template engine that renders the command, or the script: `jinja`.
    pub(super) template: Option<String>,
    /// Whether white space at the end of the output is removed.
    #[default(true.into())]
    pub(super) rstrip: Value,
    /// Umask, as an octal string.
    pub(super) umask: Option<String>,
    /// Without effect: output is read as UTF-8.
    #[default]
    pub(super) output_encoding: Value,
    /// `quiet` logs nothing of the command.
    #[default(Some("debug".into()))]
    pub(super) output_loglevel: Option<String>,
    /// Without effect: only Python code could pass a function.
    #[default]
    pub(super) log_callback: Value,
    /// Whether the output is neither logged nor returned.
    #[default(false.into())]
    pub(super) hide_output: Value,
    /// Seconds after which the command is killed.
    #[default]
    pub(super) timeout: Value,
    /// Whether the locale is `C.UTF-8` instead of that of the minion.
    #[default(true.into())]
    pub(super) reset_system_locale: Value,
    /// Whether the exit status does not become the job's retcode.
    #[default(false.into())]
    pub(super) ignore_retcode: Value,
    /// Environment of the file server for the template.
    pub(super) saltenv: Option<String>,
    /// Without effect: commands have no terminal.
    #[default(false.into())]
    pub(super) use_vt: Value,
    /// Whether standard error is returned with standard output; by default, `cmd.run` does so.
    #[default]
    pub(super) redirect_stderr: Value,
    /// Whether the command is started in the background.
    #[default(false.into())]
    pub(super) bg: Value,
    /// Without effect: for Windows.
    #[default]
    pub(super) password: Value,
    /// Without effect: for Windows.
    #[default(false.into())]
    pub(super) encoded_cmd: Value,
    /// Whether a failure of the command is an error of the call.
    #[default(false.into())]
    pub(super) raise_err: Value,
    /// Directory to search for programs first.
    pub(super) prepend_path: Option<String>,
    /// Exit statuses that count as 0.
    #[default]
    pub(super) success_retcodes: Value,
    /// Texts in the output that make the exit status count as 0.
    #[default]
    pub(super) success_stdout: Vec<String>,
    /// Texts in standard error that make the exit status count as 0.
    #[default]
    pub(super) success_stderr: Vec<String>,
    /// Further arguments: `root`, a directory to change the root to; `ignore_timeout`, whether a timeout is a success;
    /// `defaults` and `context`, variables of the template; `stdin_raw_newlines`, whether `\n` in `stdin` stays as it is.
    /// `windows_codepage` is without effect.
    #[keywords]
    pub(super) kwargs: Map,
}

impl CommandArgs {
    /// Parses keyword arguments.
    ///
    /// # Errors
    /// A value has a wrong type.
    pub fn read(kwargs: &Map) -> Result<Self, CallError> {
        let args = Args::keyword(kwargs.clone());
        Self::of_call("cmd", "run", args)
    }

    /// Returns the user that the command runs as.
    pub(super) fn user(&self) -> Option<String> {
        self.runas.clone().or_else(|| self.text("user"))
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.output_loglevel.as_deref() == Some("quiet")
    }

    /// Returns whether a timeout counts as a success.
    pub(super) fn ignores_timeout(&self) -> bool {
        self.kwargs.get("ignore_timeout").is_some_and(Value::is_truthy)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.kwargs.get(name).filter(|value| !value.is_nil()).map(ToString::to_string)
    }

    /// Whether a shell reads the command: by default that of a job, and not that of a template or of another function.
    pub(super) fn runs_through_shell(&self, context: &Context) -> bool {
        let by_default = !context.is_nested || !context.config().cmd_safe;
        if self.python_shell.is_nil() { by_default } else { self.python_shell.is_truthy() }
    }

    /// Returns the program that runs a command with these arguments.
    ///
    /// # Errors
    /// The command is empty: usually that of a template variable without a value. The timeout or the umask is invalid,
    /// the template fails, or a `group` is given.
    pub(super) fn program(&self, context: &Context, command: &str) -> Result<Program, CallError> {
        if command.trim().is_empty() {
            return Err(CallError::Exception("command is invalid: expected a command, got an empty text".into()));
        }
        if let Some(group) = self.group.as_deref().filter(|group| !group.is_empty()) {
            let message = format!("a command cannot be run as the group '{group}': it has the groups of `runas`");
            return Err(CallError::Execution(message));
        }
        _ = (&self.output_encoding, &self.log_callback, &self.use_vt);
        _ = (&self.password, &self.encoded_cmd);
        let through_shell = self.runs_through_shell(context);
        let mut env = environment(&self.env);
        if let Some(first) = self.prepend_path.clone() {
            let own = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
            let path = own.or_else(|| brine_host::environment::variable("PATH")).unwrap_or_default();
            env.push(("PATH".into(), if path.is_empty() { first } else { format!("{first}:{path}") }));
        }
        let own_shell = || context.grains().get("shell").and_then(Value::as_str).unwrap_or(DEFAULT_SHELL).to_owned();
        Ok(Program {
            command: self.command(context, command)?,
            shell: through_shell.then(|| self.shell.clone().unwrap_or_else(own_shell)),
            cwd: self.cwd.clone().map(PathBuf::from),
            env,
            clean_env: self.clean_env.is_truthy(),
            keep_locale: !self.reset_system_locale.is_truthy(),
            stdin: self.input(),
            runas: self.user(),
            timeout: self.timeout()?,
            umask: self.umask()?,
            file_limit: None,
            keep_line_ends: !self.rstrip.is_truthy(),
            quiet: self.is_quiet(),
            output_limit: Some(context.config().cmd_output_limit),
            merge: self.redirect_stderr.is_truthy(),
        })
    }

    /// Returns the standard input: `\n` that was written as two characters, as on a command line, is a line break.
    fn input(&self) -> Option<String> {
        let is_raw = self.kwargs.get("stdin_raw_newlines").is_some_and(Value::is_truthy);
        let stdin = self.stdin.as_deref();
        stdin.map(|text| if is_raw { text.to_owned() } else { text.replace("\\n", "\n") })
    }

    /// Whether `template` names the engine that there is.
    ///
    /// # Errors
    /// It names another one.
    pub(super) fn is_template(&self) -> Result<bool, CallError> {
        match self.template.as_deref() {
            None | Some("" | "False") => Ok(false),
            Some("jinja") => Ok(true),
            Some(engine) => Err(CallError::Execution(format!(
                "the template engine '{engine}' is not available here: expected jinja"
            ))),
        }
    }

    /// Returns a command or directory, rendered with `template`.
    ///
    /// # Errors
    /// The template fails, or there is no such engine.
    pub(super) fn rendered(&self, context: &Context, command: &str) -> Result<String, CallError> {
        // For a script, `template` renders the content, not the command.
        if !self.is_template()? || command.contains(SCRATCH) {
            return Ok(command.to_owned());
        }
        let rendering = brine_state::Source::new(context, self.template_pillar(context)?);
        let saltenv = self.saltenv.as_deref().unwrap_or("base");
        rendering.render_template("cmd", command, &Map::new(), saltenv).map_err(CallError::execution)
    }

    /// Returns the command, rendered with `template`, and wrapped in `chroot` with `root`.
    fn command(&self, context: &Context, command: &str) -> Result<String, CallError> {
        let command = self.rendered(context, command)?;
        Ok(match self.text("root") {
            Some(root) => format!("chroot {} sh -c {}", quote(&root), quote(&command)),
            None => command,
        })
    }

    /// Returns the pillar of templates: that of the minion, or with `pillar` or `pillarenv` a pillar of its own.
    pub fn template_pillar(&self, context: &Context) -> Result<Arc<Map>, CallError> {
        let argument = |name: &str| self.kwargs.get(name).filter(|value| !value.is_nil());
        if argument("pillar").is_none() && argument("pillarenv").is_none() {
            return Ok(context.pillar());
        }
        let config = context.config();
        let pillarenv = argument("pillarenv").and_then(Value::as_str).or(config.pillarenv.as_deref());
        let over = argument("pillar").and_then(Value::as_map).cloned().unwrap_or_default();
        let pillar = context.minion.upstream.pillar(config.saltenv.as_deref(), pillarenv, &over);
        pillar.map(Arc::new).map_err(CallError::execution)
    }

    fn timeout(&self) -> Result<Option<Duration>, CallError> {
        if !self.timeout.is_truthy() {
            return Ok(None);
        }
        match self.timeout.as_f64() {
            Some(seconds) => Ok(Some(brine_runtime::seconds::within(0.0..=1e9, seconds))),
            None => Err(CallError::Execution(format!("Error: timeout {} must be a number", self.timeout))),
        }
    }

    fn umask(&self) -> Result<Option<u32>, CallError> {
        let Some(umask) = &self.umask else { return Ok(None) };
        let parsed = u32::from_str_radix(umask.trim_start_matches("0o"), 8).ok().filter(|umask| *umask <= 0o777);
        parsed.map(Some).ok_or_else(|| CallError::Execution(format!("Invalid umask: '{umask}'")))
    }
}

/// Parses `env`: a mapping, or a list of mappings and of names that are set to an empty string as null values are, or a
/// string with either in YAML. Other values are ignored, as in Salt.
fn environment(env: &Value) -> Vec<(String, String)> {
    let pairs = |map: &Map| {
        let text = |value: &Value| if value.is_nil() { String::new() } else { value.to_string() };
        map.iter().map(|(name, value)| (name.to_string(), text(value))).collect::<Vec<_>>()
    };
    match env {
        Value::Map(map) => pairs(map),
        Value::List(items) => {
            let each = |item: &Value| item.as_map().map_or_else(|| vec![(item.to_string(), String::new())], pairs);
            items.iter().flat_map(each).collect()
        }
        Value::Str(text) => match brine_yaml::load(text) {
            Ok(env @ (Value::Map(_) | Value::List(_))) => environment(&env),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
