//! Top files: which SLS files are for which minions. States and pillar have one each.

use crate::target::{Facts, Target, TargetKind};
use crate::value::{Map, Value};

/// A top file is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TopError(pub String);

/// The SLS files that a rendered top file has for a minion in an environment, in order, each once.
/// Targets that do not say how they are meant are compound, as in Salt.
pub fn matching(top: &Value, saltenv: &str, facts: &impl Facts, nodegroups: &Map) -> Result<Vec<String>, TopError> {
    let environments = match top {
        Value::Nil => return Ok(Vec::new()),
        Value::Map(environments) => environments,
        other => {
            return Err(TopError(format!(
                "a top file is a mapping of environments, this renders to {}",
                other.type_name()
            )));
        }
    };
    let targets = match environments.get(saltenv) {
        None | Some(Value::Nil) => return Ok(Vec::new()),
        Some(Value::Map(targets)) => targets,
        Some(other) => {
            let got = other.type_name();
            return Err(TopError(format!(
                "environment '{saltenv}' of the top file is a mapping of targets, not of type {got}"
            )));
        }
    };
    let mut found: Vec<String> = Vec::new();
    for (expression, items) in targets {
        let expression = expression.to_string();
        let single;
        let items = match items {
            Value::List(items) => items,
            one => {
                single = [one.clone()];
                &single[..]
            }
        };
        let kind = items.iter().find_map(|item| item.get("match")).map_or("compound".to_owned(), ToString::to_string);
        if !is_meant(&expression, &kind, facts, nodegroups)? {
            continue;
        }
        for sls in items.iter().filter_map(Value::as_str) {
            if !found.iter().any(|have| have == sls) {
                found.push(sls.to_owned());
            }
        }
    }
    Ok(found)
}

/// Whether a target of a top file, in the language that its `match` names, means a minion.
pub fn is_meant(expression: &str, kind: &str, facts: &impl Facts, nodegroups: &Map) -> Result<bool, TopError> {
    let wrong = |error: &dyn std::fmt::Display| TopError(format!("target '{expression}' of the top file: {error}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sls::yaml;

    struct Minion;

    impl Facts for Minion {
        fn id(&self) -> &'static str {
            "web1"
        }

        fn grains(&self) -> Option<&Map> {
            static GRAINS: std::sync::LazyLock<Map> = std::sync::LazyLock::new(|| crate::map! {"os" => "Debian"});
            Some(&GRAINS)
        }

        fn pillar(&self) -> Option<&Map> {
            None
        }
    }

    fn matching_in(top: &str) -> Result<Vec<String>, TopError> {
        matching(&yaml::load(top).unwrap(), "base", &Minion, &Map::new())
    }

    #[test]
    fn targets_of_all_kinds_are_matched_in_order() {
        let top = "base:\n  '*': [common, users]\n  'web*': [nginx, common]\n  'db*': [pg]\n  'G@os:Debian and web*': deb\n  'os:Debian':\n    - match: grain\n    - grained\ndev:\n  '*': [other]\n";
        assert_eq!(matching_in(top).unwrap(), ["common", "users", "nginx", "deb", "grained"]);
        assert_eq!(matching_in("").unwrap(), [""; 0]);
        assert_eq!(matching_in("dev: {'*': [x]}").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_no_top_file_is_told() {
        for (top, message) in [
            ("[a]", "a top file is a mapping of environments, this renders to list"),
            ("base: [a]", "environment 'base' of the top file is a mapping of targets, not of type list"),
            ("base: {'x': [{match: nonsense}, a]}", "target 'x' of the top file: "),
        ] {
            let error = matching_in(top).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
