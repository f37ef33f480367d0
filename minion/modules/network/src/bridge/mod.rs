//! `bridge`: network bridges and their interfaces, by the program `brctl` of bridge-utils.

#[cfg(test)]
mod tests;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `bridge`.
pub static FUNCTIONS: Functions<Context> =
    registry!("bridge", [show, list_, interfaces, find_interfaces, add, delete, addif, delif, stp]);

/// Return the bridges by name, or a single one: its id, whether it uses the spanning tree protocol, and its interfaces.
///
/// CLI Example:
///
///     salt '*' bridge.show
///     salt '*' bridge.show br0
#[function]
pub fn show(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
) -> CallResult {
    Ok(match br.filter(|br| !br.is_empty()) {
        Some(br) => bridge(context, &br)?.into(),
        None => bridges(context, None)?.into(),
    })
}

/// Return the names of the bridges; None if there are none.
///
/// CLI Example:
///
///     salt '*' bridge.list
#[function(name = "list")]
pub fn list_(context: &Context) -> CallResult {
    let bridges = bridges(context, None)?;
    Ok(if bridges.is_empty() { Value::Nil } else { bridges.into_keys().collect() })
}

/// Return the interfaces of a bridge; None if there is no such bridge.
///
/// CLI Example:
///
///     salt '*' bridge.interfaces br0
#[function]
pub fn interfaces(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
) -> CallResult {
    let Some(br) = br.filter(|br| !br.is_empty()) else { return Ok(Value::Nil) };
    let Some(mut bridge) = bridge(context, &br)? else { return Ok(Value::Nil) };
    Ok(bridge.swap_remove("interfaces").unwrap_or_else(|| Value::List(Vec::new())))
}

/// Return the bridges of interfaces, by interface; None if there are no bridges.
///
/// CLI Example:
///
///     salt '*' bridge.find_interfaces eth0 eth1
#[function]
pub fn find_interfaces(
    context: &Context,
    /// Names of interfaces.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let bridges = bridges(context, None)?;
    if bridges.is_empty() {
        return Ok(Value::Nil);
    }
    let mut names = Map::new();
    for interface in args {
        let has = |about: &Value| {
            about.get("interfaces").and_then(Value::as_list).is_some_and(|all| all.contains(&interface))
        };
        if let Some((name, _)) = bridges.iter().rfind(|(_, about)| has(about)) {
            names.insert(interface, name.clone());
        }
    }
    Ok(names.into())
}

/// Create a bridge, and return the messages of `brctl`; none after success.
///
/// CLI Example:
///
///     salt '*' bridge.add br0
#[function]
pub fn add(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
) -> CallResult {
    change(context, &["addbr"], &[("br", br)])
}

/// Delete a bridge, which must be down, and return the messages of `brctl`.
///
/// CLI Example:
///
///     salt '*' bridge.delete br0
#[function]
pub fn delete(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
) -> CallResult {
    change(context, &["delbr"], &[("br", br)])
}

/// Add an interface to a bridge, and return the messages of `brctl`.
///
/// CLI Example:
///
///     salt '*' bridge.addif br0 eth0
#[function]
pub fn addif(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
    /// Name of the interface.
    iface: Option<String>,
) -> CallResult {
    change(context, &["addif"], &[("br", br), ("iface", iface)])
}

/// Remove an interface from a bridge, and return the messages of `brctl`.
///
/// CLI Example:
///
///     salt '*' bridge.delif br0 eth0
#[function]
pub fn delif(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
    /// Name of the interface.
    iface: Option<String>,
) -> CallResult {
    change(context, &["delif"], &[("br", br), ("iface", iface)])
}

/// Enable or disable the spanning tree protocol of a bridge, and return the messages of `brctl`.
///
/// CLI Example:
///
///     salt '*' bridge.stp br0 enable
#[function]
pub fn stp(
    context: &Context,
    /// Name of the bridge.
    br: Option<String>,
    /// `enable` or `disable`.
    #[default("disable".into())]
    state: String,
    /// Without effect: only systems of the BSD family need it.
    iface: Option<String>,
) -> CallResult {
    _ = iface;
    let state = match &*state {
        "enable" => "on",
        "disable" => "off",
        _ => return Err(CallError::Execution(format!("state is invalid: expected enable or disable, got '{state}'"))),
    };
    let bridge = ("br", br);
    change(context, &["stp"], &[bridge, ("state", Some(state.to_owned()))])
}

/// Runs a command of `brctl` with these arguments, and returns its messages.
fn change(context: &Context, command: &[&str], args: &[(&str, Option<String>)]) -> CallResult {
    let mut words = vec!["brctl".to_owned()];
    words.extend(command.iter().map(|word| (*word).to_owned()));
    for (name, value) in args {
        let value = value.as_deref().filter(|value| !value.is_empty());
        words.push(argument(value.ok_or_else(|| CallError::Execution(format!("the argument {name} is missing")))?)?);
    }
    let output = context.run_program(&Program { merge: true, ..program(&words, &[]) }).map_err(CallError::execution)?;
    context.set_retcode(output.retcode);
    Ok(output.stdout.into())
}

/// Returns a bridge; `None` if there is none of this name.
fn bridge(context: &Context, name: &str) -> Result<Option<Map>, CallError> {
    Ok(bridges(context, Some(name))?.get(name).and_then(Value::as_map).cloned())
}

/// Returns the bridges by name, or only this one.
fn bridges(context: &Context, name: Option<&str>) -> Result<Map, CallError> {
    let mut words = vec!["brctl".to_owned(), "show".to_owned()];
    words.extend(name.map(argument).transpose()?);
    let output = run(context, &words, &[])?;
    if output.retcode != 0 {
        tracing::warn!(jid = context.job.jid, "brctl show failed: {}", output.stderr);
        return Ok(Map::new());
    }
    Ok(parsed(&output.stdout))
}

/// Parses the table of `brctl show`: a bridge with several interfaces continues in lines with one column.
fn parsed(output: &str) -> Map {
    let mut bridges: Vec<(&str, Map)> = Vec::new();
    for line in output.lines().filter(|line| !line.starts_with("bridge name")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let interface = match words[..] {
            [name, id, stp, ref more @ ..] => {
                bridges.push((name, map! {"id" => id, "stp" => stp}));
                more.first().copied()
            }
            [interface] => Some(interface),
            _ => None,
        };
        let (Some(interface), Some((_, about))) = (interface, bridges.last_mut()) else { continue };
        if let Value::List(interfaces) = about.entry("interfaces".into()).or_insert_with(|| Value::List(Vec::new())) {
            interfaces.push(interface.into());
        }
    }
    bridges.into_iter().map(|(name, about)| (name.into(), about.into())).collect()
}
