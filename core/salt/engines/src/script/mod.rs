//! The engine `script`: runs a program again and again, and publishes each line of its output that has a `tag`, with its
//! `data`.
//!
//! The program and its children are a process group, which ends with the engine. A line that is not an event is logged
//! and skipped; Salt's engine ends.

mod lines;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use brine_runtime::threads::{self, Thread};
use brine_system::processes::{Group, Signal};
use brine_text::words;
use brine_value::{FromValue, Map, Value, json, map};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::EngineError;
use crate::arguments::check_names;
use crate::metrics;
use crate::publisher::Publisher;
use lines::{Line, Lines};

/// The range of `interval`, in seconds.
const INTERVAL: std::ops::RangeInclusive<f64> = 0.1..=31_536_000.0;
/// The time that the program has to end when the engine stops, before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of tags whose last data is remembered for `onchange`.
const MAX_TAGS: usize = 10_000;
/// The maximum number of refused lines of a run that are logged.
const LOGGED_LINES: u64 = 10;
/// The maximum number of characters of a line in the log.
const SHOWN: usize = 200;

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    Yamlex,
}

impl Format {
    fn load(self, line: &[u8]) -> Result<Value, String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        match self {
            Format::Json => json::from_json(text).map_err(|error| error.to_string()),
            Format::Yaml => brine_yaml::load_data(text).map(|data| data.value).map_err(|error| error.to_string()),
            Format::Yamlex => brine_yaml::load_extended(text).map_err(|error| error.to_string()),
        }
    }
}

/// The arguments of the engine.
#[derive(Debug)]
pub struct Script {
    words: Vec<String>,
    format: Format,
    interval: Duration,
    only_changes: bool,
}

impl Script {
    /// Reads the arguments `cmd`, `output`, `interval` and `onchange`.
    pub(crate) fn new(kwargs: &Map) -> Result<Self, String> {
        check_names(kwargs, &["cmd", "output", "interval", "onchange"])?;
        let cmd = kwargs.get("cmd").ok_or("the argument 'cmd' is missing: name the command")?.to_string();
        let words = words::split(&cmd).ok_or_else(|| format!("the command {cmd:?} is invalid: a quote is open"))?;
        if words.is_empty() {
            return Err("the argument 'cmd' is empty: name the command".to_owned());
        }
        let format = match kwargs.get("output").map(ToString::to_string).as_deref() {
            None | Some("json") => Format::Json,
            Some("yaml") => Format::Yaml,
            Some("yamlex") => Format::Yamlex,
            Some(other) => {
                return Err(format!(
                    "Unknown serializer `{other}` found for output option: expected json, yaml or yamlex"
                ));
            }
        };
        let interval = match kwargs.get("interval") {
            None => 1.0,
            Some(value) => f64::from_value(value)
                .filter(|seconds| *seconds >= 0.0)
                .ok_or_else(|| format!("the argument 'interval' is invalid: expected seconds, got {value}"))?,
        };
        let interval = brine_runtime::seconds::within(INTERVAL, interval);
        Ok(Script { words, format, interval, only_changes: kwargs.get("onchange").is_some_and(Value::is_truthy) })
    }

