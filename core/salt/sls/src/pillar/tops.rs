//! The pillar top files of all environments: which SLS files are assigned to a minion.

use brine_target::TargetFacts;
use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::tree::{FileError, Tree};
use super::{PillarRequest, PillarSource};
use crate::top::matches_target;

/// The sections of top files by environment: targets with their entries.
pub(super) type Sections = IndexMap<String, IndexMap<Value, Value>>;

/// Parses the top files and their includes, and merges their sections: the last entry of a target wins.
pub(super) fn sections(tree: &Tree<'_>, errors: &mut Vec<String>) -> Sections {
    let Tree { source, request, .. } = tree;
    let mut sections = Sections::new();
    for environment in environments(source, request) {
        let mut waiting = vec![(source.state_top.clone(), "top".to_owned())];
        let mut seen: Vec<String> = Vec::new();
        while let Some((path, sls)) = waiting.pop() {
            let top = match tree.file(&path, &sls, &environment, &Map::new()) {
                Ok(None | Some(Value::Nil)) => continue,
                Ok(Some(Value::Map(top))) => top,
                Ok(Some(other)) => {
                    tracing::error!(path, "a pillar top file renders to {}, not to a mapping", other.type_name());
                    errors.push("Error encountered while rendering pillar top file.".to_owned());
                    continue;
                }
                Err(FileError { message, advice, .. }) => {
                    errors.push(format!("Rendering Primary Top file failed, render error:\n{message}{advice}"));
                    continue;
                }
            };
            for (name, body) in top {
                match (name.as_str(), body) {
                    (Some("include"), included) => {
                        for name in included.as_list().unwrap_or_default().iter().map(ToString::to_string) {
                            if !seen.contains(&name) {
                                let paths = crate::top::candidates(&name);
                                let path = paths.into_iter().find(|path| tree.find(path, &environment).is_some());
                                waiting.extend(path.map(|path| (path, name.clone())));
                                seen.push(name);
                            }
                        }
                    }
                    (_, Value::Map(targets)) => sections.entry(name.to_string()).or_default().extend(targets),
                    (_, Value::Nil) => {}
                    (_, other) => {
                        tracing::error!(
                            "section '{name}' of a pillar top file is not a mapping: {}",
                            other.type_name()
                        );
                        errors.push("Error encountered while rendering pillar top file.".to_owned());
                    }
                }
            }
        }
    }
    sections
}

/// Returns the environments whose top files apply.
fn environments(source: &PillarSource, request: &PillarRequest<'_>) -> Vec<String> {
    let existing = |name: &str| source.roots.contains_key(name).then(|| name.to_owned());
    if let Some(only) = request.pillarenv {
        return existing(only).into_iter().collect();
    }
    if source.merging.keeps_environments_apart() {
        return existing(request.saltenv.unwrap_or("base")).into_iter().collect();
    }
    let mut all: Vec<String> = source.roots.keys().cloned().collect();
    all.sort_by_key(|name| name != "base");
    all
}

/// The SLS files of one environment that match a minion, each once.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Matched {
    pub names: Vec<String>,
    /// Optional SLS files.
    pub may_be_missing: Vec<String>,
}

/// Returns the SLS files by environment, in the order in which they are merged.
pub(super) fn matched(
    sections: &Sections,
    pillarenv: Option<&str>,
    facts: &impl TargetFacts,
    nodegroups: &Map,
    errors: &mut Vec<String>,
) -> IndexMap<String, Matched> {
    let mut environments: IndexMap<String, Matched> = IndexMap::new();
    for (environment, targets) in sections {
        if pillarenv.is_some_and(|only| only != environment) {
            continue;
        }
        let mut targets: Vec<(&Value, &[Value])> = targets
            .iter()
            .map(|(target, items)| (target, items.as_list().unwrap_or(std::slice::from_ref(items))))
            .collect();
        let order = |items: &[Value]| items.iter().find_map(|item| item.get("order")?.as_i64()).unwrap_or(0);
        targets.sort_by_key(|(_, items)| order(items));
        for (target, items) in targets {
            let kind =
                items.iter().find_map(|item| item.get("match")).map_or("compound".to_owned(), ToString::to_string);
            match matches_target(&target.to_string(), &kind, facts, nodegroups) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    errors.push(error.to_string());
                    continue;
                }
            }
            let ignore = items.iter().any(|item| item.get("ignore_missing").is_some_and(Value::is_truthy));
            let matched = environments.entry(environment.clone()).or_default();
            for sls in items.iter().filter_map(Value::as_str) {
                if ignore {
                    matched.may_be_missing.push(sls.to_owned());
                }
                if !matched.names.iter().any(|have| have == sls) {
                    matched.names.push(sls.to_owned());
                }
            }
        }
    }
    environments
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Minion;

    impl TargetFacts for Minion {
        fn id(&self) -> &'static str {
            "web1"
        }

        fn grains(&self) -> Option<&Map> {
            static GRAINS: std::sync::LazyLock<Map> = std::sync::LazyLock::new(|| brine_value::map! {"os" => "Debian"});
            Some(&GRAINS)
        }

        fn pillar(&self) -> Option<&Map> {
            None
        }
    }

    #[test]
    fn targets_of_all_kinds_are_matched_in_order() {
        let top = "'*': [common, users]\n'web*': [nginx, common]\n'db*': [pg]\n'G@os:Debian and web*': deb\n\
                   'os:Debian':\n  - match: grain\n  - ignore_missing: True\n  - grained\n'w*': [{order: -1}, first]\n\
                   'x': [{match: nonsense}, a]\n";
        let Value::Map(targets) = brine_yaml::load(top).unwrap() else { panic!("{top}") };
        let sections = ["base", "dev"].map(|name| (name.to_owned(), targets.clone().into_iter().collect()));
        let mut errors = Vec::new();
        let actual = matched(&sections.into(), Some("base"), &Minion, &Map::new(), &mut errors);
        let names = ["first", "common", "users", "nginx", "deb", "grained"].map(str::to_owned).to_vec();
        let expected = Matched { names, may_be_missing: vec!["grained".to_owned()] };
        assert_eq!(actual, [("base".to_owned(), expected)].into());
        assert!(errors[0].starts_with("target 'x' of the top file: "), "{errors:?}");
    }
}
