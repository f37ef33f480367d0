//! `event_bus`: the journal of the event bus.

use brine_core::bus::TimeOrSeq;
use brine_core::function::CallError;
use brine_core::value::FromValue;
use brine_core::{Value, functions, map};

use super::RunnerContext;

functions! {
    module "event_bus", context RunnerContext;

    /// Events from a place on: a sequence number, or a time such as `2026-11-21T10:00:00`, in local time
    /// or with a Z behind it.
    ///
    /// CLI Example:
    ///
    ///     salt-run event_bus.since 100
    ///     salt-run event_bus.since 2026-11-21T10:00:00 limit=10
    fn since(context, since: Value, limit: u32 = 100) {
        let place = place(&since)?;
        let events = context.master.bus.read(place, limit.clamp(1, 10_000) as usize).map_err(CallError::execution)?;
        let told = events.iter().map(|event| map! {"seq" => event.seq(), "tag" => event.tag(), "data" => event.data()});
        Ok(told.collect())
    }
}

fn place(since: &Value) -> Result<TimeOrSeq, CallError> {
    if let Some(seq) = u64::from_value(since) {
        return Ok(TimeOrSeq::Seq(seq));
    }
    let text = since.to_string();
    let time = match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time),
        Err(_) => text
            .parse::<jiff::civil::DateTime>()
            .ok()
            .and_then(|time| time.to_zoned(jiff::tz::TimeZone::system()).ok().map(|zoned| zoned.timestamp())),
    };
    let wrong = || {
        CallError::Execution(format!("'{text}' is neither a sequence number nor a time such as 2026-11-21T10:00:00"))
    };
    let micros = time.ok_or_else(wrong)?.as_microsecond();
    Ok(TimeOrSeq::Time(u64::try_from(micros).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers_or_times() {
        assert_eq!(place(&5.into()), Ok(TimeOrSeq::Seq(5)));
        assert_eq!(place(&"7".into()), Ok(TimeOrSeq::Seq(7)));
        assert_eq!(place(&"1970-01-01T00:00:01Z".into()), Ok(TimeOrSeq::Time(1_000_000)));
        assert!(place(&"yesterday".into()).unwrap_err().to_string().contains("'yesterday' is neither"));
    }
}
