//! `salt-call`: functions of the minion, called on its own host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use brine_core::function::Args;
use brine_core::sls::arguments;
use brine_core::{Jid, Map, Value, map};
use brine_minion::context::{Context, Job, Minion};
use brine_minion::daemon::Connected;
use brine_minion::jobs::{self, Outcome};
use brine_minion::masterless::masterless;
use clap::{CommandFactory, Parser};

use super::common::{CommonOptions, OutputArguments};
use super::usage;
use crate::ui::{print_plain, print_plain_error};

const NAME: &str = "salt-call";
const USAGE: &str = "salt-call [options] <function> [arguments]";
/// Salt's exit status for a function that is not there.
const NOT_AVAILABLE: u8 = 255;
const FAILED: u8 = 1;

/// Call a function on this host, with a master or without.
#[derive(Parser, Debug)]
#[command(
    after_help = "Examples:\n  salt-call test.ping                      with the master of /etc/salt/minion\n  salt-call --local state.apply web        without a master\n  salt-call --local --file-root ./srv state.show_lowstate web --out=json"
)]
struct Arguments {
    /// Work without a master
    #[arg(long)]
    local: bool,
    /// A folder of state files, for --local
    #[arg(long, value_name = "DIR")]
    file_root: Option<PathBuf>,
    /// A folder of pillar files, for --local
    #[arg(long, value_name = "DIR")]
    pillar_root: Option<PathBuf>,
    /// The minion's id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The master's host
    #[arg(long, value_name = "HOST")]
    master: Option<String>,
    /// Exit with the function's retcode
    #[arg(long)]
    retcode_passthrough: bool,
    /// Show the whole return
    #[arg(long)]
    metadata: bool,
    /// Show this host's grains
    #[arg(short, long)]
    grains: bool,
    /// Show the documentation of a function, a module, or all
    #[arg(short, long = "doc", alias = "documentation")]
    doc: bool,
    /// Keyword arguments that stay text, separated by commas
    #[arg(long, value_name = "NAMES")]
    no_parse: Option<String>,
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    output: OutputArguments,
    #[arg(hide = true)]
    words: Vec<String>,
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let (fun, rest) = match (&arguments.words[..], arguments.grains, arguments.doc) {
        ([], true, _) => ("grains.items".to_owned(), Vec::new()),
        (words, _, true) => ("sys.doc".to_owned(), words.to_vec()),
        ([fun, rest @ ..], _, _) => (fun.clone(), rest.to_vec()),
        ([], false, false) => {
            print_plain(usage::help(NAME, USAGE, Arguments::command()));
            return Ok(usage::error(NAME, USAGE, "Requires function, --grains or --doc"));
        }
    };
    let config = arguments.common.start_with_minion(&overrides(&arguments))?;
    let no_parse: Vec<String> =
        arguments.no_parse.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
    let args = arguments::parse(&rest, &no_parse);
    let opts = config.opts.clone();
    let local = arguments.local || config.file_client == "local";
    let (minion, outcome) = if local {
        let minion = masterless(config)?;
        let outcome = call(&minion, &fun, args);
        (minion, outcome)
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let connected = Connected::open(config, None).await?;
            connected.join(false).await?;
            connected.refresh_pillar().await?;
            let minion = Arc::clone(&connected.minion);
            let (on_thread, name) = (Arc::clone(&minion), fun.clone());
            let jobs = &connected.pool.executors().jobs;
            let outcome = jobs.run(move |_| call(&on_thread, &name, args)).await?;
            if let Called::Done(outcome) = &outcome {
                connected.return_once(job_return(&minion, &fun, &rest, outcome)).await;
            }
            anyhow::Ok((minion, outcome))
        })?
    };
    show(&arguments, &opts, &fun, &minion, outcome)
}

fn overrides(arguments: &Arguments) -> Map {
    let mut given = Map::new();
    // Relative folders are meant from here, whatever the function's own folder is.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    if let Some(folder) = &arguments.file_root {
        given.insert("file_roots".into(), map! {"base" => Value::from(vec![Value::from(absolute(folder))])}.into());
    }
    if let Some(folder) = &arguments.pillar_root {
        given.insert("pillar_roots".into(), map! {"base" => Value::from(vec![Value::from(absolute(folder))])}.into());
    }
    given.extend(arguments.id.as_ref().map(|id| ("id".into(), id.into())));
    given.extend(arguments.master.as_ref().map(|master| ("master".into(), master.into())));
    given
}

/// What came of a call, or why there was none.
enum Called {
    Done(Outcome),
    NotAvailable(String),
    BadArguments(String, String),
    UnknownArguments(String),
    Failed(String),
}

/// What came of a call, as the master's job cache and its followers get it.
fn job_return(minion: &Minion, fun: &str, words: &[String], outcome: &Outcome) -> Map {
    let words: Vec<Value> = words.iter().map(Value::from).collect();
    let mut load = map! {
        "cmd" => "_return",
        "id" => &minion.id,
        "jid" => &Jid::new(),
        "fun" => fun,
        "fun_args" => words.clone(),
        "arg" => words,
        "tgt" => &minion.id,
        "tgt_type" => "glob",
        "return" => outcome.value.clone(),
        "retcode" => outcome.retcode,
    };
    load.extend(outcome.out.map(|out| ("out".into(), out.into())));
    load
}

fn call(minion: &Arc<Minion>, fun: &str, args: Args) -> Called {
    let Some(function) = minion.functions.get(fun) else {
        return Called::NotAvailable(brine_minion::suggest::not_available(minion, fun));
    };
    let mut job = Job::local(&Jid::new(), fun, &args);
    job.load = map! {"fun" => fun, "jid" => &job.jid, "pid" => job.pid, "tgt" => "salt-call"};
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
            Called::UnknownArguments(message.to_owned())
        } else {
            Called::BadArguments(message.to_owned(), function.docstring())
        };
    }
    match outcome.value.as_str().and_then(|text| text.strip_prefix("ERROR: ")) {
        Some(message) if !outcome.success => Called::Failed(message.to_owned()),
        _ => Called::Done(outcome),
    }
}

fn show(arguments: &Arguments, opts: &Map, fun: &str, minion: &Minion, called: Called) -> anyhow::Result<ExitCode> {
    let outcome = match called {
        Called::Done(outcome) => outcome,
        Called::NotAvailable(message) => {
            print_plain_error(&message);
            return Ok(ExitCode::from(NOT_AVAILABLE));
        }
        Called::Failed(message) => {
            print_plain_error(format_args!("Error running '{fun}': {message}"));
            return Ok(ExitCode::from(FAILED));
        }
        Called::UnknownArguments(message) => {
            print_plain_error(&message);
            return Ok(ExitCode::from(FAILED));
        }
        Called::BadArguments(message, doc) => {
            print_plain_error(format_args!("\nPassed invalid arguments: {message}.\n\nUsage:\n\n{doc}"));
            return Ok(ExitCode::from(FAILED));
        }
    };
    let value = if arguments.metadata {
        map! {"return" => outcome.value, "retcode" => outcome.retcode, "id" => &minion.id, "fun" => fun}.into()
    } else {
        outcome.value
    };
    let hint = outcome.out.unwrap_or("nested");
    arguments.output.shower(opts)?.show(&map! {"local" => value}.into(), hint)?;
    Ok(match outcome.retcode {
        0 => ExitCode::SUCCESS,
        code if arguments.retcode_passthrough => ExitCode::from(u8::try_from(code).unwrap_or(FAILED)),
        _ => ExitCode::from(FAILED),
    })
}
