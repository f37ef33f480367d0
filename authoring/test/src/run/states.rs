//! Low states, their order, errors and the pillar of a test.

use brine_sls::compile::Chunk;
use brine_state::StateRun;
use brine_value::Value;

use super::Compiled;
use crate::expect::{Failed, chunk_as_sls, comparable, expected_state, has, shown, yaml};
use crate::format::Expect;

/// Compiles SLS files, or the highstate.
pub(super) fn compile(run: &StateRun, compiled: &mut Compiled, names: Option<Vec<String>>) {
    let high = if let Some(names) = names {
        run.sls(names)
    } else {
        let top = run.top();
        match (top.errors.is_empty(), top.nothing) {
            (false, _) => Err(top.errors),
            (true, Some(nothing)) => Err(vec![nothing]),
            (true, None) => run.high(&top.matches),
        }
    };
    match high.and_then(|high| run.compile(high)) {
        Ok(low) => compiled.low = low,
        Err(errors) => compiled.errors = errors,
    }
}

/// Compares the errors, states, pillar and reactions.
pub(super) fn compare(compiled: &Compiled, expect: &Expect) -> Vec<Failed> {
    let mut failed = Vec::new();
    let all = compiled.errors.join("\n");
    match &expect.failure {
        Some(failure) if compiled.errors.is_empty() => {
            let reason = if failure.text.is_empty() { String::new() } else { format!(" with '{}'", failure.text) };
            failed.push(Failed::new(format!("expected an error{reason}, but there is none")));
        }
        Some(failure) if !all.contains(&failure.text) => {
            failed.push(Failed::differs(
                "the error is another one",
                &format!("{}\n", failure.text),
                &format!("{all}\n"),
            ));
        }
        // A snapshot holds the errors.
        None if !compiled.errors.is_empty() && !expect.snapshot => {
            failed.extend(compiled.errors.iter().map(Failed::new));
        }
        _ => {}
    }
    if !compiled.errors.is_empty() {
        return failed;
    }
    let chunks: Vec<&Chunk> = compiled.low.in_order().collect();
    if let Some(low) = &expect.low {
        failed.extend(whole(&chunks, low));
    }
    failed.extend(expect.contains.iter().filter_map(|state| contained(&chunks, state)));
    for id in &expect.absent {
        if let Some(chunk) = chunks.iter().find(|chunk| chunk.id == *id || chunk.name == *id) {
            let function = format!("{}.{}", chunk.state, chunk.fun);
            failed.push(Failed::new(format!(
                "'{id}' is expected to be absent, but SLS '{}' has it: {function}",
                chunk.sls
            )));
        }
    }
    failed.extend(ordered(&chunks, &expect.order));
    if let Some(pillar) = &expect.pillar {
        let (actual, expected) = (Value::Map(compiled.pillar.clone()), Value::Map(pillar.clone()));
        if !has(&actual, &expected) {
            failed.push(Failed::of_data("the pillar differs", &expected, &comparable(&actual, &expected)));
        }
    }
    if let Some(reactions) = &expect.reactions {
        let (expected, actual) = (Value::List(reactions.clone()), Value::List(compiled.reactions.clone()));
        let is_same = reactions.len() == compiled.reactions.len()
            && reactions.iter().zip(&compiled.reactions).all(|(expected, actual)| has(actual, expected));
        if !is_same {
            failed.push(Failed::of_data("the reactions differ", &expected, &actual));
        }
    }
    failed
}

/// Compares all states in their order.
fn whole(chunks: &[&Chunk], states: &[Value]) -> Option<Failed> {
    let text =
        |states: Vec<Value>| states.iter().map(|state| yaml(&Value::List(vec![state.clone()]))).collect::<String>();
    let states: Vec<Value> = states
        .iter()
        .map(|state| {
            expected_state(state).map_or_else(|| state.clone(), |(id, function, args)| shown(&id, &function, &args))
        })
        .collect();
    let (expected, actual) = (text(states), text(chunks.iter().map(|chunk| chunk_as_sls(chunk)).collect()));
    let is_same = sorted(&expected) == sorted(&actual);
    (!is_same).then(|| Failed::differs("the low state differs", &expected, &actual))
}

