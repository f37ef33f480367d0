//! `loop`: states that call execution functions until they return an expected value.
//!
//! Conditions are Python expressions, as in Salt, and are evaluated by the Python host. Without Python they are
//! evaluated as Jinja expressions, which have the same comparisons.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use brine_context::custom::PythonError;
use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_host::process::cancelled_within;
use brine_state::Source;
use brine_target::{Facts, Target, TargetKind};
use brine_value::{Map, Value, map};

/// State functions of `loop`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("loop", [until, until_no_eval]);

/// Call the execution function `name` until a condition is true: an expression in Python in which `m_ret` is the
/// returned value.
#[function]
pub fn until(
    context: &StateContext,
    name: String,
    #[default] m_args: Vec<Value>,
    #[default] m_kwargs: Map,
    condition: Option<String>,
    #[default(1.0)] period: f64,
    #[default(60.0)] timeout: f64,
) -> CallResult {
    if context.call.minion.functions.get(&name).is_none() {
        return Ok(StateReturn::failed(&name, format!("Cannot find module {name}")).into());
    }
    let Some(condition) = condition else {
        return Ok(StateReturn::failed(&name, "An exit condition must be specified").into());
    };
    if context.test {
        return Ok(StateReturn::would(&name, format!("The execution module {name} will be run")).into());
    }
    let given = map! {
        "name" => &name, "m_args" => m_args.clone(), "m_kwargs" => m_kwargs.clone(),
        "condition" => &condition, "period" => period, "timeout" => timeout,
    };
    let attempts = Attempts::new(context, &name, Args { positional: m_args, keyword: m_kwargs }, period, timeout);
    for answer in attempts {
        let mut variables = given.clone();
        variables.insert("m_ret".into(), answer?);
        if is_met(context, &condition, variables)? {
            return Ok(StateReturn::ok(&name, format!("Condition {condition} was met")).into());
        }
    }
    Ok(StateReturn::failed(&name, format!("Timed out while waiting for condition {condition}")).into())
}

/// Returns whether a condition is met.
fn is_met(context: &StateContext, condition: &str, variables: Map) -> Result<bool, CallError> {
    let invalid =
        |error: &dyn std::fmt::Display| CallError::Execution(format!("condition {condition} is invalid: {error}"));
    let missing = match context.call.minion.custom.is_true(context, condition, variables.clone()) {
        Err(error @ PythonError::NoPython { .. }) => error,
        evaluated => return evaluated.map_err(|error| invalid(&error)),
    };
    let source = Source::new(&context.call, context.call.pillar());
    let text = format!("{{% if {condition} %}}met{{% endif %}}");
    let rendered = source.render_template("condition", &text, &variables, &context.saltenv);
    rendered.map(|text| text == "met").map_err(|error| invalid(&format!("{error} ({missing})")))
}

/// Call the execution function `name` until the comparison of its return with the expected value is true. The
/// comparison is `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `contains` or another function of Python's module `operator`,
/// `data.subdict_match`, or a function of two arguments: an execution function, or one of `_utils`.
#[function]
pub fn until_no_eval(
    context: &StateContext,
    name: String,
    expected: Value,
    #[default("eq".into())] compare_operator: String,
    #[default(60.0)] timeout: f64,
    #[default(1.0)] period: f64,
    #[default(0.0)] init_wait: f64,
    #[default] args: Vec<Value>,
    #[default] kwargs: Map,
) -> CallResult {
    let functions = &context.call.minion.functions;
    if functions.get(&name).is_none() {
        return Ok(result_without_call(
            context,
            &name,
            format!("Module.function \"{name}\" is unavailable."),
            &expected,
        ));
    }
    let Some(operator) = Operator::of(context, &compare_operator) else {
        return Ok(result_without_call(
            context,
            &name,
            format!("Invalid operator \"{compare_operator}\" supplied."),
            &expected,
        ));
    };
    if context.test {
        return Ok(result_without_call(context, &name, String::new(), &expected));
    }
    if init_wait > 0.0 {
        cancelled_within(&context.call.job.cancel, seconds(init_wait));
    }
    let mut attempts = Attempts::new(context, &name, Args { positional: args, keyword: kwargs }, period, timeout);
    while let Some(given) = attempts.next() {
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                let message = format!("Exception occurred while executing {name}: {error}");
                return Ok(StateReturn::failed(&name, message).into());
            }
        };
        if operator.fits(context, given, &expected)? {
            let message = format!("Call provided the expected results in {} attempts", attempts.count);
            return Ok(StateReturn::ok(&name, message).into());
        }
    }
    let message = format!("Call did not produce the expected result after {} attempts", attempts.count);
    Ok(StateReturn::failed(&name, message).into())
}

