//! `selinux`: states of SELinux.

#[cfg(test)]
mod tests;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::policies::described;

/// State functions of `selinux`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "selinux",
    [
        mode,
        boolean,
        module,
        module_install,
        module_remove,
        fcontext_policy_present,
        fcontext_policy_absent,
        fcontext_policy_applied,
        port_policy_present,
        port_policy_absent
    ]
);

/// Ensure that SELinux is in a mode, now and at boot: Enforcing, Permissive or Disabled.
///
/// SLS Example:
///
///     Enforcing:
///       selinux.mode: []
#[function]
pub fn mode(
    context: &StateContext,
    /// Mode: `Enforcing`, `Permissive` or `Disabled`.
    name: String,
) -> CallResult {
    let desired = match name.to_lowercase().as_str() {
        text if text.starts_with('e') || text == "1" || text == "on" || text == "true" => "Enforcing",
        text if text.starts_with('p') || text == "0" || text == "off" || text == "false" => "Permissive",
        text if text.starts_with('d') => "Disabled",
        _ => return Ok(StateReturn::failed(&name, format!("{name} is not an accepted mode")).into()),
    };
    let configured = || call(context, "getconfig", [], map! {});
    let (mut current, at_boot) = (call(context, "getenforce", [], map! {})?, configured()?);
    // Report the mode that differs: the one at boot if the current mode is as desired.
    if current.as_str() == Some(desired) && at_boot.as_str() != Some(desired) {
        current = at_boot;
    }
    if current.as_str() == Some(desired) {
        return Ok(StateReturn::ok(&name, format!("SELinux is already in {desired} mode")).into());
    }
    if context.test {
        let report = StateReturn::predicted(&name, format!("SELinux mode is set to be changed to {desired}"));
        return Ok(report.with_changes(map! {"old" => current, "new" => desired}).into());
    }
    let now = call(context, "setenforce", [desired.into()], map! {})?;
    let is_set = now.as_str() == Some(desired) || (desired == "Disabled" && configured()?.as_str() == Some(desired));
    if !is_set {
        return Ok(StateReturn::failed(&name, format!("Failed to set SELinux to {desired} mode")).into());
    }
    let report = StateReturn::ok(&name, format!("SELinux has been set to {desired} mode"));
    Ok(report.with_changes(map! {"old" => current, "new" => now}).into())
}

/// Ensure that a boolean, or several (`booleans`, a mapping, or a list of names and mappings), have this value, and with
/// `persist` this default.
///
/// SLS Example:
///
///     httpd_can_network_connect:
///       selinux.boolean:
///         - value: True
///         - persist: True
#[function]
pub fn boolean(
    context: &StateContext,
    /// Name of the boolean, unless `booleans` are given.
    name: String,
    /// Whether the boolean is on.
    #[default]
    value: Value,
    /// Several booleans: a mapping, or a list of names and mappings.
    #[default]
    booleans: Value,
    /// Whether the value is the default at boot, too.
    #[default(false)]
    persist: bool,
) -> CallResult {
    let mut settings = Map::new();
    match &booleans {
        Value::Map(pairs) => settings.extend(pairs.clone()),
        Value::List(list) => {
            for one in list {
                match one {
                    Value::Map(pairs) => settings.extend(pairs.clone()),
                    one => _ = settings.insert(one.clone(), value.clone()),
                }
            }
        }
        _ => _ = settings.insert(name.as_str().into(), value),
    }
    let current = call(context, "list_sebool", [], map! {})?;
    let (mut correct, mut pairs, mut changes) = (Vec::new(), Map::new(), Map::new());
    for (boolean, value) in &settings {
        let Some(about) = current.get(&boolean.to_string()) else {
            return Ok(StateReturn::failed(&name, format!("Boolean {boolean} is not available")).into());
        };
        let Some(state) = switch(value, &["1", "on", "yes", "true"], &["0", "off", "no", "false"]) else {
            let comment = format!("{value} is not a valid value for the boolean {boolean}");
            return Ok(StateReturn::failed(&name, comment).into());
        };
        let new = if state { "on" } else { "off" };
        let field = |key: &str| about.get(key).cloned().unwrap_or_default();
        let (now, default) = (field("State"), field("Default"));
        if now.as_str() == Some(new) && (!persist || default.as_str() == Some(new)) {
            correct.push(boolean.to_string());
            continue;
        }
        pairs.insert(boolean.clone(), new.into());
        let change = if persist {
            map! {"old" => Value::List(vec![now, default]), "new" => Value::List(vec![new.into(), new.into()])}
        } else {
            map! {"old" => now, "new" => new}
        };
        changes.insert(boolean.clone(), change.into());
    }
    let mut names: Vec<String> = pairs.keys().map(ToString::to_string).collect();
    names.sort();
    correct.sort();
    let mut sentences = Vec::new();
    if !correct.is_empty() {
        sentences.push(format!("The following booleans were in the correct state: {}", correct.join(", ")));
    }
    if pairs.is_empty() {
        return Ok(StateReturn::ok(&name, sentences.join("\n")).into());
    }
    if context.test {
        sentences.push(format!("The following booleans would be changed: {}", names.join(", ")));
        return Ok(StateReturn::predicted(&name, sentences.join("\n")).with_changes(changes).into());
    }
    if !call(context, "setsebools", [pairs.into(), persist.into()], map! {})?.is_truthy() {
        let comment = format!("Failed to set the following booleans: {}", names.join(", "));
        return Ok(StateReturn::failed(&name, comment).into());
    }
    sentences.push(format!("The following booleans have been changed: {}", names.join(", ")));
    Ok(StateReturn::ok(&name, sentences.join("\n")).with_changes(changes).into())
}

