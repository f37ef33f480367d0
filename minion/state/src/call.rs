//! One call of a state function: checks, conditions, retries, and the common fields of results.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::UnknownArguments;
use brine_context::redact::Redactor;
use brine_context::{Context, StateContext, suggest};
use brine_function::{Args, CallError, Function, Param};
use brine_host::environment::Environment;
use brine_host::paths::expand;
use brine_host::process::cancelled_within;
use brine_sls::compile::{Chunk, RequisiteKind};
use brine_value::{Map, Value, map};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;

use crate::options::Settings;
use crate::own_args::is_own;
use crate::result_fields::{Clock, sls_of, text};
use crate::retry::{Retry, attempt_text};
use crate::sub_states::{self, SUB_STATES};
use crate::unknown;
use crate::{advice, conditions, slots};

/// The replacement of a hidden value.
const MASK: &str = "**********";

/// Whether a state must be neither shown nor logged (`no_log`).
fn is_hidden(chunk: &Chunk) -> bool {
    chunk.args.get("no_log").is_some_and(Value::is_truthy)
}

/// Logs that a state starts.
fn log_start(chunk: &Chunk) {
    let name = if is_hidden(chunk) { MASK } else { &chunk.id };
    tracing::info!(sls = chunk.sls, "running state [{name}] {}.{}", chunk.state, chunk.fun);
}

/// Logs the result of a state: a failed one as an error, with its comment.
fn log_end(context: &Context, chunk: &Chunk, result: &Map) {
    let name = if is_hidden(chunk) { MASK } else { &chunk.id };
    let function = format_args!("{}.{}", chunk.state, chunk.fun);
    let duration = result.get("duration").map(ToString::to_string).unwrap_or_default();
    let changes = result.get("changes");
    match result.get("result") {
        Some(Value::Bool(false)) => {
            let comment = Redactor::of(&context.pillar()).hide(&text(result, "comment"));
            tracing::error!(sls = chunk.sls, duration_ms = duration, "state [{name}] {function} failed: {comment}");
        }
        value => {
            let result = value.map(ToString::to_string).unwrap_or_default();
            let changed = changes.is_some_and(Value::is_truthy);
            tracing::info!(duration_ms = duration, result, changed, "state [{name}] {function} completed");
        }
    }
}

/// Calls state functions, and assigns their run numbers.
pub(super) struct Caller<'a> {
    pub context: &'a Context,
    pub settings: &'a Settings,
    /// All chunks of the run.
    pub chunks: &'a [Chunk],
    /// The number of the next call.
    pub number: i64,
}

