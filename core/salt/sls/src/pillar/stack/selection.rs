//! The configuration files of a stack: paths, and mappings that select paths by a value of the pillar, the grains or the
//! options, such as `grains:os: {Debian: /srv/stack/debian.cfg}`.

use std::path::PathBuf;

use brine_config::ANY_ENVIRONMENT;
use brine_value::{Map, Value};
use brine_yaml::entry_at;

use super::super::external::Call;

/// Returns the paths of the configuration files for a minion.
///
/// # Errors
/// An invalid argument, or an environment that cannot be part of a path.
pub(super) fn files(call: &Call<'_>, opts: &Map) -> Result<Vec<PathBuf>, String> {
    let mut files = call.args.positional.iter().map(path).collect::<Result<Vec<_>, _>>()?;
    let named = [call.request.pillarenv, call.request.saltenv];
    let environment = named.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("base");
    for (matcher, choices) in &call.args.keyword {
        let matcher = matcher.to_string();
        let (source, key) = matcher.split_once(':').ok_or_else(|| {
            format!("the matcher '{matcher}' is invalid: expected pillar, grains or opts, a colon and a path")
        })?;
        let map = match source {
            "pillar" => call.pillar,
            "grains" => &**call.request.grains,
            "opts" => opts,
            other => {
                return Err(format!("Unknown traverse option \"{other}\", should be one of pillar, grains, opts"));
            }
        };
        let Value::Map(choices) = choices else {
            return Err(format!("'{matcher}' is invalid: expected a mapping of values to files, got {choices}"));
        };
        let value = entry_at(map, key, ":").cloned().unwrap_or_default();
        if matches!(value, Value::List(_) | Value::Map(_)) {
            return Err(format!("the value of '{matcher}' is a {}: only a scalar selects files", value.type_name()));
        }
        let is_chosen = |(choice, _): &(&Value, &Value)| match choice.as_str() {
            Some(ANY_ENVIRONMENT) => value.as_str() == Some(environment),
            _ => **choice == value,
        };
        // As in Salt, the last one wins if the environment is named as well.
        let chosen = match choices.iter().rfind(is_chosen) {
            Some((_, Value::List(paths))) => paths.iter().map(path).collect::<Result<Vec<_>, _>>()?,
            Some((_, one)) => vec![path(one)?],
            None => Vec::new(),
        };
        for file in chosen {
            files.push(if file.contains(ANY_ENVIRONMENT) { in_environment(&file, environment)? } else { file });
        }
    }
    Ok(files.into_iter().map(PathBuf::from).collect())
}

fn path(value: &Value) -> Result<String, String> {
    match value {
        Value::Str(path) => Ok(path.clone()),
        other => Err(format!("a configuration file is invalid: expected a path, got {}", other.type_name())),
    }
}

/// Inserts the environment into a path. Minions name it, so it must not lead elsewhere.
fn in_environment(path: &str, environment: &str) -> Result<String, String> {
    if environment.contains(['/', '\0']) || matches!(environment, "." | "..") {
        return Err(format!("the environment '{environment}' cannot be part of a path"));
    }
    Ok(path.replace(ANY_ENVIRONMENT, environment))
}