/// Returns a text of states whose arguments may be in any order: YAML lists them as they are written.
fn sorted(text: &str) -> Option<Value> {
    let Value::List(states) = brine_yaml::load(text).ok()? else { return None };
    let canonical = states.iter().map(|state| match expected_state(state) {
        Some((id, function, mut arguments)) => {
            arguments.sort_keys_by_text();
            shown(&id, &function, &arguments)
        }
        None => state.clone(),
    });
    Some(canonical.collect())
}

trait SortKeys {
    fn sort_keys_by_text(&mut self);
}

impl SortKeys for brine_value::Map {
    fn sort_keys_by_text(&mut self) {
        self.sort_by(|one, _, other, _| one.to_string().cmp(&other.to_string()));
    }
}

/// Looks for one state.
fn contained(chunks: &[&Chunk], state: &Value) -> Option<Failed> {
    let Some((id, function, arguments)) = expected_state(state) else {
        return Some(Failed::new(format!("an expected state is invalid: {state}")));
    };
    let of_id: Vec<&&Chunk> = chunks.iter().filter(|chunk| chunk.id == id).collect();
    if of_id.is_empty() {
        let ids: Vec<&str> = chunks.iter().map(|chunk| chunk.id.as_str()).collect();
        let advice = match brine_text::nearest::nearest(&id, &ids) {
            Some(near) => format!("; did you mean '{near}'?"),
            None if ids.is_empty() => "; there are no states".to_owned(),
            None => format!("; there are {}", ids.join(", ")),
        };
        return Some(Failed::new(format!("no state has the id '{id}'{advice}")));
    }
    let mut best: Option<Failed> = None;
    for chunk in of_id {
        let own = format!("{}.{}", chunk.state, chunk.fun);
        let mut actual = chunk.args.clone();
        actual.insert("name".into(), chunk.written_name());
        let (actual, expected) = (Value::Map(actual), Value::Map(arguments.clone()));
        if own == function && has(&actual, &expected) {
            return None;
        }
        let comparable = match comparable(&actual, &expected) {
            Value::Map(comparable) => shown(&id, &own, &comparable),
            other => other,
        };
        let failed =
            Failed::of_data(format!("the state '{id}' differs"), &shown(&id, &function, &arguments), &comparable);
        if best.is_none() || own == function {
            best = Some(failed);
        }
    }
    best
}

/// Checks that states run in this order.
fn ordered(chunks: &[&Chunk], order: &[Value]) -> Option<Failed> {
    let place = |entry: &Value| {
        let (state, id) = match entry.as_map().and_then(indexmap::IndexMap::first) {
            Some((state, id)) => (Some(state.to_string()), id.to_string()),
            None => (None, entry.to_string()),
        };
        chunks.iter().position(|chunk| {
            let is_state = |state: &String| *state == chunk.state || *state == format!("{}.{}", chunk.state, chunk.fun);
            chunk.id == id && state.as_ref().is_none_or(is_state)
        })
    };
    let places: Vec<Option<usize>> = order.iter().map(place).collect();
    if let Some(missing) = order.iter().zip(&places).find(|(_, place)| place.is_none()) {
        return Some(Failed::new(format!("the order names '{}', which is no state", missing.0)));
    }
    if places.is_sorted() {
        return None;
    }
    let mut sorted: Vec<(&Option<usize>, &Value)> = places.iter().zip(order).collect();
    sorted.sort_by_key(|(place, _)| **place);
    let actual: Value = sorted.into_iter().map(|(_, entry)| entry.clone()).collect();
    Some(Failed::of_data("the states run in another order", &order.iter().cloned().collect(), &actual))
}
