//! `cmd`: states that run commands.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, Arguments, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_host::process::Output;
use brine_value::{Map, Value, map};

use crate::cmd::{self, CommandArgs};

/// State functions of `cmd`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("cmd", [run, script, wait_script, wait, watch, call, wait_call, mod_watch]);

/// Run a command. `creates`, `onlyif` and `unless` skip it when nothing is to be done.
///
/// The state has changes whenever the command ran, and fails if its exit status is not 0. A command that is not
/// idempotent needs one of `creates`, `onlyif`, `unless`, or `onchanges` with the state that makes it necessary.
///
/// With `stateful`, the last line of the output decides whether there are changes: JSON or pairs such as
/// `changed=yes comment='3 rows'`. A mapping with `test_name` names the command that reports them in test mode.
///
/// SLS Example:
///
///     /opt/app/bin/migrate:
///       cmd.run:
///         - runas: app
///         - cwd: /opt/app
///         - env:
///           - APP_ENV: production
///         - onchanges:
///           - file: /opt/app/schema.sql
///
///     unpack_app:
///       cmd.run:
///         - name: tar xzf /var/cache/app.tgz
///         - cwd: /opt
///         - creates: /opt/app/VERSION
///         - timeout: 60
///
///     reload_rules:
///       cmd.run:
///         - name: /usr/local/sbin/load-rules
///         - unless: iptables -C INPUT -p tcp --dport 443 -j ACCEPT
///         - success_retcodes: [0, 2]
#[function]
pub fn run(
    context: &StateContext,
    /// Command, run by a shell unless `python_shell` is false.
    name: String,
    #[keywords(further_run)] kwargs: Map,
) -> CallResult {
    let kwargs = with_owner(context, kwargs);
    if !is_environment(kwargs.get("env")) {
        let comment = "Invalidly-formatted 'env' parameter. See documentation.";
        return Ok(StateReturn::failed(&name, comment).into());
    }
    if context.test {
        return predict(context, &name, &kwargs, &format!("Command \"{name}\" would have been executed"), true);
    }
    if let Some(cwd) = kwargs.get("cwd").and_then(Value::as_str).filter(|cwd| !std::path::Path::new(cwd).is_dir()) {
        return Ok(StateReturn::failed(&name, format!("Desired working directory \"{cwd}\" is not available")).into());
    }
    if kwargs.get("bg").is_some_and(Value::is_truthy) {
        let started = cmd::start(&context.call, &name, &CommandArgs::read(&kwargs)?)?;
        let changes = map! {"pid" => started, "retcode" => Value::Nil, "stdout" => "", "stderr" => ""};
        return Ok(StateReturn::ok(&name, format!("Command \"{name}\" run")).with_changes(changes).into());
    }
    let output = cmd::execute(&context.call, &name, &CommandArgs::read(&kwargs)?);
    Ok(run_result(&name, &format!("Command \"{name}\" run"), &kwargs, output)?.into())
}

