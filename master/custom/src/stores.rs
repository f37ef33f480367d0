//! Custom stores in Python: for tokens (`_tokens`, option `eauth_tokens`), and for data by bank and key (`_cache`,
//! options `cache` and `eauth_tokens.cache_driver`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_auth::CustomTokens;
use brine_config::MasterConfig;
use brine_function::{Args, CallError};
use brine_value::{FromValue, Map, Value, map};
use jiff::Timestamp;

use crate::modules::{self as custom, CustomModules};

/// The option that names the cache driver for tokens.
const TOKENS_DRIVER: &str = "eauth_tokens.cache_driver";
/// The name that Salt gives to the built-in stores.
const BUILT_IN: &str = "localfs";
/// The driver of `eauth_tokens.cache_driver` that leaves tokens to the module of `eauth_tokens`.
const LEFT_TO_TOKENS: &str = "rediscluster";
/// The bank of tokens.
const BANK: &str = "tokens";
/// The timeout of a call to a token store. Each request with a token waits for one.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a call to a cache driver.
const CACHE_TIMEOUT: Duration = Duration::from_secs(60);

/// A module of `_tokens` or `_cache`.
struct Module {
    custom: Arc<CustomModules>,
    kind: &'static str,
    name: String,
    longest: Duration,
}

impl Module {
    /// Opens the module that an option names. Returns `None` for the built-in store, and if there is no such module,
    /// which is logged as an error.
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

    /// Calls a function; `None` if the module does not have it.
    fn optional(&self, function: &str, args: Args) -> Result<Option<Value>, CallError> {
        let function = format!("{}.{function}", self.name);
        self.custom.call_other(self.kind, &function, args, self.longest).transpose()
    }

    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let missing =
            || CallError::execution(format!("there is no function {}.{function} in _{}", self.name, self.kind));
        self.optional(function, args)?.ok_or_else(missing)
    }
}

/// A module of `_tokens`.
struct Tokens(Module);

impl CustomTokens for Tokens {
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, CallError> {
        let opts = Value::from(Map::clone(self.0.custom.opts()));
        self.0.call(function, Args::positional([opts].into_iter().chain(args)))
    }
}

/// Tokens in a driver of `_cache`, as Salt 3008 stores them: data by secret in the bank `tokens`, with a time of expiry.
struct CachedTokens {
    driver: CacheDriver,
    /// Whether the driver's function `store` accepts the argument `expires`. Set once a token has been stored.
    takes_expires: OnceLock<bool>,
}

impl CachedTokens {
    /// Creates a token and returns its data.
    fn make(&self, mut token: Map) -> Result<Value, CallError> {
        let secret = brine_digest::hex(brine_crypt::token::random_bytes::<32>());
        token.insert("token".into(), secret.as_str().into());
        let now = Timestamp::now().as_millisecond() as f64 / 1000.0;
        let expire = token.get("expire").and_then(f64::from_value).unwrap_or(now);
        self.store(&secret, &token, now, expire)
            .map_err(|error| CallError::Execution(error.cause().replace(&secret, "<token>")))?;
        Ok(token.into())
    }

    /// Stores a token with the argument `expires` if the driver supports it, otherwise in an envelope with the expiry
    /// time.
    fn store(&self, secret: &str, token: &Map, now: f64, expire: f64) -> Result<(), CallError> {
        let stored = |data: Map, keyword: Map| {
            self.driver.call("store", vec![BANK.into(), secret.into(), data.into()], keyword).map(|_| ())
        };
        if self.takes_expires.get() != Some(&false) {
            let valid = (expire - now).max(1.0).ceil() as i64;
            match stored(token.clone(), map! {"expires" => valid}) {
                // As in Salt, a `TypeError` is interpreted as an unknown argument.
                Err(CallError::Arguments { .. }) => {}
                other => {
                    if other.is_ok() {
                        self.takes_expires.get_or_init(|| true);
                    }
                    return other;
                }
            }
        }
        stored(map! {"data" => token.clone(), "_expires" => expire.ceil() as i64}, Map::new())?;
        self.takes_expires.get_or_init(|| false);
        Ok(())
    }

    /// Returns the data of a token without its envelope.
    fn find(&self, secret: &str) -> Result<Value, CallError> {
        let value = self.driver.fetch(BANK, secret)?.unwrap_or_default();
        let is_envelope = value.as_map().is_some_and(|map| map.len() == 2 && map.contains_key("_expires"));
        Ok(if is_envelope { value.get("data").cloned().unwrap_or(value) } else { value })
    }
}

