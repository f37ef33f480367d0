//! `salt-key --auth`: manages keys through the running master, as a user of its `external_auth`. The master authorises
//! each action: `@wheel` entries for `key.list`, `key.glob_match`, `key.accept`, ...

use std::process::ExitCode;

use brine_config::MasterConfig;
use brine_function::Args;
use brine_master_store::keys::{Act, KeyState};
use brine_value::{Map, Value, map};
use tokio::runtime::Runtime;

use super::super::client::{ClientError, MasterClient};
use super::super::common::ResultPrinter;
use super::super::runtime;
use super::arguments::{Arguments, Task};
use super::{ALL, NAME, advise_on_denied, announce, is_confirmed, no_keys, no_match, status};
use crate::ui::{print_plain, print_plain_error};

/// A run through a master.
struct Remote {
    runtime: Runtime,
    client: MasterClient,
    printer: ResultPrinter,
}

/// Runs a task through the master, with the credentials of the command line.
pub(super) fn run(arguments: &Arguments, config: &MasterConfig, task: Task) -> anyhow::Result<ExitCode> {
    match asked(arguments, config, task).map_err(anyhow::Error::downcast::<ClientError>) {
        Err(Ok(error @ ClientError::Denied(_))) => {
            print_plain_error(format_args!("{NAME}: {error}"));
            Ok(status(config, false))
        }
        Err(Ok(error)) => Err(error.into()),
        Err(Err(error)) => Err(error),
        Ok(status) => Ok(status),
    }
}

fn asked(arguments: &Arguments, config: &MasterConfig, task: Task) -> anyhow::Result<ExitCode> {
    let runtime = runtime::current_thread()?;
    let client = runtime::block_on(&runtime, arguments.credentials.client(config))?;
    let mut remote = Remote { runtime, client, printer: arguments.output.printer(&config.opts)? };
    let named = match &task {
        Task::Print(pattern) | Task::Finger(pattern) if pattern != ALL => Some(pattern.clone()),
        _ => None,
    };
    let result = match task {
        Task::List(states) => remote.list(states)?,
        Task::Print(pattern) => remote.ask("key.print", map! {"match" => pattern})?,
        Task::Finger(pattern) => remote.ask("key.finger", map! {"match" => pattern})?,
        Task::Change(act, pattern) => {
            let is_done = remote.change(arguments, act, &pattern)?;
            return Ok(status(config, is_done));
        }
    };
    remote.printer.show(&result, "key")?;
    if let Some(pattern) = named.filter(|_| !result.is_truthy()) {
        no_keys(&pattern);
        return Ok(status(config, false));
    }
    if remote.printer.is_nested() {
        advise_on_denied(result.get(KeyState::Denied.directory()));
    }
    Ok(ExitCode::SUCCESS)
}

impl Remote {
    fn ask(&self, fun: &str, keyword: Map) -> Result<Value, ClientError> {
        runtime::block_on(&self.runtime, self.client.ask_wheel(fun, Args::keyword(keyword)))
    }

    fn list(&self, states: &[KeyState]) -> Result<Value, ClientError> {
        let word = if states.len() > 1 { "all" } else { states.first().map_or("all", |state| state.word()) };
        let mut listed = self.ask("key.list", map! {"match" => word})?;
        if let Value::Map(listed) = &mut listed {
            listed.shift_remove("local");
        }
        Ok(listed)
    }

    /// Changes keys. Returns whether what was asked for is done, or declined.
    fn change(&mut self, arguments: &Arguments, act: Act, pattern: &str) -> anyhow::Result<bool> {
        let states = arguments.actions.states(act);
        let keys = self.ask("key.glob_match", map! {"match" => pattern})?;
        let is_meant = |directory: &Value| {
            let state = directory.as_str().and_then(KeyState::of_directory);
            state.is_some_and(|state| act == Act::Delete || states.contains(&state))
        };
        let keys: Map = keys
            .as_map()
            .into_iter()
            .flatten()
            .filter(|(directory, _)| is_meant(directory))
            .map(|(directory, ids)| (directory.clone(), ids.clone()))
            .collect();
        if keys.is_empty() {
            no_match(pattern, &states);
            return Ok(pattern == ALL);
        }
        announce(&mut self.printer, act, keys.clone())?;
        match is_confirmed(arguments.yes, act)? {
            Some(true) => {}
            answer => return Ok(answer.is_some()),
        }
        let mut keyword = map! {"match" => keys.clone()};
        let mut include = |name: &str, state| {
            if states.contains(&state) {
                keyword.insert(name.into(), true.into());
            }
        };
        let fun = match act {
            Act::Accept => {
                include("include_rejected", KeyState::Rejected);
                include("include_denied", KeyState::Denied);
                "key.accept_dict"
            }
            Act::Reject => {
                include("include_accepted", KeyState::Accepted);
                include("include_denied", KeyState::Denied);
                "key.reject_dict"
            }
            Act::Delete => "key.delete_dict",
        };
        let now = self.ask(fun, keyword)?;
        let ids = |directory: &str| now.get(directory).and_then(Value::as_list).unwrap_or_default();
        let mut all_done = true;
        for id in keys.values().filter_map(Value::as_list).flatten() {
            let is_done = match act.new_state() {
                Some(state) => ids(state.directory()).contains(id),
                None => KeyState::ALL.iter().all(|state| !ids(state.directory()).contains(id)),
            };
            all_done &= is_done;
            if is_done {
                print_plain(format_args!("Key for minion {id} {}.", act.past_tense()));
            } else {
                tracing::error!(minion = %id, "the key was not {}: the log of the master has the cause", act.past_tense());
            }
        }
        Ok(all_done)
    }
}