impl Caller<'_> {
    /// Calls the function of a chunk, with the retries of its `retry`.
    ///
    /// # Errors
    ///
    /// Unknown arguments, which end the whole run.
    pub fn call(&mut self, chunk: &Chunk) -> Result<Map, CallError> {
        let mut result = self.attempt(chunk)?;
        // Parallel states are retried on their own threads.
        let retry = chunk.args.get("retry").filter(|_| !chunk.args.contains_key("parallel")).map(Retry::read);
        let Some(retry) = retry.filter(|_| result.contains_key("start_time")) else { return Ok(result) };
        if self.settings.test {
            retry.announce(&mut result);
            return Ok(result);
        }
        let (mut reported, mut elapsed_ms) = (String::new(), 0.0);
        let started = result.get("start_time").cloned().unwrap_or_default();
        for attempt in 1..retry.attempts {
            if result.get("result") == Some(&Value::Bool(retry.until)) {
                break;
            }
            reported += &attempt_text(attempt, &result, &text(&result, "comment"));
            reported.push('\n');
            let pause = retry.pause();
            elapsed_ms += result.get("duration").and_then(Value::as_f64).unwrap_or(0.0) + pause.as_secs_f64() * 1e3;
            if cancelled_within(&self.context.job.cancel, pause) {
                break;
            }
            result = self.attempt(chunk)?;
        }
        if !reported.is_empty() {
            let comment = format!("{reported}{}", text(&result, "comment"));
            let duration = result.get("duration").and_then(Value::as_f64).unwrap_or(0.0) + elapsed_ms;
            result.extend(map! {"comment" => comment, "duration" => duration, "start_time" => started});
        }
        Ok(result)
    }

    /// Returns the states that a chunk requires, by module and name.
    fn required(&self, chunk: &Chunk) -> Vec<(String, String)> {
        let required = chunk.requisites.iter().filter(|requisite| requisite.kind == RequisiteKind::Require);
        let chunks = required.flat_map(|requisite| &requisite.chunks).filter_map(|place| self.chunks.get(*place));
        chunks.map(|chunk| (chunk.state.clone(), chunk.name.clone())).collect()
    }

    /// Calls the function of a chunk once, and adds the common fields of results.
    fn attempt(&mut self, chunk: &Chunk) -> Result<Map, CallError> {
        let clock = Clock::start();
        log_start(chunk);
        if let Some(comment) = call_errors(self.context, chunk) {
            let number = self.next_number();
            return Ok(map! {
                "result" => false,
                "name" => chunk.written_name(),
                "changes" => map! {},
                "comment" => comment,
                "__run_num__" => number,
            });
        }
        let mut result = self.call_once(chunk, self.settings.test)?;
        let number = self.next_number();
        result.extend(map! {"__sls__" => sls_of(chunk), "__run_num__" => number});
        if is_hidden(chunk) {
            for key in ["name", "changes", "comment"] {
                result.get_mut(key).into_iter().for_each(mask);
            }
        }
        clock.write(&mut result);
        result.insert("__id__".into(), (&chunk.id).into());
        self.advise(chunk, &mut result);
        self.warn(chunk, &mut result);
        log_end(self.context, chunk, &result);
        // As in Salt, the result of a single state contains those of the states that it has run itself.
        if !chunk.sls.is_empty()
            && let Some(parts) = result.shift_remove(&Value::from(SUB_STATES))
        {
            let merged = sub_states::results(chunk, &parts, || self.next_number());
            result.insert(SUB_STATES.into(), merged.into());
        }
        Ok(result)
    }

    /// Adds what to do to the comment of a failed state of Brine.
    fn advise(&self, chunk: &Chunk, result: &mut Map) {
        let full = full_name(chunk);
        let function =
            self.context.minion.states.get(&full).filter(|_| !self.context.minion.custom.has("states", &full));
        if let Some(function) = function {
            let takes = |argument: &str| function.params().iter().any(|param| param.name == argument);
            advice::to_comment(self.context, chunk, takes, result);
        }
    }

    /// Adds warnings about unknown arguments to the result of a state, and logs them.
    pub(crate) fn warn(&self, chunk: &Chunk, result: &mut Map) {
        let function = self.context.minion.states.get(&full_name(chunk));
        let Some(function) =
            function.filter(|_| self.context.config().state_unknown_arguments == UnknownArguments::Warn)
        else {
            return;
        };
        let messages = unknown::messages(self.context, function, chunk);
        if messages.is_empty() {
            return;
        }
        for message in &messages {
            tracing::warn!(sls = chunk.sls, "{message}");
        }
        let before = match result.shift_remove("warnings") {
            Some(Value::List(before)) => before,
            other => other.into_iter().filter(Value::is_truthy).collect(),
        };
        let all: Vec<Value> = before.into_iter().chain(messages.into_iter().map(Value::from)).collect();
        result.insert("warnings".into(), all.into());
    }

    /// Returns the next run number, and increments it.
    pub fn next_number(&mut self) -> i64 {
        self.number += 1;
        self.number - 1
    }

    /// Calls a function with its conditions, without adding the common fields of results. `test`: a dry run.
    pub fn call_once(&self, chunk: &Chunk, test: bool) -> Result<Map, CallError> {
        if call_errors(self.context, chunk).is_some() {
            return Ok(failure(chunk, String::new()));
        }
        let name = full_name(chunk);
        let Some(function) = self.context.minion.states.get(&name) else { return Ok(failure(chunk, String::new())) };
        // Not a failure of the state: invalid arguments end the run.
        let args = arguments(function, chunk)?;
        let result = conditions::skipped(self.context, chunk).and_then(|skipped| {
            let mut result = match skipped {
                Some(comment) => map! {
                    "result" => true,
                    "name" => chunk.written_name(),
                    "changes" => map! {},
                    "comment" => comment,
                    "__sls__" => sls_of(chunk),
                    "__id__" => &chunk.id,
                    "skip_watch" => true,
                },
                None => self.function(function, chunk, args, test)?,
            };
            let own_check = || function.params().iter().any(|param| param.name == "check_cmd");
            if let Some(commands) = chunk.args.get("check_cmd").filter(|_| !own_check()) {
                let good = conditions::check_cmd(self.context, commands)?;
                // As in Salt, `check_cmd` does not override the result of a parallel state.
                let is_parallel = chunk.args.get("parallel").is_some_and(Value::is_truthy) && !self.settings.mock;
                if !is_parallel {
                    result.insert("result".into(), good.unwrap_or(false).into());
                }
                if let Some(good) = good.filter(|_| !is_parallel) {
                    let word = if good { "succeeded" } else { "failed" };
                    result.insert("comment".into(), format!("check_cmd determined the state {word}").into());
                }
                let name = chunk.written_name();
                result.extend(map! {"__sls__" => sls_of(chunk), "__id__" => &chunk.id, "name" => name});
            }
            Ok(result)
        });
        Ok(result.unwrap_or_else(|error| excepted(chunk, error)))
    }

    /// Calls a function again, regardless of its conditions.
    pub fn call_unconditionally(&self, chunk: &Chunk) -> Result<Map, CallError> {
        let Some(function) = self.context.minion.states.get(&full_name(chunk)) else {
            return Ok(failure(chunk, String::new()));
        };
        let args = arguments(function, chunk)?;
        Ok(self.function(function, chunk, args, self.settings.test).unwrap_or_else(|error| excepted(chunk, error)))
    }

    fn function(
        &self,
        function: &Function<StateContext>,
        chunk: &Chunk,
        mut args: Args,
        test: bool,
    ) -> Result<Map, CallError> {
        if self.settings.mock {
            return Ok(map! {
                "name" => chunk.written_name(),
                "comment" => "Not called, mocked",
                "changes" => map! {},
                "result" => true,
            });
        }
        if !conditions::permits(self.context, chunk) {
            tracing::info!("Failed to meet global state conditions. State '{}' not called.", chunk.written_name());
            return Ok(map! {
                "name" => chunk.written_name(),
                "comment" => "Failed to meet global state conditions. State not called.",
                "changes" => map! {},
                "result" => Value::Nil,
            });
        }
        let mut all = chunk.args.clone();
        if slots::are_in(&all) {
            slots::fill(self.context, &mut args)?;
            // An argument of every state; those of commands take it from the chunk.
            if let Some(user) = all.get_mut("runas") {
                slots::fill_value(self.context, user)?;
            }
            all.extend(args.keyword.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        let saltenv = chunk.args.get("saltenv").map_or_else(|| chunk.saltenv.clone(), ToString::to_string);
        let context = StateContext {
            call: self.context.clone(),
            test,
            saltenv: if saltenv.is_empty() { "base".to_owned() } else { saltenv },
            sls: chunk.sls.clone(),
            id: chunk.id.clone(),
            chunk: Arc::new(all),
            required: self.required(chunk),
        };
        let before = self.context.job.retcode.load(Ordering::Relaxed);
        let result = match chunk.args.get("umask").and_then(mode) {
            Some(umask) => with_umask(umask, || function.call(&context, args)),
            None => function.call(&context, args),
        };
        // Retcodes of a state's commands are part of its result, not of the job's.
        self.context.set_retcode(before);
        let result = result.and_then(|result| match result {
            Value::Map(result) => Ok(result),
            other => Err(CallError::Execution(format!("{} returned {other}, not a state's result", full_name(chunk)))),
        });
        if !chunk.args.get("parallel").is_some_and(Value::is_truthy) {
            return result;
        }
        let mut result = result.unwrap_or_else(|error| excepted(chunk, error));
        result.insert("__parallel__".into(), true.into());
        Ok(result)
    }
}

/// Returns the errors that prevent a chunk from being called, one line each, as the comment of its result.
pub fn call_errors(context: &Context, chunk: &Chunk) -> Option<String> {
    let mut wrong = Vec::new();
    let name = chunk.written_name();
    let place = if chunk.sls.is_empty() { String::new() } else { format!("in SLS '{}' ", chunk.sls) };
    if name.is_truthy() && name.as_str().is_none() {
        wrong.push(format!("ID '{name}' {place}is not formed as a string, but is a {}", name.type_name()));
    }
    if let Some(umask) = chunk.args.get("umask")
        && mode(umask).is_none()
    {
        wrong.push(format!("Invalid umask: {umask}"));
    }
    if wrong.is_empty() {
        let full = full_name(chunk);
        let function = context.minion.states.get(&full);
        let is_custom = context.minion.custom.has("states", &full);
        let unavailable = || context.minion.modules.unavailable(context, &chunk.state);
        let missing = match (!is_custom).then(unavailable).flatten() {
            Some(reason) => Some(format!("'{}' __virtual__ returned False: {reason}", chunk.state)),
            None => function.is_none().then(|| {
                let failure = context.minion.custom.failure("states", &chunk.state);
                failure.unwrap_or_else(|| suggest::no_state(&context.minion.states, &full))
            }),
        };
        match (missing, function) {
            (Some(_), _) if chunk.sls.is_empty() => wrong.push(suggest::no_single_state(&context.minion.states, &full)),
            (Some(reason), _) => {
                wrong.push(format!("State '{full}' was not found in SLS '{}'", chunk.sls));
                wrong.push(format!("Reason: {reason}"));
            }
            (None, Some(function)) => {
                let required = function.params().iter().filter(|param| param.is_required());
                let missing = required.filter(|param| param.name != "name" && !chunk.args.contains_key(param.name));
                wrong.extend(missing.map(|param| format!("Missing parameter {} for state {full}", param.name)));
                if context.config().state_unknown_arguments == UnknownArguments::Fail {
                    wrong.extend(unknown::messages(context, function, chunk));
                }
            }
            (None, None) => {}
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("\n") + "\n")
}

/// Parses a mode in octal digits.
fn mode(value: &Value) -> Option<u32> {
    u32::from_str_radix(value.to_string().trim_start_matches("0o"), 8).ok()
}

/// Calls a function with another umask, on a thread that does not share its umask with the process.
fn with_umask<T: Send>(umask: u32, call: impl FnOnce() -> Result<T, CallError> + Send) -> Result<T, CallError> {
    let environment = Environment::current();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            unshare(CloneFlags::CLONE_FS)
                .map_err(|error| CallError::execution(format!("umask cannot be set: {error}")))?;
            nix::sys::stat::umask(Mode::from_bits_truncate(umask));
            environment.run(call)
        });
        thread.join().unwrap_or_else(|_| Err(CallError::Execution("the state panicked".into())))
    })
}

