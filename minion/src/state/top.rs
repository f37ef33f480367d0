//! Top files: which SLS files of which environments are for this minion.

use brine_core::sls::compile::SlsSource;
use brine_core::sls::top::is_meant;
use brine_core::target::Facts;
use brine_core::value::python;
use brine_core::{Map, Value};
use indexmap::IndexMap;

use super::Source;
use crate::context::Context;

/// What the top files say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Top {
    /// The SLS files for this minion by environment, in the order of the top file.
    pub matches: Vec<(String, Vec<String>)>,
    /// What is wrong with the top files, in Salt's words.
    pub errors: Vec<String>,
}

/// Sections of top files: target and SLS files by environment.
type Sections = IndexMap<String, IndexMap<Value, Value>>;

impl Top {
    /// Reads the top files of all environments, or of one, and matches this minion.
    pub fn read(
        context: &Context,
        source: &Source,
        state_top: &str,
        saltenv: Option<&str>,
        facts: &impl Facts,
    ) -> Self {
        let files = &context.minion.files;
        let environments = match saltenv {
            Some(saltenv) => vec![saltenv.to_owned()],
            None => ordered(files.environments().unwrap_or_else(|error| {
                tracing::error!(error, "the environments cannot be listed");
                Vec::new()
            })),
        };
        let mut tops = Vec::new();
        for environment in &environments {
            let mut found = Vec::new();
            match all_of(source, state_top, environment, &mut found) {
                Ok(()) => tops.push((environment.clone(), found)),
                // As in Salt, a top file that cannot be rendered is as none at all.
                Err(error) => {
                    tracing::error!(saltenv = environment, error, "Unable to render top file");
                    return Top::default();
                }
            }
        }
        let strategy =
            context.config().opts.get("top_file_merging_strategy").and_then(Value::as_str).unwrap_or("merge");
        if strategy == "same" {
            let default = context.config().opts.get("default_top").and_then(Value::as_str).unwrap_or("base");
            let theirs = tops.iter().find(|(name, _)| name == default).map(|(_, found)| found.clone());
            for (_, found) in tops.iter_mut().filter(|(_, found)| found.is_empty()) {
                found.extend(theirs.clone().into_iter().flatten());
            }
        }
        let sections = match strategy {
            "merge_all" => merged(&tops, true, |_, _, _| true),
            "same" => merged(&tops, false, |own, section, _| own == section),
            // The base environment's top file has the say on every section that it has; the others on their own.
            _ => merged(&tops, false, |own, section, in_base| own == "base" || own == section && !in_base),
        };
        let mut top = Top { errors: verify(&tops), ..Top::default() };
        let known = |environment: &str| files.environments().is_ok_and(|all| all.iter().any(|one| one == environment));
        top.matching(&sections, saltenv, facts, &context.config().nodegroups, known);
        top
    }

