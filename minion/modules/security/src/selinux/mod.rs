//! `selinux`: the mode, the booleans and the modules of SELinux, and its policies of files and ports.

mod mode;
mod policies;
pub(crate) mod state;

use brine_context::programs::{run, succeeds};
use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &mode::FUNCTIONS, &policies::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `selinux`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "selinux",
    [getsebool, setsebool, setsebools, list_sebool, getsemod, setsemod, install_semod, remove_semod, list_semod]
);

/// Return the state, the default and the description of a boolean; an empty mapping if there is none.
///
/// CLI Example:
///
///     salt '*' selinux.getsebool virt_use_usb
#[function]
pub fn getsebool(
    context: &Context,
    /// Name of the boolean.
    boolean: String,
) -> CallResult {
    Ok(booleans(context)?.get(&Value::from(boolean)).cloned().unwrap_or_else(Value::map))
}

/// Set a boolean, and with `persist` its default, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' selinux.setsebool virt_use_usb off
#[function]
pub fn setsebool(
    context: &Context,
    /// Name of the boolean.
    boolean: String,
    /// Whether the boolean is on.
    value: Value,
    /// Whether the value is the default at boot, too.
    #[default(false)]
    persist: bool,
) -> CallResult {
    set(context, &map! {boolean => value}, persist)
}

/// Set several booleans, and with `persist` their defaults, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' selinux.setsebools '{virt_use_usb: on, squid_use_tproxy: off}'
#[function]
pub fn setsebools(
    context: &Context,
    /// Booleans and their values, as a mapping.
    pairs: Map,
    /// Whether the value is the default at boot, too.
    #[default(false)]
    persist: bool,
) -> CallResult {
    set(context, &pairs, persist)
}

/// Return all booleans with their states, defaults and descriptions.
///
/// CLI Example:
///
///     salt '*' selinux.list_sebool
#[function]
pub fn list_sebool(context: &Context) -> CallResult {
    Ok(booleans(context)?.into())
}

/// Return whether a module is enabled; an empty mapping if there is none.
///
/// CLI Example:
///
///     salt '*' selinux.getsemod prelude_manager
#[function]
pub fn getsemod(
    context: &Context,
    /// Name of the module.
    module: String,
) -> CallResult {
    Ok(modules(context)?.get(&Value::from(module)).cloned().unwrap_or_else(Value::map))
}

/// Enable or disable a module, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' selinux.setsemod prelude_manager Enabled
#[function]
pub fn setsemod(
    context: &Context,
    /// Name of the module.
    module: String,
    /// `enabled` or `disabled`.
    state: String,
) -> CallResult {
    let flag = match state.to_lowercase().as_str() {
        "enabled" => "--enable",
        "disabled" => "--disable",
        _ => return Err(CallError::Execution(format!("Invalid state {state}"))),
    };
    succeeds(context, &words(&["semodule", flag, &argument(&module)?]))
}

/// Install a module from a file, a path or a URL such as `salt://x.pp`, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' selinux.install_semod salt://module.pp
#[function]
pub fn install_semod(
    context: &Context,
    /// Path of the module's file.
    module_path: String,
) -> CallResult {
    let path = if module_path.starts_with("salt://") {
        let cached = context.call("cp.cache_file", Args::positional([module_path.as_str().into()]))?;
        let missing = || CallError::Execution(format!("{module_path} is not on the master"));
        cached.as_str().filter(|path| !path.is_empty()).ok_or_else(missing)?.to_owned()
    } else {
        module_path
    };
    succeeds(context, &words(&["semodule", "--install", &argument(&path)?]))
}

/// Remove a module, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' selinux.remove_semod module_name
#[function]
pub fn remove_semod(
    context: &Context,
    /// Name of the module.
    module: String,
) -> CallResult {
    succeeds(context, &words(&["semodule", "--remove", &argument(&module)?]))
}

/// Return all modules, each with whether it is enabled. SELinux does not record versions of modules any more.
///
/// CLI Example:
///
///     salt '*' selinux.list_semod
#[function]
pub fn list_semod(context: &Context) -> CallResult {
    Ok(modules(context)?.into())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Runs a program and returns its output; fails unless its exit status is 0.
fn listed(context: &Context, command: &[&str]) -> Result<String, CallError> {
    let output = run(context, &words(command), &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("{} failed: {}", command.join(" "), output.stderr)));
    }
    Ok(output.stdout)
}

fn set(context: &Context, pairs: &Map, persist: bool) -> CallResult {
    let mut command = vec!["setsebool".to_owned()];
    command.extend(persist.then(|| "-P".to_owned()));
    for (name, value) in pairs {
        let value = match value {
            Value::Bool(value) => if *value { "on" } else { "off" }.to_owned(),
            value => value.to_string(),
        };
        command.push(argument(&format!("{name}={value}"))?);
    }
    succeeds(context, &command)
}

/// Parses lines such as `zabbix_can_network             (off  ,  on)  Allow zabbix to can network`.
fn booleans(context: &Context) -> Result<Map, CallError> {
    let row = |line: &str| {
        let (name, rest) = line.split_once('(')?;
        let (values, description) = rest.split_once(')')?;
        let (state, default) = values.split_once(',')?;
        let about = map! {
            "State" => state.trim(), "Default" => default.trim(), "Description" => description.trim(),
        };
        Some((name.trim().into(), about.into()))
    };
    Ok(listed(context, &["semanage", "boolean", "--list"])?.lines().filter_map(row).collect())
}

/// Parses lines such as `100 accountsd       pp disabled`.
fn modules(context: &Context) -> Result<Map, CallError> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let about = map! {"Enabled" => words.len() != 4, "Version" => Value::Nil};
        Some(((*words.get(1)?).into(), about.into()))
    };
    Ok(listed(context, &["semodule", "--list-modules=full"])?.lines().filter_map(row).collect())
}

#[cfg(test)]
mod tests;
