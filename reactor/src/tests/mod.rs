//! The reactor with a recording dispatch: the dispatched reactions, their order, and that none is lost.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_bus::store::Store;
use brine_bus::{Bus, BusLimits, Filter, JournalLimits, Start};
use brine_function::{Args, CallError};
use brine_jinja::{Files, FilesError, Functions, Host};
use brine_runtime::executors::{Executor, MayBlock};
use brine_value::{Map, Value, list, map};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

mod at_least_once;
mod failures;
mod gate;
mod order;
mod reactions;
mod replay;
mod retry;
mod skipped;
mod views;

/// The number of failures of a function, and its error.
type Failing = Arc<Mutex<HashMap<&'static str, (usize, DispatchError)>>>;

/// Blocks threads until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, parking_lot::Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut is_open = self.0.0.lock();
        while !*is_open {
            self.0.1.wait(&mut is_open);
        }
    }
}

/// Records dispatched reactions. The function `test.block` blocks its thread at the gate, and the target `nobody`
/// matches no minion.
struct Recorder {
    sent: mpsc::UnboundedSender<(Reaction, Cause)>,
    failing: Failing,
    gate: Gate,
}

impl Dispatch for Recorder {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        match reaction {
            Reaction::Runner { fun, .. } if fun == "no.such" => {
                Err(DispatchError::permanent("'no.such' is not available."))
            }
            _ => Ok(()),
        }
    }

    fn dispatch(&self, reaction: Reaction, cause: Cause) -> BoxFuture<'_, Result<Dispatched, DispatchError>> {
        Box::pin(async move {
            self.sent.send((reaction.clone(), cause)).map_err(|_| DispatchError::permanent("gone"))?;
            if reaction.fun() == "test.block" {
                self.gate.pass();
            }
            let mut failing = self.failing.lock();
            match failing.get_mut(reaction.fun()) {
                Some((left, error)) if *left > 0 => {
                    *left -= 1;
                    Err(error.clone())
                }
                _ if matches!(&reaction, Reaction::Local(local) if local.tgt == "nobody".into()) => {
                    Ok(Dispatched::NoMinion { target: "target 'nobody' (glob)".to_owned() })
                }
                _ => Ok(Dispatched::Done),
            }
        })
    }
}

/// Serves `salt://` from a directory. The function `test.fun` blocks its thread at the gate if it is called with
/// `block`.
#[derive(Clone)]
struct ServedDirectory(PathBuf, Gate);

impl Functions for ServedDirectory {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        if args.positional.first() == Some(&"block".into()) {
            self.1.pass();
        }
        Ok(format!("{function} {}", args.positional.len()).into())
    }

    fn has(&self, function: &str) -> bool {
        function == "test.fun"
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }
}

impl Files for ServedDirectory {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        Ok(std::fs::read_to_string(self.0.join(saltenv).join(path)).ok())
    }
}

struct Running {
    bus: Bus,
    store: Store,
    gate: Gate,
    reactor: Arc<Reactor>,
    failing: Failing,
    reactions: mpsc::UnboundedReceiver<(Reaction, Cause)>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// Returns the dead letters, oldest first.
fn dead_letters(reactor: &Reactor) -> Vec<DeadLetter> {
    let mut letters = Vec::new();
    reactor.each_dead_letter(&thread(), |letter| letters.push(letter)).unwrap();
    letters
}

fn start(directory: &Path, reactor: &Value) -> Running {
    start_limited(directory, reactor, Map::new())
}

fn start_limited(directory: &Path, reactor: &Value, limits: Map) -> Running {
    let mut opts = map! {"reactor" => reactor.clone()};
    opts.extend(limits);
    start_with(directory, &opts, |_| ())
}

/// Returns the token that permits the thread of a test to block.
fn thread() -> MayBlock {
    MayBlock::on_dedicated_thread(Handle::current())
}

/// Starts a reactor with these options of the configuration, and changes to its own.
fn start_with(directory: &Path, opts: &Map, change: impl Fn(&mut Options)) -> Running {
    let (store, opened) = Store::open(&directory.join("brine.redb"), 1 << 20).unwrap();
    let (handle, bus_store) = (Handle::current(), store.clone());
    // Outside of the runtime, as this is a synchronous function.
    let opening = std::thread::spawn(move || {
        let _runtime = handle.enter();
        let disk = Executor::new("disk", 2, 16);
        handle
            .block_on(Bus::with_journal(BusLimits::default(), bus_store, opened, JournalLimits::default(), &disk))
            .unwrap()
    });
    let bus = opening.join().unwrap();
    start_on(bus, store, directory, opts, change)
}

fn start_on(bus: Bus, store: Store, directory: &Path, opts: &Map, change: impl Fn(&mut Options)) -> Running {
    let gate = Gate::default();
    let mut options = Options {
        workers: 4,
        waiting: 100,
        detach: DETACH,
        deadline: Duration::from_secs(60),
        retries: 3,
        max_depth: 4,
        strict_data: true,
        user: "Reactor",
        renderer: "jinja|yaml".into(),
        opts: Arc::default(),
        grains: Arc::new(|| Arc::new(map! {"id" => "m_master"})),
        host: {
            let served = ServedDirectory(directory.to_owned(), gate.clone());
            Host::new().with_functions(served.clone()).with_files(served)
        },
        group_size: Arc::new(|_| Box::pin(async { None })),
        disk: Executor::new("disk", 1, 16),
        store: Some(store.blocking(&thread())),
        dead_letter_bytes: 1 << 20,
        gate: None,
    };
    change(&mut options);
    let (sent, reactions) = mpsc::unbounded_channel();
    let failing = Failing::default();
    let dispatch = Recorder { sent, failing: Arc::clone(&failing), gate: gate.clone() };
    let reactor = Reactor::new(Entries::from_opts(opts).unwrap(), options, dispatch).unwrap();
    let events = Reactor::subscribe(&bus).unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(Arc::clone(&reactor).run(bus.clone(), events, shutdown.clone()));
    Running { bus, store, gate, reactor, failing, reactions, shutdown, task }
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

async fn next(running: &mut Running) -> (Reaction, Cause) {
    tokio::time::timeout(Duration::from_secs(20), running.reactions.recv()).await.unwrap().unwrap()
}

/// Returns the `n` of each reaction until this many have arrived, in order of arrival.
async fn numbers(running: &mut Running, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        let (Reaction::Runner { args, .. }, _) = next(running).await else { panic!() };
        numbers.push(args.keyword.get("n").and_then(Value::as_i64).unwrap());
    }
    numbers
}

const NUMBER: &str = "a: {runner.test.arg: [{n: {{ data.n }}}]}";
