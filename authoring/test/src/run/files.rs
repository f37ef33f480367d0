//! The content of managed files, and the results of states in test mode.

use brine_sls::compile::{Chunk, Low, RequisiteKind, RunStep};
use brine_state::{Settings, StateRun};
use brine_value::{Map, Value, python};

use crate::expect::{Failed, comparable};
use crate::format::{Content, Expect, StateResult};
use crate::host::{EXAMINED, Opened, is_examined};

/// The states of `file` whose content can be expected.
const WITH_CONTENT: [&str; 3] = ["managed", "recurse", "serialize"];

/// Arguments that decide whether a state runs. The content of its file does not depend on them.
const CONDITIONS: [&str; 6] = ["check_cmd", "creates", "onlyif", "parallel", "retry", "unless"];

/// Compares content and results.
pub(super) fn compare(world: &Opened, run: &StateRun, low: &Low, expect: &Expect) -> Vec<Failed> {
    let mut failed = Vec::new();
    if !expect.results.is_empty() {
        failed.append(&mut results(world, run, low, expect));
    }
    for (path, expected) in &expect.content {
        failed.extend(match written(world, run, low, path) {
            Ok(actual) => content(path, expected, &actual),
            Err(error) => vec![Failed::new(error)],
        });
    }
    failed
}

/// Returns the content of all managed files that can be rendered as lines, or the error.
pub(super) fn all(world: &Opened, run: &StateRun, low: &Low) -> Map {
    let managed =
        low.in_order().filter(|chunk| chunk.state == "file" && matches!(chunk.fun.as_str(), "managed" | "serialize"));
    let has_content = |chunk: &&Chunk| {
        chunk.fun == "serialize"
            || ["source", "contents", "contents_pillar", "contents_grains"]
                .iter()
                .any(|name| chunk.args.contains_key(*name))
    };
    let content = managed.filter(has_content).map(|chunk| {
        let content = match written(world, run, low, &chunk.name) {
            Ok(text) => text.split('\n').collect(),
            Err(error) => Value::from(error),
        };
        (Value::from(chunk.name.as_str()), content)
    });
    content.collect()
}