/// Run a script of the file server or of this host.
///
/// The script is copied to the minion, run, and removed. As with `cmd.run`, `creates`, `onlyif` and `unless` skip
/// it, and `stateful` lets it report its changes.
///
/// SLS Example:
///
///     setup_app:
///       cmd.script:
///         - source: salt://app/setup.sh
///         - args: --mode production
///         - runas: app
///         - creates: /opt/app/installed
///
///     salt://scripts/report.sh:
///       cmd.script:
///         - template: jinja
///         - context:
///             port: 8080
///         - stateful: True
#[function]
pub fn script(
    context: &StateContext,
    /// Script with its arguments; the URL of the script unless `source` is set.
    name: String,
    /// URL (`salt://`, `https://`) or path of the script.
    source: Option<String>,
    /// Arguments of the script, as a string or a list.
    #[default]
    args: Value,
    #[keywords(further_script)] kwargs: Map,
) -> CallResult {
    let kwargs = with_owner(context, kwargs);
    if !is_environment(kwargs.get("env")) {
        let comment = "Invalidly-formatted 'env' parameter. See documentation.";
        return Ok(StateReturn::failed(&name, comment).into());
    }
    if context.test {
        return predict(context, &name, &kwargs, &format!("Command '{name}' would have been executed"), false);
    }
    if let Some(cwd) = kwargs.get("cwd").and_then(Value::as_str).filter(|cwd| !std::path::Path::new(cwd).is_dir()) {
        return Ok(StateReturn::failed(&name, format!("Desired working directory \"{cwd}\" is not available")).into());
    }
    // With a source, the name may contain arguments; without one, the name is the source.
    let rest = name.split_once(' ').map_or("", |(_, rest)| rest);
    let source = source.unwrap_or_else(|| name.clone());
    let args = if args.is_truthy() || rest.is_empty() { args } else { rest.into() };
    let how = CommandArgs::read(&kwargs)?;
    let content = match cmd::script_content(&context.call, &source, &context.saltenv, &how) {
        Ok(Some(content)) => content,
        Ok(None) => {
            let changes = map! {"pid" => 0, "retcode" => 1, "stdout" => "", "stderr" => "", "cache_error" => true};
            let comment = format!("Unable to cache script {source} from saltenv '{}'", context.saltenv);
            return Ok(StateReturn::failed(&name, comment).with_changes(changes).into());
        }
        Err(CallError::Execution(error)) => return Ok(StateReturn::failed(&name, error).into()),
        Err(error) => return Ok(StateReturn::failed(&name, error.to_string()).into()),
    };
    let output = cmd::run_script(&context.call, &content, &args, &how);
    Ok(run_result(&name, &format!("Command '{name}' run"), &kwargs, output)?.into())
}

/// Run a script only when a watched state has changes.
///
/// New SLS files use `cmd.script` with `onchanges`.
///
/// SLS Example:
///
///     rebuild:
///       cmd.wait_script:
///         - source: salt://app/rebuild.sh
///         - args: --all
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn wait_script(
    _context: &StateContext,
    /// Script with its arguments; the URL of the script unless `source` is set.
    name: String,
    #[keywords(further_wait_script)] _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Run a command only when a watched state has changes.
///
/// New SLS files use `cmd.run` with `onchanges`.
///
/// SLS Example:
///
///     rebuild_index:
///       cmd.wait:
///         - name: /usr/bin/updatedb
///         - watch:
///           - file: /etc/updatedb.conf
#[function]
pub fn wait(
    _context: &StateContext,
    /// Command, run by a shell unless `python_shell` is false.
    name: String,
    #[keywords(further_run)] _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Run a command only when a watched state has changes, as `wait`.
///
/// SLS Example:
///
///     newaliases:
///       cmd.watch:
///         - watch:
///           - file: /etc/aliases
#[function]
pub fn watch(
    context: &StateContext,
    /// Command, run by a shell unless `python_shell` is false.
    name: String,
    #[keywords(further_run)] kwargs: Map,
) -> CallResult {
    wait(context, name, kwargs)
}

/// Call a function of a Python file: `state('x').cmd.call(function, ...)` in `#!pydsl`, or `func`, `args` and `kws` in
/// `#!py`. A result that is a mapping is that of the state; any other one is its change `retval`.
///
/// SLS Example:
///
///     # In a file with #!py, func is a function of the file:
///     report:
///       cmd.call:
///         - func: __slot__:salt:test.echo(report)
///         - args: [daily]
#[function]
pub fn call(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Function of the file in Python.
    #[default]
    func: Value,
    /// List of its arguments.
    #[default]
    args: Value,
    /// Mapping of its keyword arguments.
    #[default]
    kws: Map,
    #[keywords(further_call)] _kwargs: Map,
) -> CallResult {
    let call_args = Args { positional: args.as_list().unwrap_or_default().to_vec(), keyword: kws };
    if context.test && func.as_map().is_some() {
        return Ok(StateReturn::predicted(&name, "The function would be called").into());
    }
    let Some(called) = context.call.minion.custom.call_leased(context, &func, call_args) else {
        let comment = format!(
            "func is invalid: expected a function of a file in Python, such as #!pydsl, got {}; call an execution function \
             with module.run",
            func.type_name()
        );
        return Ok(StateReturn::failed(&name, comment).into());
    };
    let result = match called? {
        Value::Map(result) => {
            let mut state = map! {"name" => name, "changes" => Map::new(), "result" => false, "comment" => ""};
            state.extend(result);
            return Ok(state.into());
        }
        other => other,
    };
    let comment = result.as_str().unwrap_or_default();
    let state = StateReturn { result: Some(result.is_nil() || result.is_truthy()), ..StateReturn::ok(&name, comment) };
    Ok(state.with_changes(map! {"retval" => result}).into())
}

/// Call a function of a Python file only when a watched state has changes.
///
/// SLS Example:
///
///     # In a file with #!py, func is a function of the file:
///     report:
///       cmd.wait_call:
///         - func: __slot__:salt:test.echo(report)
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn wait_call(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further_wait_call)] _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Run the command when a watched state has changes.
///
/// SLS Example:
///
///     restart_app:
///       cmd.wait:
///         - name: /opt/app/bin/restart
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the watching state.
    name: String,
    /// The arguments of the watching state, and `sfun`, its function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    let sfun = kwargs.shift_remove("sfun").map(|sfun| sfun.to_string()).unwrap_or_default();
    if matches!(sfun.as_str(), "script" | "wait_script") {
        kwargs.insert("name".into(), name.into());
        return context.call.minion.states.call(context, "cmd.script", Args::keyword(kwargs));
    }
    if sfun == "wait_call" {
        kwargs.insert("name".into(), name.into());
        return context.call.minion.states.call(context, "cmd.call", Args::keyword(kwargs));
    }
    run(context, name, kwargs)
}

