//! `onlyif`, `unless`, `check_cmd` and `creates` with empty and odd values; the results are those of Salt 3008.5.

use super::apply;

/// What became of a state.
#[derive(Debug, PartialEq)]
enum Became {
    /// It ran and succeeded.
    Ran,
    /// It was skipped.
    Skipped,
    /// Its condition is an error, so that it did not run.
    Refused,
    /// It ran, and `check_cmd` found that it failed.
    Failed,
}

use Became::{Failed, Ran, Refused, Skipped};

fn became(condition: &str, value: &str) -> Became {
    let report = apply("odd", &format!("a: {{test.succeed_with_changes: [{{{condition}: {value}}}]}}"), false);
    let (result, comment) = report.strip_prefix("0 a ").unwrap().split_once(": ").unwrap();
    match result {
        "True changed" => Ran,
        "True -" => Skipped,
        "False changed" => Failed,
        "False -" if comment.starts_with("An exception occurred in this state: ") => Refused,
        _ => panic!("{condition}: {value}: {report}"),
    }
}

#[test]
fn empty_and_odd_conditions_are_those_of_salt() {
    for (value, onlyif, unless, check_cmd, creates) in [
        ("''", Refused, Refused, Refused, Ran),
        ("' '", Refused, Refused, Refused, Ran),
        ("['']", Refused, Refused, Refused, Ran),
        ("['true', '']", Refused, Refused, Refused, Ran),
        ("['', 'true']", Refused, Refused, Refused, Ran),
        ("['false', '']", Skipped, Ran, Failed, Ran),
        ("[]", Refused, Refused, Failed, Skipped),
        ("{}", Ran, Ran, Failed, Ran),
        ("null", Ran, Ran, Refused, Ran),
        ("true", Ran, Ran, Refused, Ran),
        ("0", Ran, Ran, Refused, Ran),
        ("[null]", Ran, Ran, Failed, Refused),
        ("[[]]", Ran, Ran, Refused, Refused),
        ("[{}]", Ran, Ran, Failed, Refused),
        ("[1.5]", Ran, Ran, Failed, Refused),
        ("['true', null]", Ran, Ran, Failed, Refused),
        ("['true', {}]", Ran, Skipped, Failed, Refused),
        ("['true', {}, 'false']", Ran, Skipped, Failed, Refused),
        ("[{}, 'false']", Ran, Ran, Failed, Refused),
        ("[['true']]", Ran, Ran, Ran, Refused),
        ("{'true': 1}", Ran, Ran, Ran, Ran),
        ("{'true': 1, '': 2}", Ran, Ran, Refused, Ran),
        ("['/etc', '/nope']", Skipped, Ran, Failed, Ran),
    ] {
        for (condition, expected) in
            [("onlyif", onlyif), ("unless", unless), ("check_cmd", check_cmd), ("creates", creates)]
        {
            assert_eq!(became(condition, value), expected, "{condition}: {value}");
        }
    }
}

#[test]
fn odd_arguments_of_a_function_are_those_of_salt() {
    for (call, onlyif, unless) in [
        ("fun: ''", Refused, Refused),
        ("fun: null", Refused, Refused),
        ("fun: test.true, args: null", Refused, Refused),
        ("fun: test.true, args: 5", Refused, Refused),
        ("fun: test.true, args: ''", Ran, Skipped),
        ("fun: test.echo, args: x", Ran, Skipped),
        ("fun: test.echo, args: xy", Refused, Refused),
        ("fun: test.echo, args: {q: 1}", Ran, Skipped),
        ("fun: test.echo, args: []", Refused, Refused),
        ("fun: test.echo, args: ['']", Skipped, Ran),
        ("fun: test.echo, args: [{a: 1}], get_return: ''", Ran, Skipped),
        ("fun: test.echo, args: [{a: 1}], get_return: null", Ran, Skipped),
        ("fun: test.echo, args: [{a: 1}], get_return: []", Ran, Skipped),
        ("fun: test.echo, args: [{a: 1}], get_return: 0", Ran, Skipped),
        ("fun: test.echo, args: [{a: 0}], get_return: a", Skipped, Ran),
        ("fun: test.echo, args: [[5, 0]], get_return: 1", Skipped, Ran),
        ("fun: test.echo, args: [{1: 0}], get_return: 1", Skipped, Ran),
    ] {
        for (condition, expected) in [("onlyif", onlyif), ("unless", unless)] {
            assert_eq!(became(condition, &format!("[{{{call}}}]")), expected, "{condition}: {call}");
        }
    }
}
