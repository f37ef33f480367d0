//! `salt-call`: calls execution functions on this host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use brine_agent::daemon::Connected;
use brine_context::jobs::{self, Outcome};
use brine_context::masterless::masterless;
use brine_context::{Context, Job, Minion};
use brine_function::{Args, CallError, Function, Registry, arguments};
use brine_ids::Jid;
use brine_job::Return;
use brine_modules::MODULES;
use brine_text::nearest::{self, nearest};
use brine_value::{Map, Value, map};
use clap::{ArgAction, CommandFactory, Parser};

use super::broken_values;
use super::common::CallOptions;
use super::docs::{self, pointers};
use super::exit_status::FailureStatus;
use super::runtime;
use super::usage;
use crate::ui::{print_as_salt, print_plain, print_plain_error, symptoms};

const NAME: &str = "salt-call";
pub const USAGE: &str = "salt-call [options] <function> [arguments]";
/// Salt's exit status for an unknown function.
const NOT_AVAILABLE: u8 = 255;
const FAILED: u8 = 1;
/// The beginning of an exception's message.
const EXCEPTION: &str = "The minion function caused an exception";

/// Call a function on this host, with a master or without.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-call test.ping                      with the master of /etc/salt/minion\n  salt-call --local state.apply web        without a master\n  salt-call --local --file-root ./srv state.show_lowstate web --out=json"
)]
struct Arguments {
    /// Work without a master
    #[arg(long)]
    local: bool,
    /// A directory of state files, for --local; may be given several times
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    file_root: Vec<PathBuf>,
    /// A directory of pillar files, for --local; may be given several times
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    pillar_root: Vec<PathBuf>,
    /// An additional directory of custom execution modules; may be given several times
    #[arg(short, long, value_name = "DIR", action = ArgAction::Append)]
    module_dirs: Vec<PathBuf>,
    /// An additional directory of custom state modules; may be given several times
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    states_dir: Vec<PathBuf>,
    /// The executors that call the function: custom ones in _executors, or direct_call
    #[arg(long, value_name = "EXECUTORS")]
    module_executors: Option<String>,
    /// Options for these executors
    #[arg(long, value_name = "MAPPING")]
    executor_opts: Option<String>,
    /// The cache directory of the minion
    #[arg(long, value_name = "DIR")]
    cachedir: Option<PathBuf>,
    /// The id of the minion
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The address of the master
    #[arg(long, value_name = "HOST")]
    master: Option<String>,
    /// Returners that store the result in addition, separated by commas
    #[arg(long = "return", value_name = "RETURNERS")]
    r#return: Option<String>,
    /// Do not return the result to the master
    #[arg(long)]
    no_return_event: bool,
    /// Data that is stored with the job
    #[arg(long, value_name = "MAPPING")]
    set_metadata: Option<String>,
    /// Seconds to wait for the authentication by the master
    #[arg(short, long, value_name = "SECONDS", value_parser = usage::integer)]
    timeout: Option<i64>,
    /// Show only states that have changed or failed
    #[arg(long)]
    output_diff: bool,
    /// Exit with the retcode of the function
    #[arg(long)]
    retcode_passthrough: bool,
    /// Show the whole return, with job id and retcode
    #[arg(long)]
    metadata: bool,
    /// Show the grains of this host
    #[arg(short, long)]
    grains: bool,
    /// Show the documentation of a function, a module, or all
    #[arg(short, long = "doc", alias = "documentation")]
    doc: bool,
    #[command(flatten)]
    call: CallOptions,
    #[arg(hide = true)]
    words: Vec<String>,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse_with_stdin(NAME, USAGE, Arguments::command, words)? {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let mistake = |message: &str| Ok(usage::error(NAME, USAGE, message));
    let (fun, rest) = match (&arguments.words[..], arguments.grains, arguments.doc) {
        ([], true, _) => ("grains.items".to_owned(), Vec::new()),
        ([_, ..], true, _) => return mistake("-g/--grains does not accept any arguments"),
        ([_, _, ..], _, true) => return mistake("You can only get documentation for one method at one time"),
        (words, _, true) => return Ok(show_docs(&arguments, words.first().map_or("", String::as_str))),
        ([fun, rest @ ..], _, _) => (fun.clone(), rest.to_vec()),
        ([], false, false) => {
            print_plain(usage::help(NAME, USAGE, Arguments::command()));
            return mistake("Requires function, --grains or --doc");
        }
    };
    let config = arguments.call.common.start_with_minion(&overrides(&arguments))?;
    let no_parse = arguments.call.no_parse();
    broken_values::report(&rest);
    let args = arguments::parse(&rest, &no_parse);
    let mut opts = config.opts.clone();
    if arguments.output_diff {
        opts.insert("state_output_diff".into(), true.into());
    }
    let jid = Jid::new();
    let metadata = arguments.set_metadata.as_deref().map(arguments::parse_value);
    let local = arguments.local || config.has_local_pillar();
    let (minion, outcome) = if local {
        let minion = masterless(config, MODULES)?;
        let outcome = call(&minion, &fun, args, &jid, fields(&arguments));
        (minion, outcome)
    } else {
        let runtime = runtime::current_thread()?;
        runtime::block_on(&runtime, async {
            let connected = Connected::open(config).await?;
            connected.join_once().await?;
            connected.refresh_pillar().await?;
            let minion = Arc::clone(&connected.minion);
            let (on_thread, name, id) = (Arc::clone(&minion), fun.clone(), jid.clone());
            let (jobs, fields) = (&connected.pool.executors().jobs, fields(&arguments));
            let outcome = jobs.run(move |_| call(&on_thread, &name, args, &id, fields)).await?;
            if let (CallOutcome::Done(outcome), false) = (&outcome, arguments.no_return_event) {
                connected.return_once(job_return(&minion, &fun, &rest, outcome, metadata.as_ref(), &jid)).await;
            }
            anyhow::Ok((minion, outcome))
        })?
    };
    let is_stored = match &outcome {
        CallOutcome::Done(outcome) => {
            return_to(&arguments, &minion, job_return(&minion, &fun, &rest, outcome, metadata.as_ref(), &jid))
        }
        _ => true,
    };
    let status = show(&arguments, &opts, &fun, &minion, outcome, &jid)?;
    let is_failure = !is_stored && status == ExitCode::SUCCESS;
    Ok(if is_failure { FailureStatus::new(minion.config.salt_exit_status).of(FAILED) } else { status })
}

fn overrides(arguments: &Arguments) -> Map {
    let mut options = Map::new();
    // Relative paths are relative to the current directory, not to that of the function.
    let absolute = |path: &PathBuf| Value::from(std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    for (option, roots) in [("file_roots", &arguments.file_root), ("pillar_roots", &arguments.pillar_root)] {
        if !roots.is_empty() {
            options.insert(option.into(), map! {"base" => roots.iter().map(absolute).collect::<Value>()}.into());
        }
    }
    for (option, directories) in [("module_dirs", &arguments.module_dirs), ("states_dirs", &arguments.states_dir)] {
        if !directories.is_empty() {
            options.insert(option.into(), directories.iter().map(absolute).collect());
        }
    }
    options.extend(arguments.cachedir.as_ref().map(|directory| ("cachedir".into(), absolute(directory))));
    options.extend(arguments.timeout.map(|seconds| ("auth_timeout".into(), seconds.into())));
    options.extend(arguments.id.as_ref().map(|id| ("id".into(), id.into())));
    options.extend(arguments.master.as_ref().map(|master| ("master".into(), master.into())));
    options
}

/// The result of a call, or the error that prevented it.
enum CallOutcome {
    Done(Outcome),
    NotAvailable { message: String, similar: Map, near: Option<String> },
    BadArguments(String, String),
    UnknownArguments(String),
    Failed(String),
    Exception(String),
}

/// Prints the documentation of the functions with this prefix. Returns a failure if there are none.
fn show_docs(arguments: &Arguments, start: &str) -> ExitCode {
    let functions = Registry::new(&MODULES.functions());
    let matches: Vec<_> = functions.iter().filter(|function| function.full_name().starts_with(start)).collect();
    for function in &matches {
        print_plain(format_args!("{}:\n{}\n", function.full_name(), usage::docstring(&function.docstring())));
    }
    docs::point("sys.doc", &matches.iter().map(|function| function.full_name()).collect::<Vec<_>>());
    if matches.is_empty() {
        let near = nearest(start, functions.iter().map(Function::full_name));
        let hint = nearest::hint(near);
        print_plain_error(format_args!("ERROR: no documentation found for '{start}'{hint}"));
        // The documentation needs no configuration.
        let config = arguments.call.common.start_with_minion(&overrides(arguments));
        return FailureStatus::new(config.is_ok_and(|config| config.salt_exit_status)).of(FAILED);
    }
    ExitCode::SUCCESS
}

/// Stores a return with the returners of `--return`. Returns false if one fails; as in Salt, the result is shown even
/// then.
fn return_to(arguments: &Arguments, minion: &Minion, mut load: Map) -> bool {
    load.insert("success".into(), true.into());
    let names = arguments.r#return.iter().flat_map(|names| names.split(','));
    let names: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return true;
    }
    let Ok(one) = Return::from_map(load) else { return false };
    let grains = minion.grains.get();
    let options = brine_returners::Options::new(&minion.config.opts, None).with_grains(grains);
    let mut is_stored = true;
    for name in names {
        let returned = brine_returners::open(name, &options).and_then(|returner| returner.returner(&one));
        if let Err(error) = returned {
            tracing::error!(returner = name, %error, "returning the result failed");
            is_stored = false;
        }
    }
    is_stored
}

/// Returns the event data of a call's return.
fn job_return(
    minion: &Minion,
    fun: &str,
    words: &[String],
    outcome: &Outcome,
    metadata: Option<&Value>,
    jid: &Jid,
) -> Map {
    let words: Vec<Value> = words.iter().map(Value::from).collect();
    let mut load = map! {
        "cmd" => "_return",
        "id" => &minion.id,
        "jid" => jid,
        "fun" => fun,
        "fun_args" => words.clone(),
        "arg" => words,
        "tgt" => &minion.id,
        "tgt_type" => "glob",
        "return" => outcome.value.clone(),
        "retcode" => outcome.retcode,
    };
    load.extend(outcome.out.map(|out| ("out".into(), out.into())));
    load.extend(metadata.map(|metadata| ("metadata".into(), metadata.clone())));
    load.extend(minion.mask.record(&load));
    load
}

/// Returns the options of the call that are fields of published jobs.
fn fields(arguments: &Arguments) -> Map {
    [("module_executors", &arguments.module_executors), ("executor_opts", &arguments.executor_opts)]
        .into_iter()
        .filter_map(|(name, text)| Some((name.into(), arguments::parse_value(text.as_deref()?))))
        .collect()
}

/// Calls a function. `fields` are added to the job.
fn call(minion: &Arc<Minion>, fun: &str, args: Args, jid: &Jid, fields: Map) -> CallOutcome {
    let Some(function) = minion.functions.get(fun) else {
        let module = fun.split('.').next().unwrap_or_default();
        if let Some(message) = minion.custom.failure("modules", module) {
            return CallOutcome::NotAvailable { message, similar: Map::new(), near: None };
        }
        let similar = minion.functions.iter().filter(|function| function.full_name().starts_with(fun));
        let similar =
            similar.map(|function| (function.full_name().into(), usage::docstring(&function.docstring()).into()));
        let near = nearest(fun, minion.functions.iter().map(Function::full_name));
        let message = CallError::NotAvailable(fun.to_owned()).to_string();
        return CallOutcome::NotAvailable { message, similar: similar.collect(), near };
    };
    let mut job = Job::local(jid, fun, &args);
    job.load = map! {"fun" => fun, "jid" => &job.jid, "pid" => job.pid, "tgt" => "salt-call"};
    job.load.extend(fields);
    let job = Arc::new(job);
    let context = Context::new(Arc::clone(minion), job);
    minion.jobs.lock().insert(context.job.jid.clone(), Arc::clone(&context.job));
    let _announced = jobs::ProcFile::write(minion, &context.job);
    let mut args = args;
    jobs::add_publish_keywords(&context, fun, &mut args);
    let outcome = jobs::call(&context, fun, args);
    let misuses = ["Passed invalid arguments to ", "ERROR executing '"];
    if let (false, Some(text)) = (outcome.success, outcome.value.as_str())
        && let Some(rest) = misuses.iter().find_map(|start| text.strip_prefix(start))
        && let Some((_, message)) = rest.split_once(": ")
    {
        let message = message.split("\n\n").next().unwrap_or_default();
        return if message.starts_with("The following keyword arguments are not valid") {
            CallOutcome::UnknownArguments(message.to_owned())
        } else {
            CallOutcome::BadArguments(message.to_owned(), function.signature())
        };
    }
    match outcome.value.as_str().and_then(|text| text.strip_prefix("ERROR: ")) {
        Some(message) if !outcome.success => CallOutcome::Failed(message.to_owned()),
        None if !outcome.success && outcome.value.as_str().is_some_and(|text| text.starts_with(EXCEPTION)) => {
            CallOutcome::Exception(outcome.value.to_string())
        }
        _ => CallOutcome::Done(outcome),
    }
}

fn show(
    arguments: &Arguments,
    opts: &Map,
    fun: &str,
    minion: &Minion,
    called: CallOutcome,
    jid: &Jid,
) -> anyhow::Result<ExitCode> {
    let outcome = match called {
        CallOutcome::Done(outcome) => outcome,
        CallOutcome::NotAvailable { message, mut similar, near } => {
            if let Some(near) = near {
                print_plain_error(format_args!("unknown function '{fun}': did you mean '{near}'?"));
            }
            if similar.is_empty() {
                print_as_salt(&message);
                return Ok(ExitCode::from(NOT_AVAILABLE));
            }
            // As in Salt, with the documentation of functions with this prefix.
            similar.insert(fun.into(), message.into());
            arguments.call.output.printer(opts)?.show(&map! {"local" => similar}.into(), "nested")?;
            return Ok(ExitCode::from(FAILED));
        }
        CallOutcome::Failed(message) => {
            print_plain_error(format_args!("Error running '{fun}': {message}"));
            return Ok(ExitCode::from(FAILED));
        }
        CallOutcome::Exception(message) | CallOutcome::UnknownArguments(message) => {
            print_plain_error(&message);
            return Ok(ExitCode::from(FAILED));
        }
        CallOutcome::BadArguments(message, signature) => {
            print_plain_error(format_args!("\nPassed invalid arguments: {message}.\n\nUsage:"));
            print_plain(format_args!("    {signature}\n\n    salt-call sys.doc {fun} prints the documentation."));
            return Ok(ExitCode::from(FAILED));
        }
    };
    let value = if arguments.metadata {
        let words = arguments.words.get(1..).unwrap_or_default();
        let mut whole = map! {"jid" => jid, "return" => outcome.value, "retcode" => outcome.retcode};
        whole.extend(outcome.out.map(|out| ("out".into(), out.into())));
        whole.extend(map! {"id" => &minion.id, "fun" => fun, "fun_args" => words.to_vec()});
        let metadata = arguments.set_metadata.as_deref().map(arguments::parse_value);
        whole.extend(metadata.map(|metadata| ("metadata".into(), metadata)));
        whole.into()
    } else {
        outcome.value
    };
    let hint = outcome.out.filter(|_| !arguments.metadata).unwrap_or("nested");
    let mut printer = arguments.call.output.printer(opts)?;
    printer.set_retcode(outcome.retcode);
    let explained = pointers::explained(&value).filter(|_| outcome.retcode != 0).map(str::to_owned);
    printer.show(&map! {"local" => value}.into(), hint)?;
    if let Some(message) = explained {
        symptoms::note(&message);
    }
    if outcome.retcode == 0 && matches!(fun, "sys.doc" | "sys.state_doc") {
        docs::point(fun, &arguments.words[1..]);
    }
    Ok(match outcome.retcode {
        0 => ExitCode::SUCCESS,
        code if arguments.retcode_passthrough => ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
        _ => ExitCode::from(FAILED),
    })
}
