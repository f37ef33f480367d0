//! `reactor`: the entries of the reactor, its results and causes, and dry runs.

use std::sync::Arc;

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_reactor::{HistoryFilter, LetterId, Reactor, Retried};
use brine_value::{FromValue, Map, Value, map};

use super::RunnerContext;

/// Runner functions of `reactor`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "reactor",
    [
        list,
        add,
        delete,
        is_leader,
        set_leader,
        test,
        history,
        explain,
        failed,
        retry,
        drop_letters,
        rules,
        registers,
        timers
    ]
);

/// Return the reactor's entries: tags with their SLS files. `saltenv` and `test` are
/// without effect.
///
/// CLI Example:
///
///     salt-run reactor.list
#[function]
pub fn list(
    context: &RunnerContext,
    /// Without effect.
    #[default("base".into())]
    saltenv: String,
    /// Without effect.
    test: Option<Value>,
) -> CallResult {
    _ = (saltenv, test);
    let entries = Value::from(&*reactor(context)?.entries());
    publish_result(context, "list-results", &map! {"reactors" => entries.clone()});
    Ok(entries)
}

/// Add SLS files for a tag, until the next restart or configuration change. `saltenv` and `test` are
/// without effect.
///
/// CLI Example:
///
///     salt-run reactor.add 'salt/cloud/*/destroyed' reactors='/srv/reactor/destroy/*.sls'
#[function]
pub fn add(
    context: &RunnerContext,
    /// Glob of the tags.
    event: String,
    /// Reactor files, as a list.
    reactors: Value,
    /// Without effect.
    #[default("base".into())]
    saltenv: String,
    /// Without effect.
    test: Option<Value>,
) -> CallResult {
    _ = (saltenv, test);
    let reactor = reactor(context)?;
    let added = reactor.add(&event, &reactors).map_err(CallError::execution)?;
    let comment = if added { "Reactor added." } else { "Reactor already exists." };
    Ok(result_of(context, &reactor, "add-complete", added, comment))
}

/// Remove the entry of a tag, until the next restart or configuration change. `saltenv` and `test` are
/// without effect.
///
/// CLI Example:
///
///     salt-run reactor.delete 'salt/cloud/*/destroyed'
#[function]
pub fn delete(
    context: &RunnerContext,
    /// Glob of the tags.
    event: String,
    /// Without effect.
    #[default("base".into())]
    saltenv: String,
    /// Without effect.
    test: Option<Value>,
) -> CallResult {
    _ = (saltenv, test);
    let reactor = reactor(context)?;
    let deleted = reactor.delete(&event).map_err(CallError::execution)?;
    let comment = if deleted { "Reactor deleted." } else { "Reactor does not exists." };
    Ok(result_of(context, &reactor, "delete-complete", deleted, comment))
}

/// Return whether the reactor is the leader. A reactor that is not the leader ignores events.
///
/// CLI Example:
///
///     salt-run reactor.is_leader
#[function]
pub fn is_leader(context: &RunnerContext) -> CallResult {
    let leads = reactor(context)?.is_leader();
    publish_result(context, "leader/value", &map! {"result" => leads});
    Ok(leads.into())
}

/// Set whether the reactor is the leader.
///
/// CLI Example:
///
///     salt-run reactor.set_leader True
#[function]
pub fn set_leader(
    context: &RunnerContext,
    /// Whether this master is the leader.
    #[default(true)]
    value: bool,
) -> CallResult {
    reactor(context)?.set_leader(value);
    Ok(value.into())
}

/// Return the reactions to an event without dispatching them (dry run): the matching entries, the rendered SLS files,
/// the reactions in order, or the error with file and line. With `from_seq`, the event is read from the journal.
/// Functions that the templates call are called.
///
/// CLI Example:
///
///     salt-run reactor.test salt/auth '{act: pend, id: web1}'
///     salt-run reactor.test from_seq=120
#[function]
pub fn test(
    context: &RunnerContext,
    /// Tag of the event.
    tag: Option<String>,
    /// Data of the event, as a mapping.
    #[default]
    data: Map,
    /// Sequence number of a recorded event, instead of `tag` and `data`.
    from_seq: Option<u64>,
) -> CallResult {
    let (tag, data) = event_for(context, tag, data, from_seq)?;
    Ok(reactor(context)?.dry_run(&tag, data))
}

