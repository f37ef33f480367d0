//! `queue`: queues of items in the master's store, which reactors, schedules and runner functions process. In a cluster
//! all members have the same ones.

use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_master_custom::Kind;
use brine_master_store::queues::{QueueError, SharedQueues};
use brine_value::{FromValue, Map, Value, map};

use super::RunnerContext;

/// Runner functions of `queue`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "queue",
    [insert, delete, list_queues, list_length, list_items, pop, process_queue, insert_runner, process_runner]
);

/// Salt's queue backends, all of which are served by the master's store. The first one is the default.
const BACKENDS: &[&str] = &["sqlite", "pgjsonb"];

/// Items of a queue.
#[derive(brine_function::Args)]
pub struct ItemsArgs {
    /// Name of the queue.
    queue: String,
    /// An item, or a list.
    items: Value,
    /// Backend: `sqlite` or `pgjsonb`; both are the master's store.
    #[default("sqlite".into())]
    backend: String,
}

/// Append one or more items to a queue. A string that is in the queue already is left out, and named in the result.
///
/// queue: the name of the queue. items: an item, or a list. backend: `sqlite` or `pgjsonb`: both are the master's store.
///
/// CLI Example:
///
///     salt-run queue.insert myqueue myitem
///     salt-run queue.insert myqueue "['item1', 'item2', 'item3']"
#[function]
pub fn insert(context: &RunnerContext, #[args] args: ItemsArgs) -> CallResult {
    check_backend(&args.backend)?;
    let items = list_of(args.items);
    let duplicates = match shared(context) {
        Some(queues) => context.wait(queues.insert(&args.queue, items)),
        None => context.storage().queues.insert(&args.queue, items),
    };
    Ok(match &duplicates.map_err(CallError::execution)?[..] {
        [] => true.into(),
        duplicates => {
            let names: Vec<String> = duplicates.iter().map(ToString::to_string).collect();
            format!("Item already exists: {}", names.join(", ")).into()
        }
    })
}

/// Remove one or more items from a queue.
///
/// CLI Example:
///
///     salt-run queue.delete myqueue myitem
#[function]
pub fn delete(context: &RunnerContext, #[args] args: ItemsArgs) -> CallResult {
    check_backend(&args.backend)?;
    let items = list_of(args.items);
    let deleted = match shared(context) {
        Some(queues) => context.wait(queues.delete(&args.queue, &items)),
        None => context.storage().queues.delete(&args.queue, &items),
    };
    deleted.map_err(CallError::execution)?;
    Ok(true.into())
}

/// Return the names of the queues that have items.
///
/// CLI Example:
///
///     salt-run queue.list_queues
#[function]
pub fn list_queues(
    context: &RunnerContext,
    /// `sqlite` or `pgjsonb`: both stand for the master's store.
    #[default("sqlite".into())]
    backend: String,
) -> CallResult {
    check_backend(&backend)?;
    let names = match shared(context) {
        Some(queues) => context.wait(queues.names()),
        None => context.storage().queues.names(),
    };
    Ok(names.map_err(CallError::execution)?.into())
}

/// Return the number of items in a queue.
///
/// CLI Example:
///
///     salt-run queue.list_length myqueue
#[function]
pub fn list_length(
    context: &RunnerContext,
    /// Name of the queue.
    queue: String,
    /// `sqlite` or `pgjsonb`: both stand for the master's store.
    #[default("sqlite".into())]
    backend: String,
) -> CallResult {
    check_backend(&backend)?;
    let length = match shared(context) {
        Some(queues) => context.wait(queues.len(&queue)),
        None => context.storage().queues.len(&queue),
    };
    Ok(length.map_err(CallError::execution)?.into())
}

/// Return the items of a queue, oldest first.
///
/// CLI Example:
///
///     salt-run queue.list_items myqueue
#[function]
pub fn list_items(
    context: &RunnerContext,
    /// Name of the queue.
    queue: String,
    /// `sqlite` or `pgjsonb`: both stand for the master's store.
    #[default("sqlite".into())]
    backend: String,
) -> CallResult {
    check_backend(&backend)?;
    let items = match shared(context) {
        Some(queues) => context.wait(queues.items(&queue)),
        None => context.storage().queues.head(&queue, usize::MAX).map(|head| head.items.clone()),
    };
    Ok(items.map_err(CallError::execution)?.into())
}

/// The oldest items of a queue.
#[derive(brine_function::Args)]
pub struct HeadArgs {
    /// Name of the queue.
    queue: String,
    /// Number of items, or `all`.
    #[default(1.into())]
    quantity: Value,
    /// Backend: as for `insert`.
    #[default("sqlite".into())]
    backend: String,
    /// Without effect.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default(false)]
    is_runner: bool,
}

/// Remove the oldest items of a queue, and return them.
///
/// quantity: how many, or `all` (1). is_runner: without effect.
///
/// CLI Example:
///
///     salt-run queue.pop myqueue
///     salt-run queue.pop myqueue all
#[function]
pub fn pop(context: &RunnerContext, #[args] from: HeadArgs) -> CallResult {
    Ok(take(context, &from.queue, &from.quantity, &from.backend, async |_| Ok(()))?.into())
}

