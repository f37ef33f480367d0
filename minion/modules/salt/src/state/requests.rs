//! `state.request` and related functions: dry runs of states that are applied on confirmation. As in Salt, requests
//! are stored in `req_state.p` in the cache.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value, map, msgpack};

/// Name of a request without a name.
const DEFAULT_NAME: &str = "default";

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!("state", [request, check_request, clear_request, run_request]);

/// Return what `state.apply` would change, and store the call for `state.run_request`.
///
/// CLI Example:
///
///     salt '*' state.request
///     salt '*' state.request nginx name=web
#[function(out = "highstate")]
pub fn request(
    context: &Context,
    /// SLS files, as a list or with commas.
    #[default]
    mods: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.insert("test".into(), true.into());
    let test_run = apply(context, &mods, kwargs.clone())?;
    let name = kwargs.get("name").map_or_else(|| DEFAULT_NAME.to_owned(), ToString::to_string);
    let mut requests = requests(context);
    requests.insert(name.into(), map! {"test_run" => test_run.clone(), "mods" => mods, "kwargs" => kwargs}.into());
    save_requests(context, &requests)?;
    Ok(test_run)
}

/// Return the stored requests, or one of them.
///
/// CLI Example:
///
///     salt '*' state.check_request
#[function]
pub fn check_request(
    context: &Context,
    /// Name of the request.
    name: Option<String>,
) -> CallResult {
    let requests = requests(context);
    match name {
        None => Ok(requests.into()),
        Some(name) => requests.get(name.as_str()).cloned().ok_or_else(|| no_request(&name)),
    }
}

/// Delete all stored requests, or one of them.
///
/// CLI Example:
///
///     salt '*' state.clear_request
#[function]
pub fn clear_request(
    context: &Context,
    /// Name of the request.
    name: Option<String>,
) -> CallResult {
    let mut requests = requests(context);
    if requests.is_empty() {
        return Ok(true.into());
    }
    match name {
        None => requests.clear(),
        Some(name) if requests.shift_remove(name.as_str()).is_none() => return Ok(false.into()),
        Some(_) => {}
    }
    save_requests(context, &requests)?;
    Ok(true.into())
}

/// Run a stored request, and delete it. Arguments given here take precedence over stored ones.
///
/// CLI Example:
///
///     salt '*' state.run_request
///     salt '*' state.run_request web
#[function(out = "highstate")]
pub fn run_request(
    context: &Context,
    /// Name of the state, or of the request.
    #[default(DEFAULT_NAME.into())]
    name: String,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut requests = requests(context);
    let Some(request) = requests.shift_remove(name.as_str()) else { return Ok(Value::map()) };
    let mut said = request.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default();
    said.shift_remove("test");
    said.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
    said.extend(kwargs);
    let result = apply(context, request.get("mods").unwrap_or(&Value::Nil), said)?;
    save_requests(context, &requests)?;
    Ok(result)
}

/// Returns the stored call; the name of the request is not among its arguments.
fn apply(context: &Context, mods: &Value, mut keyword: Map) -> Result<Value, CallError> {
    keyword.shift_remove("name");
    context.call("state.apply", Args { positional: vec![mods.clone()], keyword })
}

fn no_request(name: &str) -> CallError {
    CallError::Execution(format!("unknown request '{name}': see state.check_request"))
}

fn path(context: &Context) -> PathBuf {
    context.config().cachedir.join("req_state.p")
}

fn requests(context: &Context) -> Map {
    let packed = std::fs::read(path(context)).unwrap_or_default();
    msgpack::unpack_map(&packed).unwrap_or_default()
}

fn save_requests(context: &Context, requests: &Map) -> Result<(), CallError> {
    let path = path(context);
    if requests.is_empty() {
        return match user_files::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CallError::execution(error)),
            _ => Ok(()),
        };
    }
    files::write_atomic(&path, &msgpack::pack_map(requests), 0o600).map_err(CallError::execution)
}