/// Ensure that a module is enabled or disabled; with `install` it is installed before, from `source` or the name, with
/// `remove` it is removed instead.
///
/// SLS Example:
///
///     app:
///       selinux.module:
///         - install: True
///         - source: salt://selinux/app.pp
#[function]
pub fn module(
    context: &StateContext,
    /// Name of the module, or the path of its file with `install`.
    name: String,
    /// `Enabled` or `Disabled`.
    #[default("Enabled".into())]
    module_state: Value,
    /// `any`; another version is a failure, as versions of modules cannot be read.
    #[default("any".into())]
    version: String,
    /// Whether the module is installed first.
    #[default(false)]
    install: bool,
    /// Whether the module is removed instead.
    #[default(false)]
    remove: bool,
    /// Path or URL of the module's file for `install`.
    source: Option<String>,
) -> CallResult {
    if install && remove {
        return Ok(StateReturn::failed(&name, "Cannot install and remove at the same time").into());
    }
    if remove {
        return module_remove(context, name);
    }
    if install && !context.test {
        let report = module_install(context, source.unwrap_or_else(|| name.clone()))?;
        if report.get("result") != Some(&true.into()) {
            return Ok(report);
        }
    }
    let about = call(context, "getsemod", [name.as_str().into()], map! {})?;
    if !about.is_truthy() {
        return Ok(StateReturn::failed(&name, format!("Module {name} is not available")).into());
    }
    let on = ["1", "on", "yes", "true", "enabled"];
    let off = ["0", "off", "no", "false", "disabled"];
    let Some(enable) = switch(&module_state, &on, &off) else {
        let comment = format!("{module_state} is not a valid state for the {name} module.");
        return Ok(StateReturn::failed(&name, comment).into());
    };
    if version != "any" {
        let comment = format!(
            "Module version is None and does not match the desired version of {version} or you are using semodule >= 2.4"
        );
        return Ok(StateReturn::failed(&name, comment).into());
    }
    if about.get("Enabled").is_some_and(Value::is_truthy) == enable {
        return Ok(StateReturn::ok(&name, format!("Module {name} is in the desired state")).into());
    }
    if context.test {
        return Ok(
            StateReturn::predicted(&name, format!("Module {name} is set to be toggled to {module_state}")).into()
        );
    }
    let state = if enable { "enabled" } else { "disabled" };
    if !call(context, "setsemod", [name.as_str().into(), state.into()], map! {})?.is_truthy() {
        return Ok(StateReturn::failed(&name, format!("Failed to set the Module {name} to {module_state}")).into());
    }
    let changes = map! {"old" => if enable { "disabled" } else { "enabled" }, "new" => state};
    Ok(StateReturn::ok(&name, format!("Module {name} has been set to {module_state}")).with_changes(changes).into())
}

/// Install a module from a file, a path or a URL such as `salt://x.pp`.
///
/// SLS Example:
///
///     salt://selinux/app.pp:
///       selinux.module_install: []
#[function]
pub fn module_install(
    context: &StateContext,
    /// Path or URL of the file.
    name: String,
) -> CallResult {
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Module {name} would be installed")).into());
    }
    Ok(if call(context, "install_semod", [name.as_str().into()], map! {})?.is_truthy() {
        StateReturn::ok(&name, format!("Module {name} has been installed"))
    } else {
        StateReturn::failed(&name, format!("Failed to install module {name}"))
    }
    .into())
}

