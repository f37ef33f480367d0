//! `firewalld`: zones and services of firewalld, with `firewall-cmd`.

mod services;
pub(crate) mod state;
mod zones;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &services::FUNCTIONS, &zones::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `firewalld`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "firewalld",
    [
        version,
        reload_rules,
        default_zone,
        set_default_zone,
        list_zones,
        get_zones,
        get_icmp_types,
        list_all,
        make_permanent
    ]
);

/// Return the version of firewalld.
///
/// CLI Example:
///
///     salt '*' firewalld.version
#[function]
pub fn version(context: &Context) -> CallResult {
    Command::new("--version", None, false).run(context)
}

/// Load the permanent configuration, which replaces the rules that are in effect.
///
/// CLI Example:
///
///     salt '*' firewalld.reload_rules
#[function]
pub fn reload_rules(context: &Context) -> CallResult {
    Command::new("--reload", None, false).run(context)
}

/// Return the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.default_zone
#[function]
pub fn default_zone(context: &Context) -> CallResult {
    Command::new("--get-default-zone", None, false).run(context)
}

/// Set the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.set_default_zone damian
#[function]
pub fn set_default_zone(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
) -> CallResult {
    Command::new(&format!("--set-default-zone={zone}"), None, false).run(context)
}

/// Return all zones with their settings.
///
/// CLI Example:
///
///     salt '*' firewalld.list_zones
#[function]
pub fn list_zones(
    context: &Context,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Ok(settings(&Command::new("--list-all-zones", None, permanent).output(context)?).into())
}

/// Return the names of all zones.
///
/// CLI Example:
///
///     salt '*' firewalld.get_zones
#[function]
pub fn get_zones(
    context: &Context,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--get-zones", None, permanent).words(context)
}

/// Return the names of all ICMP types.
///
/// CLI Example:
///
///     salt '*' firewalld.get_icmp_types
#[function]
pub fn get_icmp_types(
    context: &Context,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--get-icmptypes", None, permanent).words(context)
}

/// Return the settings of a zone, or of the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.list_all
///     salt '*' firewalld.list_all my_zone
#[function]
pub fn list_all(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Ok(settings(&Command::new("--list-all", zone.as_deref(), permanent).output(context)?).into())
}

/// Make the rules that are in effect permanent.
///
/// CLI Example:
///
///     salt '*' firewalld.make_permanent
#[function]
pub fn make_permanent(context: &Context) -> CallResult {
    Command::new("--runtime-to-permanent", None, false).run(context)
}

/// A command line of `firewall-cmd`. Values are passed as `--option=value`, so that none is parsed as an option.
struct Command(Vec<String>);

impl Command {
    /// Creates a command line with an option, on a zone or the default one, and on the permanent or the runtime
    /// configuration.
    fn new(option: &str, zone: Option<&str>, permanent: bool) -> Self {
        let mut words = vec!["firewall-cmd".to_owned()];
        words.extend(zone.filter(|zone| !zone.is_empty()).map(|zone| format!("--zone={zone}")));
        words.push(option.to_owned());
        words.extend(permanent.then(|| "--permanent".to_owned()));
        Command(words)
    }

    fn output(&self, context: &Context) -> Result<String, CallError> {
        let output = run(context, &self.0, &[("LC_ALL", "C")])?;
        if output.retcode != 0 {
            let message = if output.stderr.is_empty() { output.stdout } else { output.stderr };
            return Err(CallError::Execution(format!("firewall-cmd failed: {message}")));
        }
        Ok(output.stdout)
    }

    fn run(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.into())
    }

    fn words(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.split_whitespace().collect())
    }

    fn lines(&self, context: &Context) -> CallResult {
        Ok(self.output(context)?.lines().collect())
    }
}

/// Parses zones with their settings. Each setting is a list, whose first item is on the line of the setting's name.
fn settings(output: &str) -> Map {
    let mut zones = Map::new();
    let mut zone: Option<(Value, Map)> = None;
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            zones.extend(zone.replace((line.trim_end().into(), Map::new())).map(|(name, about)| (name, about.into())));
            continue;
        }
        let Some((_, about)) = &mut zone else { continue };
        match (line.strip_prefix('\t'), line.split_once(':')) {
            (Some(more), _) => {
                if let Some((_, Value::List(values))) = about.last_mut() {
                    values.push(more.trim().into());
                }
            }
            (None, Some((name, value))) => {
                about.insert(name.trim().into(), Value::List(vec![value.trim().into()]));
            }
            (None, None) => {}
        }
    }
    zones.extend(zone.map(|(name, about)| (name, about.into())));
    zones
}

#[cfg(test)]
mod tests;
