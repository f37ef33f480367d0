//! Runs steps in order by their requisites, and collects the results in one mapping. `listeners.rs` and `beacons.rs` run
//! after the steps.

mod beacons;
mod listeners;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use brine_context::{Context, MasterEvent};
use brine_function::CallError;
use brine_sls::compile::{Chunk, Dependency, Low, RequisiteKind, RunStep};
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use crate::call::Caller;
use crate::options::Settings;
use crate::parallel::ParallelStates;
use crate::pause;
use crate::requisites::{Verdict, evaluate};
use crate::result_fields::{Clock, sls_of, text};
use crate::sub_states::SUB_STATES;

/// The job's retcode if a state failed, or there was none.
const STATE_FAILURE: i64 = 2;

/// Runs the steps in order, then the listeners, and the beacons of states. Sets the job's retcode: 2 if a state failed or none ran.
///
/// # Errors
///
/// Arguments that a function does not have, which end the run as in Salt.
pub fn run(context: &Context, low: &Low, settings: &Settings) -> Result<Map, CallError> {
    let (results, ran) = std::thread::scope(|scope| {
        let caller = Caller { context, settings, chunks: &low.chunks, number: 0 };
        let mut run = Run {
            low,
            caller,
            dry_runs: HashMap::new(),
            done: IndexMap::new(),
            more: Map::new(),
            parallel: ParallelStates::new(scope, settings.max_parallel),
            waiting: Vec::new(),
            aggregated: HashSet::new(),
            is_continued_elsewhere: false,
        };
        // After a failure that ends the run, listeners still act on the changes before it.
        let ran =
            run.steps().and_then(|goes_on| if goes_on { run.listeners().and_then(|()| run.beacons()) } else { Ok(()) });
        // Parallel states run to their end also after an error.
        let ended = run.join_all();
        let mut results = Map::new();
        for (index, mut result) in std::mem::take(&mut run.done) {
            let parts = match result.get(SUB_STATES) {
                Some(Value::Map(_)) => result.shift_remove(&Value::from(SUB_STATES)),
                // A single state keeps the results of its own states.
                _ => None,
            };
            results.insert(low.chunks[index].tag().into(), result.into());
            results.extend(parts.and_then(|parts| parts.as_map().cloned()).unwrap_or_default());
        }
        results.extend(run.more);
        (results, ran.and(ended.map(|_| ())))
    });
    pause::forget(&context.minion, &context.job.jid);
    ran?;
    let failed = results.values().any(|result| result.get("result") == Some(&Value::Bool(false)));
    context.set_retcode(if failed || results.is_empty() { STATE_FAILURE } else { 0 });
    Ok(results)
}

struct Run<'scope, 'a> {
    low: &'a Low,
    caller: Caller<'a>,
    /// The results of dry runs, by the index of the chunk.
    dry_runs: HashMap<usize, Map>,
    /// The results of chunks by index, in the order in which they ran.
    done: IndexMap<usize, Map>,
    /// The results of listeners and beacons, by tag.
    more: Map,
    /// Parallel states.
    parallel: ParallelStates<'scope, 'a>,
    /// Parallel states that start as soon as the parallel states they depend on have ended.
    waiting: Vec<&'a RunStep>,
    /// Aggregated chunks, and the chunk that each was merged into.
    aggregated: HashSet<usize>,
    /// Whether another process continues this orchestration.
    is_continued_elsewhere: bool,
}

