//! `file.accumulated`: texts that several states contribute to a file, which its state then writes.

use std::collections::VecDeque;
use std::sync::LazyLock;

use brine_context::{StateContext, StateReturn};
use brine_value::{Map, Value};
use parking_lot::Mutex;

/// Maximum number of runs in memory; concurrent runs each have their own texts.
const MAX_RUNS: usize = 32;

/// Accumulated texts of a run: for each file, by the name of the accumulator.
struct Run {
    jid: String,
    gathered: Vec<(String, String, Vec<Value>)>,
}

static ACTIVE_RUNS: LazyLock<Mutex<VecDeque<Run>>> = LazyLock::new(Mutex::default);

/// Adds texts for a file, deduplicated. A text may be any value: the file's template reads it as data.
pub(super) fn state(context: &StateContext, name: &str, filename: &str, text: &Value) -> StateReturn {
    let is_required = ["require_in", "watch_in"].iter().filter_map(|key| context.chunk.get(*key)).any(|targets| {
        let single = [targets.clone()];
        targets.as_list().unwrap_or(&single).iter().any(|target| target.get("file").is_some())
    });
    if !is_required {
        return StateReturn::failed(name, format!("Orphaned accumulator {name} in {}:{}", context.sls, context.id));
    }
    let single = [text.clone()];
    let texts = text.as_list().unwrap_or(&single);
    let mut comment = String::new();
    let mut runs = ACTIVE_RUNS.lock();
    let jid = &context.call.job.jid;
    if !runs.iter().any(|run| run.jid == *jid) {
        runs.push_back(Run { jid: jid.clone(), gathered: Vec::new() });
        if runs.len() > MAX_RUNS {
            runs.pop_front();
        }
    }
    if let Some(run) = runs.iter_mut().find(|run| run.jid == *jid) {
        let index = run.gathered.iter().position(|(file, of, _)| file == filename && of == name);
        let index = index.unwrap_or_else(|| {
            run.gathered.push((filename.to_owned(), name.to_owned(), Vec::new()));
            run.gathered.len() - 1
        });
        for text in texts {
            if !run.gathered[index].2.contains(text) {
                run.gathered[index].2.push(text.clone());
                comment = format!("Accumulator {name} for file {filename} was charged by text");
            }
        }
    }
    StateReturn::ok(name, comment)
}

/// Returns the texts accumulated for a file in this run, by accumulator.
pub(super) fn accumulated_texts(context: &StateContext, filename: &str) -> Map {
    let runs = ACTIVE_RUNS.lock();
    let run = runs.iter().find(|run| run.jid == context.call.job.jid);
    let gathered = run.map(|run| run.gathered.as_slice()).unwrap_or_default();
    let own = gathered.iter().filter(|(file, _, _)| file == filename);
    own.map(|(_, name, texts)| (name.into(), texts.clone().into())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_value::{list, map};

    use super::*;
    use crate::testing;

    #[test]
    fn accumulated_texts_belong_to_one_run_and_file() {
        let mut context = testing::state_context(false, &[]);
        context.chunk = Arc::new(map! {"require_in" => list![map! {"file" => "f"}]});
        let data: Value = map! {"k" => 1}.into();
        for (text, comment) in [
            (Value::from("a"), "Accumulator acc for file /f was charged by text"),
            (list!["b", "a"], "Accumulator acc for file /f was charged by text"),
            (data.clone(), "Accumulator acc for file /f was charged by text"),
            (list!["a"], ""),
        ] {
            let done = state(&context, "acc", "/f", &text);
            assert_eq!((done.result, done.comment.as_str()), (Some(true), comment));
        }
        assert_eq!(accumulated_texts(&context, "/f"), map! {"acc" => list!["a", "b", data]});
        assert_eq!(accumulated_texts(&context, "/g"), map! {});
        context.chunk = Arc::new(map! {});
        assert_eq!(state(&context, "acc", "/f", &"c".into()).result, Some(false));
    }
}
