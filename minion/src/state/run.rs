//! Running low chunks: each when its requisites say so, all results in one mapping.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brine_core::function::{Args, CallError};
use brine_core::sls::compile::{Chunk, Quantifier, RequisiteKind};
use brine_core::{Map, Value, map};

use super::conditions;
use crate::context::Context;
use crate::states::StateContext;

/// Arguments that are the run's, not the function's.
const OWN_ARGS: &[&str] = &[
    "onlyif",
    "unless",
    "creates",
    "check_cmd",
    "retry",
    "failhard",
    "fire_event",
    "order",
    "parallel",
    "reload_modules",
    "reload_grains",
    "reload_pillar",
    "saltenv",
    "aggregate",
    "no_log",
    "umask",
];

/// How a run works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Only say what would be done.
    pub test: bool,
    /// The first failure ends the run.
    pub failhard: bool,
    /// The environment.
    pub saltenv: String,
}

/// What is known of a state that has run.
struct Done {
    result: Option<bool>,
    changed: bool,
    skip_watch: bool,
}

struct Run<'a> {
    context: &'a Context,
    settings: &'a Settings,
    chunks: &'a [Chunk],
    done: Vec<Option<Done>>,
    number: i64,
    results: Map,
}

/// Runs chunks that are in order. Sets the job's retcode: 2 if one failed or none ran.
pub fn run(context: &Context, chunks: &[Chunk], settings: &Settings) -> Map {
    let mut run = Run { context, settings, chunks, done: Vec::new(), number: 0, results: Map::new() };
    run.done.resize_with(chunks.len(), || None);
    for (place, chunk) in chunks.iter().enumerate() {
        if context.job.cancel.is_cancelled() {
            break;
        }
        let failed = run.one(place);
        let hard = settings.failhard || chunk.args.get("failhard").is_some_and(Value::is_truthy);
        if failed && hard && !settings.test {
            break;
        }
    }
    run.listeners();
    let failed = run.results.values().any(|result| result.get("result") == Some(&Value::Bool(false)));
    context.set_retcode(if failed || run.results.is_empty() { 2 } else { 0 });
    run.results
}

/// What the requisites of a chunk come to.
enum Verdict {
    Go { watched: bool },
    Unmet(Vec<String>),
    Not(&'static str),
    PrereqFailed,
}

impl Run<'_> {
    /// Runs one chunk, and says whether it failed.
    fn one(&mut self, place: usize) -> bool {
        let chunk = &self.chunks[place];
        let started = (jiff::Zoned::now(), Instant::now());
        let mut result = match self.verdict(place) {
            Verdict::Unmet(names) => {
                let comment = format!("One or more requisite failed: {}", names.join(", "));
                map! {"changes" => map!{}, "result" => false, "comment" => comment, "__state_ran__" => false}
            }
            Verdict::Not(comment) => {
                map! {"changes" => map!{}, "result" => true, "comment" => comment, "__state_ran__" => false}
            }
            Verdict::PrereqFailed => {
                map! {"changes" => map!{}, "result" => false, "comment" => "The prereq state could not be tried out", "__state_ran__" => false}
            }
            Verdict::Go { watched } => self.call_with_conditions(chunk, watched, self.settings.test),
        };
        self.finish(&mut result, chunk, &started);
        let done = Done {
            result: result.get("result").and_then(Value::as_bool),
            changed: result.get("changes").is_some_and(Value::is_truthy),
            skip_watch: result.get("skip_watch").is_some_and(Value::is_truthy),
        };
        let failed = result.get("result") == Some(&Value::Bool(false));
        self.done[place] = Some(done);
        self.results.insert(chunk.tag().into(), result.into());
        failed
    }

    /// Adds what every result has: where it is from, when it ran and for how long.
    fn finish(&mut self, result: &mut Map, chunk: &Chunk, started: &(jiff::Zoned, Instant)) {
        let micros = started.0.subsec_nanosecond() / 1000;
        let defaults = [
            ("name", Value::from(&chunk.name)),
            ("__sls__", (&chunk.sls).into()),
            ("__run_num__", self.number.into()),
            ("start_time", format!("{}.{micros:06}", started.0.strftime("%H:%M:%S")).into()),
            ("duration", ((started.1.elapsed().as_secs_f64() * 1e6).round() / 1e3).into()),
            ("__id__", (&chunk.id).into()),
        ];
        for (key, value) in defaults {
            if key != "name" || !result.contains_key("name") {
                result.insert(key.into(), value);
            }
        }
        self.number += 1;
    }

