//! Entries for the options of jobs, beside the function and its target:
//!
//! ```yaml
//! - '@options'                              # every option with any value
//! - '@options':
//!   - metadata                              # this option with any value
//!   - ret: [redis, mysql]                   # only these returners
//!   - ret_kwargs: {db: '[0-9]+'}            # of a mapping only these keys, with such values
//!   - executor_opts: [splay]                # of a mapping only these keys
//! ```
//!
//! Names and values are regular expressions that match as a whole.

use brine_value::Value;

use super::{Pattern, one_or_many};

/// The scope of these entries.
pub(super) const OPTIONS: &str = "options";

/// A permitted option.
#[derive(Debug)]
pub(super) struct OptionRule {
    name: Pattern,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Any,
    /// Values, elements of a list, or keys of a mapping.
    Names(Vec<Pattern>),
    /// Keys of a mapping with their values; `None` permits any value.
    Fields(Vec<(Pattern, Option<Pattern>)>),
}

impl OptionRule {
    /// Returns the rule that permits everything.
    pub fn any() -> Self {
        OptionRule { name: Pattern::whole(".*"), values: Values::Any }
    }

    /// Parses the rules of an entry. Invalid ones permit nothing and are logged.
    pub fn read(value: &Value) -> Vec<Self> {
        let one = |value: &Value| match value {
            Value::Str(name) => vec![OptionRule { name: Pattern::whole(name), values: Values::Any }],
            Value::Map(map) => map
                .iter()
                .map(|(name, values)| OptionRule {
                    name: Pattern::whole(&name.to_string()),
                    values: Values::read(values),
                })
                .collect(),
            other => {
                tracing::error!(entry = %other, "an option of an access list is invalid: expected a string or a mapping");
                Vec::new()
            }
        };
        one_or_many(value).iter().flat_map(one).collect()
    }

    /// Whether the rule permits a part of an option's value: a key and its value, or a value alone.
    fn permits(&self, name: &str, key: Option<&Value>, value: &Value) -> bool {
        let matches = |pattern: &Pattern, value: &Value| pattern.matches(&value.to_string());
        self.name.matches(name)
            && match &self.values {
                Values::Any => true,
                Values::Names(names) => names.iter().any(|pattern| matches(pattern, key.unwrap_or(value))),
                Values::Fields(fields) => key.is_some_and(|key| {
                    fields.iter().any(|(pattern, values)| {
                        matches(pattern, key) && values.as_ref().is_none_or(|values| matches(values, value))
                    })
                }),
            }
    }
}

impl Values {
    fn read(value: &Value) -> Self {
        match value {
            Value::Nil => Values::Any,
            Value::Map(fields) => {
                let pattern = |value: &Value| (!value.is_nil()).then(|| Pattern::whole(&value.to_string()));
                let field = |(name, value): (&Value, &Value)| (Pattern::whole(&name.to_string()), pattern(value));
                Values::Fields(fields.iter().map(field).collect())
            }
            names => Values::Names(one_or_many(names).iter().map(|name| Pattern::whole(&name.to_string())).collect()),
        }
    }
}

/// Whether rules permit an option with a value: each element of a list, and each key of a mapping with its value.
pub(super) fn permit<'a>(rules: impl Iterator<Item = &'a OptionRule> + Clone, name: &str, value: &Value) -> bool {
    let part = |key: Option<&Value>, value: &Value| rules.clone().any(|rule| rule.permits(name, key, value));
    match value {
        Value::List(all) => all.iter().all(|value| part(None, value)),
        Value::Map(fields) => fields.iter().all(|(key, value)| part(Some(key), value)),
        value => part(None, value),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::super::Acl;
    use super::*;

    #[test]
    fn options_are_permitted_by_name_and_value() {
        let limited = list![map! {"@options" => list![
            "metadata",
            map! {"ret" => list!["redis", "my.*"]},
            map! {"ret_kwargs" => map! {"db" => "[0-9]", "table" => Value::Nil}},
            map! {"executor_opts" => "splay"},
            map! {"ret_config" => Value::Nil},
        ]}];
        let long = map! {"x" => map! {"y" => 1}};
        for (entries, name, value, permitted) in [
            (list!["@options"], "ret_kwargs", map! {"host" => "h"}.into(), true),
            (list![".*", "@runner", "@wheel", "@jobs"], "metadata", "x".into(), false),
            (list![map! {"*" => ".*"}], "metadata", "x".into(), false),
            (list![map! {"@options" => "metadata"}], "metadata", long.clone().into(), true),
            (list![map! {"@options" => "metadata"}], "meta", "x".into(), false),
            (list![map! {"@options" => list![5]}], "metadata", "x".into(), false),
            (list![map! {"@options" => list![map! {"ret" => "("}]}], "ret", "(".into(), false),
            (limited.clone(), "metadata", long.into(), true),
            (limited.clone(), "metadatax", "x".into(), false),
            (limited.clone(), "ret", "redis".into(), true),
            (limited.clone(), "ret", "redis2".into(), false),
            (limited.clone(), "ret", "mysql".into(), true),
            (limited.clone(), "ret", list!["redis", "mysql"], true),
            (limited.clone(), "ret", list!["redis", "rawfile_json"], false),
            (limited.clone(), "ret_kwargs", map! {"db" => 3}.into(), true),
            (limited.clone(), "ret_kwargs", map! {"db" => 3, "table" => "x"}.into(), true),
            (limited.clone(), "ret_kwargs", map! {"db" => 33}.into(), false),
            (limited.clone(), "ret_kwargs", map! {"db" => 3, "host" => "h"}.into(), false),
            (limited.clone(), "ret_kwargs", "db".into(), false),
            (limited.clone(), "executor_opts", map! {"splay" => 9}.into(), true),
            (limited.clone(), "executor_opts", map! {"user" => "root"}.into(), false),
            (limited.clone(), "ret_config", "other".into(), true),
            (limited, "module_executors", list!["sudo"], false),
        ] {
            let acl = Acl::new(entries.as_list().unwrap());
            assert_eq!(acl.permits_option(name, &value), permitted, "{entries} {name} {value}");
        }
    }

    #[test]
    fn entries_for_options_permit_no_function() {
        use super::super::{CallKind, FIND_JOB, JobRequest};
        let acl = Acl::new(&[Value::from("@options"), map! {"@options" => "test.ping"}.into()]);
        for function in ["test.ping", FIND_JOB] {
            let job = JobRequest { functions: vec![(function, &[])], minions: &[] };
            assert!(!acl.permits_job(&job, |_| None), "{function}");
        }
        assert!(!acl.permits_call(CallKind::Runner, "options.test", &[], &map! {}));
    }
}