/// Remove a module.
///
/// SLS Example:
///
///     app:
///       selinux.module_remove: []
#[function]
pub fn module_remove(
    context: &StateContext,
    /// Name of the module.
    name: String,
) -> CallResult {
    if !call(context, "getsemod", [name.as_str().into()], map! {})?.is_truthy() {
        return Ok(StateReturn::failed(&name, format!("Module {name} is not available")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Module {name} would be removed")).into());
    }
    Ok(if call(context, "remove_semod", [name.as_str().into()], map! {})?.is_truthy() {
        StateReturn::ok(&name, format!("Module {name} has been removed"))
    } else {
        StateReturn::failed(&name, format!("Failed to remove module {name}"))
    }
    .into())
}

/// Ensure that a file specification gives this type to files.
///
/// SLS Example:
///
///     /srv/www(/.*)?:
///       selinux.fcontext_policy_present:
///         - sel_type: httpd_sys_content_t
#[function]
pub fn fcontext_policy_present(
    context: &StateContext,
    /// Regular expression of the paths, such as `/srv/www(/.*)?`.
    name: String,
    /// Type of the context.
    sel_type: String,
    /// Type of the files: `a` for all, `f`, `d`, `c`, `b`, `s`, `l` or `p`.
    #[default("a".into())]
    filetype: String,
    /// User of the context.
    sel_user: Option<String>,
    /// Level of the context.
    sel_level: Option<String>,
) -> CallResult {
    let kind = described(&filetype)?;
    let keyword = map! {
        "name" => name.as_str(), "filetype" => filetype, "sel_type" => sel_type.as_str(), "sel_user" => sel_user,
        "sel_level" => sel_level,
    };
    if call(context, "fcontext_get_policy", [], keyword.clone())?.is_truthy() {
        let comment = format!(
            "SELinux policy for \"{name}\" already present with specified filetype \"{kind}\" and sel_type \"{sel_type}\"."
        );
        return Ok(StateReturn::ok(&name, comment).into());
    }
    let new = map! {name.as_str() => map! {"filetype" => kind, "sel_type" => sel_type}};
    let changes = map! {"old" => Map::new(), "new" => new};
    if context.test {
        return Ok(StateReturn::predicted(&name, "").with_changes(changes).into());
    }
    let report = call(context, "fcontext_add_policy", [], keyword)?;
    if failed(&report) {
        return Ok(StateReturn::failed(&name, format!("Error adding new rule: {report}")).into());
    }
    Ok(StateReturn::ok(&name, "").with_changes(changes).into())
}

/// Ensure that a file specification gives no context to files.
///
/// SLS Example:
///
///     /srv/www(/.*)?:
///       selinux.fcontext_policy_absent: []
#[function]
pub fn fcontext_policy_absent(
    context: &StateContext,
    /// Regular expression of the paths, such as `/srv/www(/.*)?`.
    name: String,
    /// Type of the files: `a` for all, `f`, `d`, `c`, `b`, `s`, `l` or `p`.
    #[default("a".into())]
    filetype: String,
    /// Type of the context.
    sel_type: Option<String>,
    /// User of the context.
    sel_user: Option<String>,
    /// Level of the context.
    sel_level: Option<String>,
) -> CallResult {
    let mut keyword = map! {
        "name" => name.as_str(), "filetype" => filetype.as_str(), "sel_type" => sel_type.clone(),
        "sel_user" => sel_user, "sel_level" => sel_level,
    };
    let current = call(context, "fcontext_get_policy", [], keyword.clone())?;
    if !current.is_truthy() {
        let kind = sel_type.unwrap_or_else(|| "None".into());
        let comment = format!(
            "SELinux policy for \"{name}\" already absent with specified filetype \"{filetype}\" and sel_type \"{kind}\"."
        );
        return Ok(StateReturn::ok(&name, comment).into());
    }
    keyword.insert("sel_type".into(), current.get("sel_type").cloned().unwrap_or_default());
    let changes = map! {"old" => map! {name.as_str() => current}, "new" => Map::new()};
    if context.test {
        return Ok(StateReturn::predicted(&name, "").with_changes(changes).into());
    }
    let report = call(context, "fcontext_delete_policy", [], keyword)?;
    if failed(&report) {
        return Ok(StateReturn::failed(&name, format!("Error removing policy: {report}")).into());
    }
    Ok(StateReturn::ok(&name, "").with_changes(changes).into())
}

/// Ensure that files have the contexts of the policy.
///
/// SLS Example:
///
///     /srv/www:
///       selinux.fcontext_policy_applied:
///         - recursive: True
#[function]
pub fn fcontext_policy_applied(
    context: &StateContext,
    /// Path of the file or directory.
    name: String,
    /// Whether everything below a directory gets its context, too.
    #[default(false)]
    recursive: bool,
) -> CallResult {
    let args = || [name.as_str().into(), recursive.into()];
    if !call(context, "fcontext_policy_is_applied", args(), map! {})?.is_truthy() {
        let comment = format!("SElinux policies are already applied for filespec \"{name}\"");
        return Ok(StateReturn::ok(&name, comment).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "").into());
    }
    let report = call(context, "fcontext_apply_policy", args(), map! {})?;
    if failed(&report) {
        return Ok(StateReturn::failed(&name, report.to_string()).into());
    }
    let changes = report.get("changes").and_then(Value::as_map).cloned().unwrap_or_default();
    Ok(StateReturn::ok(&name, "").with_changes(changes).into())
}

/// Ensure that a port, such as `tcp/8080`, has this type.
///
/// SLS Example:
///
///     tcp/8080:
///       selinux.port_policy_present:
///         - sel_type: http_port_t
#[function]
pub fn port_policy_present(
    context: &StateContext,
    /// Protocol and port, such as `tcp/8080` or `udp/6000-6010`; any name if both are given.
    name: String,
    /// Type of the port.
    sel_type: String,
    /// Protocol: `tcp` or `udp`.
    protocol: Option<String>,
    /// Port, or range of ports.
    port: Option<Value>,
    /// Range of the port.
    sel_range: Option<String>,
) -> CallResult {
    let port_of = |kind: Option<&str>| {
        map! {"name" => name.as_str(), "sel_type" => kind, "protocol" => protocol.clone(), "port" => port.clone()}
    };
    let arguments = || port_of(Some(&sel_type));
    if call(context, "port_get_policy", [], arguments())?.is_truthy() {
        let comment = already(&name, "present", Some(&sel_type), protocol.as_deref(), port.as_ref());
        return Ok(StateReturn::ok(&name, comment).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "").into());
    }
    let old = call(context, "port_get_policy", [], port_of(None))?;
    let mut keyword = arguments();
    keyword.insert("sel_range".into(), sel_range.clone().into());
    let function = if old.is_truthy() { "port_modify_policy" } else { "port_add_policy" };
    let report = call(context, function, [], keyword)?;
    if failed(&report) {
        return Ok(StateReturn::failed(&name, format!("Error adding new policy: {report}")).into());
    }
    let new = call(context, "port_get_policy", [], arguments())?;
    Ok(StateReturn::ok(&name, "").with_changes(map! {"old" => old, "new" => new}).into())
}

