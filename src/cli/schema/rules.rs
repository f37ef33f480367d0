//! The schema of rules over time: a function with its arguments for each id.

use brine_value::{Map, Value, map};

use super::{any_of, typed};

/// The functions, each with the arguments that it needs, and those that it accepts beside them.
const FUNCTIONS: &[(&str, &[&str], &[&str])] = &[
    ("rule.count", &["tag", "count", "within", "react"], &["where", "by"]),
    ("rule.absent", &["after", "expect", "within", "react"], &["where", "expect_where", "each", "by"]),
    ("rule.sequence", &["tags", "within", "react"], &["by"]),
    ("rule.share", &["tag", "of", "above", "within", "react"], &["where", "by"]),
    ("rule.when", &["register", "react"], &["above", "below", "equal"]),
    ("timer.every", &["seconds", "react"], &[]),
    ("register.count", &["tag"], REGISTER),
    ("register.sum", &["tag", "value"], REGISTER),
    ("register.mean", &["tag", "value"], REGISTER),
    ("register.min", &["tag", "value"], REGISTER),
    ("register.max", &["tag", "value"], REGISTER),
    ("register.last", &["tag", "value"], REGISTER),
    ("register.list", &["tag", "value"], REGISTER),
];
const REGISTER: &[&str] = &["where", "by", "value", "window", "last", "react"];

/// Returns the schema of a file of rules.
pub(super) fn schema() -> Map {
    let function = |(name, needed, more): &(&str, &[&str], &[&str])| {
        let (name, body) = (Value::from(*name), Value::from(arguments(needed, more)));
        (name, body)
    };
    let functions: Map = FUNCTIONS.iter().map(function).collect();
    let rule =
        map! {"type" => "object", "properties" => functions, "additionalProperties" => false, "minProperties" => 1};
    map! {"type" => vec![Value::from("object"), "null".into()], "additionalProperties" => rule}
}

/// Returns the schema of the arguments of a function: a mapping, or a list of mappings.
fn arguments(needed: &[&str], more: &[&str]) -> Map {
    let properties: Map = needed.iter().chain(more).map(|name| (Value::from(*name), argument(name).into())).collect();
    let required: Value = needed.iter().copied().collect();
    let has = |name: &&str| Value::from(map! {"contains" => map! {"required" => vec![Value::from(*name)]}});
    any_of([
        map! {
            "type" => "object", "properties" => properties.clone(), "required" => required,
            "additionalProperties" => false,
        },
        map! {
            "type" => "array",
            "items" => map! {"type" => "object", "properties" => properties, "additionalProperties" => false},
            "allOf" => needed.iter().map(has).collect::<Value>(),
        },
    ])
}

fn argument(name: &str) -> Map {
    let strings =
        || any_of([typed(&["string"]), map! {"type" => "array", "items" => typed(&["string"]), "minItems" => 1}]);
    let duration = || typed(&["number", "string"]);
    match name {
        "tag" | "after" | "expect" | "react" | "by" => strings(),
        "tags" => map! {
            "type" => "array", "minItems" => 2,
            "items" => any_of([typed(&["string"]), map! {"type" => "object", "required" => vec![Value::from("tag")]}]),
        },
        "where" | "expect_where" => typed(&["object"]),
        "count" | "last" => any_of([
            map! {"type" => "integer", "minimum" => 1},
            map! {"type" => "string", "pattern" => "^[1-9][0-9]*$"},
        ]),
        "within" | "seconds" | "window" => duration(),
        "of" => map! {
            "type" => "object", "properties" => map! {"nodegroup" => typed(&["string"]), "count" => typed(&["integer", "string"])},
            "additionalProperties" => false, "minProperties" => 1, "maxProperties" => 1,
        },
        "above" | "below" | "equal" => typed(&["number", "string"]),
        _ => typed(&["string", "number"]),
    }
}
