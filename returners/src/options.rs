//! Options of returners: from the configuration, from an alternative set in it, or from the command line.

use brine_core::store::Store;
use brine_core::value::FromValue;
use brine_core::{Map, Value};

use crate::ReturnerError;

/// Where a returner finds its options.
#[derive(Debug, Clone, Default)]
pub struct Options {
    opts: Map,
    alternative: Option<String>,
    kwargs: Map,
    store: Option<Store>,
}

impl Options {
    /// The options in a configuration, and the store that `local_cache` is in.
    pub fn new(opts: &Map, store: Option<Store>) -> Self {
        Options { opts: opts.clone(), alternative: None, kwargs: Map::new(), store }
    }

    /// With `--return_config` (a prefix such as `alternative` in `alternative.redis.host`) and
    /// `--return_kwargs` (options by their names without prefix) of one job.
    #[must_use]
    pub fn for_job(mut self, alternative: Option<&str>, kwargs: &Map) -> Self {
        self.alternative = alternative.map(str::to_owned);
        self.kwargs.clone_from(kwargs);
        self
    }

    /// The store, for the returner that lives in it.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// An option of a returner.
    pub(crate) fn get<T: FromValue>(&self, returner: &str, name: &str, default: T) -> Result<T, ReturnerError> {
        let full = format!("{returner}.{name}");
        let alternative = self.alternative.as_ref().and_then(|prefix| lookup(&self.opts, &format!("{prefix}.{full}")));
        let found = self.kwargs.get(name).or(alternative).or_else(|| lookup(&self.opts, &full));
        match found.filter(|value| !value.is_nil()) {
            Some(value) => T::try_from_value(value)
                .map_err(|error| ReturnerError::Option { option: full, reason: error.to_string() }),
            None => Ok(default),
        }
    }
}

/// A dotted option, written as one key or as mappings in each other.
fn lookup<'a>(opts: &'a Map, name: &str) -> Option<&'a Value> {
    if let Some(value) = opts.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    lookup(opts.get(first)?.as_map()?, rest)
}

#[cfg(test)]
mod tests {
    use brine_core::map;

    use super::*;

    #[test]
    fn options_come_from_the_nearest_place() {
        let opts = map! {"redis.host" => "a", "redis" => map!{"port" => 7}, "other.redis.host" => "b"};
        let options = Options::new(&opts, None);
        let host = |options: &Options| options.get("redis", "host", String::new()).unwrap();
        assert_eq!(host(&options), "a");
        assert_eq!(options.get("redis", "port", 1u16).unwrap(), 7);
        assert_eq!(options.get("redis", "db", 3u32).unwrap(), 3);
        assert_eq!(host(&options.clone().for_job(Some("other"), &Map::new())), "b");
        assert_eq!(host(&options.clone().for_job(Some("other"), &map! {"host" => "c"})), "c");
        let error = Options::new(&map! {"redis.port" => "x"}, None).get("redis", "port", 1u16).unwrap_err();
        assert_eq!(error.to_string(), "option 'redis.port': expected a whole number from 0 to 65535, got str");
    }
}
