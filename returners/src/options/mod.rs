//! The options of returners: from the command line, an alternative set in the configuration, or the configuration.
//! A server that a job names (`ret_kwargs`) gets no credential of the configuration; `roles.rs` lists which options name
//! servers, and which are credentials.

mod roles;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use brine_bus::store::BlockingStore;
use brine_config::BadOption;
use brine_config::opts::shared;
use brine_value::{FromValue, Map, Value};

use crate::ReturnerError;
use roles::Role;

/// The sources of a returner's options, and the store of the master.
#[derive(Debug, Clone, Default)]
pub struct Options {
    opts: Map,
    alternative: Option<String>,
    kwargs: Map,
    grains: Arc<Map>,
    store: Option<BlockingStore>,
}

impl Options {
    /// Creates options from a configuration and, in the master, the store of `local_cache`.
    pub fn new(opts: &Map, store: Option<BlockingStore>) -> Self {
        Options { opts: opts.clone(), alternative: None, kwargs: Map::new(), grains: Arc::default(), store }
    }

    /// Adds the `--return_config` of a job (a prefix such as `alternative` in `alternative.redis.host`) and its
    /// `--return_kwargs` (options by their names without prefix).
    #[must_use]
    pub fn for_job(mut self, alternative: Option<&str>, kwargs: &Map) -> Self {
        self.alternative = alternative.filter(|prefix| !prefix.is_empty()).map(str::to_owned);
        self.kwargs.clone_from(kwargs);
        self
    }

    /// Adds the grains of this minion, which titles of reports may contain.
    #[must_use]
    pub fn with_grains(mut self, grains: Arc<Map>) -> Self {
        self.grains = grains;
        self
    }

    /// Returns whether the option `disable_returners` names a returner, or Salt's file of it.
    pub(crate) fn is_disabled(&self, name: &str) -> bool {
        let endings = ["", "_return", "_returner"];
        let is_it = |one: &String| endings.iter().any(|ending| one.strip_suffix(ending) == Some(name));
        shared::disable_returners(&self.opts).iter().any(is_it)
    }

    /// Replaces `{name}` with the grain of this name, as in titles of reports; `{id}` is known without grains. Unknown
    /// grains are empty, as in Salt.
    pub(crate) fn with_grains_in(&self, text: &str) -> String {
        let parts = text.split(['{', '}']).enumerate();
        let grain = |name: &str| match self.grains.get(name) {
            Some(value) => value.to_string(),
            None if name == "id" => self.own_id().unwrap_or_default(),
            None => String::new(),
        };
        parts.map(|(index, part)| if index % 2 == 1 { grain(part) } else { part.to_owned() }).collect()
    }

    /// Returns a setting by its whole name, such as `multi_returner`.
    pub(crate) fn setting<T: FromValue>(&self, name: &str) -> Result<Option<T>, ReturnerError> {
        lookup(&self.opts, name).map(|value| read(name, value)).transpose()
    }

    /// Returns the file of the trusted certificate authorities (`ca_bundle`).
    pub(crate) fn ca_bundle(&self) -> Result<Option<PathBuf>, ReturnerError> {
        Ok(self.setting::<String>("ca_bundle")?.map(PathBuf::from))
    }

    /// Returns a required option of a returner.
    ///
    /// # Errors
    /// [`ReturnerError::Option`] if it is unset.
    pub(crate) fn required<T: FromValue>(&self, returner: &str, name: &str) -> Result<T, ReturnerError> {
        self.get(returner, name)?.ok_or_else(|| ReturnerError::Option {
            option: format!("{returner}.{name}"),
            reason: "it is required".to_owned(),
        })
    }

    /// Returns the master's store, or `None` in other processes.
    pub(crate) fn store(&self) -> Option<&BlockingStore> {
        self.store.as_ref()
    }

    /// Returns an option of a returner: from `--return_kwargs`, else the alternative set, else the configuration. An
    /// empty string counts as unset. Credentials of the configuration are unset if the job names another destination.
    pub(crate) fn get<T: FromValue>(&self, returner: &str, name: &str) -> Result<Option<T>, ReturnerError> {
        let full = format!("{returner}.{name}");
        if let Some(value) = set(self.kwargs.get(name)) {
            return read(&full, value).map(Some);
        }
        let Some(value) = self.configured(returner, name) else { return Ok(None) };
        if roles::role(name) == Role::Neutral || !self.is_redirected(returner) {
            return read(&full, value).map(Some);
        }
        if roles::role(name) == Role::Credential {
            tracing::warn!(
                option = full,
                "a credential of the configuration is not used: ret_kwargs name another server or account, and have to name its credential, too"
            );
            return Ok(None);
        }
        read(&full, &without_login(value)).map(Some)
    }

    /// Returns an option from the alternative set, else the configuration.
    fn configured(&self, returner: &str, name: &str) -> Option<&Value> {
        let full = format!("{returner}.{name}");
        let of_alternative = || lookup(&self.opts, &format!("{}.{full}", self.alternative.as_ref()?));
        of_alternative().or_else(|| lookup(&self.opts, &full))
    }

    /// Whether `--return_kwargs` name another server or account than the configuration.
    pub(crate) fn is_redirected(&self, returner: &str) -> bool {
        self.kwargs.iter().any(|(name, value)| {
            let name = name.to_string();
            roles::role(&name) == Role::Destination
                && set(Some(value)).is_some_and(|value| {
                    self.configured(returner, &name).is_none_or(|own| own.to_string() != value.to_string())
                })
        })
    }

    /// Returns `keep_jobs_seconds`, or `keep_jobs` converted from hours; 0 means forever.
    pub(crate) fn keep_jobs_seconds(&self) -> Result<u64, ReturnerError> {
        let lifetime = brine_config::job_lifetime(&self.opts).map_err(|BadOption { name, error }| {
            ReturnerError::Option { option: name.to_owned(), reason: error.to_string() }
        })?;
        Ok(lifetime.as_secs())
    }

    /// Returns whether old jobs are archived (`archive_jobs`).
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn archive_jobs(&self) -> bool {
        brine_config::opts::master::archive_jobs(&self.opts)
    }

    /// Returns the id of this master or minion.
    pub(crate) fn own_id(&self) -> Option<String> {
        brine_config::opts::master::id(&self.opts)
    }
}

/// Removes the user and the password from URLs.
fn without_login(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Str(url) => match url.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let host = rest[..end].rsplit('@').next().unwrap_or_default();
                Cow::Owned(format!("{scheme}://{host}{}", &rest[end..]).into())
            }
            None => Cow::Borrowed(value),
        },
        Value::List(all) => Cow::Owned(all.iter().map(|one| without_login(one).into_owned()).collect()),
        _ => Cow::Borrowed(value),
    }
}

fn set(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_nil() && value.as_str() != Some(""))
}

fn read<T: FromValue>(option: &str, value: &Value) -> Result<T, ReturnerError> {
    T::try_from_value(value)
        .map_err(|error| ReturnerError::Option { option: option.to_owned(), reason: error.to_string() })
}

/// Looks up a dotted option, written as one key or as nested mappings split at any of its dots.
fn lookup<'a>(opts: &'a Map, name: &str) -> Option<&'a Value> {
    let nested =
        || name.match_indices('.').find_map(|(dot, _)| lookup(opts.get(&name[..dot])?.as_map()?, &name[dot + 1..]));
    set(opts.get(name)).or_else(nested)
}

#[cfg(test)]
mod tests;