/// Return the newest events with reactions, newest first: each with entries, files, reactions, job ids,
/// results (with the states that failed) and times. Skipped reactions are listed with their cause: a limit,
/// a file that renders to nothing, a target without minions, a reactor that is off. With `tag`, a glob, events that no
/// entry matches are listed, too, with the patterns that come nearest. `id` is the `id` in the event's data.
///
/// CLI Example:
///
///     salt-run reactor.history
///     salt-run reactor.history tag='salt/minion/*/start' id=web1 limit=5
#[function]
pub fn history(
    context: &RunnerContext,
    /// Glob of the tags; all by default.
    tag: Option<String>,
    /// Value of the field `id` of the events; all by default.
    id: Option<String>,
    /// Number of events, at most 10,000.
    #[default(20)]
    limit: u32,
) -> CallResult {
    let filter = HistoryFilter { tag, id, limit: limit.clamp(1, 10_000) as usize };
    let thread = &context.caller.thread;
    reactor(context)?.history(thread, &context.master.bus, &filter).map_err(CallError::execution)
}

/// Return the chain of causes around an event's sequence number or a job id, from the first event to all that it
/// led to, drawn as a tree. Where the event has no reaction, the tree says why: no pattern matches (the nearest are
/// named), a limit, a file that renders to nothing, a target without minions, a condition of a rule.
///
/// CLI Example:
///
///     salt-run reactor.explain 120
///     salt-run reactor.explain 20261120235852025555
#[function(out = "txt")]
pub fn explain(
    context: &RunnerContext,
    /// Sequence number of the event, or a job id.
    what: Value,
) -> CallResult {
    let explained = reactor(context)?.explain(&context.caller.thread, &context.master.bus, &what.to_string());
    explained.map(Value::from).map_err(CallError::execution)
}

/// Return the dead letters: failed reactions, with the sequence number of their event.
///
/// CLI Example:
///
///     salt-run reactor.failed
#[function]
pub fn failed(context: &RunnerContext) -> CallResult {
    let mut by_event = Map::new();
    let listed = reactor(context)?.each_dead_letter(&context.caller.thread, |failed| {
        let of_event = by_event.entry(failed.event.seq().into()).or_insert_with(|| Value::List(Vec::new()));
        if let Value::List(list) = of_event {
            list.push(failed.to_value());
        }
    });
    listed.map(|()| by_event.into()).map_err(CallError::execution)
}

/// Retry dead letters: the reactions to the event with this sequence number, or `all`. If the file was corrected and
/// names the reaction differently, the one with the same id, the same function or, if it is the only new one, in its
/// place is run. A dead letter for which nothing was run is kept.
///
/// CLI Example:
///
///     salt-run reactor.retry 120
///     salt-run reactor.retry all
#[function]
pub fn retry(
    context: &RunnerContext,
    /// Sequence number of the event, or `all`.
    what: Value,
) -> CallResult {
    let seq = letters_of(&what)?;
    let reactor = reactor(context)?;
    let reported = context.wait(reactor.retry(&context.master.bus, seq));
    if let (true, Some(seq)) = (reported.is_empty(), seq) {
        return Err(CallError::execution(format!("event {seq} has no dead letter: see reactor.failed")));
    }
    let one = |Retried { id, tag, result }: Retried| {
        map! {
            "seq" => id.seq,
            "tag" => tag,
            "reaction" => id.label.unwrap_or(id.file),
            "result" => result.is_ok(),
            "comment" => result.err().unwrap_or_else(|| "done".into()),
        }
    };
    Ok(reported.into_iter().map(one).collect())
}

