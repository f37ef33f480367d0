//! `status.custom`: values of other functions of `status` that the configuration selects.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};

/// Return the values of functions of `status` that are selected in the configuration of the minion or of the master
/// (`pillar_opts`): `status.FUNCTION.custom` is a list of keys of the function's result. A missing key is reported as
/// `UNKNOWN`.
///
/// CLI Example:
///
///     salt '*' status.custom
#[function]
pub fn custom(context: &Context) -> CallResult {
    let pillar = context.pillar();
    let of_master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
    let mut selected = Map::new();
    for (option, keys) in of_master.iter().chain(context.config().opts.iter()) {
        let option = option.to_string();
        let is_of_status = option.starts_with("status.") && option != "status.custom";
        let Some((function, _)) = option.rsplit_once('.').filter(|_| is_of_status) else { continue };
        let values = match context.call(function, Args::default()) {
            Ok(values) => values,
            Err(CallError::NotAvailable(_)) => {
                tracing::warn!(jid = context.job.jid, option, "the option names a function that is not there");
                continue;
            }
            Err(error) => return Err(error),
        };
        for key in keys.as_list().unwrap_or_default() {
            let value = values.as_map().and_then(|values| values.get(key)).cloned();
            if value.is_none() {
                tracing::warn!(jid = context.job.jid, option, %key, "the result of the function has no such key");
            }
            selected.insert(key.clone(), value.unwrap_or_else(|| Value::from("UNKNOWN")));
        }
    }
    Ok(selected.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_config::MinionConfig;
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn the_configuration_selects_values() {
        let mut context = crate::testing::context(&[]);
        let opts = map! {
            "status.loadavg.custom" => list!["1-min", "no"], "status.nothing.custom" => list!["x"], "other" => list!["y"],
        };
        Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(MinionConfig { opts, ..Default::default() });
        let selected = context.call("status.custom", Args::default()).unwrap();
        let selected = selected.as_map().unwrap();
        assert_eq!(selected.keys().map(ToString::to_string).collect::<Vec<_>>(), ["1-min", "no"]);
        assert!(
            selected.get("1-min").unwrap() != &"UNKNOWN".into() && selected.get("no").unwrap() == &"UNKNOWN".into()
        );
    }
}
