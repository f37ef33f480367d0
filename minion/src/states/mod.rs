//! State functions: one file a Salt module, each declared with `brine_function::functions!`.
//!
//! A state function looks at the host, changes what differs, unless it is only asked what it would
//! do, and says so in a [`StateReturn`].

mod acl;
mod alias;
mod alternatives;
mod apache_conf;
mod apache_module;
mod apache_site;
mod archive;
pub mod available;
mod beacon;
mod cmd;
mod cron;
mod debconf;
mod environ;
mod event;
mod file;
mod git;
mod grains;
mod group;
mod host;
mod http;
mod ini;
mod iptables;
mod kmod;
mod locale;
mod logrotate;
mod r#loop;
mod module;
mod mount;
mod pip;
mod pkg;
mod pkgrepo;
mod process;
mod salt;
mod saltutil;
mod schedule;
mod service;
mod ssh_auth;
mod ssh_known_hosts;
mod sysctl;
mod test;
mod timezone;
mod user;
mod virtualenv;

use std::sync::Arc;

use brine_function::Function;
use brine_sls::compile::Chunk;
use brine_value::{Map, Value};

use crate::context::Context;

pub(crate) use file::{Choice, copy_tree, replace_link};
pub use salt::is_success;

/// All state functions: one line a module.
pub static MODULES: &[&[Function<StateContext>]] = &[
    acl::FUNCTIONS,
    alias::FUNCTIONS,
    alternatives::FUNCTIONS,
    apache_conf::FUNCTIONS,
    apache_module::FUNCTIONS,
    apache_site::FUNCTIONS,
    archive::FUNCTIONS,
    beacon::FUNCTIONS,
    cmd::FUNCTIONS,
    cron::FUNCTIONS,
    debconf::FUNCTIONS,
    environ::FUNCTIONS,
    event::FUNCTIONS,
    file::FUNCTIONS,
    file::edits::FUNCTIONS,
    git::FUNCTIONS,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    host::FUNCTIONS,
    http::FUNCTIONS,
    ini::FUNCTIONS,
    iptables::FUNCTIONS,
    kmod::FUNCTIONS,
    locale::FUNCTIONS,
    logrotate::FUNCTIONS,
    r#loop::FUNCTIONS,
    module::FUNCTIONS,
    mount::FUNCTIONS,
    pip::FUNCTIONS,
    pkg::FUNCTIONS,
    pkgrepo::FUNCTIONS,
    process::FUNCTIONS,
    salt::FUNCTIONS,
    saltutil::FUNCTIONS,
    schedule::FUNCTIONS,
    service::FUNCTIONS,
    ssh_auth::FUNCTIONS,
    ssh_known_hosts::FUNCTIONS,
    sysctl::FUNCTIONS,
    test::FUNCTIONS,
    timezone::FUNCTIONS,
    user::FUNCTIONS,
    virtualenv::FUNCTIONS,
];

/// Takes another state along, if they fit together: says whether it did.
pub type Aggregate = fn(&mut Chunk, &Chunk) -> bool;

/// The modules whose states can be put together: `aggregate`.
static AGGREGATES: &[(&str, Aggregate)] = &[("pkg", pkg::aggregate)];

/// How states of a module are put together, if they can be.
pub fn aggregate_of(module: &str) -> Option<Aggregate> {
    AGGREGATES.iter().find(|(name, _)| *name == module).map(|(_, aggregate)| *aggregate)
}

/// The context of state functions.
#[derive(Clone)]
pub struct StateContext {
    /// What execution functions see.
    pub call: Context,
    /// Whether the state only says what it would do.
    pub test: bool,
    /// The environment of the SLS that the state is from.
    pub saltenv: String,
    /// The SLS that the state is from.
    pub sls: String,
    /// The id of the state.
    pub id: String,
    /// The low chunk's arguments: for functions that look at other ones than their own. When `mod_watch` is
    /// called, `__reqs__` has by kind of requisite which states it came from: `state`, `__id__`, `name` and
    /// `changes` of each.
    pub chunk: Arc<Map>,
    /// The states that this one requires, by module and name: what `clean` keeps.
    pub required: Vec<(String, String)>,
}

/// What a state function has to say.
#[derive(Debug, Clone, PartialEq)]
pub struct StateReturn {
    /// The name that the state is about.
    pub name: String,
    /// `Some(true)`: as it should be; `Some(false)`: failed; `None`: would change (test mode).
    pub result: Option<bool>,
    /// What was done, in words.
    pub comment: String,
    /// What changed.
    pub changes: Map,
    /// Further keys that some states return: `pchanges`, `warnings`, `skip_watch`, ...
    pub more: Map,
}

impl StateReturn {
    /// All is as it should be.
    pub fn ok(name: &str, comment: impl Into<String>) -> Self {
        StateReturn {
            name: name.to_owned(),
            result: Some(true),
            comment: comment.into(),
            changes: Map::new(),
            more: Map::new(),
        }
    }

    /// The state could not be reached.
    pub fn failed(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: Some(false), ..Self::ok(name, comment) }
    }

    /// Something would change if this were no test.
    pub fn would(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: None, ..Self::ok(name, comment) }
    }

    /// With these changes.
    #[must_use]
    pub fn with_changes(mut self, changes: Map) -> Self {
        self.changes = changes;
        self
    }

    /// As a value with its entries in another order than most states have: returns are shown in their order.
    pub fn in_order(self, order: [&str; 4]) -> Value {
        let mut told = self.into_map();
        for (place, key) in order.into_iter().enumerate() {
            if let Some(index) = told.get_index_of(key) {
                told.move_index(index, place);
            }
        }
        told.into()
    }

    fn into_map(self) -> Map {
        let mut map = brine_value::map! {
            "name" => self.name,
            "changes" => self.changes,
            "result" => self.result,
            "comment" => self.comment,
        };
        map.extend(self.more);
        map
    }
}

impl From<StateReturn> for Value {
    fn from(state: StateReturn) -> Self {
        Value::Map(state.into_map())
    }
}
