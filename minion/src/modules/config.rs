//! `config`: options by name, from wherever they are said first.

use brine_core::target::traverse;
use brine_core::{Value, functions};

use crate::context::Context;

functions! {
    module "config", context Context;

    /// The first of the minion's options, its grains and its pillar that has a value at this path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.get pkg:apache
    fn get(context, key: String, default: Value = "".into(), delimiter: String = ":".into()) {
        let places = [&context.config().opts, &*context.grains(), &*context.pillar()].map(|map| Value::Map(map.clone()));
        Ok(places.iter().find_map(|place| traverse(place, &key, &delimiter).cloned()).unwrap_or(default))
    }

    /// As `get`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.option root_dir
    fn option(context, value: String, default: Value = "".into()) {
        get(context, value, default, ":".into())
    }
}
