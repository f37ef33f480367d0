//! Errors of test files, with lines.

use std::path::Path;

use super::*;

#[test]
fn errors_name_the_line_and_the_nearest_key() {
    for (text, expected) in [
        ("test: {}\n", "1: the key 'test' is unknown: did you mean 'tests'?"),
        (
            "tests:\n  a:\n    grain: {}\n    expect: snapshot\n",
            "3: the key 'grain' is unknown: did you mean 'grains'?",
        ),
        (
            "tests:\n  a:\n    sls: x\n",
            "2: the key 'expect' is missing: it says what the test expects, such as `contains` or `snapshot`",
        ),
        ("tests:\n  a:\n    expect:\n      contain: {}\n", "4: the key 'contain' is unknown: did you mean 'contains'?"),
        ("tests:\n  a:\n    expect: {}\n", "3: 'expect' is empty: `error: False` expects that everything renders"),
        (
            "tests:\n  a:\n    pillar: 1\n    expect: snapshot\n",
            "3: 'pillar' is invalid: expected a mapping, or the path of a YAML file with one, got int",
        ),
        (
            "tests:\n  a:\n    mocks:\n      cmd.run: {returns: 1, arg: [x]}\n    expect: snapshot\n",
            "4: the key 'arg' is unknown: did you mean 'args'?",
        ),
        (
            "tests:\n  a:\n    files: {etc: x}\n    expect: snapshot\n",
            "3: the path 'etc' is invalid: expected an absolute path without '..'",
        ),
        ("tests:\n  a: [\n", "3: the YAML is invalid"),
    ] {
        let errors = TestFile::parse(Path::new("a.test.yml"), text).unwrap_err();
        let messages: Vec<String> = errors.iter().map(|error| format!("{}: {}", error.line, error.message)).collect();
        assert!(messages.iter().any(|error| error.starts_with(expected)), "{text}: {messages:#?}");
    }
}