fn full_name(chunk: &Chunk) -> String {
    format!("{}.{}", chunk.state, chunk.fun)
}

/// Returns the result of a state that an exception ended.
fn excepted(chunk: &Chunk, error: CallError) -> Map {
    let error = match error {
        CallError::Execution(message) | CallError::Exception(message) => message,
        other => other.to_string(),
    };
    failure(chunk, format!("An exception occurred in this state: {error}"))
}

fn failure(chunk: &Chunk, comment: String) -> Map {
    map! {"result" => false, "name" => chunk.written_name(), "changes" => map! {}, "comment" => comment}
}

/// Returns the arguments of a function from a chunk.
///
/// # Errors
///
/// Unknown arguments, in Salt's wording.
fn arguments(function: &Function<StateContext>, chunk: &Chunk) -> Result<Args, CallError> {
    let params = function.params();
    let takes_all = params.iter().any(Param::is_keywords);
    let name = match chunk.written_name() {
        Value::Str(path) if chunk.state == "file" => expand(&path).display().to_string().into(),
        name => name,
    };
    let (mut keyword, mut unknown) = (map! {"name" => name}, Vec::new());
    for (key, value) in &chunk.args {
        let name = key.to_string();
        let named = params.iter().any(|param| param.name == name && param.is_named());
        let own = name.starts_with("__") || is_own(&name) || RequisiteKind::parse(&name).is_some();
        if name == "name" {
            continue;
        }
        if named || takes_all && !own {
            keyword.insert(key.clone(), value.clone());
        } else if !own {
            unknown.push(format!("'{name}'"));
        }
    }
    let full = full_name(chunk);
    let message = match &unknown[..] {
        [] => return Ok(Args::keyword(keyword)),
        [one] => format!("{one} is an invalid keyword argument for '{full}'."),
        [more @ .., last] => format!("{} and {last} are invalid keyword arguments for '{full}'.", more.join(", ")),
    };
    let advice = unknown.iter().find_map(|name| unknown::advice(name.trim_matches('\''), params));
    let message = advice.map_or(message.clone(), |advice| format!("{message} {advice}"));
    Err(CallError::Arguments { function: full, message })
}

/// Masks all values in a value.
fn mask(value: &mut Value) {
    match value {
        Value::Map(map) => map.values_mut().for_each(mask),
        Value::List(list) => list.iter_mut().for_each(mask),
        other if other.is_truthy() => *other = MASK.into(),
        _ => {}
    }
}
