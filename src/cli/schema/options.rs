//! The schema of the options of master and minion, from their declarations.

use brine_config::{OptionDoc, module_options};
use brine_value::{Map, Value, map};

use super::{any_of, typed};

/// Returns the schema of a configuration. Further options are allowed: pillars and templates may read any.
pub(super) fn schema(docs: &[OptionDoc], defaults: &Map) -> Map {
    let mut properties: Vec<(&str, Map)> = Vec::new();
    for doc in docs {
        let mut option = described(&of_type(doc.expected).unwrap_or_default(), doc.doc);
        if let Some(default) = defaults.get(doc.name).filter(|default| !default.is_nil()) {
            option.insert("default".into(), default.clone());
        }
        properties.push((doc.name, option));
    }
    for option in module_options() {
        if !docs.iter().any(|doc| doc.name == option.name) {
            properties.push((option.name, described(&of_type(option.expected).unwrap_or_default(), option.doc)));
        }
    }
    properties.sort_by_key(|(name, _)| *name);
    let properties: Map = properties.into_iter().map(|(name, option)| (name.into(), option.into())).collect();
    map! {"type" => vec![Value::from("object"), "null".into()], "properties" => properties}
}

fn described(schema: &Map, doc: &[&str]) -> Map {
    let text = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let mut described = map! {"description" => text};
    described.extend(schema.clone());
    described
}

/// Returns the schema of the values that an option with this description of its type accepts; `None` for a description
/// that is not a type.
fn of_type(expected: &str) -> Option<Map> {
    let number =
        |name: &str, pattern: &str| any_of([typed(&[name, "null"]), map! {"type" => "string", "pattern" => pattern}]);
    let limited = |least: i64, most: Option<i64>| {
        let mut whole = typed(&["integer"]);
        whole.insert("minimum".into(), least.into());
        whole.extend(most.map(|most| ("maximum".into(), most.into())));
        any_of([whole, map! {"type" => "string", "pattern" => r"^\s*[0-9]+\s*$"}, typed(&["boolean", "null"])])
    };
    let words = |words: &[&str]| map! {"enum" => words.iter().map(|word| Value::from(*word)).chain([Value::Nil]).collect::<Value>()};
    Some(match expected {
        "any value" => Map::new(),
        "True or False" => any_of([
            typed(&["boolean", "integer", "null"]),
            map! {"type" => "string", "pattern" => "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[01]|[Nn]one|)$"},
        ]),
        "an integer" => number("integer", r"^\s*-?[0-9]+\s*$"),
        "a non-negative integer" => limited(0, None),
        "an integer from 0 to 65535" => limited(0, Some(65_535)),
        "a number" | "a non-negative number" => number("number", r"^\s*-?[0-9.]+([eE][-+]?[0-9]+)?\s*$"),
        "a string" => typed(&["string", "number", "boolean", "null"]),
        "a path" => typed(&["string", "null"]),
        "a list" => typed(&["array", "string", "number", "boolean", "null", "object"]),
        "a mapping" => typed(&["object", "null"]),
        "a mapping of environment to a list of directories" => map! {
            "type" => vec![Value::from("object"), "null".into()],
            "additionalProperties" => any_of([
                typed(&["string", "null"]), map! {"type" => "array", "items" => map! {"type" => "string"}},
            ]),
        },
        "warn, fail or ignore" => words(&["warn", "fail", "ignore"]),
        "zeromq or tcp" => words(&["zeromq", "tcp"]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use brine_config::{MasterConfig, MinionConfig};

    use super::*;

    #[test]
    fn each_type_of_an_option_has_a_schema() {
        for doc in MasterConfig::docs().iter().chain(MinionConfig::docs()) {
            assert!(of_type(doc.expected).is_some(), "{}: {}", doc.name, doc.expected);
        }
    }
}
