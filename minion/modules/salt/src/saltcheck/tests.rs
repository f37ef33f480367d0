//! Parsing and running of tests.

use brine_value::list;

use super::*;
use crate::testing;

fn checked(test: &Value) -> String {
    let context = testing::context(&[]);
    let keyword = map! {"test" => test.clone()};
    let mut result = context.call("saltcheck.run_test", Args { positional: Vec::new(), keyword }).unwrap();
    if let Some(result) = result.as_map_mut() {
        assert!(result.shift_remove("duration").is_some());
    }
    result.to_string()
}

#[test]
fn tests_call_functions_and_compare_their_results() {
    let echo = |value: Value, assertion: &str, expected: Value| {
        map! {"module_and_function" => "test.echo", "args" => list![value], "assertion" => assertion, "expected_return" => expected}
    };
    let with = |mut test: Map, more: Map| {
        test.extend(more);
        Value::Map(test)
    };
    for (test, expected) in [
        (echo("a".into(), "assertEqual", "a".into()).into(), "{'status': 'Pass'}"),
        (echo("a".into(), "assertEqual", "b".into()).into(), "{'status': 'Fail: b is not equal to a'}"),
        (
            with(echo("a".into(), "assertEqual", "b".into()), map! {"print_result" => false}),
            "{'status': 'Fail: Result is not equal'}",
        ),
        (with(echo("a".into(), "assertEqual", "b".into()), map! {"skip" => true}), "{'status': 'Skip'}"),
        (
            with(
                echo(map! {"k" => map! {"l" => 1}}.into(), "assertEqual", "1".into()),
                map! {"assertion_section" => "k:l"},
            ),
            "{'status': 'Pass'}",
        ),
        (
            with(echo("a".into(), "assertIn", "a".into()), map! {"output_details" => true}),
            "{'status': 'Pass', 'module.function [args]': 'test.echo [\"a\"]', 'saltcheck assertion': 'a IN a'}",
        ),
        (
            with(echo("a".into(), "assertEqual", "a".into()), map! {"module_and_function" => "no.such"}),
            "{'status': 'Fail - invalid test'}",
        ),
        (echo("a".into(), "assertSame", "a".into()).into(), "{'status': 'Fail - invalid test'}"),
        (
            map! {
                "module_and_function" => "test.echo", "args" => list![map! {"a" => 1, "b" => 2}],
                "assertions" => list![
                    map! {"assertion" => "assertEqual", "assertion_section" => "a", "expected_return" => 1},
                    map! {"assertion" => "assertGreater", "assertion_section" => "b", "expected_return" => 2},
                ],
            }
            .into(),
            "{'assertion1': {'status': 'Pass'}, 'assertion2': {'status': 'Fail: 2 not False'}, 'status': 'Fail'}",
        ),
        ("text".into(), "Test argument must be a dictionary"),
    ] {
        if test.as_map().is_some() {
            assert_eq!(checked(&test), expected, "{test}");
        } else {
            let keyword = map! {"test" => test};
            let called = testing::context(&[]).call("saltcheck.run_test", Args { positional: Vec::new(), keyword });
            assert_eq!(called, Ok(expected.into()));
        }
    }
}

#[test]
fn results_are_counted_and_sorted() {
    let context = testing::context(&[]);
    let result = |status: &str| map! {"status" => status, "duration" => 0.5};
    let tests = |all: &[(&str, &str)]| all.iter().map(|(name, status)| ((*name).to_owned(), result(status))).collect();
    let results = || -> Results {
        [
            ("b".to_owned(), tests(&[("x", "Pass"), ("y", "Fail: z")])),
            ("c".to_owned(), tests(&[("x", "Skip")])),
            ("a".to_owned(), IndexMap::new()),
        ]
        .into_iter()
        .collect()
    };
    let counts =
        "{'TEST RESULTS': {'Execution Time': 1.5, 'Passed': 1, 'Failed': 1, 'Skipped': 1, 'Missing Tests': 1}}";
    assert_eq!(
        summary(&context, results(), false).to_string(),
        format!(
            "[{{'a': {{}}}}, {{'b': {{'x': {{'status': 'Pass', 'duration': 0.5}}, 'y': {{'status': 'Fail: z', 'duration': 0.5}}}}}}, \
                 {{'c': {{'x': {{'status': 'Skip', 'duration': 0.5}}}}}}, {counts}]"
        )
    );
    assert_eq!(
        summary(&context, results(), true).to_string(),
        format!("[{{}}, {{}}, {{'b': {{'y': {{'status': 'Fail: z', 'duration': 0.5}}}}}}, {counts}]")
    );
    assert_eq!(context.job.retcode.load(std::sync::atomic::Ordering::Relaxed), 1);
}
