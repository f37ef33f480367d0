//! The id of a minion before its start: `id_function`, `minion_id_caching` and `append_minionid_config_dirs`.

use brine_config::MinionConfig;
use brine_context::{Context, Job, id_of_name, known_id, masterless, minion_id, store_id};
use brine_function::Args;
use brine_ids::{Jid, MinionId};
use brine_value::{Map, Value};

use crate::daemon::MinionError;

/// The origin of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdOrigin {
    /// The configuration or the file `minion_id`, or there is no valid id, which the checks of the start report.
    Configured,
    /// The name of the host, or `id_function`.
    Generated(MinionId),
}

/// Sets the id of the configuration, and the paths that depend on it. Calls `id_function` if there is no other id. Blocks,
/// and must not be called in async code.
///
/// # Errors
/// `id_function` is invalid, names no function, fails or returns no id.
pub fn identify(config: &mut MinionConfig) -> Result<IdOrigin, MinionError> {
    let Ok(id) = known_id(config) else { return Ok(IdOrigin::Configured) };
    if let Some(id) = id {
        config.set_id(id.as_str());
        return Ok(IdOrigin::Configured);
    }
    let id = match called(config)? {
        Some(name) => id_of_name(config, &name)?,
        None => match minion_id(config) {
            Ok(id) => id,
            Err(_) => return Ok(IdOrigin::Configured),
        },
    };
    config.set_id(id.as_str());
    Ok(IdOrigin::Generated(id))
}

/// Stores a generated id in `minion_id`, unless `minion_id_caching` is off. As in Salt, a minion starts even if the file
/// cannot be written. Blocks.
pub fn cache(config: &MinionConfig, origin: &IdOrigin) {
    let IdOrigin::Generated(id) = origin else { return };
    if config.minion_id_caching
        && let Err(error) = store_id(config, id)
    {
        tracing::error!(%id, %error, "storing the id of the minion failed: set the option 'id'");
    }
}

/// Returns the result of `id_function`; `None` without that option.
fn called(config: &MinionConfig) -> Result<Option<String>, MinionError> {
    let Some((fun, keyword)) = function(&config.id_function)? else { return Ok(None) };
    let invalid = |problem: String| MinionError::Invalid(format!("option 'id_function': {problem}"));
    let minion = masterless::without_pillar(config.clone(), brine_modules::MODULES)?;
    let args = Args::keyword(keyword);
    let job = Job::local(&Jid::new(), &fun, &args);
    let returned = Context::new(minion, job.into()).call(&fun, args);
    match returned.map_err(|error| invalid(format!("calling {fun} failed: {error}")))? {
        Value::Str(name) if !name.is_empty() => {
            tracing::info!(function = fun, name, "the id function returned the id");
            Ok(Some(name))
        }
        other => Err(invalid(format!("{fun} must return the id as a string, got {}", other.type_name()))),
    }
}

/// Returns the function of `id_function` and its keyword arguments.
fn function(option: &Value) -> Result<Option<(String, Map)>, MinionError> {
    match option {
        Value::Nil => Ok(None),
        Value::Str(name) if name.is_empty() => Ok(None),
        Value::Str(name) => Ok(Some((name.clone(), Map::new()))),
        // As in Salt, the first entry counts.
        Value::Map(option) => match option.first() {
            None => Ok(None),
            Some((Value::Str(name), Value::Nil)) => Ok(Some((name.clone(), Map::new()))),
            Some((Value::Str(name), Value::Map(keyword))) => Ok(Some((name.clone(), keyword.clone()))),
            Some((name, arguments)) => Err(MinionError::Invalid(format!(
                "option 'id_function' is invalid: expected a mapping of keyword arguments for {name}, got {}",
                arguments.type_name()
            ))),
        },
        other => Err(MinionError::Invalid(format!(
            "option 'id_function' is invalid: expected the name of a function or a mapping of it to its arguments, got {}",
            other.type_name()
        ))),
    }
}

#[cfg(test)]
mod tests;