/// Returns the arguments of a command with the `runas` and `umask` of the whole run as defaults, and with a shell.
fn with_owner(context: &StateContext, mut kwargs: Map) -> Map {
    for key in ["runas", "umask"] {
        if let Some(value) = context.chunk.get(key).filter(|_| !kwargs.contains_key(key)) {
            kwargs.insert(key.into(), value.clone());
        }
    }
    kwargs.entry("python_shell".into()).or_insert(true.into());
    kwargs
}

/// Whether this is an `env` argument: a mapping or a list of mappings.
fn is_environment(env: Option<&Value>) -> bool {
    match env {
        None | Some(Value::Nil | Value::Map(_)) => true,
        Some(Value::List(items)) => items.iter().all(|item| item.as_map().is_some()),
        Some(_) => false,
    }
}

/// Returns the prediction in test mode. For a stateful command, it is the report of the command `test_name`, if there
/// is one.
fn predict(
    context: &StateContext,
    name: &str,
    kwargs: &Map,
    comment: &str,
    reports_command: bool,
) -> Result<Value, CallError> {
    let stateful = kwargs.get("stateful").filter(|stateful| stateful.is_truthy());
    let Some(stateful) = stateful else {
        let changes = if reports_command {
            map! {"cmd" => name}
        } else {
            Map::new()
        };
        return Ok(StateReturn::predicted(name, comment).with_changes(changes).into());
    };
    let named = |value: &Value| value.get("test_name").map(ToString::to_string);
    let test_name = named(stateful).or_else(|| stateful.as_list().into_iter().flatten().find_map(named));
    let Some(test_name) = test_name else { return Ok(StateReturn::predicted(name, "").into()) };
    let output = cmd::execute(&context.call, &test_name, &CommandArgs::read(kwargs)?);
    let mut outcome = run_result(name, comment, kwargs, output)?;
    if outcome.result == Some(true) && !outcome.changes.is_empty() {
        outcome.result = None;
    }
    Ok(outcome.into())
}

/// Returns the result of a command that ran or could not be started.
fn run_result(
    name: &str,
    comment: &str,
    kwargs: &Map,
    output: Result<Output, CallError>,
) -> Result<StateReturn, CallError> {
    let output = match output {
        Ok(output) => output,
        Err(CallError::Execution(message)) => return Ok(StateReturn::failed(name, message)),
        Err(error) => return Err(error),
    };
    let changes = map! {
        "pid" => output.pid, "retcode" => output.retcode, "stdout" => output.stdout.as_str(), "stderr" => output.stderr,
    };
    let mut outcome = StateReturn::ok(name, comment).with_changes(changes);
    outcome.result = Some(output.retcode == 0);
    if kwargs.get("stateful").is_some_and(Value::is_truthy) {
        return Ok(stateful(outcome, &output.stdout));
    }
    Ok(outcome)
}

