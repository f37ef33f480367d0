//! `metrics`: the master's counters and gauges.

use brine_function::{CallResult, Functions, function, registry};
use brine_value::Value;

use super::RunnerContext;

/// Runner functions of `metrics`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("metrics", [show]);

/// Return all metrics of the master: counters and gauges.
///
/// CLI Example:
///
///     salt-run metrics.show
#[function]
pub fn show(context: &RunnerContext) -> CallResult {
    context.master.bus.measure(&context.caller.thread);
    let number = |text: &str| match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(whole), _) => Value::Int(whole),
        (_, Ok(number)) => Value::Float(number),
        _ => text.into(),
    };
    let pairs = brine_metrics::pairs();
    let mut values: brine_value::Map = pairs.iter().map(|(name, text)| (name.as_str().into(), number(text))).collect();
    values.insert("brine_last_seq".into(), context.master.bus.last_seq().into());
    values.insert("brine_sessions".into(), context.master.admission.sessions().count().into());
    values.insert("brine_publish_connections".into(), context.master.publisher.connections().into());
    Ok(Value::Map(values))
}