/// Drop dead letters without running their reactions: those of the event with this sequence number, or `all`.
///
/// CLI Example:
///
///     salt-run reactor.drop 120
///     salt-run reactor.drop all
#[function(name = "drop")]
pub fn drop_letters(
    context: &RunnerContext,
    /// Sequence number of the event, or `all`.
    what: Value,
) -> CallResult {
    let seq = letters_of(&what)?;
    let reactor = reactor(context)?;
    let dropped = context.wait(reactor.drop_dead_letters(seq));
    if let (true, Some(seq)) = (dropped.is_empty(), seq) {
        return Err(CallError::execution(format!("event {seq} has no dead letter: see reactor.failed")));
    }
    let one = |id: LetterId| map! {"seq" => id.seq, "entry" => id.entry, "reaction" => id.label.unwrap_or(id.file)};
    Ok(dropped.into_iter().map(one).collect())
}

/// Returns the sequence number of the event whose dead letters are meant; `None` for all.
fn letters_of(what: &Value) -> Result<Option<u64>, CallError> {
    match (what.as_str(), u64::from_value(what)) {
        (Some("all"), _) => Ok(None),
        (_, Some(seq)) => Ok(Some(seq)),
        _ => Err(CallError::execution(format!("'{what}' is neither an event's sequence number nor all"))),
    }
}

/// Return the rules over time by id: the function and the SLS files of their reactions.
///
/// CLI Example:
///
///     salt-run reactor.rules
#[function]
pub fn rules(context: &RunnerContext) -> CallResult {
    Ok(reactor(context)?.rules().into())
}

/// Return the values of the registers of rules over time, by id and key.
///
/// CLI Example:
///
///     salt-run reactor.registers
#[function]
pub fn registers(context: &RunnerContext) -> CallResult {
    Ok(reactor(context)?.registers().into())
}

/// Return the active timers of rules over time: by rule and key, with their due time (UTC).
///
/// CLI Example:
///
///     salt-run reactor.timers
#[function]
pub fn timers(context: &RunnerContext) -> CallResult {
    let mut timers = Map::new();
    for (rule, key, due) in reactor(context)?.timers() {
        let due = jiff::Timestamp::from_microsecond(due.cast_signed()).unwrap_or_default();
        let of_rule = timers.entry(rule.into()).or_insert_with(Value::map);
        if let Value::Map(of_rule) = of_rule {
            of_rule.insert(key.into(), brine_event::stamp_of(due).into());
        }
    }
    Ok(timers.into())
}

/// Returns the tag and data for a dry run: those of a journal event, if `from_seq` is given.
pub(super) fn event_for(
    context: &RunnerContext,
    tag: Option<String>,
    data: Map,
    from_seq: Option<u64>,
) -> Result<(String, Map), CallError> {
    if let Some(seq) = from_seq {
        let place = brine_bus::TimeOrSeq::Seq(seq);
        let events = context.master.bus.read(&context.caller.thread, place, 1).map_err(CallError::execution)?;
        let event = events.first().filter(|event| event.seq() == seq);
        let event = event.ok_or_else(|| CallError::execution(format!("the journal has no event {seq}")))?;
        return Ok((event.tag().to_owned(), event.data()));
    }
    let tag = tag.ok_or_else(|| CallError::execution("name a tag, or an event of the journal by from_seq=N"))?;
    Ok((tag, data))
}

pub(super) fn reactor(context: &RunnerContext) -> Result<Arc<Reactor>, CallError> {
    context.master.reactor.get().ok_or_else(|| CallError::execution("Reactor system is not running."))
}

/// Publishes a result on the bus, as Salt does. Salt's request event is not published, because it contains a key of the
/// master.
fn publish_result(context: &RunnerContext, what: &str, body: &Map) {
    context.wait(context.master.events.fire(&format!("salt/reactors/manage/{what}"), body));
}

/// Returns the result of a change to the entries.
fn result_of(context: &RunnerContext, reactor: &Reactor, what: &str, status: bool, comment: &str) -> Value {
    let result = map! {"status" => status, "comment" => comment};
    let body = map! {"reactors" => Value::from(&*reactor.entries()), "result" => result.clone()};
    publish_result(context, what, &body);
    result.into()
}
