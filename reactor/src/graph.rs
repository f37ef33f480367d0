//! The graph for `reactor.graph`: the tree of `reactor.explain` as a flat list of nodes, for programs that draw it.

use std::collections::HashSet;

use brine_bus::Bus;
use brine_event::Event;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value, map};

use crate::Reactor;
use crate::explain::{EventTree, ExplainError, Node};
use crate::history::{Outcome, ReactionRecord, stamp};

/// The maximum number of listed returns of a job; failed and missing minions come first.
const RETURNS: usize = 200;
/// The maximum number of listed failed states of a job.
const STATES: usize = 20;
/// The maximum length of a text in characters.
const TEXT: usize = 500;

impl Reactor {
    /// Returns the graph around an event's sequence number or a job id: `asked`, its sequence number; `cut`, whether
    /// consequences are left out; and `nodes`, each with the index of its `parent` in the list. Reads the journal, so
    /// it needs a thread that may block.
    pub fn graph(&self, thread: &MayBlock, bus: &Bus, what: &str) -> Result<Value, ExplainError> {
        let around = self.around(thread, bus, what)?;
        let rules = self.rules().keys().map(ToString::to_string).collect();
        Ok(graph(&around, &rules))
    }
}

fn graph(around: &EventTree, rules: &HashSet<String>) -> Value {
    let mut nodes = vec![with_parent(event(&around.root), None)];
    // Not recursive: a chain of events may be long.
    let mut open = vec![(around.root.seq(), 0)];
    while let Some((seq, parent)) = open.pop() {
        for node in around.tree.below(seq) {
            let (fields, below) = match node {
                Node::Event(one) => (event(one), Some(one.seq())),
                Node::Reaction(record) => {
                    let fields = reaction(record, &around.tree.outcome(record), rules.contains(&record.entry));
                    (fields, Some(record.seq))
                }
                Node::Note(text) => (map! {"kind" => "note", "text" => clipped(text)}, None),
            };
            open.extend(below.map(|seq| (seq, nodes.len())));
            nodes.push(with_parent(fields, Some(parent)));
        }
    }
    map! {"asked" => around.requested, "cut" => around.tree.is_cut, "nodes" => nodes}.into()
}

fn with_parent(mut fields: Map, parent: Option<usize>) -> Value {
    fields.insert("parent".into(), parent.map_or(Value::Nil, |place| Value::from(place as u64)));
    fields.into()
}

fn event(event: &Event) -> Map {
    let data = event.data();
    let mut fields = map! {
        "kind" => "event",
        "seq" => event.seq(),
        "tag" => clipped(event.tag()),
        "time" => stamp(&data),
    };
    for name in ["id", "act", "fun", "tgt"] {
        if let Some(value) = data.get(name).filter(|value| !value.is_nil()) {
            fields.insert(name.into(), clipped(&value.to_string()).into());
        }
    }
    fields
}

fn reaction(record: &ReactionRecord, outcome: &Outcome, is_rule: bool) -> Map {
    let returned: HashSet<&str> = outcome.returned.iter().map(|(id, _)| id.as_str()).collect();
    let missing: Vec<&str> = outcome.minions.iter().map(String::as_str).filter(|id| !returned.contains(id)).collect();
    let of =
        |good: bool| outcome.returned.iter().filter(move |(_, is_good)| *is_good == good).map(|(id, _)| id.as_str());
    let (failed, succeeded) = (of(false).count(), of(true).count());
    let one = |state: &'static str| move |id: &str| Value::from(map! {"id" => clipped(id), "state" => state});
    let returns = of(false).map(one("failed"));
    let returns = returns.chain(missing.iter().copied().map(one("missing"))).chain(of(true).map(one("done")));
    let mut fields = map! {
        "kind" => "reaction",
        "seq" => record.seq,
        "entry" => clipped(&record.entry),
        "rule" => is_rule,
        "file" => clipped(&record.file),
        "reaction" => clipped(&record.reaction),
        "jid" => record.jid.clone(),
        "started" => record.started.as_str(),
        "ended" => outcome.ended.clone(),
        "outcome" => clipped(&outcome.text()),
        "error" => outcome.error.is_some(),
        "asked" => outcome.minions.len() as u64,
        "done" => succeeded as u64,
        "failed" => failed as u64,
        "missing" => missing.len() as u64,
        "returns" => returns.take(RETURNS).collect::<Value>(),
    };
    if !outcome.failed_states.is_empty() {
        let state = |(id, state): &(String, crate::failed_states::FailedState)| {
            Value::from(map! {"id" => clipped(id), "state" => clipped(&state.text())})
        };
        fields.insert("failed_states".into(), outcome.failed_states.iter().take(STATES).map(state).collect());
    }
    fields
}

/// Returns at most [`TEXT`] characters.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_and_missing_minions_are_listed_before_the_limit() {
        let ids: Vec<String> = (0..1000).map(|n| format!("m{n}")).collect();
        let mut returned: Vec<(String, bool)> = ids.iter().take(998).map(|id| (id.clone(), true)).collect();
        returned[997].1 = false;
        let outcome = Outcome { minions: ids, returned, ..Outcome::default() };
        let record = ReactionRecord {
            seq: 7,
            entry: "logins".into(),
            file: "/srv/a.sls".into(),
            reaction: "x".repeat(2 * TEXT),
            jid: Some("20261122160000000000".into()),
            started: String::new(),
            outcome: Outcome::default(),
        };
        let fields = reaction(&record, &outcome, true);
        let number = |name: &str| fields.get(name).and_then(Value::as_i64).unwrap();
        assert_eq!([number("asked"), number("done"), number("failed"), number("missing")], [1000, 997, 1, 2]);
        let returns = fields.get("returns").and_then(Value::as_list).unwrap();
        let states: Vec<_> = returns.iter().take(4).map(|one| one.get("state").unwrap().to_string()).collect();
        assert_eq!((returns.len(), states.join(" ").as_str()), (RETURNS, "failed missing missing done"));
        assert_eq!(fields.get("reaction").unwrap().to_string().chars().count(), TEXT + 1);
    }

    #[test]
    fn texts_are_clipped_between_characters() {
        for (text, expected) in [(String::new(), 0), ("ä".repeat(TEXT), TEXT), ("ä".repeat(TEXT + 1), TEXT + 1)] {
            assert_eq!(clipped(&text).chars().count(), expected);
        }
    }
}
