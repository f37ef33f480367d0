//! The reply that defers the authentication of a Brine minion while too many others wait. It contains the pause before
//! the next attempt.
//!
//! It is not signed, because a signature would cost as much as the deferred work. A man in the middle can forge it, but
//! can also drop messages; [`MAX_DEFERRAL`] bounds the delay.

use std::time::Duration;

use brine_value::{Map, Value, map};

/// The maximum pause of a minion before its next attempt.
pub const MAX_DEFERRAL: Duration = Duration::from_secs(30);

/// The field with the pause in seconds.
const RETRY_AFTER: &str = "retry_after";

/// Returns the load of the reply. Minions that do not know it read it as Salt's rejection, without a signature.
pub fn deferral(after: Duration) -> Map {
    map! {"ret" => false, RETRY_AFTER => after.min(MAX_DEFERRAL).as_secs_f64()}
}

/// Returns the pause before the next attempt, if a reply to `_auth` defers it.
pub fn deferred(reply: &Map) -> Option<Duration> {
    let seconds = reply.get("load")?.get(RETRY_AFTER).and_then(Value::as_f64)?;
    let seconds = if seconds.is_finite() { seconds.max(0.0) } else { return None };
    Some(Duration::from_secs_f64(seconds.min(MAX_DEFERRAL.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deferral_is_bounded() {
        for (load, expected) in [
            (Value::from(deferral(Duration::from_millis(1500))), Some(Duration::from_millis(1500))),
            (deferral(Duration::MAX).into(), Some(MAX_DEFERRAL)),
            (map! {"retry_after" => 1e300}.into(), Some(MAX_DEFERRAL)),
            (map! {"retry_after" => 2}.into(), Some(Duration::from_secs(2))),
            (map! {"retry_after" => -3}.into(), Some(Duration::ZERO)),
            (map! {"retry_after" => f64::NAN}.into(), None),
            (map! {"retry_after" => f64::INFINITY}.into(), None),
            (map! {"retry_after" => "5"}.into(), None),
            (map! {"ret" => false}.into(), None),
            (Value::Bool(false), None),
        ] {
            assert_eq!(deferred(&map! {"enc" => "clear", "load" => load.clone()}), expected, "{load}");
        }
    }
}