/// Returns the result without any call: the prediction of test mode, or the error of the arguments.
fn result_without_call(context: &StateContext, name: &str, error: String, expected: &Value) -> Value {
    if context.test {
        let message = format!("Would have waited for \"{name}\" to produce \"{expected}\".");
        return StateReturn::would(name, message).into();
    }
    StateReturn::failed(name, error).into()
}

fn seconds(given: f64) -> Duration {
    brine_runtime::seconds::within(0.0..=1e6, given)
}

/// Calls of a function at an interval, until the timeout or the end of the job.
struct Attempts<'c> {
    context: &'c StateContext,
    function: &'c str,
    args: Args,
    period: Duration,
    end: Instant,
    count: usize,
}

impl<'c> Attempts<'c> {
    fn new(context: &'c StateContext, function: &'c str, args: Args, period: f64, timeout: f64) -> Self {
        let end = Instant::now() + seconds(timeout);
        Attempts { context, function, args, period: seconds(period), end, count: 0 }
    }
}

impl Iterator for Attempts<'_> {
    type Item = Result<Value, CallError>;

    fn next(&mut self) -> Option<Self::Item> {
        let call = &self.context.call;
        let is_ended = self.count > 0 && cancelled_within(&call.job.cancel, self.period);
        if is_ended || Instant::now() >= self.end {
            return None;
        }
        self.count += 1;
        Some(call.call(self.function, self.args.clone()))
    }
}

/// Comparison of a return with the expected value.
enum Operator {
    Same(bool),
    /// Orderings that satisfy it.
    Ordered(&'static [Ordering]),
    Contains,
    /// `data.subdict_match`: the expected value is a target by grains, such as `0:state:up`.
    Subdict,
    Function(String),
    /// A function of Python's module `operator`, or one of `_utils`.
    Python(String),
}

/// A returned value as the grains that a target is matched against.
struct Returned(Map);

impl Facts for Returned {
    fn id(&self) -> &'static str {
        ""
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.0)
    }

    fn pillar(&self) -> Option<&Map> {
        None
    }
}

impl Operator {
    fn of(context: &StateContext, name: &str) -> Option<Self> {
        use Ordering::{Equal, Greater, Less};
        Some(match name {
            "eq" | "is_" => Operator::Same(true),
            "ne" | "is_not" => Operator::Same(false),
            "lt" => Operator::Ordered(&[Less]),
            "le" => Operator::Ordered(&[Less, Equal]),
            "gt" => Operator::Ordered(&[Greater]),
            "ge" => Operator::Ordered(&[Greater, Equal]),
            "contains" => Operator::Contains,
            function if context.call.minion.functions.get(function).is_some() => {
                Operator::Function(function.to_owned())
            }
            "data.subdict_match" => Operator::Subdict,
            _ => Operator::Python(python_function(context, name)?),
        })
    }

    fn fits(&self, context: &StateContext, given: Value, expected: &Value) -> Result<bool, CallError> {
        Ok(match self {
            Operator::Same(same) => (given == *expected) == *same,
            Operator::Ordered(good) => order(&given, expected)?.is_some_and(|order| good.contains(&order)),
            Operator::Contains => match &given {
                Value::Str(text) => text.contains(&expected.to_string()),
                Value::List(items) => items.contains(expected),
                Value::Map(map) => map.contains_key(expected),
                other => {
                    return Err(CallError::Execution(format!(
                        "{other} is not a container: contains needs a string, list or mapping"
                    )));
                }
            },
            Operator::Subdict => {
                let target = format!("m_ret:{expected}");
                let target =
                    Target::parse(TargetKind::Grain, target, ":", &Map::new()).map_err(CallError::execution)?;
                target.matches(&Returned(map! {"m_ret" => given}))
            }
            Operator::Python(function) => {
                let variables = map! {"m_ret" => given, "expected" => expected.clone()};
                let custom = &context.call.minion.custom;
                custom
                    .is_true(context, &format!("{function}(m_ret, expected)"), variables)
                    .map_err(CallError::execution)?
            }
            Operator::Function(function) => {
                context.call.call(function, Args::positional([given, expected.clone()]))?.is_truthy()
            }
        })
    }
}

/// Returns the expression in Python for a function of `operator` or `_utils` with this name; `None` if there is none.
fn python_function(context: &StateContext, name: &str) -> Option<String> {
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    };
    if !is_name(name) {
        return None;
    }
    let is_there = |test: String| context.call.minion.custom.is_true(context, &test, Map::new()).unwrap_or(false);
    if name.contains('.') {
        is_there(format!("'{name}' in __utils__")).then(|| format!("__utils__['{name}']"))
    } else {
        is_there(format!("callable(getattr(operator, '{name}', None))")).then(|| format!("operator.{name}"))
    }
}

