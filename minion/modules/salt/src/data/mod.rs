//! `data`: values that this minion stores, in the file `datastore` of its cache.

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value, msgpack};
use parking_lot::Mutex;

/// Serialises changes of the file, since jobs run in parallel.
static WRITE_LOCK: Mutex<()> = Mutex::new(());

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `data`.
pub static FUNCTIONS: Functions<Context> =
    registry!("data", [clear, load, items, dump, update, cas, pop, get, keys, values, has_key]);

/// Remove all values.
///
/// CLI Example:
///
///     salt '*' data.clear
#[function]
pub fn clear(context: &Context) -> CallResult {
    let _lock = WRITE_LOCK.lock();
    match user_files::remove_file(path(context)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CallError::execution(error)),
        _ => Ok(true.into()),
    }
}

/// Return all values.
///
/// CLI Example:
///
///     salt '*' data.load
#[function]
pub fn load(context: &Context) -> CallResult {
    Ok(stored(context)?.into())
}

/// Return all values, as `load`.
///
/// CLI Example:
///
///     salt '*' data.items
#[function]
pub fn items(context: &Context) -> CallResult {
    Ok(stored(context)?.into())
}

/// Replace all values by the entries of a mapping.
///
/// CLI Example:
///
///     salt '*' data.dump "{'eggs': 'spam'}"
#[function]
pub fn dump(
    context: &Context,
    /// All data, as a mapping.
    new_data: Value,
) -> CallResult {
    let new_data = match new_data {
        Value::Str(text) => brine_yaml::load(&text).map_err(CallError::execution)?,
        other => other,
    };
    let Value::Map(new_data) = new_data else { return Ok(false.into()) };
    let _lock = WRITE_LOCK.lock();
    store(context, &new_data)?;
    Ok(true.into())
}

/// Store a value under a key.
///
/// CLI Example:
///
///     salt '*' data.update eggs spam
#[function]
pub fn update(
    context: &Context,
    /// Key of the value.
    key: Value,
    /// New value.
    value: Value,
) -> CallResult {
    change(context, |stored| _ = stored.insert(key, value))?;
    Ok(true.into())
}

/// Replace a value if it equals the old one, and return whether it did (compare and swap).
///
/// CLI Example:
///
///     salt '*' data.cas eggs 'new value' 'old value'
#[function]
pub fn cas(
    context: &Context,
    /// Key of the value.
    key: Value,
    /// New value.
    value: Value,
    /// Value that is replaced; with any other one nothing is changed.
    old_value: Value,
) -> CallResult {
    let is_there = change(context, |stored| match stored.get_mut(&key).filter(|have| **have == old_value) {
        Some(have) => {
            *have = value;
            true
        }
        None => false,
    });
    Ok(is_there?.into())
}

/// Remove a value and return it.
///
/// CLI Example:
///
///     salt '*' data.pop eggs
#[function]
pub fn pop(
    context: &Context,
    /// Key of the value.
    key: Value,
    /// Result if there is no such key.
    #[default]
    default: Value,
) -> CallResult {
    Ok(change(context, |stored| stored.shift_remove(&key))?.unwrap_or(default))
}

/// Return the value of a key, or a list of the values of several keys.
///
/// CLI Example:
///
///     salt '*' data.get eggs
#[function]
pub fn get(
    context: &Context,
    /// Key of the value.
    key: Value,
    /// Result if there is no such key.
    #[default]
    default: Value,
) -> CallResult {
    let stored = stored(context)?;
    let Value::List(names) = key else { return Ok(stored.get(&key).cloned().unwrap_or(default)) };
    let values = names.iter().map(|name| stored.get(name).or((!default.is_nil()).then_some(&default)));
    Ok(values.flatten().cloned().collect())
}

/// Return the keys of all values.
///
/// CLI Example:
///
///     salt '*' data.keys
#[function]
pub fn keys(context: &Context) -> CallResult {
    Ok(stored(context)?.into_keys().collect())
}

/// Return all values without their keys.
///
/// CLI Example:
///
///     salt '*' data.values
#[function]
pub fn values(context: &Context) -> CallResult {
    Ok(stored(context)?.into_values().collect())
}

/// Return whether there is a value for a key.
///
/// CLI Example:
///
///     salt '*' data.has_key eggs
#[function]
pub fn has_key(
    context: &Context,
    /// Key of the value.
    key: Value,
) -> CallResult {
    Ok(stored(context)?.contains_key(&key).into())
}

fn path(context: &Context) -> std::path::PathBuf {
    context.config().cachedir.join("datastore")
}

/// Reads the stored values. An invalid file is renamed.
fn stored(context: &Context) -> Result<Map, CallError> {
    let path = path(context);
    let packed = match std::fs::read(&path) {
        Ok(packed) => packed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(CallError::Execution(format!("reading {} failed: {error}", path.display()))),
    };
    msgpack::unpack_map(&packed).or_else(|error| {
        let aside = path.with_extension("damaged");
        user_files::rename(&path, &aside).map_err(CallError::execution)?;
        tracing::error!(path = %aside.display(), %error, "the stored values of `data` are invalid and were renamed");
        Ok(Map::new())
    })
}

fn store(context: &Context, values: &Map) -> Result<(), CallError> {
    files::write_atomic(path(context), &msgpack::pack_map(values), 0o600).map_err(CallError::execution)
}

fn change<T>(context: &Context, how: impl FnOnce(&mut Map) -> T) -> Result<T, CallError> {
    let _lock = WRITE_LOCK.lock();
    let mut values = stored(context)?;
    let answer = how(&mut values);
    store(context, &values)?;
    Ok(answer)
}

#[cfg(test)]
mod tests;
