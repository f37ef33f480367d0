//! `file.accumulated`: texts that several states contribute to a file, which its state then writes.

use std::collections::VecDeque;
use std::sync::LazyLock;

use brine_context::{StateContext, StateReturn};
use brine_value::{Map, Value};
use parking_lot::Mutex;

/// Maximum number of runs in memory; concurrent runs each have their own texts.
const MAX_RUNS: usize = 32;

/// Accumulated texts of a run.
struct Run {
    jid: String,
    gathered: Vec<Accumulator>,
}

/// An accumulator of a file.
struct Accumulator {
    file: String,
    name: String,
    /// Ids of the states that require it.
    users: Vec<String>,
    texts: Vec<Value>,
}

static ACTIVE_RUNS: LazyLock<Mutex<VecDeque<Run>>> = LazyLock::new(Mutex::default);

/// Adds texts for a file, deduplicated. A text may be any value: the file's template reads it as data.
pub(super) fn state(context: &StateContext, name: &str, filename: &str, text: &Value) -> StateReturn {
    let targets = ["require_in", "watch_in"].iter().filter_map(|key| context.chunk.get(*key));
    let targets: Vec<&Value> =
        targets.flat_map(|target| target.as_list().unwrap_or(std::slice::from_ref(target))).collect();
    // As in Salt, an id that contains the word is accepted without the name of the module.
    if !targets
        .iter()
        .any(|target| target.get("file").is_some() || target.as_str().is_some_and(|id| id.contains("file")))
    {
        return StateReturn::failed(name, format!("Orphaned accumulator {name} in {}:{}", context.sls, context.id));
    }
    let users = targets.iter().flat_map(|target| match target {
        Value::Map(map) => map.values().map(ToString::to_string).collect(),
        id => vec![id.to_string()],
    });
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
        let is_same = |of: &Accumulator| of.file == filename && of.name == name;
        let index = run.gathered.iter().position(is_same).unwrap_or_else(|| {
            let (file, name) = (filename.to_owned(), name.to_owned());
            run.gathered.push(Accumulator { file, name, users: Vec::new(), texts: Vec::new() });
            run.gathered.len() - 1
        });
        let accumulator = &mut run.gathered[index];
        accumulator.users.extend(users);
        for text in texts {
            if !accumulator.texts.contains(text) {
                accumulator.texts.push(text.clone());
                comment = format!("Accumulator {name} for file {filename} was charged by text");
            }
        }
    }
    StateReturn::ok(name, comment)
}

/// Returns the texts accumulated for a file in this run, by accumulator.
pub(super) fn accumulated_texts(context: &StateContext, filename: &str) -> Map {
    texts_of(context, filename, |_| true)
}

/// Returns the texts accumulated in this run for a block of a file: those of the accumulators that this state requires,
/// or of all accumulators of the file if it requires none.
pub(super) fn texts_of_block(context: &StateContext, filename: &str) -> Vec<String> {
    let own = texts_of(context, filename, |of| of.users.contains(&context.id));
    let texts = if own.is_empty() { accumulated_texts(context, filename) } else { own };
    texts.values().filter_map(Value::as_list).flatten().map(ToString::to_string).collect()
}

/// Appends accumulated texts to the content of a block: as in Salt, with a line break before each, whatever precedes it.
pub(super) fn joined(content: String, texts: Vec<String>) -> String {
    texts.into_iter().fold(content, |all, text| if all.is_empty() { text } else { format!("{all}\n{text}") })
}

fn texts_of(context: &StateContext, filename: &str, selects: impl Fn(&Accumulator) -> bool) -> Map {
    let runs = ACTIVE_RUNS.lock();
    let run = runs.iter().find(|run| run.jid == context.call.job.jid);
    let gathered = run.map(|run| run.gathered.as_slice()).unwrap_or_default();
    let own = gathered.iter().filter(|of| of.file == filename && selects(of));
    own.map(|of| (of.name.as_str().into(), of.texts.clone().into())).collect()
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
            let outcome = state(&context, "acc", "/f", &text);
            assert_eq!((outcome.result, outcome.comment.as_str()), (Some(true), comment));
        }
        assert_eq!(accumulated_texts(&context, "/f"), map! {"acc" => list!["a", "b", data]});
        assert_eq!(accumulated_texts(&context, "/g"), map! {});
        context.chunk = Arc::new(map! {});
        assert_eq!(state(&context, "acc", "/f", &"c".into()).result, Some(false));
    }

    #[test]
    fn blocks_get_the_texts_of_the_accumulators_they_require() {
        let mut context = testing::state_context(false, &[]);
        for (name, target) in [
            ("top", Value::from(map! {"file" => "first"})),
            ("bottom", map! {"file" => "second"}.into()),
            ("bare", "third file".into()),
        ] {
            context.chunk = Arc::new(map! {"require_in" => list![target]});
            assert_eq!(state(&context, name, "/blocks", &name.into()).result, Some(true));
        }
        for (id, texts) in [
            ("first", vec!["top"]),
            ("second", vec!["bottom"]),
            ("third file", vec!["bare"]),
            ("other", vec!["top", "bottom", "bare"]),
        ] {
            context.id = id.into();
            assert_eq!(texts_of_block(&context, "/blocks"), texts, "{id}");
        }
        context.chunk = Arc::new(map! {"require_in" => list!["other"]});
        assert_eq!(state(&context, "orphan", "/blocks", &"x".into()).result, Some(false));
    }

    #[test]
    fn texts_of_a_block_are_joined_by_line_breaks() {
        for (content, texts, expected) in [
            ("", vec![], ""),
            ("a", vec!["b"], "a\nb"),
            ("a\n", vec!["b"], "a\n\nb"),
            ("", vec!["b\n", "c\n"], "b\n\nc\n"),
        ] {
            let texts = texts.into_iter().map(str::to_owned).collect();
            assert_eq!(joined(content.to_owned(), texts), expected);
        }
    }
}