/// Compares two numbers or two strings.
fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, CallError> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Ok(Some(a.cmp(b))),
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
            _ => Err(CallError::Execution(format!("{a} and {b} cannot be compared"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing;

    fn report(fun: &str, test: bool, args: Map) -> String {
        let context = testing::state_context(test, &[]);
        let mut all = map! {"period" => 0.001, "timeout" => 0.02};
        all.extend(args);
        let done = context.call.minion.states.call(&context, &format!("loop.{fun}"), Args::keyword(all)).unwrap();
        let comment = done.get("comment").unwrap().to_string();
        // The number of calls depends on timing.
        let comment = comment.split(" after ").next().unwrap_or_default().to_owned();
        format!("{}: {comment}", done.get("result").unwrap())
    }

    #[test]
    fn functions_are_called_until_a_condition_is_met() {
        let echo = |condition: &str| map! {"name" => "test.echo", "m_args" => list![5], "condition" => condition};
        for (args, expected) in [
            (echo("m_ret == 5"), "True: Condition m_ret == 5 was met"),
            (
                echo("isinstance(m_ret, int) and m_ret in {5, 6}"),
                "True: Condition isinstance(m_ret, int) and m_ret in {5, 6} was met",
            ),
            (echo("all(n == m_ret for n in m_args)"), "True: Condition all(n == m_ret for n in m_args) was met"),
            (
                echo("__salt__['test.echo'](m_ret) is None"),
                "False: Timed out while waiting for condition __salt__['test.echo'](m_ret) is None",
            ),
            (echo("m_ret > 5"), "False: Timed out while waiting for condition m_ret > 5"),
            (map! {"name" => "test.ping"}, "False: An exit condition must be specified"),
            (map! {"name" => "no.such", "condition" => "m_ret"}, "False: Cannot find module no.such"),
        ] {
            assert_eq!(report("until", false, args), expected);
        }
        assert_eq!(report("until", true, echo("m_ret")), "None: The execution module test.echo will be run");
    }

    #[test]
    fn invalid_conditions_are_reported() {
        let context = testing::state_context(false, &[]);
        for (condition, part) in [
            ("m_ret[", "condition m_ret[ is invalid: SyntaxError: "),
            ("nothing == 5", "condition nothing == 5 is invalid: NameError: name 'nothing' is not defined"),
            ("m_ret['x']", "TypeError: 'int' object is not subscriptable"),
        ] {
            let args = map! {"name" => "test.echo", "m_args" => list![5], "condition" => condition};
            let error = context.call.minion.states.call(&context, "loop.until", Args::keyword(args)).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn operators_compare() {
        let (met, not) = (
            "True: Call provided the expected results in 1 attempts",
            "False: Call did not produce the expected result",
        );
        for (given, operator, expected, outcome) in [
            (Value::from(5), "eq", Value::from(5), met),
            (5.into(), "ne", 5.into(), not),
            (5.into(), "gt", 4.5.into(), met),
            ("b".into(), "le", "a".into(), not),
            (list![1, 2], "contains", 2.into(), met),
            ("text".into(), "contains", "ex".into(), met),
            (map! {"a" => 1}.into(), "contains", "b".into(), not),
            ("fine".into(), "test.arg", "x".into(), met),
            (list![1, 1, 2], "countOf", 1.into(), met),
            (6.into(), "and_", 1.into(), not),
            (list![map! {"state" => "InService"}], "data.subdict_match", "0:state:In*".into(), met),
            (map! {"a" => map! {"b" => "c"}}.into(), "data.subdict_match", "a:b:d".into(), not),
        ] {
            let args = map! {"name" => "test.echo", "args" => list![given], "compare_operator" => operator, "expected" => expected};
            assert_eq!(report("until_no_eval", false, args), outcome, "{operator}");
        }
        for operator in ["no_such", "no.such", "__import__", "eq(1)", "path.x'"] {
            let args = map! {"name" => "test.ping", "compare_operator" => operator, "expected" => true};
            assert_eq!(
                report("until_no_eval", false, args),
                format!("False: Invalid operator \"{operator}\" supplied.")
            );
        }
        let unordered = map! {"name" => "test.echo", "args" => list!["x"], "compare_operator" => "lt", "expected" => 1};
        let context = testing::state_context(false, &[]);
        assert!(context.call.minion.states.call(&context, "loop.until_no_eval", Args::keyword(unordered)).is_err());
    }
}
