//! `loop`: states that call execution functions until they return an expected value.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Function, function, registry};
use brine_host::process::cancelled_within;
use brine_state::Source;
use brine_value::{Map, Value, map};

/// State functions of `loop`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("loop", [until, until_no_eval]);

/// Call the execution function `name` until a condition is true: a Jinja expression in which `m_ret` is the
/// returned value.
#[function]
pub fn until(
    context: &StateContext,
    name: String,
    #[default] m_args: Vec<Value>,
    #[default] m_kwargs: Map,
    #[default] condition: Option<String>,
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
    let source = Source::new(&context.call, context.call.pillar());
    let text = format!("{{% if {condition} %}}met{{% endif %}}");
    let attempts = Attempts::new(context, &name, Args { positional: m_args, keyword: m_kwargs }, period, timeout);
    for given in attempts {
        let variables = map! {"m_ret" => given?};
        let report = source
            .render_template("condition", &text, &variables, &context.saltenv)
            .map_err(|error| CallError::Execution(format!("condition {condition} is invalid: {error}")))?;
        if report == "met" {
            return Ok(StateReturn::ok(&name, format!("Condition {condition} was met")).into());
        }
    }
    Ok(StateReturn::failed(&name, format!("Timed out while waiting for condition {condition}")).into())
}

/// Call the execution function `name` until its return compares to the expected value, by one of `eq`, `ne`, `lt`,
/// `le`, `gt`, `ge` and `contains`, or by an execution function with two arguments.
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
        return Ok(not_begun(context, &name, format!("Module.function \"{name}\" is unavailable."), &expected));
    }
    let Some(operator) = Operator::of(context, &compare_operator) else {
        return Ok(not_begun(context, &name, format!("Invalid operator \"{compare_operator}\" supplied."), &expected));
    };
    if context.test {
        return Ok(not_begun(context, &name, String::new(), &expected));
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
fn not_begun(context: &StateContext, name: &str, wrong: String, expected: &Value) -> Value {
    if context.test {
        let message = format!("Would have waited for \"{name}\" to produce \"{expected}\".");
        return StateReturn::would(name, message).into();
    }
    StateReturn::failed(name, wrong).into()
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
    Function(String),
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
            _ => return None,
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
            Operator::Function(function) => {
                context.call.call(function, Args::positional([given, expected.clone()]))?.is_truthy()
            }
        })
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
            (echo("m_ret > 5"), "False: Timed out while waiting for condition m_ret > 5"),
            (map! {"name" => "test.ping"}, "False: An exit condition must be specified"),
            (map! {"name" => "no.such", "condition" => "m_ret"}, "False: Cannot find module no.such"),
        ] {
            assert_eq!(report("until", false, args), expected);
        }
        assert_eq!(report("until", true, echo("m_ret")), "None: The execution module test.echo will be run");
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
        ] {
            let args = map! {"name" => "test.echo", "args" => list![given], "compare_operator" => operator, "expected" => expected};
            assert_eq!(report("until_no_eval", false, args), outcome, "{operator}");
        }
        let unordered = map! {"name" => "test.echo", "args" => list!["x"], "compare_operator" => "lt", "expected" => 1};
        let context = testing::state_context(false, &[]);
        assert!(context.call.minion.states.call(&context, "loop.until_no_eval", Args::keyword(unordered)).is_err());
    }
}
