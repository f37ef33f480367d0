//! Evaluates the requisites of a step from the results of the states that they refer to.

use std::collections::HashSet;

use brine_sls::compile::{Dependency, RequisiteKind};
use brine_value::{Map, Value};

/// The decision about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs.
    Met,
    /// It runs, and without changes of its own it runs `mod_watch`.
    Changed,
    /// It runs; a watched state has changed, but opts out of `mod_watch`.
    ChangedUnnoticed,
    /// A required state failed.
    Failed,
    /// The states that it depends on opt out of `mod_watch`.
    Skipped,
    /// Its `prereq` would change nothing.
    NothingToPrepare,
    /// No state of its `onfail` failed.
    NothingFailed,
    /// No state of its `onchanges` changed.
    NothingChanged,
}

/// The outcome of one referenced state.
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

/// Evaluates the requisites of a step. `result` returns the result of a chunk, or of its dry run.
pub(super) fn judge<'a>(needs: &[Dependency], result: impl Fn(&Dependency) -> Option<&'a Map>) -> Verdict {
    let mut all: HashSet<Sight> = HashSet::new();
    for kind in RequisiteKind::ALL {
        let of_kind = needs.iter().filter(|need| need.kind == kind);
        let mut seen: HashSet<Sight> = HashSet::new();
        for need in of_kind {
            match result(need) {
                Some(result) => check(kind, result, &mut seen),
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

fn check(kind: RequisiteKind, result: &Map, seen: &mut HashSet<Sight>) {
    let failed = result.get("result") == Some(&Value::Bool(false));
    let changed = result.get("changes").is_some_and(Value::is_truthy);
    if result.get("skip_req").is_some_and(Value::is_truthy) {
        seen.insert(Sight::SkipReq);
    }
    let ran = result.get("__state_ran__").is_none_or(Value::is_truthy);
    seen.insert(match kind.base() {
        // A state that would make changes in test mode has not succeeded yet.
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

/// Reduces the outcomes by `any` or `all`.
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
