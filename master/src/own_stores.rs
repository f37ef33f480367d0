//! Stores of the operator's own in Python: of tokens (`_tokens`, option `eauth_tokens`) and of data by bank and key
//! (`_cache`, option `cache`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_auth::OwnTokens;
use brine_config::MasterConfig;
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use crate::custom::{self, CustomModules};

/// Salt's name of the built-in stores.
const BUILT_IN: &str = "localfs";
/// How long a call of a token store may take: each request with a token waits for one.
const TOKENS: Duration = Duration::from_secs(10);
/// How long a call of a cache driver may take.
const CACHE: Duration = Duration::from_secs(60);

/// A module of `_tokens` or `_cache`.
struct Module {
    custom: Arc<CustomModules>,
    kind: &'static str,
    name: String,
    longest: Duration,
}

impl Module {
    /// Returns the module that an option names; `None` for the built-in store, and with an error in the log if there is
    /// no such module.
    fn open(
        config: &MasterConfig,
        custom: &Arc<CustomModules>,
        (option, kind, name): (&str, &'static str, &str),
        longest: Duration,
    ) -> Option<Self> {
        let is_file = custom::has_file(config, kind, name);
        if !is_file && name == BUILT_IN {
            return None;
        }
        if !is_file && !custom::may_have(config, kind, name) {
            tracing::error!(
                "option '{option}': there is no module '{name}' in '_{kind}': the master's store is used; sync the \
                 module and restart the master"
            );
            return None;
        }
        Some(Module { custom: Arc::clone(custom), kind, name: name.to_owned(), longest })
    }

    /// Calls a function; `None` if the module has none of this name.
    fn optional(&self, function: &str, args: Args) -> Result<Option<Value>, String> {
        let function = format!("{}.{function}", self.name);
        let called = self.custom.call_other(self.kind, &function, args, self.longest);
        called.transpose().map_err(|error| match error {
            CallError::Exception(message) => message,
            error => error.message(),
        })
    }

    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        let missing = || format!("there is no function {}.{function} in _{}", self.name, self.kind);
        self.optional(function, args)?.ok_or_else(missing)
    }
}

/// A module of `_tokens`.
struct Tokens(Module);

impl OwnTokens for Tokens {
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, String> {
        let opts = Value::from(Map::clone(self.0.custom.opts()));
        self.0.call(function, Args::positional([opts].into_iter().chain(args)))
    }
}

/// Returns the token store that `eauth_tokens` names; `None` for the master's own.
pub(crate) fn tokens(config: &MasterConfig, custom: &Arc<CustomModules>) -> Option<Arc<dyn OwnTokens>> {
    let module = Module::open(config, custom, ("eauth_tokens", "tokens", &config.eauth_tokens), TOKENS)?;
    Some(Arc::new(Tokens(module)))
}

/// A driver of `_cache`.
pub(crate) struct CacheDriver {
    module: Module,
    cachedir: Value,
    /// The arguments that `init_kwargs` of the driver adds to each call.
    kwargs: OnceLock<Map>,
}

impl CacheDriver {
    /// Returns the driver that `cache` names; `None` for the master's store.
    pub fn open(config: &MasterConfig, custom: &Arc<CustomModules>) -> Option<Arc<Self>> {
        let module = Module::open(config, custom, ("cache", "cache", &config.cache), CACHE)?;
        let cachedir = config.cachedir.display().to_string().into();
        Some(Arc::new(CacheDriver { module, cachedir, kwargs: OnceLock::new() }))
    }

    /// Sets the data of a key.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn store(&self, bank: &str, key: &str, data: &Value) -> Result<(), String> {
        self.call("store", vec![bank.into(), key.into(), data.clone()], Map::new()).map(|_| ())
    }

    /// Returns the data of a key; drivers return an empty mapping for one that they do not have.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn fetch(&self, bank: &str, key: &str) -> Result<Option<Value>, String> {
        let found = self.call("fetch", vec![bank.into(), key.into()], Map::new())?;
        Ok(Some(found).filter(|found| *found != Value::Nil))
    }

    /// Returns the names in a bank.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn list(&self, bank: &str) -> Result<Vec<String>, String> {
        match self.call("list", vec![bank.into()], Map::new())? {
            Value::List(names) => Ok(names.iter().map(ToString::to_string).collect()),
            Value::Nil => Ok(Vec::new()),
            other => Err(format!("{}.list returned '{other}': expected a list", self.module.name)),
        }
    }

    /// Removes a key, or a bank with all banks below it. Returns whether the driver returned anything but false.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn flush(&self, bank: &str, key: Option<&str>) -> Result<bool, String> {
        let key = key.map(Value::from).unwrap_or_default();
        let flushed = self.call("flush", vec![bank.into()], map! {"key" => key})?;
        Ok(flushed == Value::Nil || flushed.is_truthy())
    }

    fn call(&self, function: &str, positional: Vec<Value>, mut keyword: Map) -> Result<Value, String> {
        let kwargs = if let Some(kwargs) = self.kwargs.get() {
            kwargs
        } else {
            let given = map! {"cachedir" => self.cachedir.clone()};
            let answer = self.module.optional("init_kwargs", Args::positional([given.into()]))?;
            let answer = answer.and_then(|answer| answer.as_map().cloned()).unwrap_or_default();
            self.kwargs.get_or_init(|| answer)
        };
        keyword.extend(kwargs.clone());
        self.module.call(function, Args { positional, keyword })
    }
}