    /// Runs the program at the interval until `stopping` is cancelled.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) async fn run(&self, publisher: &dyn Publisher, stopping: &CancellationToken) -> Result<(), EngineError> {
        let mut seen = Seen::default();
        loop {
            self.run_once(publisher, &mut seen, stopping).await?;
            tokio::select! {
                () = stopping.cancelled() => return Ok(()),
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    async fn run_once(
        &self,
        publisher: &dyn Publisher,
        seen: &mut Seen,
        stopping: &CancellationToken,
    ) -> Result<(), EngineError> {
        let (output, mut process) = Process::start(&self.words).await?;
        let ended = tokio::select! {
            () = stopping.cancelled() => None,
            status = async {
                self.publish_lines(output, publisher, seen).await;
                process.wait().await
            } => Some(status),
        };
        match ended {
            None => process.stop().await,
            Some(Ok(status)) if status.success() => {}
            Some(Ok(status)) => {
                tracing::error!(program = self.words[0], "the program of the engine script failed: {status}");
            }
            Some(Err(error)) => tracing::error!(program = self.words[0], error, "waiting for a program failed"),
        }
        Ok(())
    }

    async fn publish_lines(&self, output: Receiver, publisher: &dyn Publisher, seen: &mut Seen) {
        let mut lines = Lines::new(output);
        let mut refused: u64 = 0;
        loop {
            let (line, result) = match lines.next().await {
                Ok(Some(Line::Whole(line))) if line.trim_ascii().is_empty() => continue,
                Ok(Some(Line::Whole(line))) => {
                    let result = self.publish(&line, publisher, seen).await;
                    (line, result)
                }
                Ok(Some(Line::Cut(start))) => (start, Err("the line is too long".to_owned())),
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(program = self.words[0], %error, "reading the output of a program failed");
                    break;
                }
            };
            if let Err(error) = result {
                refused += 1;
                metrics::ENGINE_LINES_REFUSED.add(1);
                if refused <= LOGGED_LINES {
                    let excerpt: String = String::from_utf8_lossy(&line).trim_end().chars().take(SHOWN).collect();
                    tracing::error!(
                        program = self.words[0],
                        line = excerpt,
                        "a line of the engine script is skipped: {error}"
                    );
                }
            }
        }
        if refused > LOGGED_LINES {
            let more = refused - LOGGED_LINES;
            tracing::error!(program = self.words[0], more, "more lines of the engine script were skipped");
        }
    }

    /// Publishes the event in a line, if it has a tag.
    async fn publish(&self, line: &[u8], publisher: &dyn Publisher, seen: &mut Seen) -> Result<(), String> {
        let Value::Map(event) = self.format.load(line)? else {
            return Err("it is not a mapping with 'tag' and 'data'".to_owned());
        };
        let Some(tag) = event.get("tag").filter(|tag| tag.is_truthy()).map(ToString::to_string) else { return Ok(()) };
        let mut data = match event.get("data") {
            Some(Value::Map(data)) => data.clone(),
            None => Map::new(),
            Some(nothing) if !nothing.is_truthy() => Map::new(),
            Some(other) => return Err(format!("its data is invalid: expected a mapping, got {}", other.type_name())),
        };
        if !data.is_empty() && !data.contains_key("id") {
            data.extend(map! {"id" => publisher.id()});
        }
        let hash = seen.hash(&data);
        if self.only_changes && seen.last.get(&tag) == Some(&hash) {
            return Ok(());
        }
        publisher.publish(tag.clone(), data).await.map_err(|error| error.to_string())?;
        if self.only_changes {
            seen.record(tag, hash);
        }
        Ok(())
    }
}

/// The last data of each tag, as a hash.
#[derive(Default)]
struct Seen {
    hasher: RandomState,
    last: HashMap<String, u64>,
}

impl Seen {
    fn hash(&self, data: &Map) -> u64 {
        self.hasher.hash_one(json::to_json(&sorted(&Value::Map(data.clone()))))
    }

    /// Records the data of a tag. Beyond the maximum number of tags, the others are forgotten.
    fn record(&mut self, tag: String, hash: u64) {
        if self.last.len() >= MAX_TAGS && !self.last.contains_key(&tag) {
            self.last.clear();
        }
        self.last.insert(tag, hash);
    }
}

/// Returns data with the keys of mappings in order: their order is no change.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by_cached_key(|(key, _)| key.to_string());
            Value::Map(entries.into_iter().collect())
        }
        Value::List(items) => items.iter().map(sorted).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// A running program with its process group. The group is killed when this is dropped.
struct Process {
    group: Group,
    waiting: Thread<std::io::Result<ExitStatus>>,
}

impl Process {
    /// Starts a program, and returns the pipe of its output and errors.
    async fn start(words: &[String]) -> Result<(Receiver, Self), EngineError> {
        let failed = |source| EngineError::Program { program: words[0].clone(), source };
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let errors = writer.try_clone().map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(writer).stderr(errors);
        let (begun, begins) = oneshot::channel();
        let waiting = threads::start("engine program", move |_| run(command, begun))?;
        let group = begins.await.map_err(|error| failed(std::io::Error::other(error)))?.map_err(failed)?;
        let process = Process { group, waiting };
        let output = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;
        Ok((output, process))
    }

    async fn wait(&mut self) -> Result<ExitStatus, String> {
        match self.waiting.result().await {
            Ok(status) => status.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Asks the program to end, and kills it if it does not.
    async fn stop(mut self) {
        self.group.signal(Signal::SIGTERM);
        _ = tokio::time::timeout(STOP_TIMEOUT, self.wait()).await;
    }
}

/// Starts a program, sends its process group, and waits for its end. Without a receiver the group is killed.
fn run(mut command: Command, begun: oneshot::Sender<std::io::Result<Group>>) -> std::io::Result<ExitStatus> {
    let (group, _) = match Group::start(&mut command) {
        Ok(started) => started,
        Err(error) => {
            let same = std::io::Error::new(error.kind(), error.to_string());
            _ = begun.send(Err(error));
            return Err(same);
        }
    };
    // It holds copies of the pipe.
    drop(command);
    if begun.send(Ok(group.clone())).is_err() {
        group.signal(Signal::SIGKILL);
    }
    group.reap()
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.signal(Signal::SIGKILL);
    }
}
