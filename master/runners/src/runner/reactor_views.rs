//! `reactor`: functions for programs that display the reactor, such as the console.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::RunnerContext;
use super::reactor::{event_for, reactor};

/// Further runner functions of `reactor`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("reactor", [graph, dry_run]);

/// Return the chain of causes around an event's sequence number or a job id as a graph: the tree of `reactor.explain`
/// for programs. `nodes` lists events, reactions with the returns of their jobs, and notes about skipped reactions;
/// `parent` of each is the position of its cause in the list.
///
/// CLI Example:
///
///     salt-run reactor.graph 120
///     salt-run reactor.graph 20261120235852025555
#[function]
pub fn graph(
    context: &RunnerContext,
    /// Sequence number of the event, or a job id.
    what: Value,
) -> CallResult {
    let graph = reactor(context)?.graph(&context.caller.thread, &context.master.bus, &what.to_string());
    graph.map_err(CallError::execution)
}

/// Return the reactions that one SLS file would have to an event, without dispatching them, whatever entries match the
/// event. Functions that the template calls are called.
///
/// CLI Example:
///
///     salt-run reactor.dry_run salt://reactor/new.sls from_seq=120
///     salt-run reactor.dry_run salt://reactor/new.sls tag=salt/auth data='{act: pend, id: web1}'
#[function]
pub fn dry_run(
    context: &RunnerContext,
    /// A `salt://` path, or a file of an entry as `reactor.list` shows it.
    sls: String,
    /// The event.
    tag: Option<String>,
    /// The event.
    #[default]
    data: Map,
    /// The sequence number of an event of the journal in their place.
    from_seq: Option<u64>,
) -> CallResult {
    let (tag, data) = event_for(context, tag, data, from_seq)?;
    reactor(context)?.dry_run_file(&sls, &tag, data).map_err(CallError::execution)
}
