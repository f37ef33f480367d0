//! `timezone`: states of the system time zone.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::Map;

/// State functions of `timezone`.
pub static FUNCTIONS: Functions<StateContext> = registry!("timezone", [system]);

/// Ensure that the system has this time zone, and with `utc` that its hardware clock runs in UTC.
///
/// SLS Example:
///
///     Europe/Berlin:
///       timezone.system:
///         - utc: True
#[function]
pub fn system(
    context: &StateContext,
    /// Name of the time zone, such as `Europe/Berlin`.
    name: String,
    /// Whether the hardware clock runs in UTC.
    #[default(true)]
    utc: bool,
) -> CallResult {
    let call = |function: &str, word: &str| context.call.call(function, Args::positional([word.into()]));
    let is_zone = match call("timezone.zone_compare", &name) {
        Ok(same) => same.is_truthy(),
        Err(CallError::Execution(error)) => {
            let comment = format!("Unable to compare desired timezone '{name}' to system timezone: {error}");
            return Ok(StateReturn::failed(&name, comment).into());
        }
        Err(error) => return Err(error),
    };
    let clock = context.call.call("timezone.get_hwclock", Args::default())?;
    let set_clock = utc && clock.as_str() == Some("localtime");
    let mut report = Vec::new();
    if is_zone && !set_clock {
        report.push(format!("Timezone {name} already set"));
        report.extend(utc.then(|| format!("UTC already set to {name}")));
        return Ok(StateReturn::ok(&name, report.join(", ")).into());
    }
    if context.test {
        report.extend((!is_zone).then(|| format!("Timezone {name} needs to be set")));
        report.extend(set_clock.then(|| "UTC needs to be set to True".to_owned()));
        return Ok(StateReturn::predicted(&name, report.join(", ")).into());
    }
    let (mut changes, mut result) = (Map::new(), true);
    if !is_zone {
        let answer = call("timezone.set_zone", &name)?;
        if answer == true.into() {
            changes.insert("timezone".into(), name.as_str().into());
            report.push(format!("Set timezone {name}"));
        } else {
            result = false;
            report.push("Failed to set timezone".into());
        }
    }
    if set_clock {
        if call("timezone.set_hwclock", "UTC")?.is_truthy() {
            changes.insert("utc".into(), true.into());
            report.push("Set UTC to True".into());
        } else {
            result = false;
            report.push("Failed to set UTC to True".into());
        }
    }
    Ok(StateReturn { result: Some(result), changes, ..StateReturn::ok(&name, report.join(", ")) }.into())
}
