//! The daemon: start, stop, and reload of its configuration.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::program;
use brine_value::{Value, list, map};

use super::{BINARY_PATH, config_file, no_changes, report};

/// Execution functions of `syslog_ng` for the daemon.
pub static FUNCTIONS: Functions<Context> = registry!("syslog_ng", [stop, start, reload]);

/// Kill the processes of syslog-ng. If there is a service, prefer `service.stop`.
///
/// CLI Example:
///
///     salt '*' syslog_ng.stop
#[function]
pub fn stop(
    context: &Context,
    /// Path or id.
    #[default]
    name: Value,
) -> CallResult {
    stopped(context, name, context.is_test())
}

/// The arguments of `start`.
#[derive(Args, Debug, Clone)]
pub struct StartArgs {
    /// Name of the state.
    #[default]
    pub name: Value,
    /// User that the daemon runs as.
    pub user: Option<String>,
    /// Group that the daemon runs as.
    pub group: Option<String>,
    /// Root directory.
    pub chroot: Option<String>,
    /// Capabilities that the daemon keeps.
    pub caps: Option<String>,
    /// Whether capabilities are not managed.
    #[default(false)]
    pub no_caps: bool,
    /// PID file.
    pub pidfile: Option<String>,
    /// Whether the daemon may dump core.
    #[default(false)]
    pub enable_core: bool,
    /// Maximum number of open files.
    pub fd_limit: Option<Value>,
    /// Whether the daemon logs verbosely.
    #[default(false)]
    pub verbose: bool,
    /// Whether the daemon logs debug messages.
    #[default(false)]
    pub debug: bool,
    /// Whether the daemon logs trace messages.
    #[default(false)]
    pub trace: bool,
    /// Whether the parser of the configuration logs debug messages.
    #[default(false)]
    pub yydebug: bool,
    /// Path of the file that stores the state of the daemon between runs.
    pub persist_file: Option<String>,
    /// Socket of `syslog-ng-ctl`.
    pub control: Option<String>,
    /// Number of worker threads.
    pub worker_threads: Option<Value>,
}

/// Start syslog-ng with these options. If there is a service, prefer `service.start`.
///
/// CLI Example:
///
///     salt '*' syslog_ng.start
#[function]
pub fn start(context: &Context, #[args] args: StartArgs) -> CallResult {
    started(context, &args, context.is_test())
}

/// Reload the configuration of syslog-ng.
///
/// CLI Example:
///
///     salt '*' syslog_ng.reload name
#[function]
pub fn reload(
    context: &Context,
    /// Path or id.
    name: Value,
) -> CallResult {
    let words = [program_path(context, "syslog-ng-ctl"), "reload".to_owned()];
    let output = context.run_program(&program(&words, &[])).map_err(CallError::execution)?;
    Ok(report(name, Some(output.retcode == 0), no_changes(), &output.stdout))
}

fn program_path(context: &Context, name: &str) -> String {
    let directory = context.job.setting(BINARY_PATH).filter(|directory| !directory.is_empty());
    directory.map_or_else(|| name.to_owned(), |directory| Path::new(&directory).join(name).display().to_string())
}

pub(super) fn stopped(context: &Context, name: Value, test: bool) -> CallResult {
    let call = |function: &str| context.call(function, Args::positional(["syslog-ng".into()]));
    let running = call("ps.pgrep")?;
    if !running.is_truthy() {
        return Ok(report(name, Some(false), no_changes(), "Syslog-ng is not running"));
    }
    if test {
        return Ok(report(name, None, no_changes(), "Syslog_ng state module will kill {0} pids"));
    }
    let killed = call("ps.pkill")?.get("killed").cloned().unwrap_or_default();
    let are_all = killed == running;
    let changes = if are_all {
        map! {"old" => killed, "new" => list![]}
    } else {
        no_changes()
    };
    Ok(report(name, Some(are_all), changes, ""))
}

pub(super) fn started(context: &Context, args: &StartArgs, test: bool) -> CallResult {
    let mut words = vec![program_path(context, "syslog-ng")];
    let text = |value: &Option<Value>| value.as_ref().filter(|value| !value.is_nil()).map(ToString::to_string);
    let file = Some(config_file(context));
    let options: [(&str, Option<String>); 9] = [
        ("user", args.user.clone()),
        ("group", args.group.clone()),
        ("chroot", args.chroot.clone()),
        ("caps", args.caps.clone()),
        ("pidfile", args.pidfile.clone()),
        ("fd-limit", text(&args.fd_limit)),
        ("cfgfile", file),
        ("control", args.control.clone()),
        ("worker-threads", text(&args.worker_threads)),
    ];
    let flags = [
        ("no-caps", args.no_caps),
        ("enable-core", args.enable_core),
        ("verbose", args.verbose),
        ("debug", args.debug),
        ("trace", args.trace),
        ("yydebug", args.yydebug),
    ];
    // In Salt's order, because the command line is reported.
    for name in [
        "user",
        "group",
        "chroot",
        "caps",
        "no-caps",
        "pidfile",
        "enable-core",
        "fd-limit",
        "verbose",
        "debug",
        "trace",
        "yydebug",
        "cfgfile",
        "persist-file",
        "control",
        "worker-threads",
    ] {
        let value = if name == "persist-file" { args.persist_file.as_ref() } else { option(&options, name) };
        words.extend(value.map(|value| format!("--{name}={value}")));
        words.extend(flags.contains(&(name, true)).then(|| format!("--{name}")));
    }
    if test {
        let command_line: Value = words.iter().map(String::as_str).map(Value::from).collect();
        let comment = format!("Syslog_ng state module will start {command_line}");
        return Ok(report(args.name.clone(), None, no_changes(), &comment));
    }
    context.run_program(&program(&words, &[])).map_err(CallError::execution)?;
    // As in Salt, the result only means that the program was run: its exit status is not checked.
    Ok(report(args.name.clone(), Some(true), map! {"new" => words.join(" "), "old" => ""}, ""))
}

fn option<'a>(options: &'a [(&str, Option<String>)], name: &str) -> Option<&'a String> {
    options.iter().find(|(option, _)| *option == name)?.1.as_ref()
}
