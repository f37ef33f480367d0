//! States with `parallel: True`: each runs on its own thread.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};

use brine_context::Context;
use brine_function::CallError;
use brine_host::environment::Environment;
use brine_host::process::cancelled_within;
use brine_sls::compile::Chunk;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use crate::call::Caller;
use crate::result_fields::{Clock, text};
use crate::retry::{Retry, attempt_text};

type Outcome = Result<Map, CallError>;

/// The fields of every state. As in Salt, they exist while the state runs, and so they come first.
const FIRST_FIELDS: [&str; 4] = ["name", "result", "changes", "comment"];
/// The following fields, in the order in which they are added.
const NEXT_FIELDS: [&str; 5] = ["__sls__", "__run_num__", "start_time", "duration", "__id__"];

/// The parallel states of a run.
pub(super) struct ParallelStates<'scope, 'a> {
    scope: &'scope Scope<'scope, 'a>,
    /// The running states by the index of their chunk, oldest first.
    running: IndexMap<usize, (&'a Chunk, ScopedJoinHandle<'scope, Outcome>)>,
    /// The maximum number of running states; 0 for no limit.
    limit: usize,
    /// The indices of the states that have ended, in this order.
    ended: Receiver<usize>,
    sender: Sender<usize>,
}

/// Reports the end of a state, also after a panic.
struct End {
    index: usize,
    sender: Sender<usize>,
}

impl Drop for End {
    fn drop(&mut self) {
        // Without receiver, the run has ended.
        let _ = self.sender.send(self.index);
    }
}

impl<'scope, 'a> ParallelStates<'scope, 'a> {
    pub fn new(scope: &'scope Scope<'scope, 'a>, limit: usize) -> Self {
        let (sender, ended) = mpsc::channel();
        ParallelStates { scope, running: IndexMap::new(), limit, ended, sender }
    }

    /// Returns a state that has ended and is not joined yet, if there is one.
    pub fn ended(&mut self) -> Option<usize> {
        std::iter::from_fn(|| self.ended.try_recv().ok()).find(|index| self.running.contains_key(index))
    }

    /// Waits until a running state ends. Returns it, or `None` if none is running.
    pub fn next_ended(&mut self) -> Option<usize> {
        while !self.running.is_empty() {
            let index = self.ended.recv().ok()?;
            if self.running.contains_key(&index) {
                return Some(index);
            }
        }
        None
    }

    pub fn has(&self, index: usize) -> bool {
        self.running.contains_key(&index)
    }

    pub fn is_full(&self) -> bool {
        self.limit > 0 && self.running.len() >= self.limit
    }

    pub fn oldest(&self) -> Option<usize> {
        self.running.first().map(|(place, _)| *place)
    }

    /// Starts a state. Its result contains the caller's current run number.
    pub fn start(&mut self, index: usize, chunk: &'a Chunk, caller: Caller<'a>) {
        let environment = Environment::current();
        let run = move || {
            let number = caller.number;
            // The retcodes of its commands must not affect the conditions of other states.
            let job = Arc::new(caller.context.job.for_parallel());
            let context = Context { job, ..caller.context.clone() };
            let mut result = call(&mut Caller { context: &context, ..caller }, chunk)?;
            result.insert("__run_num__".into(), number.into());
            Ok(result)
        };
        let end = End { index, sender: self.sender.clone() };
        let handle = self.scope.spawn(move || {
            let _end = end;
            environment.run(run)
        });
        self.running.insert(index, (chunk, handle));
    }

    /// Waits for a state to end. Returns its result, if it was running.
    pub fn join(&mut self, index: usize) -> Option<Outcome> {
        let (chunk, handle) = self.running.shift_remove(&index)?;
        Some(handle.join().unwrap_or_else(|_| {
            Ok(map! {
                "name" => chunk.written_name(),
                "result" => false,
                "changes" => map! {},
                "comment" => "Parallel process failed to return",
                "__sls__" => &chunk.sls,
                "__id__" => &chunk.id,
            })
        }))
    }
}

/// Calls a state, with retries if it is a parallel one.
pub(super) fn call(caller: &mut Caller, chunk: &Chunk) -> Outcome {
    let result = caller.call(chunk)?;
    if !result.contains_key("__parallel__") {
        // Not a parallel state, or its function was not called.
        return Ok(result);
    }
    let result = retry_state(caller, chunk, result)?;
    let first = FIRST_FIELDS.iter().filter_map(|key| Some((Value::from(*key), result.get(*key)?.clone())));
    let mut report: Map = first.collect();
    let next = result.iter().filter(|(key, _)| key.as_str().is_some_and(|key| NEXT_FIELDS.contains(&key)));
    report.extend(next.map(|(key, value)| (key.clone(), value.clone())));
    report.extend(result);
    Ok(report)
}

/// Retries a parallel state by its `retry`. Unlike for other states, the comments of all attempts follow the first
/// result, there is one more attempt, and conditions are evaluated once.
fn retry_state(caller: &Caller, chunk: &Chunk, first: Map) -> Outcome {
    let Some(retry) = chunk.args.get("retry").map(Retry::read) else { return Ok(first) };
    let mut result = first;
    if caller.settings.test {
        retry.announce(&mut result);
        return Ok(result);
    }
    let duration = |result: &Map| result.get("duration").and_then(Value::as_f64).unwrap_or_default();
    for attempt in 1..=retry.attempts {
        let pause = retry.pause();
        if result.get("result") == Some(&retry.until.into()) || cancelled_within(&caller.context.job.cancel, pause) {
            break;
        }
        let clock = Clock::start();
        let mut next = caller.call_unconditionally(chunk)?;
        next.shift_remove("__parallel__");
        let report = match text(&next, "comment") {
            nothing if nothing.is_empty() => nothing,
            comment => attempt_text(attempt, &next, &comment),
        };
        next.insert("comment".into(), format!("{}\n{report}", text(&result, "comment")).into());
        for key in NEXT_FIELDS {
            next.extend(result.get(key).map(|value| (key.into(), value.clone())));
        }
        let elapsed_ms = duration(&result) + pause.as_secs_f64() * 1e3 + clock.elapsed_ms();
        next.insert("duration".into(), elapsed_ms.into());
        result = next;
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
