//! `salt-key`: manages the keys of minions. It works on the key directories itself, so the master need not run. A
//! running master is notified by events, and by a file that requests a rotation of its publish key. With `--auth` it
//! sends requests to the master instead (`remote.rs`).

mod arguments;
mod remote;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use arguments::{Arguments, Task};
use brine_bus::SocketNames;
use brine_config::MasterConfig;
use brine_crypt::PrivateKey;
use brine_event::Event;
use brine_ids::MinionId;
use brine_master_calls::key_changes::apply;
use brine_master_calls::{WheelContext, WheelHost};
use brine_master_runners::wheel;
use brine_master_store::keys::{Act, Key, KeyError, KeyState, KeyStore};
use brine_system::files;
use brine_value::{Map, Value, map};
use brine_zmtp::{Endpoint, Push, TransportError};

use super::common::ResultPrinter;
use super::exit_status::FailureStatus;
use super::privileges;
use super::runtime;
use super::usage;
use crate::ui::{ColourChoice, Ui, print_plain, print_plain_error};

const NAME: &str = "salt-key";
pub const USAGE: &str = "salt-key [options]";
const FAILURE: u8 = 1;
/// The pattern of `-A`, `-R`, `-D`, `-F` and `-P`, which need not match a key.
const ALL: &str = "*";
/// The maximum number of denied keys that are explained.
const ADVISED: usize = 3;
/// The timeout of sending events to a running master.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(2);
/// The file in `cachedir` that requests a rotation of the master's publish key.
const ROTATE_FILE: &str = ".dfn";

/// Returns the options.
pub fn options() -> clap::Command {
    arguments::command()
}