/// Ensure that a port, such as `tcp/8080`, has no type of its own, or not this one.
///
/// SLS Example:
///
///     tcp/8080:
///       selinux.port_policy_absent: []
#[function]
pub fn port_policy_absent(
    context: &StateContext,
    /// Protocol and port, such as `tcp/8080` or `udp/6000-6010`; any name if both are given.
    name: String,
    /// Type of the port.
    sel_type: Option<String>,
    /// Protocol: `tcp` or `udp`.
    protocol: Option<String>,
    /// Port, or range of ports.
    port: Option<Value>,
) -> CallResult {
    let mut keyword = map! {
        "name" => name.as_str(), "sel_type" => sel_type.clone(), "protocol" => protocol.clone(), "port" => port.clone(),
    };
    let old = call(context, "port_get_policy", [], keyword.clone())?;
    if !old.is_truthy() {
        let comment = already(&name, "absent", sel_type.as_deref(), protocol.as_deref(), port.as_ref());
        return Ok(StateReturn::ok(&name, comment).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "").into());
    }
    let arguments = keyword.clone();
    keyword.shift_remove("sel_type");
    let report = call(context, "port_delete_policy", [], keyword)?;
    if failed(&report) {
        return Ok(StateReturn::failed(&name, format!("Error deleting policy: {report}")).into());
    }
    let new = call(context, "port_get_policy", [], arguments)?;
    Ok(StateReturn::ok(&name, "").with_changes(map! {"old" => old, "new" => new}).into())
}

fn call<const N: usize>(context: &StateContext, function: &str, positional: [Value; N], keyword: Map) -> CallResult {
    context.call.call(&format!("selinux.{function}"), Args { positional: positional.into(), keyword })
}

fn failed(report: &Value) -> bool {
    report.get("retcode") != Some(&0.into())
}

/// Parses a switch: `true` for the values in `on`, `false` for those in `off`, `None` for others.
fn switch(value: &Value, on: &[&str], off: &[&str]) -> Option<bool> {
    let text = value.to_string().to_lowercase();
    if on.contains(&text.as_str()) { Some(true) } else { off.contains(&text.as_str()).then_some(false) }
}

fn already(name: &str, what: &str, kind: Option<&str>, protocol: Option<&str>, port: Option<&Value>) -> String {
    let (kind, protocol) = (kind.unwrap_or("None"), protocol.unwrap_or("None"));
    let port = port.map_or_else(|| "None".to_owned(), ToString::to_string);
    format!(
        "SELinux policy for \"{name}\" already {what} with specified sel_type \"{kind}\", protocol \"{protocol}\" and port \"{port}\"."
    )
}