impl CustomTokens for CachedTokens {
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, CallError> {
        let first = args.into_iter().next().unwrap_or_default();
        match (function, first) {
            ("mk_token", Value::Map(token)) => self.make(token),
            ("get_token", Value::Str(secret)) => self.find(&secret),
            ("rm_token", Value::Str(secret)) => self.driver.flush(BANK, Some(&secret)).map(Value::from),
            ("list_tokens", _) => Ok(self.driver.list(BANK)?.into()),
            (function, _) => Err(CallError::Execution(format!("the call of {function} is invalid"))),
        }
    }
}

/// Returns the token store that `eauth_tokens.cache_driver` or `eauth_tokens` names; `None` for the master's own.
pub fn tokens(config: &MasterConfig, custom: &Arc<CustomModules>) -> Option<Arc<dyn CustomTokens>> {
    let option = |name: &str| config.opts.get(name).filter(|value| value.is_truthy()).map(Value::to_string);
    if let Some(name) = option(TOKENS_DRIVER).filter(|name| name != LEFT_TO_TOKENS) {
        let cluster = option("eauth_tokens.cluster_id");
        let driver = CacheDriver::named(config, custom, (TOKENS_DRIVER, &name), TOKEN_TIMEOUT, cluster)?;
        return Some(Arc::new(CachedTokens { driver, takes_expires: OnceLock::new() }));
    }
    let module = Module::open(config, custom, ("eauth_tokens", "tokens", &config.eauth_tokens), TOKEN_TIMEOUT)?;
    Some(Arc::new(Tokens(module)))
}

/// A custom cache driver, implemented by a module of `_cache`.
pub struct CacheDriver {
    module: Module,
    /// The argument that `init_kwargs` receives.
    given: Map,
    /// The keyword arguments returned by the driver's `init_kwargs`, which are added to each call.
    kwargs: OnceLock<Map>,
}

impl CacheDriver {
    /// Opens the driver that the option `cache` names; `None` for the master's store.
    pub fn open(config: &MasterConfig, custom: &Arc<CustomModules>) -> Option<Arc<Self>> {
        Self::named(config, custom, ("cache", &config.cache), CACHE_TIMEOUT, None).map(Arc::new)
    }

    /// Opens the driver that an option names, for the data of a cluster if `cluster` names one.
    fn named(
        config: &MasterConfig,
        custom: &Arc<CustomModules>,
        (option, name): (&str, &str),
        longest: Duration,
        cluster: Option<String>,
    ) -> Option<Self> {
        let module = Module::open(config, custom, (option, "cache", name), longest)?;
        let mut options = map! {"cachedir" => config.cachedir.display().to_string()};
        options.extend(cluster.map(|id| ("cluster_id".into(), id.into())));
        Some(CacheDriver { module, given: options, kwargs: OnceLock::new() })
    }

    /// Sets the data of a key.
    ///
    /// # Errors
    /// That of the driver's function.
    pub fn store(&self, bank: &str, key: &str, data: &Value) -> Result<(), CallError> {
        self.call("store", vec![bank.into(), key.into(), data.clone()], Map::new()).map(|_| ())
    }

    /// Returns the data of a key. Drivers return an empty mapping for a missing key.
    ///
    /// # Errors
    /// That of the driver's function.
    pub fn fetch(&self, bank: &str, key: &str) -> Result<Option<Value>, CallError> {
        let value = self.call("fetch", vec![bank.into(), key.into()], Map::new())?;
        Ok(Some(value).filter(|value| *value != Value::Nil))
    }

    /// Returns the names in a bank.
    ///
    /// # Errors
    /// That of the driver's function.
    pub fn list(&self, bank: &str) -> Result<Vec<String>, CallError> {
        match self.call("list", vec![bank.into()], Map::new())? {
            Value::List(names) => Ok(names.iter().map(ToString::to_string).collect()),
            Value::Nil => Ok(Vec::new()),
            other => {
                let name = &self.module.name;
                Err(CallError::Execution(format!("{name}.list returned '{other}': expected a list")))
            }
        }
    }

    /// Removes a key, or a bank with all banks below it. Returns whether the driver returned anything but false.
    ///
    /// # Errors
    /// That of the driver's function.
    pub fn flush(&self, bank: &str, key: Option<&str>) -> Result<bool, CallError> {
        let key = key.map(Value::from).unwrap_or_default();
        let flushed = self.call("flush", vec![bank.into()], map! {"key" => key})?;
        Ok(flushed == Value::Nil || flushed.is_truthy())
    }

    fn call(&self, function: &str, positional: Vec<Value>, mut keyword: Map) -> Result<Value, CallError> {
        let kwargs = if let Some(kwargs) = self.kwargs.get() {
            kwargs
        } else {
            let answer = self.module.optional("init_kwargs", Args::positional([self.given.clone().into()]))?;
            let answer = answer.and_then(|answer| answer.as_map().cloned()).unwrap_or_default();
            self.kwargs.get_or_init(|| answer)
        };
        keyword.extend(kwargs.clone());
        self.module.call(function, Args { positional, keyword })
    }
}