/// Runs the tool.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse(NAME, USAGE, arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let mistake = |message: &str| Ok(usage::error(NAME, USAGE, message));
    match arguments.making.keysize {
        ..2048 => return mistake("The minimum value for keysize is 2048"),
        8193.. => return mistake("The maximum value for keysize is 8192"),
        _ => {}
    }
    let task = match arguments.actions.task() {
        Ok(task) => task,
        Err(message) => return mistake(&message),
    };
    if let Some(message) = arguments.contradiction() {
        return mistake(&message);
    }
    let superfluous = arguments.superfluous();
    let is_making = arguments.making.gen_keys.is_some();
    if let Some(message) = superfluous.as_ref().filter(|_| is_making) {
        return mistake(message);
    }
    if let Some(name) = arguments.making.gen_keys.as_deref().filter(|name| !name.is_empty()) {
        arguments.common.start_without_config()?;
        return make_pair(&arguments, name);
    }
    let config = match arguments.common.start_with_keys() {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
    match superfluous {
        Some(message) if !config.salt_exit_status => return mistake(&message),
        Some(message) if arguments.actions.delete_all => {
            print_plain_error(message);
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    if arguments.credentials.is_given() {
        return remote::run(&arguments, &config, task);
    }
    Session::open(&arguments, config)?.run(task)
}

fn make_pair(arguments: &Arguments, name: &str) -> anyhow::Result<ExitCode> {
    let name: MinionId = name.parse().context("the name of the key pair is invalid")?;
    let directory = &arguments.making.gen_keys_dir;
    std::fs::create_dir_all(directory).with_context(|| format!("creating {} failed", directory.display()))?;
    let bits = usize::try_from(arguments.making.keysize)?;
    let pair = PrivateKey::load_or_generate(directory, name.as_str(), bits)?;
    let value = map! {"return" => pair.public().fingerprint()}.into();
    arguments.output.printer(&Map::new())?.show(&value, "nested")?;
    Ok(ExitCode::SUCCESS)
}

/// A run with the key directories of a master.
struct Session<'run> {
    arguments: &'run Arguments,
    config: MasterConfig,
    context: WheelContext,
    pending: Arc<Pending>,
    printer: ResultPrinter,
}

/// Collects the notifications of wheel functions until all keys have been changed.
#[derive(Default)]
struct Pending {
    events: Mutex<Vec<(String, Map)>>,
    rotate: AtomicBool,
}

impl WheelHost for Pending {
    fn fire(&self, tag: &str, body: &Map) {
        let mut body = body.clone();
        // The operator is named in the master's log.
        body.insert("_by".into(), self.actor().into());
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((tag.to_owned(), body));
    }

    fn rotate_key(&self) {
        self.rotate.store(true, Ordering::Relaxed);
    }

    fn actor(&self) -> String {
        format!("salt-key of {}", privileges::user_name().unwrap_or_else(|| "an unknown user".to_owned()))
    }
}

impl<'run> Session<'run> {
    fn open(arguments: &'run Arguments, config: MasterConfig) -> anyhow::Result<Self> {
        let pending = Arc::new(Pending::default());
        let keys = Arc::new(KeyStore::open(&config.pki_dir)?);
        let printer = arguments.output.printer(&config.opts)?;
        let context = WheelContext { keys, attended: true, host: pending.clone() };
        Ok(Session { arguments, config, context, pending, printer })
    }

    fn run(mut self, task: Task) -> anyhow::Result<ExitCode> {
        let is_list = matches!(task, Task::List(_));
        let asked = match &task {
            Task::Print(pattern) | Task::Finger(pattern) if pattern != ALL => Some(pattern.clone()),
            _ => None,
        };
        let result = match task {
            Task::List(states) => {
                let mut lists = Map::new();
                for state in states {
                    lists.insert(state.directory().into(), self.context.keys.list(*state)?.into());
                }
                lists.into()
            }
            Task::Print(pattern) => wheel::key::key_str(&self.context, vec![pattern])?,
            Task::Finger(pattern) => wheel::key::finger(&self.context, vec![pattern], None)?,
            Task::Change(act, pattern) => {
                let is_done = self.change(act, &pattern)?;
                return Ok(status(&self.config, is_done));
            }
        };
        self.printer.show(&result, "key")?;
        if let Some(pattern) = asked.filter(|_| !result.is_truthy()) {
            no_keys(&pattern);
            return Ok(status(&self.config, false));
        }
        // Programs read other formats.
        if is_list && self.printer.is_nested() {
            advise_on_denied(result.get(KeyState::Denied.directory()));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Changes keys. Returns whether what was asked for is done, or declined.
    fn change(&mut self, act: Act, pattern: &str) -> anyhow::Result<bool> {
        let states = self.arguments.actions.states(act);
        let searched = if act == Act::Delete { &KeyState::ALL[..] } else { &states };
        let keys = self.context.keys.select(pattern, searched)?;
        if keys.is_empty() {
            no_match(pattern, &states);
            let denied = self.context.keys.select(pattern, &[KeyState::Denied])?;
            advise_on_denied(wheel::key::grouped(&denied).get(KeyState::Denied.directory()));
            return Ok(pattern == ALL);
        }
        announce(&mut self.printer, act, wheel::key::grouped(&keys))?;
        match is_confirmed(self.arguments.yes, act)? {
            Some(true) => {}
            answer => return Ok(answer.is_some()),
        }
        let mut is_done = true;
        for (key, result) in apply(&self.context, act, &keys) {
            is_done &= result.is_ok();
            self.report(act, &key, result);
        }
        self.notify_master();
        Ok(is_done)
    }

    fn report(&mut self, act: Act, key: &Key, result: Result<(), KeyError>) {
        match result {
            Ok(()) => print_plain(format_args!("Key for minion {} {}.", key.id, act.past_tense())),
            Err(KeyError::NotAKey { id, .. }) => {
                print_plain_error(format_args!("Unable to accept invalid key for {id}."));
            }
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Notifies a running master. The keys have been changed already, so errors are only logged.
    fn notify_master(&self) {
        let allowed = self.arguments.rotate_aes_key.unwrap_or(self.config.rotate_aes_key);
        if self.pending.rotate.load(Ordering::Relaxed) && allowed && self.config.cachedir.is_dir() {
            let id = self.config.id.as_deref().unwrap_or_default();
            if let Err(error) = files::write_atomic(self.config.cachedir.join(ROTATE_FILE), id.as_bytes(), 0o400) {
                tracing::error!("asking the master to rotate its publish key failed: {error}");
            }
        }
        let names = SocketNames::master();
        if self.config.sock_dir.join(&names.pull).exists() {
            let endpoint = names.pull_endpoint(&self.config.sock_dir);
            let events = std::mem::take(&mut *self.pending.events.lock().unwrap_or_else(PoisonError::into_inner));
            if let Err(error) = fire(&endpoint, &events) {
                tracing::warn!(
                    "notifying the master of the changed keys failed: {}; is it running?",
                    super::sentence(&error)
                );
            }
        }
    }
}

fn no_keys(pattern: &str) {
    print_plain_error(format_args!("The key glob '{pattern}' does not match any keys."));
}

fn no_match(pattern: &str, states: &[KeyState]) {
    print_plain(format_args!("The key glob '{pattern}' does not match any {} keys.", listed(states)));
}

/// Shows the keys that are going to be changed, by state.
fn announce(printer: &mut ResultPrinter, act: Act, keys: Map) -> anyhow::Result<()> {
    print_plain(format_args!("The following keys are going to be {}:", act.past_tense()));
    printer.show(&Value::Map(keys), "key")
}

/// Explains denied keys on stderr, if there are any.
fn advise_on_denied(denied: Option<&Value>) {
    let ids = denied.and_then(Value::as_list).unwrap_or_default();
    for id in ids.iter().take(ADVISED) {
        print_plain_error(format_args!(
            "the key of '{id}' is denied: the master knew another one. If the minion was reinstalled, compare the \
             fingerprints (`salt-minion --check` there, `salt-key -f {id}` here), then either run `salt-key -d {id}` and \
             accept its new key, or `salt-key -a {id} --include-denied`, and start the minion again. Otherwise two \
             minions have this id (a cloned host), or somebody tries to take its place"
        ));
    }
    if let Some(more) = ids.len().checked_sub(ADVISED).filter(|more| *more > 0) {
        print_plain_error(format_args!("{more} more keys are denied, for the same reasons"));
    }
}

/// Returns the exit status of a change of keys.
fn status(config: &MasterConfig, is_done: bool) -> ExitCode {
    if is_done { ExitCode::SUCCESS } else { FailureStatus::new(config.salt_exit_status).of(FAILURE) }
}

/// Asks for confirmation, unless `yes`; returns `None` at the end of the input. An empty answer means yes, except for
/// deleting.
fn is_confirmed(yes: bool, act: Act) -> anyhow::Result<Option<bool>> {
    if yes {
        return Ok(Some(true));
    }
    let question = if act == Act::Delete { "Proceed? [N/y] " } else { "Proceed? [n/Y] " };
    let answer = Ui::new(ColourChoice::Never).ask(question)?;
    if answer.is_none() {
        tracing::error!("EOF when reading a line: nothing is changed");
    }
    Ok(answer.map(|answer| match answer.as_str() {
        "" => act != Act::Delete,
        answer => answer.starts_with(['y', 'Y']),
    }))
}

fn fire(endpoint: &Endpoint, events: &[(String, Map)]) -> anyhow::Result<()> {
    let runtime = runtime::current_thread()?;
    let push = async {
        let mut push = Push::connect(endpoint).await?;
        for (tag, body) in events {
            push.push(Event::from_map(tag, body)?.frame());
        }
        push.flush().await?;
        anyhow::Ok(())
    };
    runtime::block_on(&runtime, async {
        let timed_out = |_| TransportError::TimedOut { endpoint: endpoint.to_string(), after: EVENTS_TIMEOUT };
        tokio::time::timeout(EVENTS_TIMEOUT, push).await.map_err(timed_out)?
    })
}

/// Lists states, such as `unaccepted`, `unaccepted or rejected`, `unaccepted, rejected or denied`.
fn listed(states: &[KeyState]) -> String {
    let words: Vec<_> = states.iter().map(|state| state.word()).collect();
    match &words[..] {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        words => words.concat(),
    }
}
