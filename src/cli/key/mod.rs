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
use super::privileges;
use super::runtime;
use super::usage;
use crate::ui::{ColourChoice, Ui, print_plain, print_plain_error};

const NAME: &str = "salt-key";
const USAGE: &str = "salt-key [options]";
/// The timeout of sending events to a running master.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(2);
/// The file in `cachedir` that requests a rotation of the master's publish key.
const ROTATE_FILE: &str = ".dfn";

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
    if arguments.actions.delete_all && !arguments.words.is_empty() {
        return mistake("Delete all takes no arguments. Use -d to delete specified keys");
    }
    if let Some(name) = arguments.making.gen_keys.as_deref().filter(|name| !name.is_empty()) {
        arguments.common.start_without_config()?;
        return make_pair(&arguments, name);
    }
    let config = match arguments.common.start_with_keys() {
        Ok(config) => config,
        Err(error) => return privileges::report(NAME, error),
    };
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
    let shown = map! {"return" => pair.public().fingerprint()}.into();
    arguments.output.printer(&Map::new())?.show(&shown, "nested")?;
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
        let shown = match task {
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
                self.change(act, &pattern)?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        self.printer.show(&shown, "key")?;
        Ok(ExitCode::SUCCESS)
    }

    fn change(&mut self, act: Act, pattern: &str) -> anyhow::Result<()> {
        let states = self.arguments.actions.states(act);
        let searched = if act == Act::Delete { &KeyState::ALL[..] } else { &states };
        let keys = self.context.keys.select(pattern, searched)?;
        if keys.is_empty() {
            no_match(pattern, &states);
            return Ok(());
        }
        announce(&mut self.printer, act, wheel::key::grouped(&keys))?;
        if !self.arguments.yes && !is_confirmed(act)? {
            return Ok(());
        }
        for (key, result) in apply(&self.context, act, &keys) {
            self.report(act, &key, result);
        }
        self.notify_master();
        Ok(())
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

fn no_match(pattern: &str, states: &[KeyState]) {
    print_plain(format_args!("The key glob '{pattern}' does not match any {} keys.", listed(states)));
}

/// Shows the keys that are going to be changed, by state.
fn announce(printer: &mut ResultPrinter, act: Act, keys: Map) -> anyhow::Result<()> {
    print_plain(format_args!("The following keys are going to be {}:", act.past_tense()));
    printer.show(&Value::Map(keys), "key")
}

/// Asks for confirmation. An empty answer means yes, except for deleting.
fn is_confirmed(act: Act) -> anyhow::Result<bool> {
    let question = if act == Act::Delete { "Proceed? [N/y] " } else { "Proceed? [n/Y] " };
    let answer = Ui::new(ColourChoice::Never).ask(question)?;
    if answer.is_none() {
        tracing::error!("EOF when reading a line: nothing is changed");
    }
    Ok(match answer.as_deref() {
        None => false,
        Some("") => act != Act::Delete,
        Some(answer) => answer.starts_with(['y', 'Y']),
    })
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
