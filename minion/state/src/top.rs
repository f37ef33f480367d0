//! Top files: the SLS files and environments assigned to this minion.

use std::cell::LazyCell;

use brine_config::opts::shared;
use brine_context::Context;
use brine_sls::compile::{SlsError, SlsSource};
use brine_sls::top::{matches_target, senseless};
use brine_target::TargetFacts;
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, python};
use indexmap::IndexMap;

use super::Source;

/// The result of reading the top files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Top {
    /// The SLS files for this minion by environment, in the order of the top file.
    pub matches: Vec<(String, Vec<String>)>,
    /// The errors of the top files, in Salt's wording.
    pub errors: Vec<String>,
    /// Why top files assign nothing, if there are any: one cannot be rendered, or no target matches this minion.
    pub nothing: Option<String>,
    /// Whether it is because a top file cannot be rendered.
    pub is_broken: bool,
}

/// Sections of top files: target and SLS files by environment.
type Sections = IndexMap<String, IndexMap<Value, Value>>;

impl Top {
    /// Reads the top files of all environments, or of one, and matches their targets with this minion.
    pub fn read(
        context: &Context,
        source: &Source,
        state_top: &str,
        saltenv: Option<&str>,
        facts: &impl TargetFacts,
    ) -> Self {
        let opts = &*context.opts();
        // Listed once: it may be a request to the master.
        let all = LazyCell::new(|| {
            source.environments().unwrap_or_else(|error| {
                tracing::error!(%error, "listing the environments failed");
                Vec::new()
            })
        });
        let environments = match saltenv.map(str::to_owned).or_else(|| shared::state_top_saltenv(opts)) {
            Some(saltenv) => vec![saltenv],
            None => ordered(all.clone(), shared::env_order(opts)),
        };
        let mut tops = Vec::new();
        for environment in &environments {
            let mut contents = Vec::new();
            match all_of(source, state_top, environment, &mut contents) {
                Ok(()) => tops.push((environment.clone(), contents)),
                Err(TopProblem::NotAMapping(error)) => return Top { errors: vec![error], ..Top::default() },
                // As in Salt, a top file that cannot be rendered is ignored.
                Err(TopProblem::NotRendered(error)) => {
                    let all = error.to_string();
                    let error_line = all.lines().next().unwrap_or_default();
                    tracing::error!(saltenv = environment, error = error_line, "Unable to render top file");
                    let reason =
                        format!("Rendering the top file '{state_top}' of saltenv '{environment}' failed: {error}");
                    return Top { nothing: Some(reason), is_broken: true, ..Top::default() };
                }
            }
        }
        let strategy = shared::top_file_merging_strategy(opts);
        if strategy == "same" {
            let default = shared::default_top(opts);
            let theirs = tops.iter().find(|(name, _)| *name == default).map(|(_, contents)| contents.clone());
            for (_, contents) in tops.iter_mut().filter(|(_, contents)| contents.is_empty()) {
                contents.extend(theirs.clone().into_iter().flatten());
            }
        }
        let (sections, errors) = match strategy.as_str() {
            "merge_all" => merged(&tops, true, |_, _, _| true),
            "same" => merged(&tops, false, |own, section, _| own == section),
            // The base environment's top file wins for all sections that it has; the others only for their own.
            _ => {
                tops.sort_by_key(|(environment, _)| environment != "base");
                merged(&tops, false, |own, section, in_base| own == "base" || own == section && !in_base)
            }
        };
        let mut top = Top { errors, ..Top::default() };
        verify(&sections, &mut top.errors);
        let exists = |environment: &str| all.iter().any(|one| one == environment);
        tracing::debug!(state_top, ?environments, "top files read");
        let report = top.matching(&sections, saltenv, facts, &shared::nodegroups(opts), exists);
        for (saltenv, names) in &top.matches {
            tracing::debug!(saltenv, "top file matches: {}", names.join(", "));
        }
        if top.matches.is_empty() && sections.values().any(|targets| !targets.is_empty()) {
            top.nothing = Some(unmatched(state_top, &sections, facts.id(), &shared::nodegroups(opts)));
        }
        // Match errors of invalid sections are already reported.
        if top.errors.is_empty() {
            top.errors = report;
        }
        top
    }

