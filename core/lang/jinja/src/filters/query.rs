//! `json_query`: JMESPath queries.

use std::sync::{Arc, LazyLock};

use brine_value::{Value, json};
use jmespath::functions::{ArgumentType, CustomFunction, Signature};
use jmespath::{Context, JmespathError, Rcvar, Runtime, Variable};
use minijinja::value::Value as JinjaValue;
use minijinja::{Environment, Error};

use super::super::limits;
use super::{by_name, defined};
use crate::data::{raise, to_jinja};

/// The maximum length of an expression: its parser and evaluation are recursive.
const MAX_SIGNS: usize = 200;

/// The maximum number of lists and mappings that an expression creates: each may multiply the data.
const MAX_ITEMS: usize = 40;

/// The maximum number of found values.
const MAX_FOUND: usize = 1_000_000;

/// JMESPath functions; some return integers like Python's.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    let numbers = ArgumentType::TypedArray(Box::new(ArgumentType::Number));
    whole(&mut runtime, "sum", numbers, |value| {
        value.as_array().map_or(0.0, |all| all.iter().filter_map(|n| n.as_number()).sum())
    });
    whole(&mut runtime, "ceil", ArgumentType::Number, |value| value.as_number().unwrap_or_default().ceil());
    whole(&mut runtime, "floor", ArgumentType::Number, |value| value.as_number().unwrap_or_default().floor());
    runtime
});

/// Registers a function of one argument whose result is an integer where possible.
fn whole(runtime: &mut Runtime, name: &str, argument: ArgumentType, compute: fn(&Variable) -> f64) {
    let call = move |args: &[Rcvar], _: &mut Context<'_>| -> Result<Rcvar, JmespathError> {
        let result = args.first().map_or(0.0, |value| compute(value));
        #[allow(clippy::cast_possible_truncation, reason = "the value is below 2^53")]
        let number = match result {
            whole if whole.fract() == 0.0 && whole.abs() < 9e15 => Some((whole as i64).into()),
            other => serde_json::Number::from_f64(other),
        };
        Ok(Arc::new(number.map_or(Variable::Null, Variable::Number)))
    };
    runtime
        .register_function(name, Box::new(CustomFunction::new(Signature::new(vec![argument], None), Box::new(call))));
}

pub(super) fn add_to(environment: &mut Environment<'static>) {
    by_name(environment, "json_query", &["expr"], |value: JinjaValue, expression: String| {
        query(&defined(&value)?, &expression).map(|result| to_jinja(&result))
    });
}

fn query(data: &Value, expression: &str) -> Result<Value, Error> {
    let invalid = |what: &dyn std::fmt::Display| raise(format_args!("Invalid jmespath expression: {what}"));
    let count = |signs: &str| expression.matches(|c| signs.contains(c)).count();
    if count("([{!&.|*<>=") > MAX_SIGNS || count("[{,") > MAX_ITEMS {
        return Err(invalid(&"it has too many parts"));
    }
    let first_line = |error: JmespathError| {
        let report = error.to_string();
        invalid(&report.lines().next().unwrap_or_default())
    };
    let compiled = RUNTIME.compile(expression).map_err(first_line)?;
    let data = Variable::from_json(&json::to_json(data)).map_err(raise)?;
    let result = compiled.search(data).map_err(first_line)?;
    let mut left = MAX_FOUND;
    let value = found_value(&result, &mut left);
    limits::check()?;
    value.ok_or_else(|| raise(format_args!("json_query returns at most {MAX_FOUND} values")))
}

/// Converts the result, within the number of values left.
fn found_value(variable: &Variable, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    limits::reserve(variable.as_string().map_or(0, String::len)).ok()?;
    Some(match variable {
        Variable::Null | Variable::Expref(_) => Value::Nil,
        Variable::Bool(truth) => (*truth).into(),
        Variable::String(text) => text.as_str().into(),
        Variable::Number(number) => json::from_json(&number.to_string()).ok()?,
        Variable::Array(items) => items.iter().map(|item| found_value(item, left)).collect::<Option<Value>>()?,
        Variable::Object(entries) => {
            let entry = |(key, value): (&String, &Rcvar)| Some((key.as_str().into(), found_value(value, left)?));
            Value::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn data_is_found() {
        let data = Value::from(map! {
            "u" => list![map! {"n" => "bob", "a" => 3}, map! {"n" => "al", "a" => 1}],
            "f" => 2.0, "half" => 2.5, "l" => list![3, 1, 2],
        });
        for (expression, expected) in [
            ("u[*].n", list!["bob", "al"]),
            ("u[?a==`3`].n", list!["bob"]),
            ("l[::-1]", list![2, 1, 3]),
            ("sum(l)", 6.into()),
            ("ceil(half)", 3.into()),
            ("avg(l)", 2.0.into()),
            ("length(u)", 2.into()),
            ("f", 2.0.into()),
            ("nope.x", Value::Nil),
            ("{x: u[0].a}", map! {"x" => 3}.into()),
            ("sort(l) | [0]", 1.into()),
        ] {
            let actual = query(&data, expression);
            assert_eq!(actual.map_err(|error| error.to_string()), Ok(expected), "{expression}");
        }
        let dots = format!("a{}", ".a".repeat(1_000));
        for wrong in ["u [", "nope(", "length(f)", &"(".repeat(100_000), &dots, &"[@,@]|".repeat(30)] {
            let error = query(&data, wrong).unwrap_err().to_string();
            assert!(error.contains("Invalid jmespath expression"), "{error}");
        }
        let doubled = format!("{}@", "[@,@]|".repeat(20));
        assert!(query(&data, &doubled).unwrap_err().to_string().contains("at most"));
    }
}
