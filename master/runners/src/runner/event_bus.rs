//! `event_bus`: the journal of the event bus.

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_event::Event;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_runtime::executors::MayBlock;
use brine_text::glob::Glob;
use brine_value::levels::OLD_LEVELS;
use brine_value::{FromValue, Value, map};
use brine_zmtp::{Endpoint, Push};

use super::RunnerContext;

/// Runner functions of `event_bus`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("event_bus", [since, replay]);

/// Return events from a position on: a sequence number, or a time such as `2026-11-21T10:00:00`, in local time, or in
/// UTC with a trailing Z. At most `limit` events are returned, and at most 16 MiB, but at least one. Only an empty list
/// means the end.
///
/// CLI Example:
///
///     salt-run event_bus.since 100
///     salt-run event_bus.since 2026-11-21T10:00:00 limit=10
#[function]
pub fn since(
    context: &RunnerContext,
    /// Sequence number after which events are returned.
    since: Value,
    /// Highest number of events.
    #[default(100)]
    limit: u32,
) -> CallResult {
    let limit = limit.clamp(1, 10_000) as usize;
    let bytes = MAX_REPLY_BYTES.min(context.master.config.max_message_size / 2);
    let events = events_since(&context.caller.thread, &context.master.bus, position(&since)?, limit, bytes)
        .map_err(CallError::execution)?;
    let listed = events.iter().map(|event| map! {"seq" => event.seq(), "tag" => event.tag(), "data" => event.data()});
    Ok(listed.collect())
}

/// Replay a range of the journal to a subscriber that has bound a ZeroMQ PULL socket at this path: each event with a
/// matching tag in its socket form, then `salt/event_bus/replay/end` with the first and last sequence number and the
/// count. Return the count. A slow subscriber blocks the replay. `first` and `last` are sequence numbers or times.
///
/// CLI Example:
///
///     salt-run event_bus.replay 100 200 socket=/run/mine.ipc
///     salt-run event_bus.replay 2026-11-21T10:00:00 tag='salt/job/*' socket=/run/mine.ipc
#[function]
pub fn replay(
    context: &RunnerContext,
    /// Sequence number of the first event.
    first: Value,
    /// Sequence number of the last event.
    last: Option<Value>,
    /// Glob of the tags; all by default.
    #[default("*".into())]
    tag: String,
    /// Path of the subscriber's socket.
    #[default]
    socket: String,
) -> CallResult {
    if socket.is_empty() {
        return Err(CallError::execution("socket is missing: expected the path of the subscriber's PULL socket"));
    }
    let bus = &context.master.bus;
    let last = match last {
        None => TimeOrSeq::Seq(bus.last_seq()),
        Some(last) => position(&last)?,
    };
    let glob = Glob::new(&tag).map_err(CallError::execution)?;
    let endpoint = Endpoint::Ipc(socket.trim_start_matches("ipc://").into());
    let connect = tokio::time::timeout(CONNECT_TIMEOUT, Push::connect(&endpoint));
    let connected =
        context.wait(connect).map_err(|_| CallError::execution(format!("{socket}: connecting timed out")))?;
    let mut push = connected.map_err(CallError::execution)?;
    let (mut count, mut seqs) = (0u64, (0, 0));
    each_event(context, position(&first)?, last, |event| {
        if glob.is_match(event.tag()) {
            context.wait(push.send(event.frame())).map_err(CallError::execution)?;
            count += 1;
            seqs = (if seqs.0 == 0 { event.seq() } else { seqs.0 }, event.seq());
        }
        Ok(true)
    })?;
    let body = map! {"first" => seqs.0, "last" => seqs.1, "count" => count};
    let end = Event::from_map("salt/event_bus/replay/end", &body).map_err(CallError::execution)?;
    context.wait(push.send(end.frame())).map_err(CallError::execution)?;
    Ok(count.into())
}