    /// Adds SLS files by environment, each once, behind those of the top file or before them.
    pub fn add(&mut self, assigned: Map, is_first: bool) {
        for (environment, names) in assigned {
            let names: Vec<String> = names.as_list().unwrap_or_default().iter().map(ToString::to_string).collect();
            let have = self.names_of(&environment.to_string());
            let (first, second) = if is_first { (names, have.clone()) } else { (have.clone(), names) };
            *have = first;
            for name in second {
                if !have.contains(&name) {
                    have.push(name);
                }
            }
        }
    }

    /// Collects the SLS files for this minion, and returns the errors of matching.
    fn matching(
        &mut self,
        sections: &Sections,
        only: Option<&str>,
        facts: &impl TargetFacts,
        nodegroups: &Map,
        exists: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut errors = Vec::new();
        for (environment, targets) in sections {
            if only.is_some_and(|only| only != environment) {
                continue;
            }
            for (expression, items) in targets {
                let items = items.as_list().unwrap_or(std::slice::from_ref(items));
                // The last one counts.
                let kind = items.iter().rev().find_map(|item| item.get("match"));
                let kind = kind.map_or("compound".to_owned(), ToString::to_string);
                match matches_target(&expression.to_string(), &kind, facts, nodegroups) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        errors.push(error.to_string());
                        continue;
                    }
                }
                self.names_of(environment);
                for item in items {
                    match item {
                        Value::Str(sls) => self.names_of(environment).push(sls.clone()),
                        // `{environment: sls}`
                        Value::Map(map) => {
                            let other = map.last().filter(|(name, _)| exists(&name.to_string()));
                            if let Some((other, sls)) = other {
                                self.names_of(&other.to_string()).push(sls.to_string());
                            }
                        }
                        Value::List(_) => {}
                        odd => errors.push(format!(
                            "Malformed topfile: {odd} under matcher {} in saltenv '{environment}' is no name of an SLS",
                            python::repr(expression)
                        )),
                    }
                }
            }
        }
        errors
    }

    fn names_of(&mut self, environment: &str) -> &mut Vec<String> {
        let index = self.matches.iter().position(|(have, _)| have == environment).unwrap_or_else(|| {
            self.matches.push((environment.to_owned(), Vec::new()));
            self.matches.len() - 1
        });
        &mut self.matches[index].1
    }
}

/// The maximum number of targets in a message.
const SHOWN: usize = 10;

/// Returns the message about top files none of whose targets matches this minion.
fn unmatched(state_top: &str, sections: &Sections, id: &str, nodegroups: &Map) -> String {
    let targets: Vec<String> = sections.values().flat_map(IndexMap::keys).map(|target| format!("'{target}'")).collect();
    let more = if targets.len() > SHOWN { format!(" and {} more", targets.len() - SHOWN) } else { String::new() };
    let listing = targets.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let wrong = sections.values().flatten().filter_map(|(target, items)| {
        let items = items.as_list().unwrap_or_default();
        let kind = items.iter().rev().find_map(|item| item.get("match")).map(ToString::to_string);
        let target = target.to_string();
        senseless(&target, kind.as_deref().unwrap_or("compound"), nodegroups).or_else(|| {
            // Without a kind it is a compound target, of which this is a glob of ids.
            let is_pair = kind.is_none() && target.contains(':') && !target.contains(['@', ' ', '/']);
            is_pair
                .then(|| format!("'{target}' is taken for ids: below it write '- match: grain', or write 'G@{target}'"))
        })
    });
    let mut message = format!("No target of the top file '{state_top}' matches the minion '{id}': {listing}{more}");
    for wrong in wrong.take(SHOWN) {
        message += &format!("\n  hint: {wrong}");
    }
    message
}

/// Returns the environments of `env_order` in its order, if it lists any; otherwise all, the base environment first.
fn ordered(mut environments: Vec<String>, mut env_order: Vec<String>) -> Vec<String> {
    if env_order.is_empty() {
        environments.sort_by_key(|environment| environment != "base");
        return environments;
    }
    env_order.retain(|environment| environments.contains(environment));
    env_order
}

/// The reason why a top file is ignored.
enum TopProblem {
    /// It cannot be rendered.
    NotRendered(SlsError),
    /// It is not a mapping.
    NotAMapping(String),
}

