//! `pillar`: what the master tells this minion.
//!
//! Outside of templates, values are masked, as in Salt 3008: `unmask=True` and `pillar.raw` show them.

use brine_core::function::CallError;
use brine_core::target::traverse;
use brine_core::{Map, Value, functions};

use crate::context::Context;

const MASK: &str = "**********";

functions! {
    module "pillar", context Context;

    /// The pillar value at a path such as `users:root:shell`, or the default.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.get pkg:apache
    fn get(context, key: String, default: Value = "".into(), merge: bool = false, delimiter: String = ":".into(), unmask: bool = false) {
        let pillar = Value::Map((*context.pillar()).clone());
        let found = traverse(&pillar, &key, &delimiter).cloned();
        let lists = context.config().pillar_merge_lists;
        let value = match (found, default) {
            (Some(Value::Map(over)), Value::Map(mut under)) if merge => {
                brine_core::sls::pillar::merge_deep(&mut under, &over, lists);
                Value::Map(under)
            }
            (Some(Value::List(over)), Value::List(mut under)) if merge => {
                let more: Vec<Value> = over.into_iter().filter(|item| !under.contains(item)).collect();
                under.extend(more);
                Value::List(under)
            }
            (Some(found), _) => found,
            (None, default) => default,
        };
        Ok(if context.in_template || unmask { value } else { masked(&value) })
    }

    /// As `get`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.fetch pkg:apache
    fn fetch(context, key: String, default: Value = "".into(), merge: bool = false, delimiter: String = ":".into(), unmask: bool = false) {
        get(context, key, default, merge, delimiter, unmask)
    }

    /// The whole pillar, rendered anew.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.items
    fn items(context, unmask: bool = false, pillar: Map = Map::new(), pillarenv: Option<String> = None, saltenv: Option<String> = None) {
        let config = context.config();
        let (saltenv, pillarenv) = (saltenv.as_ref().or(config.saltenv.as_ref()), pillarenv.as_ref().or(config.pillarenv.as_ref()));
        let fresh = context.minion.upstream.pillar(saltenv.map(String::as_str), pillarenv.map(String::as_str), &pillar);
        let fresh = Value::Map(fresh.map_err(CallError::Execution)?);
        Ok(if context.in_template || unmask { fresh } else { masked(&fresh) })
    }

    /// Some pillar values by name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.item foo bar
    fn item(context, *args) {
        let pillar = Value::Map((*context.pillar()).clone());
        let named: Map = args.iter().map(|name| {
            (name.clone(), traverse(&pillar, &name.to_string(), ":").cloned().unwrap_or_else(|| "".into()))
        }).collect();
        Ok(if context.in_template { named.into() } else { masked(&named.into()) })
    }

    /// The pillar as the minion has it, unmasked.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.raw
    fn raw(context, key: Option<String> = None) {
        let pillar = Value::Map((*context.pillar()).clone());
        Ok(match key {
            Some(key) => pillar.get(&key).cloned().unwrap_or_else(Value::map),
            None => pillar,
        })
    }

    /// The names below a path, where there must be a mapping.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.keys web:sites
    fn keys(context, key: String, delimiter: String = ":".into()) {
        let pillar = Value::Map((*context.pillar()).clone());
        match traverse(&pillar, &key, &delimiter) {
            Some(Value::Map(map)) => Ok(map.keys().cloned().collect()),
            Some(_) => Err(CallError::Execution(format!("Pillar value in key {key} is not a dict"))),
            None => Err(CallError::Execution(format!("Pillar key not found: {key}"))),
        }
    }

    /// The names of the pillar's entries.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pillar.ls
    fn ls(context) {
        Ok(context.pillar().keys().cloned().collect())
    }
}

/// Every value that says something is hidden.
fn masked(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), masked(value))).collect()),
        Value::List(items) => items.iter().map(masked).collect(),
        scalar if scalar.is_truthy() => MASK.into(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use brine_core::function::Args;
    use brine_core::{list, map};

    use super::*;
    use crate::testing;

    #[test]
    fn values_are_masked_outside_of_templates() {
        let context = testing::context(&[]);
        let call = |context: &Context, fun: &str, args: &[&str], keyword: Map| {
            let positional = args.iter().map(|arg| Value::from(*arg)).collect();
            context.call(&format!("pillar.{fun}"), Args { positional, keyword }).map_err(|error| error.to_string())
        };
        let plain: Value = map! {"word" => "xyzzy", "empty" => ""}.into();
        for (fun, args, keyword, outside, inside) in [
            ("get", &["secret:word"][..], Map::new(), Ok(Value::from(MASK)), Ok(Value::from("xyzzy"))),
            ("get", &["secret:empty"], Map::new(), Ok("".into()), Ok("".into())),
            ("get", &["secret:word"], map! {"unmask" => true}, Ok("xyzzy".into()), Ok("xyzzy".into())),
            ("get", &["nope", "default"], Map::new(), Ok(MASK.into()), Ok("default".into())),
            ("raw", &["secret"], Map::new(), Ok(plain.clone()), Ok(plain.clone())),
            (
                "item",
                &["secret:word"],
                Map::new(),
                Ok(map! {"secret:word" => MASK}.into()),
                Ok(map! {"secret:word" => "xyzzy"}.into()),
            ),
            ("ls", &[], Map::new(), Ok(list!["secret"]), Ok(list!["secret"])),
            ("keys", &["secret"], Map::new(), Ok(list!["word", "empty"]), Ok(list!["word", "empty"])),
            (
                "keys",
                &["nope"],
                Map::new(),
                Err("ERROR: Pillar key not found: nope".to_owned()),
                Err("ERROR: Pillar key not found: nope".to_owned()),
            ),
        ] {
            assert_eq!(call(&context, fun, args, keyword.clone()), outside, "{fun} {args:?}");
            assert_eq!(call(&context.for_template(), fun, args, keyword), inside, "{fun} {args:?} in a template");
        }
    }
}
