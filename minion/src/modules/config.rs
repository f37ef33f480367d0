//! `config`: options by name, from wherever they are said first.

use brine_core::sls::pillar::merge_deep;
use brine_core::target::entry_at;
use brine_core::{Map, Value, functions};

use crate::context::Context;

functions! {
    module "config", context Context;

    /// What the first of the minion's options, its grains, its pillar and the master's options in that has at this
    /// path; or with `merge`, recurse or overwrite, what all of them together have there. `omit_opts` and the like
    /// leave one out of the search for the first.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.get pkg:apache
    ///     salt '*' config.get pkg merge=recurse
    fn get(context, key: String, default: Value = "".into(), delimiter: String = ":".into(), merge: Option<String> = None, omit_opts: bool = false, omit_pillar: bool = false, omit_master: bool = false, omit_grains: bool = false) {
        let pillar = context.pillar();
        let (opts, grains, nothing) = (context.opts(), context.grains(), Map::new());
        let master = pillar.get("master").and_then(Value::as_map).unwrap_or(&nothing);
        let places = [(omit_opts, &*opts), (omit_grains, &*grains), (omit_pillar, &*pillar), (omit_master, master)];
        let at = |place: &Map| entry_at(place, &key, &delimiter).cloned();
        let found = match merge.as_deref() {
            None => places.into_iter().filter(|(omit, _)| !omit).find_map(|(_, place)| at(place)),
            Some(strategy) => {
                let mut all = Map::new();
                for (_, place) in places.into_iter().rev() {
                    if strategy == "overwrite" { all.extend(place.clone()) } else { merge_deep(&mut all, place, false) }
                }
                at(&all)
            }
        };
        Ok(found.unwrap_or(default))
    }

    /// What the minion's options, the master's options in the pillar and the pillar have under a name, put together.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.merge schedule
    fn merge(context, value: String, default: Value = "".into(), omit_opts: bool = false, omit_master: bool = false, omit_pillar: bool = false) {
        let pillar = context.pillar();
        let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
        let places = [(omit_opts, context.config().opts.clone()), (omit_master, master), (omit_pillar, (*pillar).clone())];
        let mut found: Option<Value> = None;
        for (_, place) in places.into_iter().filter(|(omit, _)| !omit) {
            match (&mut found, place.get(value.as_str())) {
                (None, Some(Value::Str(text))) => return Ok(text.as_str().into()),
                (None, Some(first)) => found = Some(first.clone()),
                // What was found first wins.
                (Some(Value::Map(have)), Some(Value::Map(more))) => {
                    let mut all = more.clone();
                    all.extend(have.clone());
                    *have = all;
                }
                (Some(Value::List(have)), Some(Value::List(more))) => have.extend(more.clone()),
                _ => {}
            }
        }
        Ok(found.unwrap_or(default))
    }

    /// The options whose names begin with this, and a dot.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.dot_vals host
    fn dot_vals(context, value: String) {
        let begins = format!("{value}.");
        let pillar = context.pillar();
        let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
        let all = master.iter().chain(context.config().opts.iter());
        Ok(Value::Map(all.filter(|(name, _)| name.to_string().starts_with(&begins)).map(|(name, value)| (name.clone(), value.clone())).collect()))
    }

    /// All of the minion's options.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.items
    fn items(context) {
        Ok(context.config().opts.clone().into())
    }

    /// As `get`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' config.option root_dir
    fn option(context, value: String, default: Value = "".into()) {
        get(context, value, default, ":".into(), None, false, false, false, false)
    }
}
