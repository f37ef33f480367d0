//! `sdb`: values addressed by `sdb://<profile>/<key>`, in the database of a profile in the configuration or pillar.
//!
//! Drivers are Salt's: `env` (the minion's environment), `yaml` (files of this host), `sqlite3`, `rest` and `etcd`; and
//! custom modules (`_sdb`), which take precedence.
//! Minions, and the master for its own configuration, runner functions and templates, share this module.

mod drivers;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::random;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sdb`.
pub static FUNCTIONS: Functions<Context> = registry!("sdb", [get, set, delete, get_or_set_hash]);

/// Return the value of a key by `sdb://<profile>/<key>`. Any other string is returned unchanged, or is an error
/// with `strict`.
///
/// CLI Example:
///
///     salt '*' sdb.get sdb://osenv/HOME
#[function]
pub fn get(
    context: &Context,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
    /// Whether a missing profile or key is an error.
    #[default(false)]
    strict: bool,
) -> CallResult {
    match Entry::of(context, &uri) {
        Ok(entry) => entry.get(context),
        Err(message) if strict => Err(CallError::Invocation { function: "sdb.get".into(), message }),
        Err(_) => Ok(uri),
    }
}

/// Set the value of a key by `sdb://<profile>/<key>`. Returns false for any other string.
///
/// CLI Example:
///
///     salt '*' sdb.set sdb://osenv/NAME value
#[function]
pub fn set(
    context: &Context,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
    /// New value.
    value: Value,
) -> CallResult {
    match Entry::of(context, &uri) {
        Ok(entry) => entry.set(context, value),
        Err(_) => Ok(false.into()),
    }
}

/// Delete a key by `sdb://<profile>/<key>`. Returns false for any other string.
///
/// CLI Example:
///
///     salt '*' sdb.delete sdb://osenv/NAME
#[function]
pub fn delete(
    context: &Context,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
) -> CallResult {
    match Entry::of(context, &uri) {
        Ok(entry) => entry.delete(context),
        Err(_) => Ok(false.into()),
    }
}

/// Return the value of a key by `sdb://<profile>/<key>`; if it has none, set it to `length` random characters of
/// `chars` first.
///
/// CLI Example:
///
///     salt '*' sdb.get_or_set_hash sdb://osenv/SECRET 50
#[function]
pub fn get_or_set_hash(
    context: &Context,
    /// URI `sdb://PROFILE/KEY`.
    uri: Value,
    /// Number of characters of a new value.
    #[default(8)]
    length: usize,
    /// Characters of a new value.
    #[default("abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)".into())]
    chars: String,
) -> CallResult {
    let Ok(entry) = Entry::of(context, &uri) else { return Ok(false.into()) };
    let value = entry.get(context)?;
    if !value.is_nil() {
        return Ok(value);
    }
    let value = random::get_str(context, length, Some(chars), true, true, true, true, false)?;
    entry.set(context, value.clone())?;
    Ok(value)
}

/// The built-in drivers.
const BUILT_IN: &[&str] = &["env", "yaml", "sqlite3", "rest", "etcd"];

/// A key of a profile.
struct Entry {
    driver: String,
    profile: Map,
    key: String,
}

impl Entry {
    /// Parses a URI into a profile and a key.
    fn of(context: &Context, uri: &Value) -> Result<Self, String> {
        let address = uri.as_str().and_then(|uri| uri.strip_prefix("sdb://"));
        let address = address.ok_or("SDB uri must start with \"sdb://\"")?;
        let (name, key) = address
            .split_once('/')
            .filter(|(_, key)| !key.is_empty())
            .ok_or("SDB uri must have a profile name as a first part of the uri before the /")?;
        let (opts, pillar) = (context.opts(), context.pillar());
        let in_opts = opts.get(name).and_then(Value::as_map).filter(|profile| !profile.is_empty());
        let profile = in_opts.or_else(|| pillar.get(name).and_then(Value::as_map));
        let driver = profile.and_then(|profile| profile.get("driver"));
        let (Some(profile), Some(driver)) = (profile, driver) else {
            return Err(format!("SDB profile \"{name}\" wasnt found in the minion configuration"));
        };
        Ok(Entry { driver: driver.to_string(), profile: profile.clone(), key: key.to_owned() })
    }

    fn get(&self, context: &Context) -> Result<Value, CallError> {
        if let Some(result) = self.custom(context, "get", None) {
            return result;
        }
        match self.driver.as_str() {
            "env" => Ok(drivers::env::get(&self.key)),
            "yaml" => drivers::yaml::get(context, &self.profile, &self.key),
            "sqlite3" => drivers::sqlite3::get(&self.profile, &self.key),
            "rest" => drivers::rest::get(context, &self.profile, &self.key),
            "etcd" => drivers::etcd::get(context, &self.profile, &self.key),
            _ => Err(self.unsupported("get")),
        }
    }

    fn set(&self, context: &Context, value: Value) -> Result<Value, CallError> {
        if let Some(result) = self.custom(context, "set", Some(&value)) {
            return result;
        }
        match self.driver.as_str() {
            "env" => Ok(drivers::env::set(&self.key, value)),
            "sqlite3" => drivers::sqlite3::set(&self.profile, &self.key, &value),
            "etcd" => drivers::etcd::set(context, &self.profile, &self.key, &value),
            _ => Err(self.unsupported("set")),
        }
    }

    fn delete(&self, context: &Context) -> Result<Value, CallError> {
        if let Some(result) = self.custom(context, "delete", None) {
            return result;
        }
        match self.driver.as_str() {
            "etcd" => drivers::etcd::delete(context, &self.profile, &self.key),
            _ => Err(self.unsupported("delete")),
        }
    }

    /// Calls a function of a custom driver module; `None` if the driver is built in, or no module has the function.
    fn custom(&self, context: &Context, what: &str, value: Option<&Value>) -> Option<CallResult> {
        let modules = &context.minion.custom;
        if BUILT_IN.contains(&self.driver.as_str()) && !modules.has_file("sdb", &self.driver) {
            return None;
        }
        let positional = [Some(&Value::from(&self.key)), value].into_iter().flatten().cloned().collect();
        let args = Args { positional, keyword: map! {"profile" => self.profile.clone()} };
        let called = modules.call_of(context, "sdb", &format!("{}.{what}", self.driver), args);
        called.or_else(|| modules.failure("sdb", &self.driver).map(|failure| Err(CallError::Execution(failure))))
    }

    fn unsupported(&self, what: &str) -> CallError {
        let driver = &self.driver;
        CallError::Execution(format!(
            "sdb.{what} failed: the SDB driver '{driver}' cannot do this: env and sqlite3 can get and set, yaml and rest \
             can get, etcd can get, set and delete, modules in _sdb what they define"
        ))
    }
}

#[cfg(test)]
mod tests;
