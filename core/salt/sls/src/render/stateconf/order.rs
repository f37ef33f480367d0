//! The option `-o`: each state requires the one before it.

use std::collections::{HashMap, HashSet};

use brine_value::{Map, Value, map};

use super::super::RenderError;
use super::{REQUIRE, failed, functions, is_id, module};

const REQUIRE_IN: [&str; 5] = ["require_in", "watch_in", "listen_in", "onchanges_in", "onfail_in"];

/// A state in the form of requisites: its id and its module.
type Named = (String, String);

/// The requisites of extended states below `extend`: the states that they require, and the states that are to require
/// them.
#[derive(Debug, Default)]
pub(super) struct Extended {
    require: HashMap<Named, Vec<Named>>,
    require_in: HashMap<Named, Vec<Named>>,
}

/// Adds a requisite of each state on the one before it.
///
/// # Errors
/// A state with `names`, or a requisite that contradicts the order.
pub(super) fn by_position(data: &mut Map, extended: &mut Extended) -> Result<(), RenderError> {
    for (id, states) in data.iter().filter(|(id, _)| is_id(id)) {
        let has_names = |args: &Value| args.as_list().into_iter().flatten().any(|arg| arg.get("names").is_some());
        if functions(states).any(|(_, args)| has_names(args)) {
            return Err(failed(format!(
                "the state {id} has 'names', which have no order with '-o': write a state for each in a loop"
            )));
        }
    }
    if let Some(Value::Map(below)) = data.get("extend") {
        for (id, states) in below {
            for (_, args) in functions(states) {
                for required in named(args, &REQUIRE) {
                    let state = (id.to_string(), required.1.clone());
                    extended.require.entry(state).or_default().push(required);
                }
                for required in named(args, &REQUIRE_IN) {
                    let state = (id.to_string(), required.1.clone());
                    extended.require_in.entry(state).or_default().push(required);
                }
            }
        }
    }
    let order: Vec<(Value, String, Named)> = data
        .iter()
        .filter(|(id, _)| is_id(id))
        .flat_map(|(id, states)| {
            functions(states).map(move |(function, _)| {
                (id.clone(), function.to_owned(), (id.to_string(), module(function).to_owned()))
            })
        })
        .collect();
    let mut after: HashSet<&Named> = order.iter().map(|(_, _, state)| state).collect();
    let mut before = HashSet::new();
    let mut last: Option<&Named> = None;
    for (id, function, state) in &order {
        after.remove(state);
        let Some(args) = data.get_mut(id).and_then(|states| args_of(states, function)) else { continue };
        let arguments = Value::from(args.clone());
        let more = |of: &HashMap<Named, Vec<Named>>| of.get(state).cloned().unwrap_or_default();
        if let Some(later) = named(&arguments, &REQUIRE).chain(more(&extended.require)).find(|one| after.contains(one))
        {
            return Err(failed(format!("the state {} requires {}, which comes after it", show(state), show(&later))));
        }
        let mut into = named(&arguments, &REQUIRE_IN).chain(more(&extended.require_in));
        if let Some(earlier) = into.find(|one| before.contains(one)) {
            let (state, earlier) = (show(state), show(&earlier));
            return Err(failed(format!("the state {state} is to be required by {earlier}, which comes before it")));
        }
        if let Some((id, module)) = last {
            let required: Value = map! {module.as_str() => id.as_str()}.into();
            let requires = args.iter_mut().find_map(|arg| match arg {
                Value::Map(arg) => match arg.first_mut() {
                    Some((name, Value::List(required))) if name.as_str() == Some("require") => Some(required),
                    _ => None,
                },
                _ => None,
            });
            match requires {
                Some(requisites) => requisites.insert(0, required),
                None => args.push(map! {"require" => vec![required]}.into()),
            }
        }
        before.insert(state.clone());
        last = Some(state);
    }
    Ok(())
}

fn args_of<'s>(states: &'s mut Value, function: &str) -> Option<&'s mut Vec<Value>> {
    match states {
        Value::Map(states) => match states.get_mut(function)? {
            Value::List(args) => Some(args),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the states that the requisites of a state name.
fn named<'a>(args: &'a Value, requisites: &'a [&str]) -> impl Iterator<Item = Named> + 'a {
    let args = args.as_list().into_iter().flatten().filter_map(|arg| arg.as_map()?.first());
    let of = args.filter(|(name, _)| name.as_str().is_some_and(|name| requisites.contains(&name)));
    of.flat_map(|(_, named)| named.as_list().into_iter().flatten())
        .filter_map(|one| one.as_map()?.first())
        .map(|(module, id)| (id.to_string(), module.to_string()))
}

fn show((id, module): &Named) -> String {
    format!("{module}: {id}")
}
