//! Top files: which SLS files are for which minions. States and pillar have one each.

use brine_target::{Facts, Target, TargetKind};
use brine_value::Map;

/// A top file is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TopError(pub String);

/// Whether a target of a top file, in the language that its `match` names, means a minion.
pub fn is_meant(expression: &str, kind: &str, facts: &impl Facts, nodegroups: &Map) -> Result<bool, TopError> {
    let wrong = |error: &dyn std::fmt::Display| TopError(format!("target '{expression}' of the top file: {error}"));
    // Salt has matchers for stores of its own; nobody is in one that is not there.
    if matches!(kind, "data" | "range" | "cache" | "resource" | "managing_minion") {
        tracing::warn!(expression, kind, "a target of the top file is in a language that is not there");
        return Ok(false);
    }
    let kind: TargetKind = kind.parse().map_err(|error| wrong(&error))?;
    match Target::parse(kind, expression, ":", nodegroups) {
        Ok(target) => Ok(target.matches(facts)),
        Err(error) => {
            // Salt logs a target that it cannot read and goes on: nobody matches it.
            tracing::warn!(expression, %error, "a target of the top file cannot be read");
            Ok(false)
        }
    }
}

/// Where the file of an SLS may be, in the order in which they are tried: `a/b.sls`, `a/b/init.sls`.
pub fn candidates(sls: &str) -> [String; 2] {
    let path = sls.replace('.', "/");
    [format!("{path}.sls"), format!("{path}/init.sls")]
}