impl<'scope, 'a: 'scope> Run<'scope, 'a> {
    /// Runs the steps until a failure ends the run. Returns whether the job continues: not if it was ended.
    fn steps(&mut self) -> Result<bool, CallError> {
        for step in &self.low.steps {
            if self.start_waiting()? {
                return Ok(!self.is_continued_elsewhere);
            }
            if !pause::wait_while_paused(self.caller.context, &self.low.chunks[step.chunk].id) {
                return Ok(false);
            }
            if self.done.contains_key(&step.chunk) {
                continue;
            }
            if self.is_blocked(step) {
                if !step.check && self.is_parallel(step) {
                    self.waiting.push(step);
                    continue;
                }
                if self.wait_for(step)? {
                    return Ok(!self.is_continued_elsewhere);
                }
            }
            self.step(step)?;
            if !self.parallel.has(step.chunk) && self.ended(step.chunk) {
                return Ok(!self.is_continued_elsewhere);
            }
        }
        while !self.waiting.is_empty() {
            if self.start_waiting()? {
                return Ok(!self.is_continued_elsewhere);
            }
            if self.waiting.is_empty() {
                break;
            }
            let Some(index) = self.parallel.next_ended() else { break };
            if self.join(index)? {
                return Ok(!self.is_continued_elsewhere);
            }
        }
        self.join_all().map(|_| !self.is_continued_elsewhere)
    }

    fn is_parallel(&self, step: &RunStep) -> bool {
        self.low.chunks[step.chunk].args.get("parallel").is_some_and(Value::is_truthy)
    }

    /// Whether a step depends on a parallel state that has not ended.
    fn is_blocked(&self, step: &RunStep) -> bool {
        step.needs
            .iter()
            .any(|need| self.parallel.has(need.chunk) || self.waiting.iter().any(|waiting| waiting.chunk == need.chunk))
    }

    /// Starts the waiting states whose dependencies have ended. Returns whether a failure ends the run.
    fn start_waiting(&mut self) -> Result<bool, CallError> {
        if self.waiting.is_empty() {
            return Ok(false);
        }
        while let Some(index) = self.parallel.ended() {
            if self.join(index)? {
                return Ok(true);
            }
        }
        while let Some(place) = self.waiting.iter().position(|step| !self.is_blocked(step)) {
            let step = self.waiting.remove(place);
            self.step(step)?;
            if !self.parallel.has(step.chunk) && self.ended(step.chunk) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until the dependencies of a step have ended. Returns whether a failure ends the run.
    fn wait_for(&mut self, step: &RunStep) -> Result<bool, CallError> {
        while !self.waiting.is_empty() {
            if self.start_waiting()? {
                return Ok(true);
            }
            if !self.is_blocked(step) {
                return Ok(false);
            }
            let Some(index) = self.parallel.next_ended() else { break };
            if self.join(index)? {
                return Ok(true);
            }
        }
        for need in &step.needs {
            if self.join(need.chunk)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles the end of a state. Returns whether the run ends here: after a failure, or because another process
    /// continues it.
    fn ended(&mut self, index: usize) -> bool {
        let Some(result) = self.done.get(&index) else { return false };
        let chunk = &self.low.chunks[index];
        self.fire(chunk, result);
        let master = self.caller.context.job.master.as_deref();
        self.is_continued_elsewhere |= master.is_some_and(|master| !master.store_result(&chunk.tag(), result));
        self.is_continued_elsewhere || self.ends_run(chunk, result)
    }

    /// Returns the result of a state that an earlier process of this orchestration has already run.
    fn earlier(&self, index: usize) -> Option<Map> {
        self.caller.context.job.master.as_deref()?.stored_result(&self.low.chunks[index].tag())
    }

    /// Waits for a parallel state. Returns whether its failure ends the run.
    fn join(&mut self, index: usize) -> Result<bool, CallError> {
        let Some(result) = self.parallel.join(index) else { return Ok(false) };
        self.done.insert(index, result?);
        Ok(self.ended(index))
    }

    fn join_all(&mut self) -> Result<bool, CallError> {
        let mut ends = false;
        while let Some(place) = self.parallel.oldest() {
            ends |= self.join(place)?;
        }
        Ok(ends)
    }

    /// Runs a state whose requisites are met: here, or on its own thread.
    fn call(&mut self, index: usize) -> Result<Option<Map>, CallError> {
        let chunk = &self.low.chunks[index];
        if let Some(merged) = self.aggregated_chunk(index) {
            return self.caller.call(&merged).map(Some);
        }
        if !chunk.args.get("parallel").is_some_and(Value::is_truthy) {
            return self.caller.call(chunk).map(Some);
        }
        while self.parallel.is_full() {
            let Some(oldest) = self.parallel.oldest() else { break };
            self.join(oldest)?;
        }
        // Reserves its position among the results.
        self.done.insert(index, Map::new());
        let number = self.caller.next_number();
        let Caller { context, settings, chunks, .. } = self.caller;
        self.parallel.start(index, chunk, Caller { context, settings, chunks, number });
        Ok(None)
    }

    /// Returns the chunk merged with all that can be aggregated with it now; `None` if there are none.
    fn aggregated_chunk(&mut self, index: usize) -> Option<Chunk> {
        let chunk = &self.low.chunks[index];
        if !self.may_aggregate(chunk) || self.aggregated.contains(&index) {
            return None;
        }
        let aggregate = self.caller.context.minion.modules.aggregate_of(&chunk.state)?;
        let waits = |step: &&RunStep| {
            let other = &self.low.chunks[step.chunk];
            !step.check
                && step.chunk != index
                && other.state == chunk.state
                && !self.done.contains_key(&step.chunk)
                && !self.aggregated.contains(&step.chunk)
                && self.may_aggregate(other)
                // A state that its conditions may skip is not aggregated.
                && !["onlyif", "unless", "creates"].iter().any(|name| other.args.contains_key(*name))
                && !step.needs.iter().any(|need| self.parallel.has(need.chunk))
                && evaluate(&step.needs, |need| self.result(need)) == Verdict::Met
        };
        let places: Vec<usize> = self.low.steps.iter().filter(waits).map(|step| step.chunk).collect();
        let mut merged = chunk.clone();
        let taken: Vec<usize> =
            places.into_iter().filter(|other| aggregate(&mut merged, &self.low.chunks[*other])).collect();
        self.aggregated.insert(index);
        self.aggregated.extend(&taken);
        (!taken.is_empty()).then_some(merged)
    }

    fn may_aggregate(&self, chunk: &Chunk) -> bool {
        match chunk.args.get("aggregate").unwrap_or(&self.caller.settings.aggregate) {
            Value::List(modules) => modules.iter().any(|module| module.as_str() == Some(&chunk.state)),
            Value::Str(module) => *module == chunk.state,
            other => other.is_truthy(),
        }
    }

    fn ends_run(&self, chunk: &Chunk, result: &Map) -> bool {
        let settings = self.caller.settings;
        let hard = chunk.args.get("failhard").map_or(settings.failhard, Value::is_truthy);
        hard && !settings.test && result.get("result") == Some(&Value::Bool(false))
    }

    fn step(&mut self, step: &RunStep) -> Result<(), CallError> {
        if let Some(earlier) = self.earlier(step.chunk) {
            if step.check {
                self.dry_runs.insert(step.chunk, earlier);
            } else {
                self.caller.next_number();
                self.done.insert(step.chunk, earlier);
            }
            return Ok(());
        }
        let chunk = &self.low.chunks[step.chunk];
        let verdict = evaluate(&step.needs, |need| self.result(need));
        let result = match verdict {
            Verdict::Met | Verdict::Changed | Verdict::ChangedUnnoticed if step.check => {
                // A dry run is never parallel.
                let mut alone = chunk.clone();
                alone.args.shift_remove("parallel");
                let dry_run = self.caller.call_once(&alone, true)?;
                self.dry_runs.insert(step.chunk, dry_run);
                return Ok(());
            }
            Verdict::Met => match self.call(step.chunk)? {
                Some(result) => result,
                None => return Ok(()),
            },
            Verdict::Changed => self.call_and_act(chunk, &step.needs)?,
            Verdict::ChangedUnnoticed => {
                let mut result = self.caller.call(chunk)?;
                let comment = text(&result, "comment");
                let why = "mod_watch was not run because requisites were skipped by another state";
                result.insert("comment".into(), format!("{comment} {why}").into());
                result
            }
            Verdict::Failed => {
                if let Some(dry_run) = self.dry_runs.get(&step.chunk) {
                    self.as_dry_run(chunk, dry_run.clone())
                } else {
                    let failed = self.failed(&step.needs).join(", ");
                    self.not_run(chunk, false, &format!("One or more requisite failed: {failed}"))
                }
            }
            Verdict::Skipped => {
                self.not_run(chunk, true, "State was not run because requisites were skipped by another state")
            }
            Verdict::NothingToPrepare => self.not_run(chunk, true, "No changes detected"),
            Verdict::NothingFailed => self.not_run(chunk, true, "State was not run because onfail req did not change"),
            Verdict::NothingChanged => {
                self.not_run(chunk, true, "State was not run because none of the onchanges reqs changed")
            }
        };
        if step.check {
            // Without a dry run: this is the result of the state itself, too.
            self.dry_runs.insert(step.chunk, result.clone());
        }
        self.done.insert(step.chunk, result);
        Ok(())
    }

    /// Returns the result of a dependency: for a `prereq`, of the dry run.
    fn result(&self, need: &Dependency) -> Option<&Map> {
        match need.kind {
            RequisiteKind::Prereq => self.dry_runs.get(&need.chunk),
            _ => self.done.get(&need.chunk),
        }
    }

    /// Returns the failed states among the dependencies of a step, each once.
    fn failed(&self, needs: &[Dependency]) -> Vec<String> {
        let mut failed: Vec<String> = Vec::new();
        for need in needs {
            let result = self.dry_runs.get(&need.chunk).or_else(|| self.done.get(&need.chunk));
            if result.and_then(|result| result.get("result")) == Some(&Value::Bool(false)) {
                let chunk = &self.low.chunks[need.chunk];
                let name = format!("{}.{}", chunk.shown_sls(), chunk.id);
                if !failed.contains(&name) {
                    failed.push(name);
                }
            }
        }
        failed
    }

    /// Returns the result of a state that its requisites prevent from running.
    fn not_run(&mut self, chunk: &Chunk, result: bool, comment: &str) -> Map {
        let number = self.caller.next_number();
        // Start time and duration get their positions now, and their values at the end.
        let mut report = map! {
            "changes" => map! {},
            "result" => result,
            "duration" => 0,
            "start_time" => "",
            "comment" => comment,
            "__state_ran__" => false,
            "__run_num__" => number,
            "__sls__" => sls_of(chunk),
            "__id__" => &chunk.id,
            "name" => chunk.written_name(),
        };
        Clock::start().write(&mut report);
        report
    }

    /// Returns the result of a state that was only dry-run, for the `prereq` of another state, which then failed: its
    /// changes are not made.
    fn as_dry_run(&mut self, chunk: &Chunk, mut result: Map) -> Map {
        let number = self.caller.next_number();
        result.extend(map! {
            "changes" => map! {},
            "__run_num__" => number,
            "__sls__" => sls_of(chunk),
            "__id__" => &chunk.id,
            "name" => chunk.written_name(),
        });
        result
    }

    /// Runs a state that watches changed ones; if it changes nothing itself, it runs `mod_watch`.
    fn call_and_act(&mut self, chunk: &Chunk, needs: &[Dependency]) -> Result<Map, CallError> {
        let result = self.caller.call(chunk)?;
        let has = |key: &str| result.get(key).is_some_and(Value::is_truthy);
        if has("changes") || has("skip_watch") {
            return Ok(result);
        }
        let mut watched = Map::new();
        for need in needs {
            let other = &self.low.chunks[need.chunk];
            let changes = self.result(need).and_then(|result| result.get("changes")).cloned().unwrap_or_default();
            let one = map! {
                "state" => &other.state,
                "__id__" => &other.id,
                "name" => other.written_name(),
                "changes" => changes,
            };
            if let Value::List(list) = watched.entry(need.kind.name().into()).or_insert_with(|| Value::List(Vec::new()))
            {
                list.push(one.into());
            }
        }
        let mut acting = acting(chunk);
        acting.args.insert("__reqs__".into(), watched.into());
        self.caller.call(&acting)
    }

    /// Publishes the result of a state to the master, if the state or the run requests it and there is a master.
    fn fire(&self, chunk: &Chunk, result: &Map) {
        let context = self.caller.context;
        if !context.minion.upstream.has_master() {
            return;
        }
        let (jid, id) = (&context.job.jid, &context.minion.id);
        let mut data = map! {"ret" => result.clone()};
        let tag = match chunk.args.get("fire_event") {
            Some(Value::Str(part)) if !part.is_empty() => format!("salt/state_result/{jid}/{id}/{part}"),
            Some(yes) if yes.is_truthy() => format!("salt/state_result/{jid}/{id}/{}", chunk.name),
            _ if self.caller.settings.state_events => {
                data.insert("len".into(), (self.low.steps.len() as u64).into());
                format!("salt/job/{jid}/prog/{id}/{}", text(result, "__run_num__"))
            }
            _ => return,
        };
        context.job.mark(&mut data);
        let event = MasterEvent { extra_fields: Some(map! {"jid" => jid}), ..MasterEvent::new(&tag, data) };
        if let Err(error) = context.minion.upstream.fire_master(event) {
            tracing::warn!(tag, %error, "publishing the event of a state failed");
        }
    }
}

/// Returns the chunk that runs `mod_watch` instead of the given one.
fn acting(chunk: &Chunk) -> Chunk {
    let mut acting = chunk.clone();
    acting.args.insert("sfun".into(), chunk.fun.as_str().into());
    "mod_watch".clone_into(&mut acting.fun);
    acting
}
