//! Top files: the assignment of SLS files to minions. States and pillar have one each.

use brine_target::{Match, Target, TargetFacts, TargetKind};
use brine_value::Map;

/// An invalid top file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TopError(pub String);

/// Whether a target of a top file, of the kind in its `match`, matches a minion.
pub fn matches_target(
    expression: &str,
    kind: &str,
    facts: &impl TargetFacts,
    nodegroups: &Map,
) -> Result<bool, TopError> {
    let invalid = |error: &dyn std::fmt::Display| TopError(format!("target '{expression}' of the top file: {error}"));
    if let Some(matched) = facts.custom_match(kind, &expression.into(), ":") {
        return Ok(matched == Match::Yes);
    }
    // Salt has matchers for other stores; without these stores nothing matches.
    if matches!(kind, "data" | "range" | "cache" | "resource" | "managing_minion") {
        tracing::warn!(expression, kind, "target type of the top file is not supported");
        return Ok(false);
    }
    let kind: TargetKind = kind.parse().map_err(|error| invalid(&error))?;
    match Target::parse(kind, expression, ":", nodegroups) {
        Ok(target) => Ok(target.matches(facts)),
        Err(error) => {
            // As in Salt, an invalid target is logged and matches nothing.
            tracing::warn!(expression, %error, "target of the top file is invalid");
            Ok(false)
        }
    }
}

/// Returns the error of a target of a top file that matches no minion whatever its facts are.
pub fn senseless(expression: &str, kind: &str, nodegroups: &Map) -> Option<String> {
    let kind: TargetKind = kind.parse().ok()?;
    let target = Target::parse(kind, expression, ":", nodegroups).and_then(|target| target.sensible(":"));
    target.err().map(|error| error.to_string())
}

/// Returns the possible paths of an SLS in the order of precedence: `a/b.sls`, `a/b/init.sls`.
pub fn candidates(sls: &str) -> [String; 2] {
    let path = sls.replace('.', "/");
    [format!("{path}.sls"), format!("{path}/init.sls")]
}