/// Lets the state of a file write into the private directory, and returns the text.
fn written(world: &Opened, run: &StateRun, low: &Low, path: &str) -> Result<String, String> {
    let writes = |chunk: &&Chunk| chunk.state == "file" && WITH_CONTENT.contains(&chunk.fun.as_str());
    let of_path = |chunk: &&Chunk| {
        chunk.name == path
            || chunk.id == path
            || chunk.fun == "recurse" && path.starts_with(&format!("{}/", chunk.name))
    };
    let chunk = low.in_order().filter(writes).find(of_path);
    let chunk = chunk.ok_or_else(|| {
        format!(
            "no state of {} has the path or id '{path}'",
            WITH_CONTENT.map(|name| format!("file.{name}")).join(", ")
        )
    })?;
    let mut alone = chunk.clone();
    alone.requisites.clear();
    alone.args.retain(|key, _| {
        key.as_str().is_none_or(|key| !CONDITIONS.contains(&key) && RequisiteKind::parse(key).is_none())
    });
    // A file that exists and is not replaced keeps its content, as on the host.
    let only = Low {
        chunks: vec![alone],
        steps: vec![RunStep { chunk: 0, check: false, needs: Vec::new() }],
        listeners: Vec::new(),
    };
    let settings = Settings { test: false, mock: false, ..run.settings() };
    let results =
        world.writing(|| brine_state::run(&run.context, &only, &settings)).map_err(|error| error.to_string())?;
    let result = results.values().next().and_then(Value::as_map);
    if result.is_none_or(|result| result.get("result") == Some(&Value::Bool(false))) {
        let comment = result.and_then(|result| result.get("comment")).map(ToString::to_string).unwrap_or_default();
        return Err(format!("'{path}' cannot be rendered: {comment}"));
    }
    let place = if path.starts_with('/') { path } else { &chunk.name };
    let bytes = world.content(place).ok_or_else(|| format!("the state '{}' writes no file {place}", chunk.id))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn content(path: &str, expected: &Content, actual: &str) -> Vec<Failed> {
    match expected {
        Content::Whole(text) if text == actual => Vec::new(),
        Content::Whole(text) => vec![Failed::differs(format!("the content of {path} differs"), text, actual)],
        Content::Parts { contains, absent } => {
            let lines = || actual.lines().map(|line| format!("  {line}")).collect::<Vec<_>>();
            let missing = contains.iter().filter(|part| !actual.contains(*part)).map(|part| Failed {
                message: format!("{path} does not have {}", python::repr(&part.as_str().into())),
                difference: lines(),
            });
            let there = absent.iter().filter(|part| actual.contains(*part)).map(|part| Failed {
                message: format!("{path} has {}", python::repr(&part.as_str().into())),
                difference: lines(),
            });
            missing.chain(there).collect()
        }
    }
}

/// Runs all states in test mode, and compares their results.
fn results(world: &Opened, run: &StateRun, low: &Low, expect: &Expect) -> Vec<Failed> {
    let mut examined = low.clone();
    for chunk in &mut examined.chunks {
        if let Some(creates) = chunk.args.get_mut("creates") {
            placed(world, creates);
        }
    }
    let settings = Settings { test: true, mock: false, ..run.settings() };
    let results = match brine_state::run(&run.context, &examined, &settings) {
        Ok(results) => results,
        Err(error) => return vec![Failed::new(error.to_string())],
    };
    let mut failed = Vec::new();
    for (id, expected) in &expect.results {
        let Some(chunk) = low.in_order().find(|chunk| chunk.id == *id || chunk.name == *id || chunk.tag() == *id)
        else {
            failed.push(Failed::new(format!("no state has the id '{id}'")));
            continue;
        };
        let function = format!("{}.{}", chunk.state, chunk.fun);
        let is_given = world.gives_result(&chunk.id, &function);
        let result = results.get(chunk.tag().as_str()).and_then(Value::as_map).cloned().unwrap_or_default();
        let was_called = result.get("comment").and_then(Value::as_str) == Some("Not called, mocked");
        if was_called && !is_given && !is_examined(&chunk.state, &chunk.fun) {
            failed.push(Failed::new(format!(
                "the result of '{id}' depends on the host: {function} is not examined, only test.* and file.{} are; give its \
                 result in 'states'",
                EXAMINED.join(", file.")
            )));
            continue;
        }
        failed.extend(result_differs(id, expected, &result));
    }
    failed
}

fn placed(world: &Opened, paths: &mut Value) {
    match paths {
        Value::Str(path) => *path = world.place(path),
        Value::List(paths) => paths.iter_mut().for_each(|path| placed(world, path)),
        _ => {}
    }
}

fn result_differs(id: &str, desired: &StateResult, actual: &Map) -> Option<Failed> {
    let mut expected = Map::new();
    if let Some(result) = &desired.result {
        expected.insert("result".into(), result.clone());
    }
    if let Some(changes) = &desired.changes {
        expected.insert("changes".into(), changes.clone());
    }
    let comment = actual.get("comment").map(ToString::to_string).unwrap_or_default();
    if let Some(part) = &desired.comment {
        let text = if comment.contains(part) { comment.clone() } else { part.clone() };
        expected.insert("comment".into(), text.into());
    }
    if expected.iter().all(|(name, value)| actual.get(name) == Some(value)) {
        return None;
    }
    let (expected, actual) = (Value::Map(expected), Value::Map(actual.clone()));
    let mut fields = comparable(&actual, &expected);
    if let (Some(fields), Some(changes)) = (fields.as_map_mut(), actual.get("changes"))
        && desired.changes.is_some()
    {
        fields.insert("changes".into(), changes.clone());
        if desired.comment.is_none() {
            fields.insert("comment".into(), comment.into());
        }
    }
    Some(Failed::of_data(format!("the result of '{id}' differs"), &expected, &fields))
}
