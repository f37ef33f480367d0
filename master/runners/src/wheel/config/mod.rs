//! `wheel.config`: the master's options, without secrets, and changes to its configuration files.

use std::fs;
use std::path::{Path, PathBuf};

use brine_config::opts::modules;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files::{self, path_within};
use brine_value::{Map, Value};
use brine_yaml::{Style, dump};

use super::WheelContext;

/// Wheel functions of `config`.
pub static FUNCTIONS: Functions<WheelContext> = registry!("config", [values, apply, update_config]);

/// The text that replaces a secret.
const MASK: &str = "<hidden>";

/// Return all options of the master. Passwords, secrets, tokens and API keys are shown as `<hidden>`, and URLs without
/// a name and password.
#[function(secret)]
pub fn values(context: &WheelContext) -> CallResult {
    Ok(Value::Map(visible(context.host.options())))
}

/// Set an option in the master's configuration file. Other options and comments are left as they are. The master reads
/// its configuration when it starts.
#[function]
pub fn apply(
    context: &WheelContext,
    /// The name of the option.
    key: String,
    /// Its value.
    value: Value,
) -> CallResult {
    if key.is_empty() || key.chars().any(char::is_control) {
        return Err(CallError::execution("the name of the option is invalid: expected a word such as timeout"));
    }
    let path = directory(context)?.join("master");
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    let text = with_option(&text, &key, value).map_err(|error| {
        CallError::execution(format!("changing {} failed: {error}; correct the file first", path.display()))
    })?;
    files::rewrite(&path, text.as_bytes(), 0o600).map_err(CallError::execution)?;
    tracing::info!(option = key, by = context.host.actor(), "an option in the master's configuration file was changed");
    Ok(Value::Nil)
}

/// Write a file into the directory of `default_include` (`master.d`), replacing one of the same name. The master reads
/// its configuration when it starts.
#[function]
pub fn update_config(
    context: &WheelContext,
    /// The name of the file without `.conf`.
    file_name: String,
    /// The options.
    yaml_contents: Map,
) -> CallResult {
    let include = modules::default_include(&context.host.options()).and_then(|patterns| patterns.into_iter().next());
    let include = include.unwrap_or_else(|| "master.d/*.conf".to_owned());
    let drop_ins = directory(context)?.join(Path::new(&include).parent().unwrap_or(Path::new("")));
    let name = format!("{file_name}.conf");
    if file_name.is_empty() || file_name.chars().any(|c| c == '/' || c.is_control()) {
        return Ok("Invalid path".into());
    }
    let failed = |error| CallError::execution(format!("creating {} failed: {error}", drop_ins.display()));
    fs::create_dir_all(&drop_ins).map_err(failed)?;
    let path = path_within(&drop_ins, &name).filter(|path| path.parent() == drop_ins.canonicalize().ok().as_deref());
    let Some(path) = path else { return Ok("Invalid path".into()) };
    let text = dump(&yaml_contents.into(), Style::BLOCK);
    files::rewrite(&path, text.as_bytes(), 0o600).map_err(CallError::execution)?;
    tracing::info!(path = %path.display(), by = context.host.actor(), "a configuration file of the master was written");
    Ok(format!("Wrote {name}").into())
}

fn directory(context: &WheelContext) -> Result<PathBuf, CallError> {
    let directory = context.host.config_dir();
    directory.ok_or_else(|| CallError::execution("the configuration can only be changed through a running master"))
}

/// Returns a configuration file with one option set. The option's lines are replaced in place. If the result would not
/// parse as intended, for example because the file is written in flow style, the whole file is rewritten.
fn with_option(text: &str, key: &str, value: Value) -> Result<String, String> {
    let mut options = match brine_yaml::load(text).map_err(|error| error.to_string())? {
        Value::Map(options) => options,
        Value::Nil => Map::new(),
        other => return Err(format!("expected a mapping, got {}", other.type_name())),
    };
    options.insert(key.into(), value.clone());
    let expected = Value::Map(options);
    let own = dump(&Value::Map(Map::from_iter([(key.into(), value)])), Style::BLOCK);
    let of_option = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let (mut edited, mut replaced, mut within) = (String::new(), false, false);
    for line in text.split_inclusive('\n') {
        let goes_on = within && line.starts_with([' ', '\t', '-']);
        within = goes_on || of_option(line);
        if !within {
            edited.push_str(line);
        } else if !goes_on {
            edited.push_str(&own);
            replaced = true;
        }
    }
    if !replaced {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.push_str(&own);
    }
    let is_right = brine_yaml::load(&edited).is_ok_and(|read| read == expected);
    Ok(if is_right { edited } else { dump(&expected, Style::BLOCK) })
}

/// Returns the options with secrets replaced.
pub(crate) fn visible(options: Map) -> Map {
    options
        .into_iter()
        .map(|(name, value)| {
            let value = if name.as_str().is_some_and(is_secret) { masked(value) } else { without_secrets(value) };
            (name, value)
        })
        .collect()
}

fn without_secrets(value: Value) -> Value {
    match value {
        Value::Map(map) => visible(map).into(),
        Value::List(all) => all.into_iter().map(without_secrets).collect(),
        Value::Str(text) => without_login(&text).map_or(Value::Str(text), Value::from),
        other => other,
    }
}

/// Whether the value of an option with this name is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["secret", "passw", "passphrase"].iter().any(|part| name.contains(part))
        || ["pass", "token", "apikey", "api_key", "access_key", "private_key", "hmac_key"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Replaces secret values. Booleans and unset values are kept.
fn masked(value: Value) -> Value {
    match value {
        Value::Map(map) => map.into_iter().map(|(name, value)| (name, masked(value))).collect::<Map>().into(),
        Value::List(all) => all.into_iter().map(masked).collect(),
        Value::Nil | Value::Bool(_) => value,
        Value::Str(text) if text.is_empty() => Value::Str(text),
        _ => MASK.into(),
    }
}

/// Returns a URL without its user name and password; `None` if it has none.
fn without_login(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (login, _) = authority.rsplit_once('@')?;
    login.contains(':').then(|| format!("{scheme}://{MASK}{}", &rest[login.len()..]))
}

#[cfg(test)]
mod tests;
