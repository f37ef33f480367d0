//! The blackout of a minion (`minion_blackout` in pillar or grains): jobs, scheduled jobs and reactions run no function
//! but `saltutil.refresh_pillar` and those of `minion_blackout_whitelist`.
//!
//! As in Salt, it is for what others have the minion do: `salt-call` and what runs inside of an allowed function, such
//! as the states of `state.apply`, are not affected, and beacons go on.

use brine_context::Context;
use brine_context::jobs::{self, Outcome};
use brine_function::{Args, CallError};
use brine_value::{Map, Value};

use crate::metrics;

/// The key of pillar and grains that begins a blackout.
const BLACKOUT: &str = "minion_blackout";
/// The key with the functions that are allowed in it.
const ALLOWED: &str = "minion_blackout_whitelist";
/// The function that is always allowed: it can end a blackout.
const REFRESH: &str = "saltutil.refresh_pillar";
const MESSAGE: &str = "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations. \
                       Only saltutil.refresh_pillar allowed in blackout mode.";

/// Calls a function in a job, unless a blackout forbids it.
pub(crate) fn call(context: &Context, fun: &str, args: Args) -> Outcome {
    // A function that does not exist is reported as such, unless an executor could accept it.
    let can_run = context.minion.functions.get(fun).is_some() || jobs::has_executors(context);
    if !can_run || (allows(&context.pillar(), fun) && allows(&context.grains(), fun)) {
        return jobs::call(context, fun, args);
    }
    metrics::BLACKOUT_REFUSED.add(1);
    tracing::warn!(jid = context.job.jid, fun, "function refused: the minion is in blackout mode");
    context.set_retcode(1);
    let error = CallError::Invocation { function: fun.to_owned(), message: MESSAGE.to_owned() };
    Outcome { value: error.to_string().into(), retcode: 1, success: false, out: Some("nested") }
}

/// Whether pillar or grains allow a function. Names are compared exactly.
fn allows(data: &Map, fun: &str) -> bool {
    if !data.get(BLACKOUT).is_some_and(Value::is_truthy) || fun == REFRESH {
        return true;
    }
    match data.get(ALLOWED) {
        Some(Value::List(names)) => names.iter().any(|name| name.as_str() == Some(fun)),
        Some(Value::Map(names)) => names.contains_key(fun),
        Some(Value::Str(names)) => names.split([',', ' ']).any(|name| name == fun),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn a_blackout_allows_the_listed_functions_by_their_exact_names() {
        for (data, fun, allowed) in [
            (map! {}, "test.ping", true),
            (map! {"minion_blackout" => false, "minion_blackout_whitelist" => list![]}, "test.ping", true),
            (map! {"minion_blackout" => 0}, "test.ping", true),
            (map! {"minion_blackout" => Value::Nil}, "test.ping", true),
            (map! {"minion_blackout_whitelist" => list!["test.fib"]}, "test.ping", true),
            (map! {"minion_blackout" => true}, "test.ping", false),
            (map! {"minion_blackout" => true}, "saltutil.refresh_pillar", true),
            (map! {"minion_blackout" => true}, "saltutil.refresh_grains", false),
            (map! {"minion_blackout" => true}, "saltutil.find_job", false),
            (map! {"minion_blackout" => 1}, "test.ping", false),
            // As in Salt, any text that is not empty counts as true.
            (map! {"minion_blackout" => "no"}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => list!["test.ping"]}, "test.ping", true),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => list!["test.*"]}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => list!["test"]}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => list!["test.pings"]}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => list![1, Value::Nil]}, "test.ping", false),
            (
                map! {"minion_blackout" => true, "minion_blackout_whitelist" => map! {"test.ping" => 1}},
                "test.ping",
                true,
            ),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => "test.fib,test.ping"}, "test.ping", true),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => "test.pings"}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => ""}, "", true),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => Value::Nil}, "test.ping", false),
            (map! {"minion_blackout" => true, "minion_blackout_whitelist" => 7}, "test.ping", false),
        ] {
            assert_eq!(allows(&data, fun), allowed, "{fun} {data:?}");
        }
    }
}