/// Parses the report of a stateful command: the last line of its output, JSON or pairs such as `changed=yes`.
fn stateful(mut outcome: StateReturn, stdout: &str) -> StateReturn {
    let last = stdout.lines().last().unwrap_or_default().trim();
    let words = || {
        let words = brine_host::process::split(last)?;
        words.iter().map(|word| word.split_once('=').map(|(key, value)| (key.into(), value.into()))).collect()
    };
    let (report, is_json): (Option<Map>, _) = if let Ok(Value::Map(report)) = brine_value::json::from_json(last) {
        (Some(report), true)
    } else {
        (words(), false)
    };
    let Some(mut report) = report.filter(|report| !report.is_empty()) else {
        outcome.comment = "Failed parsing script output! Stdout must be JSON or a line of name=value pairs.".into();
        outcome.result = Some(false);
        return outcome;
    };
    let changed = report
        .get("changed")
        .is_some_and(|word| matches!(word.to_string().to_lowercase().as_str(), "true" | "yes" | "1"));
    outcome.comment = report.shift_remove("comment").map(|comment| comment.to_string()).unwrap_or_default();
    if changed {
        // Changes reported by the command come first, as in Salt.
        let mut changes = std::mem::take(&mut outcome.changes);
        if let Some(stdout) = changes.get_mut("stdout") {
            *stdout = without_last_line(&stdout.to_string(), is_json).into();
        }
        report.extend(changes);
        outcome.changes = report;
    } else {
        outcome.changes = Map::new();
    }
    outcome
}

/// Returns the output of a stateful command without its report line. If pairs are the only line, Salt only cuts off the
/// last character, and so does this function.
fn without_last_line(stdout: &str, is_json: bool) -> &str {
    match stdout.rfind('\n') {
        Some(end) => &stdout[..end],
        None if is_json => "",
        None => stdout.char_indices().last().map_or("", |(end, _)| &stdout[..end]),
    }
}

/// Describes the further arguments of `cmd.run`.
pub(crate) fn further_run(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further_of(CommandArgs::describe);
    params.further(
        "stateful",
        "True, False or a list of mappings",
        "Whether the command itself reports its changes, on the last line of its output.",
    );
    params.further("root", "a path", "Directory that becomes the root directory of the command.");
    params.further(
        "ignore_timeout",
        "True or False",
        "Whether a command that is killed after `timeout` seconds counts as a success.",
    );
    params.further(
        "stdin_raw_newlines",
        "True or False",
        "Whether `\\n` in `stdin` stays as it is; otherwise it is a line break.",
    );
    params.further("pillar", "a mapping", "Pillar of the template of `template`, over that of the minion.");
    params.further("pillarenv", "a string", "Environment of the pillar of `template`.");
    params.further("pillar_override", "a mapping", "Without effect: `pillar` is used.");
    params.further("args", "a string", "Without effect: arguments are part of the command.");
    for name in ["interpreter", "loglevel", "quiet", "stderr", "stdout", "windows_codepage", "with_communicate"] {
        params.further(name, "anything", "Without effect.");
    }
}

/// Describes the further arguments of `cmd.script`.
pub(crate) fn further_script(params: &mut ParamList) {
    params.others(Others::Unused);
    further_run(params);
    for name in ["context", "defaults"] {
        params.further(name, "a mapping", "Variables of the template of `template`.");
    }
    params.further("retcode", "a string", "Without effect: `success_retcodes` is used.");
}

/// Describes the further arguments of `cmd.wait_script`.
pub(crate) fn further_wait_script(params: &mut ParamList) {
    further_script(params);
    params.further("source", "a string", "URL (`salt://`, `https://`) or path of the script.");
}

/// Describes the further arguments of `cmd.call`.
pub(crate) fn further_call(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["cwd", "env", "hide_output", "output_loglevel", "shell", "stateful", "use_vt"] {
        params.further(name, "anything", "Without effect: the function runs in the minion's process for Python.");
    }
}

/// Describes the further arguments of `cmd.wait_call`.
pub(crate) fn further_wait_call(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("func", "anything", "Function of the file in Python.");
    params.further("args", "a list", "List of its arguments.");
    params.further("kws", "a mapping", "Mapping of its keyword arguments.");
    for name in ["cwd", "env", "hide_output", "output_loglevel", "shell", "stateful", "use_vt"] {
        params.further(name, "anything", "Without effect: the function runs in the minion's process for Python.");
    }
}

#[cfg(test)]
mod tests;
