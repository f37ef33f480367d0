//! `loop`: states that call execution functions until they return an expected value.
//!
//! Conditions are Python expressions, as in Salt, and are evaluated by the Python host. Without Python they are
//! evaluated as Jinja expressions, which have the same comparisons.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use brine_context::custom::PythonError;
use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::cancelled_within;
use brine_state::Source;
use brine_target::{Target, TargetFacts, TargetKind};
use brine_value::{Map, Value, map};

/// State functions of `loop`.
pub static FUNCTIONS: Functions<StateContext> = registry!("loop", [until, until_no_eval]);

/// Call the execution function `name` until a condition is true: an expression in Python in which `m_ret` is the
/// returned value.
///
/// SLS Example:
///
///     wait_for_app:
///       loop.until:
///         - name: http.query
///         - m_args:
///           - http://localhost:8080/health
///         - m_kwargs:
///             status: True
///         - condition: m_ret['status'] == 200
///         - period: 5
///         - timeout: 120
#[function]
pub fn until(
    context: &StateContext,
    /// Name of the execution function.
    name: String,
    /// Arguments of the function.
    #[default]
    m_args: Vec<Value>,
    /// Keyword arguments of the function.
    #[default]
    m_kwargs: Map,
    /// Expression in Python in which `m_ret` is the returned value.
    condition: Option<String>,
    /// Seconds between two calls.
    #[default(1.0)]
    period: f64,
    /// Seconds after which the state fails.
    #[default(60.0)]
    timeout: f64,
) -> CallResult {
    if context.call.minion.functions.get(&name).is_none() {
        return Ok(StateReturn::failed(&name, format!("Cannot find module {name}")).into());
    }
    let Some(condition) = condition else {
        return Ok(StateReturn::failed(&name, "An exit condition must be specified").into());
    };
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("The execution module {name} will be run")).into());
    }
    let base_variables = map! {
        "name" => &name, "m_args" => m_args.clone(), "m_kwargs" => m_kwargs.clone(),
        "condition" => &condition, "period" => period, "timeout" => timeout,
    };
    let attempts = Attempts::new(context, &name, Args { positional: m_args, keyword: m_kwargs }, period, timeout);
    for answer in attempts {
        let mut variables = base_variables.clone();
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
///
/// SLS Example:
///
///     wait_for_file:
///       loop.until_no_eval:
///         - name: file.file_exists
///         - args:
///           - /run/app.pid
///         - expected: True
///         - period: 2
///         - timeout: 60
#[function]
pub fn until_no_eval(
    context: &StateContext,
    /// Name of the execution function.
    name: String,
    /// Expected value.
    expected: Value,
    /// How the return is compared with the expected value.
    #[default("eq".into())]
    compare_operator: String,
    /// Seconds after which the state fails.
    #[default(60.0)]
    timeout: f64,
    /// Seconds between two calls.
    #[default(1.0)]
    period: f64,
    /// Seconds before the first call.
    #[default(0.0)]
    init_wait: f64,
    /// Arguments of the function.
    #[default]
    args: Vec<Value>,
    /// Keyword arguments of the function.
    #[default]
    kwargs: Map,
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
    while let Some(attempt) = attempts.next() {
        let value = match attempt {
            Ok(value) => value,
            Err(error) => {
                let message = format!("Exception occurred while executing {name}: {error}");
                return Ok(StateReturn::failed(&name, message).into());
            }
        };
        if operator.fits(context, value, &expected)? {
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
        return StateReturn::predicted(name, message).into();
    }
    StateReturn::failed(name, error).into()
}

fn seconds(number: f64) -> Duration {
    brine_runtime::seconds::within(0.0..=1e6, number)
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
        Some(call.call_nested(self.function, self.args.clone()))
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

impl TargetFacts for Returned {
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

    fn fits(&self, context: &StateContext, actual: Value, expected: &Value) -> Result<bool, CallError> {
        Ok(match self {
            Operator::Same(same) => (actual == *expected) == *same,
            Operator::Ordered(good) => order(&actual, expected)?.is_some_and(|order| good.contains(&order)),
            Operator::Contains => match &actual {
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
                target.matches(&Returned(map! {"m_ret" => actual}))
            }
            Operator::Python(function) => {
                let variables = map! {"m_ret" => actual, "expected" => expected.clone()};
                let custom = &context.call.minion.custom;
                custom
                    .is_true(context, &format!("{function}(m_ret, expected)"), variables)
                    .map_err(CallError::execution)?
            }
            Operator::Function(function) => {
                context.call.call(function, Args::positional([actual, expected.clone()]))?.is_truthy()
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
mod tests;
