//! Evaluates the requisites of a step from the results of the states that they refer to.

use std::collections::HashSet;

use brine_sls::compile::{Dependency, RequisiteKind};
use brine_value::{Map, Value};

/// The decision whether and how a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The step runs.
    Met,
    /// The step runs; if it makes no changes itself, `mod_watch` runs, too.
    Changed,
    /// The step runs; a watched state has changed, but opts out of `mod_watch`.
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
enum RequisiteOutcome {
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
pub(super) fn evaluate<'a>(needs: &[Dependency], result: impl Fn(&Dependency) -> Option<&'a Map>) -> Verdict {
    let mut all: HashSet<RequisiteOutcome> = HashSet::new();
    for kind in RequisiteKind::ALL {
        let of_kind = needs.iter().filter(|need| need.kind == kind);
        let mut seen: HashSet<RequisiteOutcome> = HashSet::new();
        for need in of_kind {
            match result(need) {
                Some(result) => check(kind, result, &mut seen),
                // The state was not run although it should have been.
                None => _ = seen.insert(RequisiteOutcome::Failed),
            }
        }
        quantify(kind, &mut seen);
        all.extend(seen);
    }
    let seen = |sight| all.contains(&sight);
    if seen(RequisiteOutcome::Failed) {
        Verdict::Failed
    } else if seen(RequisiteOutcome::SkipReq)
        && (seen(RequisiteOutcome::OnchangesMet) || seen(RequisiteOutcome::WouldChange))
    {
        Verdict::Skipped
    } else if seen(RequisiteOutcome::SkipReq) && seen(RequisiteOutcome::Changed) {
        Verdict::ChangedUnnoticed
    } else if seen(RequisiteOutcome::WouldNotChange) {
        if seen(RequisiteOutcome::WouldChange) { Verdict::Met } else { Verdict::NothingToPrepare }
    } else if seen(RequisiteOutcome::DidNotFail) && !seen(RequisiteOutcome::OnchangesMet) {
        Verdict::NothingFailed
    } else if seen(RequisiteOutcome::OnchangesUnmet) && !seen(RequisiteOutcome::OnchangesMet) {
        Verdict::NothingChanged
    } else if seen(RequisiteOutcome::Changed) {
        Verdict::Changed
    } else if seen(RequisiteOutcome::DidNotFail) {
        Verdict::NothingFailed
    } else {
        Verdict::Met
    }
}

fn check(kind: RequisiteKind, result: &Map, seen: &mut HashSet<RequisiteOutcome>) {
    let failed = result.get("result") == Some(&Value::Bool(false));
    let changed = result.get("changes").is_some_and(Value::is_truthy);
    if result.get("skip_req").is_some_and(Value::is_truthy) {
        seen.insert(RequisiteOutcome::SkipReq);
    }
    let ran = result.get("__state_ran__").is_none_or(Value::is_truthy);
    seen.insert(match kind.base() {
        // A state that would make changes in test mode has not succeeded yet.
        RequisiteKind::Onfail if result.get("result") == Some(&Value::Bool(true)) => RequisiteOutcome::DidNotFail,
        RequisiteKind::Onfail if ran => RequisiteOutcome::Good,
        RequisiteKind::Onfail => return,
        RequisiteKind::Onchanges if !failed && changed => RequisiteOutcome::OnchangesMet,
        RequisiteKind::Onchanges => RequisiteOutcome::OnchangesUnmet,
        _ if failed => RequisiteOutcome::Failed,
        RequisiteKind::Watch if changed => RequisiteOutcome::Changed,
        RequisiteKind::Prereq if result.get("result") == Some(&Value::Nil) => RequisiteOutcome::WouldChange,
        RequisiteKind::Prereq => RequisiteOutcome::WouldNotChange,
        _ if ran => RequisiteOutcome::Good,
        _ => return,
    });
}

/// Reduces the outcomes by `any` or `all`.
fn quantify(kind: RequisiteKind, seen: &mut HashSet<RequisiteOutcome>) {
    let good = seen.contains(&RequisiteOutcome::Good);
    match kind {
        RequisiteKind::RequireAny | RequisiteKind::WatchAny if good || seen.contains(&RequisiteOutcome::Changed) => {
            seen.remove(&RequisiteOutcome::Failed);
        }
        RequisiteKind::OnchangesAny if seen.contains(&RequisiteOutcome::OnchangesMet) => {
            seen.remove(&RequisiteOutcome::OnchangesUnmet);
        }
        RequisiteKind::Onfail | RequisiteKind::OnfailAny if good => {
            seen.remove(&RequisiteOutcome::DidNotFail);
        }
        RequisiteKind::OnfailAll if seen.contains(&RequisiteOutcome::DidNotFail) => {
            seen.remove(&RequisiteOutcome::Good);
        }
        _ => {}
    }
}
