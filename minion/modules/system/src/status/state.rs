//! `status`: states that check the host and change nothing.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

/// State functions of `status`.
pub static FUNCTIONS: Functions<StateContext> = registry!("status", [loadavg, process]);

/// Ensure that a load average (`1-min`, `5-min` or `15-min`) is within limits.
///
/// SLS Example:
///
///     5-min:
///       status.loadavg:
///         - maximum: 4
#[function]
pub fn loadavg(
    context: &StateContext,
    /// Which average: `1-min`, `5-min` or `15-min`.
    name: String,
    /// Largest value.
    maximum: Option<f64>,
    /// Smallest value.
    minimum: Option<f64>,
) -> CallResult {
    let averages = context.call.call("status.loadavg", Args::default())?;
    let Some(load) = averages.get(&name) else {
        let comment = format!("Requested load average {name} not available ");
        return Ok(with_data(StateReturn::failed(&name, comment), Value::Map(map! {})));
    };
    let report = within(&name, load.to_string().parse().unwrap_or_default(), minimum, maximum);
    Ok(with_data(report, load.clone()))
}

/// Ensure that a process runs whose line in `ps` matches this pattern.
///
/// SLS Example:
///
///     nginx:
///       status.process: []
#[function]
pub fn process(
    context: &StateContext,
    /// Pattern of the line in the output of `ps`.
    name: String,
) -> CallResult {
    let pids = context.call.call("status.pid", Args::positional([name.as_str().into()]))?;
    Ok(if pids.is_truthy() {
        with_data(StateReturn::ok(&name, format!("Process signature \"{name}\" was found ")), pids)
    } else {
        let comment = format!("Process signature \"{name}\" not found ");
        with_data(StateReturn::failed(&name, comment), Value::Map(map! {}))
    })
}

fn with_data(mut report: StateReturn, data: Value) -> Value {
    report.more.insert("data".into(), data);
    report.into()
}

fn within(name: &str, load: f64, minimum: Option<f64>, maximum: Option<f64>) -> StateReturn {
    // As in Salt, a limit of 0 counts as unset.
    let (minimum, maximum) = (minimum.filter(|limit| *limit != 0.0), maximum.filter(|limit| *limit != 0.0));
    let display = |number: f64| Value::from(number).to_string();
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) if minimum >= maximum => StateReturn::failed(name, "Min must be less than max"),
        (Some(minimum), _) if load < minimum => {
            let comment = format!("Load avg is below minimum of {} at {}", display(minimum), display(load));
            StateReturn::failed(name, comment)
        }
        (_, Some(maximum)) if load > maximum => {
            StateReturn::failed(name, format!("Load avg above maximum of {} at {}", display(maximum), display(load)))
        }
        _ => StateReturn::ok(name, "Load avg in acceptable range"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_compared_with_its_limits() {
        for (load, minimum, maximum, result, comment) in [
            (0.5, None, None, true, "in acceptable range"),
            (0.5, Some(0.1), Some(1.0), true, "in acceptable range"),
            (0.5, Some(1.0), None, false, "below minimum of 1.0 at 0.5"),
            (2.0, None, Some(1.5), false, "above maximum of 1.5 at 2.0"),
            (2.0, Some(2.0), Some(1.0), false, "Min must be less than max"),
            (2.0, None, Some(0.0), true, "in acceptable range"),
        ] {
            let report = within("1-min", load, minimum, maximum);
            assert_eq!(report.result, Some(result), "{report:?}");
            assert!(report.comment.contains(comment), "{report:?}");
        }
    }
}
