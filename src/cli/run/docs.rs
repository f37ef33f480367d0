//! The documentation of runner functions: `salt-run -d`, and in place of an unknown function.

use std::path::Path;
use std::process::ExitCode;

use brine_config::MasterConfig;
use brine_function::Args;
use brine_text::nearest;
use brine_value::{Map, Value};

use super::super::client::{ClientError, MasterClient};
use super::super::common::ResultPrinter;
use super::super::exit_status::FailureStatus;
use super::super::runtime;
use super::super::usage::docstring;
use super::{Arguments, FAILURE, failed};
use crate::ui::{print_plain, print_plain_error};

/// Prints the documentation of the given functions. Returns a failure if there are none.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let config = arguments.call.common.start_with_master(&Map::new())?;
    let runtime = runtime::current_thread()?;
    let word = arguments.words.first();
    let asked = runtime::block_on(&runtime, async {
        let client = arguments.credentials.client(&config).await?;
        let docs = client.ask_runner("doc.runner", Args::positional(word.map(Value::from))).await?;
        let near = match word {
            Some(name) if !docs.is_truthy() => nearest_name(&client, name).await,
            _ => None,
        };
        anyhow::Ok((docs, near))
    });
    let (docs, near) = match asked {
        Ok(asked) => asked,
        Err(error) => return failed(error, &config),
    };
    let Some(docs) = docs.as_map().filter(|docs| !docs.is_empty()) else {
        let name = word.map_or("", String::as_str);
        print_plain_error(format_args!("ERROR: no documentation found for '{name}'{}", nearest::hint(near.as_deref())));
        return Ok(FailureStatus::new(config.salt_exit_status).of(FAILURE));
    };
    for (fun, doc) in docs {
        print_plain(format_args!("{fun}:\n{}\n", docstring(&doc.to_string())));
    }
    crate::cli::docs::point("doc.runner", &docs.keys().map(ToString::to_string).collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

/// Returns what to do if a configured directory has the module of an unknown function: the master reads the option at its
/// start.
fn restart_hint(config: &MasterConfig, fun: &str) -> Option<String> {
    let (module, _) = fun.split_once('.')?;
    let file = |directory: &String| Path::new(directory).join(format!("{module}.py"));
    let path = config.runner_dirs.iter().map(file).find(|path| path.is_file())?;
    Some(format!(
        "{} has this module: the master reads the option 'runner_dirs' at its start, so restart it if the option is new; if \
         not, the master's log has the error of the module",
        path.display()
    ))
}

/// Prints, as Salt does for an unknown function, the documentation of the functions with this prefix, or else the
/// master's message. A suggestion goes to stderr.
pub(super) async fn show_similar(
    client: &MasterClient,
    config: &MasterConfig,
    fun: &str,
    sentence: &str,
    printer: Option<&mut ResultPrinter>,
) -> anyhow::Result<()> {
    let asked = client.ask_runner("doc.runner", Args::positional([Value::from(format!("{fun}*"))])).await;
    let docs = match asked {
        // Users who may not read the documentation receive only the message.
        Err(ClientError::Denied(_)) => Value::Nil,
        asked => asked?,
    };
    if let Some(printer) = printer {
        match docs {
            Value::Map(docs) if !docs.is_empty() => {
                let entries = docs.into_iter().map(|(fun, doc)| (fun, docstring(&doc.to_string()).into()));
                printer.show(&Value::Map(entries.collect()), "nested")?;
            }
            _ => printer.show(&sentence.into(), "nested")?,
        }
    }
    if let Some(hint) = restart_hint(config, fun) {
        print_plain_error(hint);
    } else if let Some(near) = nearest_name(client, fun).await {
        print_plain_error(format_args!("unknown runner function '{fun}'{}", nearest::hint(Some(&near))));
    }
    Ok(())
}

/// Returns the function with the name most similar to a misspelt one; `None` with an older master.
async fn nearest_name(client: &MasterClient, name: &str) -> Option<String> {
    let near = client.ask_runner("doc.nearest", Args::positional([Value::from(name)])).await.ok()?;
    near.as_str().map(str::to_owned)
}
