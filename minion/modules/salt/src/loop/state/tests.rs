use brine_value::list;

use super::*;
use crate::testing;

fn report(fun: &str, test: bool, args: Map) -> String {
    let context = testing::state_context(test, &[]);
    let mut all = map! {"period" => 0.001, "timeout" => 0.02};
    all.extend(args);
    let outcome = context.call.minion.states.call(&context, &format!("loop.{fun}"), Args::keyword(all)).unwrap();
    let comment = outcome.get("comment").unwrap().to_string();
    // The number of calls depends on timing.
    let comment = comment.split(" after ").next().unwrap_or_default().to_owned();
    format!("{}: {comment}", outcome.get("result").unwrap())
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
    let (met, not) =
        ("True: Call provided the expected results in 1 attempts", "False: Call did not produce the expected result");
    for (actual, operator, expected, outcome) in [
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
        let args = map! {"name" => "test.echo", "args" => list![actual], "compare_operator" => operator, "expected" => expected};
        assert_eq!(report("until_no_eval", false, args), outcome, "{operator}");
    }
    for operator in ["no_such", "no.such", "__import__", "eq(1)", "path.x'"] {
        let args = map! {"name" => "test.ping", "compare_operator" => operator, "expected" => true};
        assert_eq!(report("until_no_eval", false, args), format!("False: Invalid operator \"{operator}\" supplied."));
    }
    let unordered = map! {"name" => "test.echo", "args" => list!["x"], "compare_operator" => "lt", "expected" => 1};
    let context = testing::state_context(false, &[]);
    assert!(context.call.minion.states.call(&context, "loop.until_no_eval", Args::keyword(unordered)).is_err());
}
