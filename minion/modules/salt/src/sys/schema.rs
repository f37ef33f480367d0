//! `sys.state_schema`: the arguments of state functions as JSON Schema.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::{Map, Value, map};

use super::specs;

const SCHEMA: &str = "http://json-schema.org/draft-04/schema#";
/// The types that the value of any argument may have.
const TYPES: [&str; 4] = ["boolean", "integer", "number", "string"];

/// Return a JSON Schema for each of the state functions of a module, or for one function.
///
/// CLI Example:
///
///     salt '*' sys.state_schema
///     salt '*' sys.state_schema pkg.installed
#[function]
pub fn state_schema(
    context: &Context,
    /// Name of the module or function, or a glob; all by default.
    #[default]
    module: String,
) -> CallResult {
    let specs = specs(&context.minion.states, &module);
    let specs = specs.as_map().cloned().unwrap_or_default();
    Ok(specs.iter().map(|(name, spec)| Value::from(schema(name, spec))).collect())
}

fn schema(name: &Value, spec: &Value) -> Map {
    let list_of = |field: &str| spec.get(field).and_then(Value::as_list).map(<[Value]>::to_vec).unwrap_or_default();
    let (args, defaults) = (list_of("args"), list_of("defaults"));
    // The defaults belong to the last arguments.
    let required = args.len().saturating_sub(defaults.len());
    let default_of = |place: usize| place.checked_sub(required).and_then(|place| defaults.get(place));
    let properties: Map = args
        .iter()
        .enumerate()
        .map(|(place, arg)| (arg.clone(), map! {"oneOf" => one_of(arg, default_of(place))}.into()))
        .collect();
    let mut schema = map! {
        "$schema" => SCHEMA, "title" => name.clone(), "description" => name.clone(), "type" => "object",
    };
    if !args.is_empty() {
        schema.extend(map! {"properties" => properties, "x-ordering" => args});
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// Returns the types of an argument. As in Salt, a null default is left out.
fn one_of(arg: &Value, default: Option<&Value>) -> Value {
    let item = |kind: &&str| {
        let mut item = map! {"type" => *kind, "title" => arg.clone(), "description" => arg.clone()};
        if let Some(default) = default.filter(|default| !default.is_nil()) {
            item.insert("default".into(), default.clone());
        }
        Value::from(item)
    };
    TYPES.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn arguments_are_described_as_in_salt() {
        let spec = map! {"args" => list!["name", "sfun", "quiet"], "defaults" => list![Value::Nil, false]};
        let schema = schema(&"test.x".into(), &spec.into());
        let types = |field: &str, name: &str| {
            let one_of = schema.get("properties").unwrap().get(name).unwrap().get("oneOf").unwrap().clone();
            one_of.as_list().unwrap().iter().map(|item| item.get(field).cloned()).collect::<Vec<_>>()
        };
        assert_eq!(types("type", "name"), TYPES.map(|kind| Some(kind.into())));
        assert_eq!(types("default", "sfun"), [None, None, None, None]);
        assert_eq!(types("default", "quiet"), [(); 4].map(|()| Some(false.into())));
        assert_eq!(schema.get("x-ordering"), Some(&list!["name", "sfun", "quiet"]));
        assert_eq!(
            schema.keys().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            "$schema title description type properties x-ordering additionalProperties"
        );
    }
}
