//! What the requisites of a step come to, from the results of the states that they name.

use std::collections::HashSet;

use brine_sls::compile::{Dependency, RequisiteKind};
use brine_value::{Map, Value};

/// What is to be done with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Run it.
    Met,
    /// Run it; if it changes nothing itself, it acts on the changes that it watches.
    Changed,
    /// Run it; what it watches has changed, but wishes not to be acted on.
    ChangedUnnoticed,
    /// A required state failed.
    Failed,
    /// The states that it depends on wish not to be acted on.
    Skipped,
    /// Its `prereq` would change nothing.
    NothingToPrepare,
    /// What it waits to fail did not fail.
    NothingFailed,
    /// What it waits to change did not change.
    NothingChanged,
}

/// What is seen at one of the states named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sight {
    Failed,
    Good,
    Changed,
    WouldChange,
    WouldNotChange,
    DidNotFail,
    OnchangesMet,
    OnchangesUnmet,
    SkipReq,
}

/// Judges the requisites of a step. `result` gives what came of a chunk, or of its trial.
pub(super) fn judge<'a>(needs: &[Dependency], result: impl Fn(&Dependency) -> Option<&'a Map>) -> Verdict {
    let mut all: HashSet<Sight> = HashSet::new();
    for kind in RequisiteKind::ALL {
        let of_kind = needs.iter().filter(|need| need.kind == kind);
        let mut seen: HashSet<Sight> = HashSet::new();
        for need in of_kind {
            match result(need) {
                Some(result) => look(kind, result, &mut seen),
                // It was not run although it should have been.
                None => _ = seen.insert(Sight::Failed),
            }
        }
        quantify(kind, &mut seen);
        all.extend(seen);
    }
    let seen = |sight| all.contains(&sight);
    if seen(Sight::Failed) {
        Verdict::Failed
    } else if seen(Sight::SkipReq) && (seen(Sight::OnchangesMet) || seen(Sight::WouldChange)) {
        Verdict::Skipped
    } else if seen(Sight::SkipReq) && seen(Sight::Changed) {
        Verdict::ChangedUnnoticed
    } else if seen(Sight::WouldNotChange) {
        if seen(Sight::WouldChange) { Verdict::Met } else { Verdict::NothingToPrepare }
    } else if seen(Sight::DidNotFail) && !seen(Sight::OnchangesMet) {
        Verdict::NothingFailed
    } else if seen(Sight::OnchangesUnmet) && !seen(Sight::OnchangesMet) {
        Verdict::NothingChanged
    } else if seen(Sight::Changed) {
        Verdict::Changed
    } else if seen(Sight::DidNotFail) {
        Verdict::NothingFailed
    } else {
        Verdict::Met
    }
}

fn look(kind: RequisiteKind, result: &Map, seen: &mut HashSet<Sight>) {
    let failed = result.get("result") == Some(&Value::Bool(false));
    let changed = result.get("changes").is_some_and(Value::is_truthy);
    if result.get("skip_req").is_some_and(Value::is_truthy) {
        seen.insert(Sight::SkipReq);
    }
    let ran = result.get("__state_ran__").is_none_or(Value::is_truthy);
    seen.insert(match kind.base() {
        // A state that would change something in test mode has not succeeded yet.
        RequisiteKind::Onfail if result.get("result") == Some(&Value::Bool(true)) => Sight::DidNotFail,
        RequisiteKind::Onfail if ran => Sight::Good,
        RequisiteKind::Onfail => return,
        RequisiteKind::Onchanges if !failed && changed => Sight::OnchangesMet,
        RequisiteKind::Onchanges => Sight::OnchangesUnmet,
        _ if failed => Sight::Failed,
        RequisiteKind::Watch if changed => Sight::Changed,
        RequisiteKind::Prereq if result.get("result") == Some(&Value::Nil) => Sight::WouldChange,
        RequisiteKind::Prereq => Sight::WouldNotChange,
        _ if ran => Sight::Good,
        _ => return,
    });
}

/// Where one state is enough, or it takes all.
fn quantify(kind: RequisiteKind, seen: &mut HashSet<Sight>) {
    let good = seen.contains(&Sight::Good);
    match kind {
        RequisiteKind::RequireAny | RequisiteKind::WatchAny if good || seen.contains(&Sight::Changed) => {
            seen.remove(&Sight::Failed);
        }
        RequisiteKind::OnchangesAny if seen.contains(&Sight::OnchangesMet) => {
            seen.remove(&Sight::OnchangesUnmet);
        }
        RequisiteKind::Onfail | RequisiteKind::OnfailAny if good => {
            seen.remove(&Sight::DidNotFail);
        }
        RequisiteKind::OnfailAll if seen.contains(&Sight::DidNotFail) => {
            seen.remove(&Sight::Good);
        }
        _ => {}
    }
}
