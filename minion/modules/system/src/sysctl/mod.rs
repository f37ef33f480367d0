//! `sysctl`: kernel parameters, current ones and those set at boot.

pub(crate) mod state;

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::{argument, program};
use brine_system::files::{self, FileError};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::service::manager::has_systemd;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sysctl`.
pub static FUNCTIONS: Functions<Context> = registry!("sysctl", [default_config, show, get, assign, persist]);

/// Return the path of the file in which parameters are stored.
///
/// CLI Example:
///
///     salt '*' sysctl.default_config
#[function]
pub fn default_config(_context: &Context) -> CallResult {
    Ok(default_file().into())
}

/// Return all parameters of a file, or the current ones.
///
/// CLI Example:
///
///     salt '*' sysctl.show
#[function]
pub fn show(
    context: &Context,
    /// Path of the file; the running kernel by default.
    #[default(false.into())]
    config_file: Value,
) -> CallResult {
    if config_file.is_truthy() {
        let path = config_file.to_string();
        if !Path::new(&path).exists() {
            return Ok(Vec::<Value>::new().into());
        }
        let Ok(text) = files::read_to_string(&path) else { return Ok(Value::Nil) };
        return Ok(configured(&text).map(|(name, value)| (name.into(), value.into())).collect::<Map>().into());
    }
    let output = run(context, &["sysctl".into(), "-a".into()], &[])?;
    let pairs = output.stdout.lines().filter_map(|line| line.split_once(" = "));
    Ok(pairs.map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
}

/// Return the current value of a parameter.
///
/// CLI Example:
///
///     salt '*' sysctl.get net.ipv4.ip_forward
#[function]
pub fn get(
    context: &Context,
    /// Name of the parameter, such as `net.ipv4.ip_forward`.
    name: String,
) -> CallResult {
    Ok(current(context, &name)?.into())
}

/// Set the value of a parameter until the next boot.
///
/// CLI Example:
///
///     salt '*' sysctl.assign net.ipv4.ip_forward 1
#[function]
pub fn assign(
    context: &Context,
    /// Name of the parameter, such as `net.ipv4.ip_forward`.
    name: String,
    /// Value of the parameter.
    value: String,
) -> CallResult {
    let (name, value) = set(context, &name, &value)?;
    Ok(map! {name => value}.into())
}

/// Set the value of a parameter, and store it in a file.
///
/// CLI Example:
///
///     salt '*' sysctl.persist net.ipv4.ip_forward 1
#[function]
pub fn persist(
    context: &Context,
    /// Name of the parameter, such as `net.ipv4.ip_forward`.
    name: String,
    /// Value of the parameter.
    value: String,
    /// File that sets the parameter at boot.
    config: Option<String>,
) -> CallResult {
    let config = config.unwrap_or_else(|| default_file().into());
    Ok(if set_and_save(context, &name, &value, &config)? { "Updated" } else { "Already set" }.into())
}

/// Returns the default file for parameters that are set at boot.
pub fn default_file() -> &'static str {
    if has_systemd() { "/etc/sysctl.d/99-salt.conf" } else { "/etc/sysctl.conf" }
}

/// Parses the parameters of a file.
pub fn configured(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.trim_end(), value.trim_start()))
}

/// Returns the current value of a parameter; for an unknown one, the message of `sysctl`.
pub fn current(context: &Context, name: &str) -> Result<String, CallError> {
    let mut program = program(&["sysctl".into(), "-n".into(), argument(name)?], &[]);
    program.merge = true;
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
    }
    Ok(output.stdout)
}

fn set(context: &Context, name: &str, value: &str) -> Result<(String, String), CallError> {
    let swapped = name.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    if !Path::new("/proc/sys").join(swapped.collect::<String>()).exists() {
        return Err(CallError::Execution(format!("sysctl {name} does not exist")));
    }
    let output = run(context, &["sysctl".into(), "-w".into(), argument(&format!("{name}={value}"))?], &[])?;
    let report = output.stdout.split_once('=').map(|(name, value)| (name.trim_end(), value.trim_start()));
    if report == Some((name, value)) && !output.stderr.contains("Invalid argument") {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let error = if output.retcode != 0 && !output.stderr.is_empty() { output.stderr } else { output.stdout };
    Err(CallError::Execution(format!("sysctl -w failed: {error}")))
}

/// Whether two values are equal, apart from whitespace.
fn equal_values(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// Sets a parameter now and in a file, and returns whether anything changed.
pub fn set_and_save(context: &Context, name: &str, value: &str, config: &str) -> Result<bool, CallError> {
    let path = Path::new(config);
    let text = files::read_if_exists(path).map_err(CallError::execution)?;
    if text.is_none() {
        let directory = path.parent().unwrap_or(Path::new("/"));
        user_files::create_dir_all(directory)
            .map_err(FileError::at("create", directory))
            .map_err(CallError::execution)?;
    }
    let text = text.unwrap_or_else(|| "#\n# Kernel sysctl configuration\n#\n".into());
    match with_parameter(&text, name, value) {
        None if equal_values(&current(context, name)?, value) => return Ok(false),
        None => {}
        Some(text) => files::rewrite(path, text.as_bytes(), 0o644).map_err(CallError::execution)?,
    }
    set(context, name, value)?;
    Ok(true)
}

/// Returns the text with a parameter set; `None` if it is set already.
fn with_parameter(text: &str, name: &str, value: &str) -> Option<String> {
    let (mut edited, mut exists) = (String::new(), false);
    for line in text.lines() {
        match configured(line).next().filter(|(have, _)| *have == name) {
            Some((_, have)) if equal_values(have, value) => return None,
            Some(_) => {
                exists = true;
                edited = format!("{edited}{name} = {value}\n");
            }
            None => edited = format!("{edited}{line}\n"),
        }
    }
    Some(if exists { edited } else { format!("{edited}{name} = {value}\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_set_in_place() {
        let text = "# a = 1\na=1\n b  =  1 2\n\nlast = x";
        let set = |name: &str, value: &str| with_parameter(text, name, value);
        assert_eq!(set("a", "1"), None);
        assert_eq!(set("b", "1\t2"), None);
        assert_eq!(set("a", "2").unwrap(), "# a = 1\na = 2\n b  =  1 2\n\nlast = x\n");
        assert_eq!(set("c", "3").unwrap(), format!("{text}\nc = 3\n"));
        assert_eq!(configured(text).collect::<Vec<_>>(), [("a", "1"), ("b", "1 2"), ("last", "x")]);
    }
}
