//! `config`: options by name, from wherever they are said first.

use brine_core::sls::pillar::merge_deep;
use brine_core::target::traverse;
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
        let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
        let places = [
            (omit_opts, (*context.opts()).clone()),
            (omit_grains, (*context.grains()).clone()),
            (omit_pillar, (*pillar).clone()),
            (omit_master, master),
        ];
        let at = |place: Map| traverse(&Value::Map(place), &key, &delimiter).cloned();
        let found = match merge.as_deref() {
            None => places.into_iter().filter(|(omit, _)| !omit).find_map(|(_, place)| at(place)),
            Some(strategy) => {
                let mut all = Map::new();
                for (_, place) in places.into_iter().rev() {
                    if strategy == "overwrite" { all.extend(place) } else { merge_deep(&mut all, &place, false) }
                }
                at(all)
            }
        };
        Ok(found.unwrap_or(default))
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