/// Publish the oldest items of a queue as the event `salt/queue/QUEUE/process`, and remove them. They are removed when
/// the journal has the event, so none is lost.
///
/// quantity: how many, or `all` (1). is_runner: without effect.
///
/// CLI Example:
///
///     salt-run queue.process_queue myqueue
///     salt-run queue.process_queue myqueue all backend=sqlite
#[function]
pub fn process_queue(context: &RunnerContext, #[args] from: HeadArgs) -> CallResult {
    process(context, &from.queue, &from.quantity, &from.backend).map(|(data, _)| data.into())
}

/// Append a call of a runner function to a queue. Permission to insert into this queue is permission to call any runner
/// function.
///
/// CLI Example:
///
///     salt-run queue.insert_runner test.stdout_print
///     salt-run queue.insert_runner event.send test_insert_runner kwargs='{"data": {"foo": "bar"}}'
#[function]
pub fn insert_runner(
    context: &RunnerContext,
    /// The function.
    fun: String,
    /// Its arguments, as a list or separated by commas.
    #[default]
    args: Value,
    /// Its keyword arguments.
    #[default]
    kwargs: Map,
    /// The name of the queue; by default that of the option `runner_queue`.
    queue: Option<String>,
    /// As for `insert`.
    backend: Option<String>,
) -> CallResult {
    let args = match args {
        Value::Nil => Vec::new(),
        Value::List(args) => args,
        text => text.to_string().split(',').map(Value::from).collect(),
    };
    let (queue, backend) = runner_queue(context, queue, backend)?;
    let items = map! {"fun" => fun, "args" => args, "kwargs" => kwargs}.into();
    insert(context, ItemsArgs { queue, items, backend })
}

/// Call the oldest runner functions of a queue, one after the other. Calls that fail are in the log and on the bus.
///
/// CLI Example:
///
///     salt-run queue.process_runner 5
#[function]
pub fn process_runner(
    context: &RunnerContext,
    /// How many, or `all` (1).
    #[default(1.into())]
    quantity: Value,
    /// As for `insert_runner`.
    queue: Option<String>,
    /// As for `insert_runner`.
    backend: Option<String>,
) -> CallResult {
    let (queue, backend) = runner_queue(context, queue, backend)?;
    let (_, items) = process(context, &queue, &quantity, &backend)?;
    for item in items {
        let Some(fun) = item.get("fun").and_then(Value::as_str) else {
            tracing::error!(queue, %item, "an item of a queue is not a call: expected a mapping with fun");
            continue;
        };
        let positional = item.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
        let keyword = item.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
        context.calls.call_within(Kind::Runner, fun, Args { positional, keyword }, &context.caller);
    }
    Ok(Value::Nil)
}

fn process(
    context: &RunnerContext,
    queue: &str,
    quantity: &Value,
    backend: &str,
) -> Result<(Map, Vec<Value>), CallError> {
    let data = |items: &[Value]| map! {"items" => items.to_vec(), "backend" => backend, "queue" => queue};
    let items = take(context, queue, quantity, backend, async |items| {
        let mut event = data(items);
        context.caller.mark(&mut event);
        let tag = format!("salt/queue/{queue}/process");
        context.master.bus.fire_durably(&tag, &event).await.map(drop).map_err(QueueError::from)
    })?;
    Ok((data(&items), items))
}

/// Removes the oldest items of a queue after `before` has succeeded with them, and returns them.
fn take(
    context: &RunnerContext,
    queue: &str,
    quantity: &Value,
    backend: &str,
    before: impl AsyncFnOnce(&[Value]) -> Result<(), QueueError>,
) -> Result<Vec<Value>, CallError> {
    check_backend(backend)?;
    let limit = match quantity.as_str() {
        Some("all") => Some(usize::MAX),
        _ => usize::from_value(quantity),
    };
    let limit = limit.ok_or_else(|| {
        CallError::execution(format!("quantity is invalid: expected a number or \"all\", got {quantity}"))
    })?;
    if let Some(queues) = shared(context) {
        return context.wait(queues.take(queue, limit, before)).map_err(CallError::execution);
    }
    let head = context.storage().queues.head(queue, limit).map_err(CallError::execution)?;
    let items = head.items.clone();
    context.wait(before(&items)).map_err(CallError::execution)?;
    head.remove().map_err(CallError::execution)?;
    Ok(items)
}

/// Returns the queues of the cluster, if this master is a member of one.
fn shared(context: &RunnerContext) -> Option<SharedQueues<'_>> {
    let shared = context.master.cluster.as_deref()?;
    Some(SharedQueues { shared, known: &context.storage().queues.known })
}

fn check_backend(backend: &str) -> Result<(), CallError> {
    if BACKENDS.contains(&backend) {
        return Ok(());
    }
    Err(CallError::execution(format!(
        "queue backend '{backend}' is not supported: queues are in the master's store; leave the argument out"
    )))
}

fn list_of(items: Value) -> Vec<Value> {
    match items {
        Value::List(items) => items,
        one => vec![one],
    }
}

/// Returns the queue of runner calls, and its backend.
fn runner_queue(
    context: &RunnerContext,
    queue: Option<String>,
    backend: Option<String>,
) -> Result<(String, String), CallError> {
    let own = &context.master.config.runner_queue;
    let option = |name: &str| own.get(name).and_then(Value::as_str).map(str::to_owned);
    let queue = queue.or_else(|| option("queue")).ok_or_else(|| {
        CallError::execution("no queue is named: set the option `runner_queue: {queue: NAME}`, or pass queue=NAME")
    })?;
    Ok((queue, backend.or_else(|| option("backend")).unwrap_or_else(|| "pgjsonb".to_owned())))
}
