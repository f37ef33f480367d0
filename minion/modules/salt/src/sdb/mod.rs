//! `sdb`: values addressed by `sdb://<profile>/<key>`, in the database of a profile in the configuration or pillar.
//!
//! Drivers are Salt's: `env` (the minion's environment), `yaml` (files of this host), `sqlite3`, `rest` and `etcd`; and
//! custom modules (`_sdb`), which take precedence.
//! Minions, and the master for its own configuration, runner functions and templates, share this module.

mod drivers;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value, map};

use super::random;

pub(super) static MODULE: Module = Module { functions: &[FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sdb`.
pub static FUNCTIONS: &[Function<Context>] = registry!("sdb", [get, set, delete, get_or_set_hash]);

/// Return the value of a key by `sdb://<profile>/<key>`. Any other string is returned unchanged, or is an error
/// with `strict`.
///
/// CLI Example:
///
///     salt '*' sdb.get sdb://osenv/HOME
#[function]
pub fn get(context: &Context, uri: Value, #[default(false)] strict: bool) -> CallResult {
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
pub fn set(context: &Context, uri: Value, value: Value) -> CallResult {
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
pub fn delete(context: &Context, uri: Value) -> CallResult {
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
    uri: Value,
    #[default(8)] length: usize,
    #[default("abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)".into())] chars: String,
) -> CallResult {
    let Ok(entry) = Entry::of(context, &uri) else { return Ok(false.into()) };
    let found = entry.get(context)?;
    if !found.is_nil() {
        return Ok(found);
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
mod tests {
    use std::sync::Arc;

    use brine_value::list;

    use super::*;
    use crate::testing;

    fn context(profiles: Map) -> Context {
        let mut context = testing::context(&[]);
        context.run_opts = Some(Arc::new(profiles));
        context.run_pillar = Some(Arc::new(map! {"of_pillar" => map! {"driver" => "env"}}));
        context
    }

    #[test]
    fn values_come_from_the_driver_of_the_profile() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
            directory.path().join(name)
        };
        let files = list![
            write("a.yaml", "db: {user: me, hosts: [a]}\n"),
            write("b.yaml", "db: {password: xyzzy, hosts: [b]}\n"),
            directory.path().join("none.yaml")
        ];
        let context = context(map! {
            "osenv" => map! {"driver" => "env"},
            "files" => map! {"driver" => "yaml", "files" => files.clone()},
            "lists" => map! {"driver" => "yaml", "files" => files, "merge" => map! {"merge_lists" => true}},
            "broken" => map! {"driver" => "yaml", "files" => list![write("c.yaml", "- a\n")]},
            "vault" => map! {"driver" => "vault"},
        });
        let call = |fun: &str, args: &[&str]| {
            let args = Args::positional(args.iter().map(|arg| Value::from(*arg)));
            context.call(&format!("sdb.{fun}"), args).map_err(|error| error.to_string())
        };
        let path = Value::from(std::env::var("PATH").unwrap());
        for (uri, expected) in [
            ("sdb://osenv/PATH", Ok(path.clone())),
            ("sdb://of_pillar/PATH", Ok(path.clone())),
            ("sdb://osenv/BRINE_NOT_THERE", Ok(Value::Nil)),
            ("sdb://files/db:user", Ok("me".into())),
            ("sdb://files/db:password", Ok("xyzzy".into())),
            ("sdb://files/db:hosts", Ok(list!["b"])),
            ("sdb://lists/db:hosts", Ok(list!["a", "b"])),
            ("sdb://files/none", Ok(Value::Nil)),
            ("sdb://none/x", Ok("sdb://none/x".into())),
            ("sdb://osenv", Ok("sdb://osenv".into())),
            ("https://x", Ok("https://x".into())),
        ] {
            assert_eq!(call("get", &[uri]), expected, "{uri}");
        }
        for (uri, part) in
            [("sdb://vault/x", "the SDB driver 'vault'"), ("sdb://broken/x", "expected a mapping, got list")]
        {
            assert!(call("get", &[uri]).unwrap_err().contains(part), "{uri}");
        }
        for (uri, part) in [
            ("https://x", "must start with"),
            ("sdb://osenv", "must have a profile name"),
            ("sdb://none/x", "\"none\" wasnt found"),
        ] {
            let error =
                context.call("sdb.get", Args { positional: vec![uri.into()], keyword: map! {"strict" => true} });
            assert!(error.unwrap_err().to_string().contains(part), "{uri}");
        }
        assert_eq!(call("set", &["sdb://osenv/PATH", "x"]), Ok(path));
        assert_eq!(call("set", &["sdb://osenv/BRINE_SDB_SET", "x"]), Ok("x".into()));
        assert_eq!(call("get", &["sdb://osenv/BRINE_SDB_SET"]), Ok("x".into()));
        assert_eq!(call("set", &["x", "x"]), Ok(false.into()));
        assert!(call("set", &["sdb://files/x", "x"]).is_err());
        let made = call("get_or_set_hash", &["sdb://osenv/BRINE_SDB_HASH"]).unwrap();
        assert_eq!(made.to_string().chars().count(), 8);
        assert_eq!(call("get_or_set_hash", &["sdb://osenv/BRINE_SDB_HASH"]), Ok(made));
    }
}