    fn matching(
        &mut self,
        sections: &Sections,
        only: Option<&str>,
        facts: &impl Facts,
        nodegroups: &Map,
        known: impl Fn(&str) -> bool,
    ) {
        for (environment, targets) in sections {
            if only.is_some_and(|only| only != environment) {
                continue;
            }
            for (expression, items) in targets {
                let items = items.as_list().unwrap_or(std::slice::from_ref(items));
                let kind =
                    items.iter().find_map(|item| item.get("match")).map_or("compound".to_owned(), ToString::to_string);
                match is_meant(&expression.to_string(), &kind, facts, nodegroups) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        tracing::error!(%error, "a target of the top file is skipped");
                        continue;
                    }
                }
                self.names_of(environment);
                for item in items {
                    match item {
                        Value::Str(sls) => self.names_of(environment).push(sls.clone()),
                        // `{environment: sls}`
                        Value::Map(map) => {
                            let other = map.first().filter(|(name, _)| known(&name.to_string()));
                            if let Some((other, sls)) = other {
                                self.names_of(&other.to_string()).push(sls.to_string());
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn names_of(&mut self, environment: &str) -> &mut Vec<String> {
        let place = self.matches.iter().position(|(have, _)| have == environment).unwrap_or_else(|| {
            self.matches.push((environment.to_owned(), Vec::new()));
            self.matches.len() - 1
        });
        &mut self.matches[place].1
    }
}

/// The base environment first, which has the say over the others.
fn ordered(mut environments: Vec<String>) -> Vec<String> {
    environments.sort_by_key(|environment| environment != "base");
    environments
}

/// The top file of an environment, and those that it includes, each once.
fn all_of(source: &Source, state_top: &str, saltenv: &str, found: &mut Vec<Map>) -> Result<(), String> {
    let Some(top) = source.render_file(state_top, "top", saltenv)? else { return Ok(()) };
    let mut waiting = vec![top];
    let mut seen: Vec<String> = Vec::new();
    while let Some(top) = waiting.pop() {
        let Value::Map(top) = top else {
            if top.is_truthy() {
                return Err(format!("the top file renders to {}", top.type_name()));
            }
            continue;
        };
        for item in top.get("include").and_then(Value::as_list).unwrap_or_default() {
            let name = item.as_map().and_then(Map::first).map_or(item, |(_, name)| name).to_string();
            if !seen.contains(&name) {
                waiting.extend(source.render(&name, saltenv)?);
                seen.push(name);
            }
        }
        found.push(top);
    }
    Ok(())
}

/// Puts sections together; with `together`, also what they have for one target, which is the later one's otherwise.
/// `counts` is asked with the environment that a top file is of, the section, and
/// whether the base environment's top file has that section.
fn merged(tops: &[(String, Vec<Map>)], together: bool, counts: impl Fn(&str, &str, bool) -> bool) -> Sections {
    let sections_of = |tops: &[Map]| -> Vec<(String, Map)> {
        let all = tops.iter().flatten().filter(|(name, _)| name.as_str() != Some("include"));
        all.filter_map(|(name, targets)| Some((name.to_string(), targets.as_map()?.clone()))).collect()
    };
    let base: Vec<String> = tops
        .iter()
        .filter(|(environment, _)| environment == "base")
        .flat_map(|(_, tops)| sections_of(tops))
        .map(|(name, _)| name)
        .collect();
    let mut sections = Sections::new();
    for (environment, tops) in tops {
        for (name, targets) in sections_of(tops) {
            if !counts(environment, &name, base.contains(&name)) {
                continue;
            }
            let section = sections.entry(name).or_default();
            for (target, items) in targets {
                match (section.get_mut(&target), items) {
                    (Some(Value::List(have)), Value::List(more)) if together => have.extend(more),
                    (_, items) => _ = section.insert(target, items),
                }
            }
        }
    }
    sections
}

/// What is wrong with top files, in Salt's words.
fn verify(tops: &[(String, Vec<Map>)]) -> Vec<String> {
    let mut errors = Vec::new();
    let sections = tops.iter().flat_map(|(_, tops)| tops).flatten();
    for (saltenv, targets) in sections.filter(|(name, _)| name.as_str() != Some("include")) {
        match saltenv.as_str() {
            None => errors.push(format!("Environment {saltenv} in top file is not formed as a string")),
            Some("") => errors.push("Empty saltenv statement in top file".to_owned()),
            Some(_) => {}
        }
        let Some(targets) = targets.as_map() else {
            errors.push(format!("The top file matches for saltenv {saltenv} are not formatted as a dict"));
            continue;
        };
        for (target, items) in targets {
            let Some(items) = items.as_list() else {
                errors.push(format!(
                    "Malformed topfile: state declarations for matcher {} in saltenv {} are not formed as a list (got {})",
                    python::repr(target),
                    python::repr(saltenv),
                    items.type_name()
                ));
                continue;
            };
            for item in items {
                match item {
                    Value::Map(map) => {
                        for value in map.values().filter(|value| !value.is_truthy()) {
                            errors
                                .push(format!("Improperly formatted top file matcher in saltenv {item}: {value} file"));
                        }
                    }
                    Value::Str(sls) if sls.is_empty() => {
                        errors.push(format!("Environment {saltenv} contains an empty sls index"));
                    }
                    _ => {}
                }
            }
        }
    }
    errors
}