    fn named(&self, place: usize, kind: RequisiteKind, quantifier: Quantifier) -> Vec<usize> {
        let requisites = self.chunks[place].requisites.iter();
        let wanted = requisites.filter(|requisite| requisite.kind == kind && requisite.quantifier == quantifier);
        let mut named: Vec<usize> = wanted
            .flat_map(|requisite| {
                (0..self.chunks.len())
                    .filter(|other| *other != place && requisite.reference.names(&self.chunks[*other]))
            })
            .collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn has(&self, place: usize, kind: RequisiteKind) -> bool {
        self.chunks[place].requisites.iter().any(|requisite| requisite.kind == kind)
    }

    fn verdict(&mut self, place: usize) -> Verdict {
        use {Quantifier as Q, RequisiteKind as K};
        let failed = |done: &Option<Done>| done.as_ref().is_none_or(|done| done.result == Some(false));
        let mut watched = false;
        for kind in [K::Require, K::Watch] {
            let all = self.named(place, kind, Q::Plain);
            let unmet: Vec<usize> = all.iter().copied().filter(|other| failed(&self.done[*other])).collect();
            let any = self.named(place, kind, Q::Any);
            let none = !any.is_empty() && any.iter().all(|other| failed(&self.done[*other]));
            if !unmet.is_empty() || none {
                let unmet = if none { any } else { unmet };
                return Verdict::Unmet(
                    unmet
                        .iter()
                        .map(|other| format!("{}.{}", self.chunks[*other].sls, self.chunks[*other].id))
                        .collect(),
                );
            }
            if kind == K::Watch {
                watched = all.iter().chain(&any).any(|other| self.changed(*other));
            }
        }
        let targets = |kind| [Q::Plain, Q::Any, Q::All].map(|quantifier| self.named(place, kind, quantifier)).concat();
        if self.has(place, K::Onfail) {
            let all = self.named(place, K::Onfail, Q::All);
            let some = targets(K::Onfail);
            let met = if all.is_empty() {
                some.iter().any(|other| failed(&self.done[*other]))
            } else {
                all.iter().all(|other| failed(&self.done[*other]))
            };
            if !met {
                return Verdict::Not("State was not run because onfail req did not change");
            }
        }
        if self.has(place, K::Onchanges) && !targets(K::Onchanges).iter().any(|other| self.changed(*other)) {
            return Verdict::Not("State was not run because none of the onchanges reqs changed");
        }
        if self.has(place, K::Prereq) {
            let mut would = false;
            for other in targets(K::Prereq) {
                let chunk = &self.chunks[other];
                let tried = self.call_with_conditions(chunk, false, true);
                match tried.get("result") {
                    Some(Value::Nil) => would = true,
                    Some(Value::Bool(false)) => return Verdict::PrereqFailed,
                    _ => {}
                }
            }
            if !would {
                return Verdict::Not("No changes detected");
            }
        }
        Verdict::Go { watched }
    }

    fn changed(&self, place: usize) -> bool {
        self.done[place].as_ref().is_some_and(|done| done.changed && done.result != Some(false) && !done.skip_watch)
    }

    fn call_with_conditions(&mut self, chunk: &Chunk, watched: bool, test: bool) -> Map {
        match conditions::skipped(self.context, chunk) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                let comment = conditions::comment(reason, chunk);
                return map! {"changes" => map!{}, "result" => true, "comment" => comment, "skip_watch" => true};
            }
            Err(error) => return exception(&error),
        }
        let mut result = self.call_with_retry(chunk, test);
        if !test {
            match conditions::check_cmd(self.context, chunk) {
                Ok(None) => {}
                Ok(Some(good)) => {
                    result.insert("result".into(), good.into());
                    let word = if good {
                        "check_cmd determined the state succeeded"
                    } else {
                        "check_cmd determined the state failed"
                    };
                    result.insert("comment".into(), word.into());
                }
                Err(error) => return exception(&error),
            }
        }
        let acted =
            result.get("changes").is_some_and(Value::is_truthy) || result.get("result") == Some(&Value::Bool(false));
        if watched
            && !acted
            && !result.get("skip_watch").is_some_and(Value::is_truthy)
            && let Some(acted) = self.mod_watch(chunk, test)
        {
            self.number += 1;
            return acted;
        }
        result
    }

    fn call_with_retry(&mut self, chunk: &Chunk, test: bool) -> Map {
        let mut result = self.call(chunk, &chunk.fun, test);
        let retry = match chunk.args.get("retry") {
            Some(Value::Map(retry)) => retry.clone(),
            Some(Value::Bool(true)) => Map::new(),
            _ => return result,
        };
        let number = |name: &str, default: i64| retry.get(name).and_then(Value::as_i64).unwrap_or(default);
        let (attempts, interval) = (number("attempts", 2), number("interval", 30));
        let until = retry.get("until").and_then(Value::as_bool).unwrap_or(true);
        let mut told = String::new();
        for attempt in 1..attempts {
            if test
                || result.get("result").and_then(Value::as_bool) == Some(until)
                || self.context.job.cancel.is_cancelled()
            {
                break;
            }
            let text = |key: &str| result.get(key).map(ToString::to_string).unwrap_or_default();
            told.push_str(&format!(
                "Attempt {attempt}: Returned a result of \"{}\", with the following comment: \"{}\"\n",
                text("result"),
                text("comment")
            ));
            std::thread::sleep(Duration::from_secs(u64::try_from(interval).unwrap_or(0)));
            self.number += 1;
            result = self.call(chunk, &chunk.fun, test);
        }
        if !told.is_empty() {
            let comment = result.get("comment").map(ToString::to_string).unwrap_or_default();
            result.insert("comment".into(), format!("{told}{comment}").into());
        }
        result
    }

    /// What the module does when something that the state watches has changed.
    fn mod_watch(&self, chunk: &Chunk, test: bool) -> Option<Map> {
        let known = self.context.minion.states.get(&format!("{}.mod_watch", chunk.state)).is_some();
        let mut with_fun = chunk.clone();
        with_fun.args.insert("sfun".into(), chunk.fun.as_str().into());
        known.then(|| self.call(&with_fun, "mod_watch", test))
    }

    fn call(&self, chunk: &Chunk, fun: &str, test: bool) -> Map {
        let name = format!("{}.{fun}", chunk.state);
        let Some(function) = self.context.minion.states.get(&name) else {
            let comment =
                format!("State '{name}' was not found in SLS '{}'\nReason: '{name}' is not available.\n", chunk.sls);
            return map! {"name" => &chunk.name, "changes" => map!{}, "result" => false, "comment" => comment};
        };
        let required = chunk.requisites.iter().filter(|requisite| requisite.kind == RequisiteKind::Require);
        let required = required.flat_map(|requisite| {
            let named = self.chunks.iter().filter(|other| requisite.reference.names(other));
            named.map(|other| (other.state.clone(), other.name.clone()))
        });
        let context = StateContext {
            required: required.collect(),
            call: self.context.clone(),
            test,
            saltenv: chunk.args.get("saltenv").map_or_else(|| self.settings.saltenv.clone(), ToString::to_string),
            sls: chunk.sls.clone(),
            id: chunk.id.clone(),
            chunk: Arc::new(chunk.args.clone()),
        };
        let own = |key: &Value| {
            key.as_str()
                .is_some_and(|key| OWN_ARGS.contains(&key) && !function.params.iter().any(|param| param.name == key))
        };
        let mut args = Args::keyword(
            chunk.args.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key.clone(), value.clone())).collect(),
        );
        args.keyword.insert("name".into(), chunk.name.as_str().into());
        let before = self.context.job.retcode.load(Ordering::Relaxed);
        let result = (function.call)(&context, args);
        // Commands within a state tell their failure by the state's result.
        self.context.set_retcode(before);
        match result {
            Ok(Value::Map(result)) => result,
            Ok(other) => {
                map! {"changes" => map!{}, "result" => false, "comment" => format!("{name} returned {other}, not a state's result")}
            }
            Err(CallError::Arguments { message, .. }) if message.contains("missing") => {
                let missing = message.rsplit('\'').nth(1).unwrap_or_default();
                map! {"changes" => map!{}, "result" => false, "comment" => format!("Missing parameter {missing} for state {name}\n")}
            }
            Err(error) => exception(&error),
        }
    }

    /// Acts for the states that listen to changed ones, once each.
    fn listeners(&mut self) {
        for place in 0..self.chunks.len() {
            let heard = self.named(place, RequisiteKind::Listen, Quantifier::Plain);
            let chunk = &self.chunks[place];
            for requisite in chunk.requisites.iter().filter(|requisite| requisite.kind == RequisiteKind::Listen) {
                if !self.chunks.iter().any(|other| requisite.reference.names(other)) {
                    let reference = &requisite.reference;
                    let tag = format!(
                        "Listen_Error_|-listen_{}_|-listen_{}_|-Listen_Error",
                        reference.name, reference.module
                    );
                    let comment = format!("Referenced state {}: {} does not exist", reference.module, reference.name);
                    let entry = map! {"comment" => comment, "name" => format!("listen_{}:{}", reference.module, reference.name), "result" => false, "changes" => map!{}, "__run_num__" => self.number};
                    self.number += 1;
                    self.results.insert(tag.into(), entry.into());
                }
            }
            if !heard.iter().any(|other| self.changed(*other)) {
                continue;
            }
            let started = (jiff::Zoned::now(), Instant::now());
            if let Some(mut result) = self.mod_watch(chunk, self.settings.test) {
                self.finish(&mut result, chunk, &started);
                let tag = format!("{}_|-listener_{}_|-{}_|-mod_watch", chunk.state, chunk.id, chunk.name);
                self.results.insert(tag.into(), result.into());
            }
        }
    }
}

fn exception(error: &CallError) -> Map {
    map! {"changes" => map!{}, "result" => false, "comment" => format!("An exception occurred in this state: {error}")}
}