/// Reads the top file of an environment, and the top files it includes, each once.
fn all_of(source: &Source, state_top: &str, saltenv: &str, contents: &mut Vec<Map>) -> Result<(), TopProblem> {
    let mapping = |rendered: Result<Option<Value>, SlsError>, name: &str| match rendered {
        Err(error) => Err(TopProblem::NotRendered(error)),
        Ok(Some(Value::Map(top))) => Ok(Some(top)),
        Ok(Some(odd)) if odd.is_truthy() => {
            let message =
                format!("The top file {name} of saltenv {saltenv} renders to {}, not to a dict", odd.type_name());
            Err(TopProblem::NotAMapping(message))
        }
        Ok(_) => Ok(None),
    };
    let Some(top) = mapping(source.render_file(state_top, "top", saltenv), state_top)? else { return Ok(()) };
    let included = top.get("include").and_then(Value::as_list).unwrap_or_default().to_vec();
    contents.push(top);
    let available = if included.is_empty() { Vec::new() } else { source.available(saltenv) };
    let mut seen: Vec<&String> = Vec::new();
    for item in &included {
        let Value::Str(pattern) = item else {
            let message =
                format!("The include of {item} in the top file of saltenv {saltenv} is not formed as a string");
            return Err(TopProblem::NotAMapping(message));
        };
        for name in available.iter().filter(|name| fnmatch(pattern, name)) {
            if !seen.contains(&name) {
                contents.extend(mapping(source.render(name, saltenv), name)?);
                seen.push(name);
            }
        }
    }
    Ok(())
}

/// Merges sections, and returns their errors. With `together`, the entries of a target are merged; otherwise the later
/// one wins. `counts` is called with the environment of a top file, the section, and whether the base environment's top
/// file has that section.
fn merged(
    tops: &[(String, Vec<Map>)],
    together: bool,
    counts: impl Fn(&str, &str, bool) -> bool,
) -> (Sections, Vec<String>) {
    let is_section = |name: &&Value| name.as_str() != Some("include");
    let in_base = tops.iter().filter(|(environment, _)| environment == "base").flat_map(|(_, tops)| tops);
    let base: Vec<String> = in_base.flat_map(Map::keys).filter(is_section).map(ToString::to_string).collect();
    let (mut sections, mut errors) = (Sections::new(), Vec::new());
    for (environment, top) in tops.iter().flat_map(|(environment, tops)| tops.iter().map(move |top| (environment, top)))
    {
        for (key, targets) in top.iter().filter(|(key, _)| is_section(key)) {
            let name = key.to_string();
            if !counts(environment, &name, base.contains(&name)) {
                continue;
            }
            let Value::Map(targets) = targets else {
                errors.push(format!("The top file matches for saltenv {name} are not formatted as a dict"));
                continue;
            };
            if key.as_str().is_none() {
                errors.push(format!("Environment {name} in top file is not formed as a string"));
            }
            let section = sections.entry(name).or_default();
            for (target, items) in targets {
                match (section.get_mut(target), items) {
                    (Some(Value::List(have)), Value::List(more)) if together => *have = both(have, more),
                    (_, items) => _ = section.insert(target.clone(), items.clone()),
                }
            }
        }
    }
    (sections, errors)
}

/// Merges the entries of a target from two top files: the last mapping, which may set the match type, and then the
/// names, those of the second file without duplicates.
fn both(one: &[Value], other: &[Value]) -> Vec<Value> {
    let mapping = |items: &[Value]| items.iter().rev().find(|item| item.as_map().is_some()).cloned();
    let names = |items: &[Value]| items.iter().filter(|item| item.as_str().is_some()).cloned().collect::<Vec<_>>();
    let mut all: Vec<Value> = mapping(other).or_else(|| mapping(one)).into_iter().chain(names(one)).collect();
    for name in names(other) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Checks the sections; errors are in Salt's wording.
fn verify(sections: &Sections, errors: &mut Vec<String>) {
    for (saltenv, targets) in sections {
        if saltenv.is_empty() {
            errors.push("Empty saltenv statement in top file".to_owned());
        }
        for (target, items) in targets {
            let Some(items) = items.as_list() else {
                // Mappings keep their order, and are named OrderedDict in errors.
                let got = if items.as_map().is_some() { "OrderedDict" } else { items.type_name() };
                errors.push(format!(
                    "Malformed topfile: state declarations for matcher {} in saltenv '{saltenv}' are not formed as a list (got {got})",
                    python::repr(target),
                ));
                continue;
            };
            for item in items {
                match item {
                    Value::Map(map) => {
                        for value in map.values().filter(|value| !value.is_truthy()) {
                            let item = python::ordered_str(item);
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
}