/// Calls a function with each event of the journal between two positions, both included, until it returns false.
pub(super) fn each_event(
    context: &RunnerContext,
    first: TimeOrSeq,
    last: TimeOrSeq,
    mut each: impl FnMut(&Event) -> Result<bool, CallError>,
) -> Result<(), CallError> {
    let mut from = first;
    loop {
        let events = context.master.bus.read(&context.caller.thread, from, PAGE).map_err(CallError::execution)?;
        let Some(end) = events.last().map(Event::seq) else { return Ok(()) };
        for event in &events {
            let is_behind = match last {
                TimeOrSeq::Seq(last) => event.seq() > last,
                TimeOrSeq::Time(last) => event.time().is_some_and(|time| time > last),
            };
            if is_behind || !each(event)? {
                return Ok(());
            }
        }
        from = TimeOrSeq::Seq(end + 1);
    }
}

/// The maximum total size of returned events in bytes, so that the reply stays below `max_message_size`.
const MAX_REPLY_BYTES: usize = 16 << 20;

/// Reads events from a position on: up to `limit`, as many as fit into `bytes` but at least one.
fn events_since(
    thread: &MayBlock,
    bus: &Bus,
    mut position: TimeOrSeq,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut room) = (Vec::new(), bytes);
    while events.len() < limit {
        let page = bus.read(thread, position, limit - events.len())?;
        let Some(last) = page.last() else { break };
        position = TimeOrSeq::Seq(last.seq() + 1);
        for event in page {
            if event.is_deeper(OLD_LEVELS) {
                tracing::warn!(
                    seq = event.seq(),
                    tag = event.tag(),
                    "an event of the journal is skipped: it nests deeper than {OLD_LEVELS} levels"
                );
                continue;
            }
            let size = event.frame().len();
            if size > room && !events.is_empty() {
                return Ok(events);
            }
            room = room.saturating_sub(size);
            events.push(event);
        }
    }
    Ok(events)
}

/// The timeout of connecting to a replay's subscriber.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// The number of events that are read at once.
const PAGE: usize = 1024;

pub(super) fn position(since: &Value) -> Result<TimeOrSeq, CallError> {
    if let Some(seq) = u64::from_value(since) {
        return Ok(TimeOrSeq::Seq(seq));
    }
    let text = since.to_string();
    let time = match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time),
        Err(_) => text
            .parse::<jiff::civil::DateTime>()
            .ok()
            .and_then(|time| time.to_zoned(brine_clock::zone()).ok().map(|zoned| zoned.timestamp())),
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

    #[tokio::test]
    async fn pages_end_with_the_limit_or_the_bytes() {
        let bus = Bus::in_memory(brine_bus::BusLimits::default());
        let thread = MayBlock::on_dedicated_thread(tokio::runtime::Handle::current());
        for n in 0..10 {
            bus.fire("t", &map! {"n" => n, "text" => "x".repeat(1000)}).await.unwrap();
        }
        for (from, limit, bytes, expected) in [
            (1, 100, 1 << 20, 10),
            (1, 3, 1 << 20, 3),
            (1, 100, 5000, 4),
            (1, 100, 10, 1),
            (9, 100, 1 << 20, 2),
            (11, 100, 1 << 20, 0),
        ] {
            let events = events_since(&thread, &bus, TimeOrSeq::Seq(from), limit, bytes).unwrap();
            assert_eq!(events.len(), expected, "{from} {limit} {bytes}");
        }
    }

    #[test]
    fn positions_are_sequence_numbers_or_times() {
        assert_eq!(position(&5.into()), Ok(TimeOrSeq::Seq(5)));
        assert_eq!(position(&"7".into()), Ok(TimeOrSeq::Seq(7)));
        assert_eq!(position(&"1970-01-01T00:00:01Z".into()), Ok(TimeOrSeq::Time(1_000_000)));
        assert!(position(&"yesterday".into()).unwrap_err().to_string().contains("'yesterday' is neither"));
    }
}
