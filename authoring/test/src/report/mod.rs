//! The results of a run as text, JUnit's XML and JSON.

mod junit;
mod text;

use brine_value::{Map, Value, json, map};

use crate::Report;
use crate::coverage;
use crate::run::Outcome;

pub use junit::junit;
pub use text::{Colours, text};

/// Returns a report as JSON.
pub fn json(report: &Report) -> String {
    let (passed, failed, skipped) = report.counts();
    let cases: Vec<Value> = report
        .cases
        .iter()
        .map(|case| {
            let (outcome, more): (&str, Map) = match &case.done.outcome {
                Outcome::Passed => ("passed", Map::new()),
                Outcome::Skipped(reason) => ("skipped", map! {"reason" => reason.as_str()}),
                Outcome::Failed(failures) => {
                    let failures: Value = failures
                        .iter()
                        .map(|failed| map! {"message" => &failed.message, "difference" => failed.difference.clone()})
                        .map(Value::Map)
                        .collect();
                    ("failed", map! {"failures" => failures})
                }
            };
            let mut entry = map! {
                "file" => case.file.display().to_string(),
                "line" => case.line as u64,
                "name" => &case.name,
                "outcome" => outcome,
                "seconds" => case.done.time.as_secs_f64(),
            };
            entry.extend(more);
            entry.into()
        })
        .collect();
    let mut summary = map! {
        "passed" => passed as u64,
        "failed" => failed as u64,
        "skipped" => skipped as u64,
        "seconds" => report.time.as_secs_f64(),
        "broken" => report.broken.clone(),
        "tests" => cases,
    };
    if let Some(files) = &report.coverage {
        summary.insert("coverage".into(), coverage::to_value(files));
    }
    json::to_json_pretty(&summary.into(), 2) + "\n"
}
