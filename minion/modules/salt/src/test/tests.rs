use super::*;
use crate::testing;

#[test]
fn functions_return_the_same_as_in_salt() {
    let context = testing::context(&[]);
    for (fun, positional, keyword, expected) in [
        ("test.ping", vec![], Map::new(), Value::Bool(true)),
        ("test.echo", vec!["hi".into()], Map::new(), "hi".into()),
        ("test.arg", vec![1.into()], map! {"a" => 2}, map! {"args" => list![1], "kwargs" => map! {"a" => 2}}.into()),
        (
            "test.arg_type",
            vec![1.into(), "a".into()],
            map! {"x" => 1.5},
            map! {"args" => list!["<class 'int'>", "<class 'str'>"], "kwargs" => map! {"x" => "<class 'float'>"}}
                .into(),
        ),
        ("test.true", vec![], Map::new(), Value::Bool(true)),
        ("test.false", vec![], Map::new(), Value::Bool(false)),
        ("test.provider", vec!["cmd".into()], Map::new(), "cmdmod".into()),
        ("test.provider", vec!["nosuch".into()], Map::new(), Value::Bool(false)),
        ("test.assertion", vec![true.into()], Map::new(), Value::Nil),
        ("test.cross_test", vec!["test.echo".into(), "x".into()], Map::new(), "x".into()),
        ("test.try", vec!["test.exception".into()], Map::new(), Value::Nil),
        ("test.arg_repr", vec![1.into()], map! {"a" => "x"}, map! {"args" => "(1,)", "kwargs" => "{'a': 'x'}"}.into()),
        ("test.arg_clean", vec![], map! {"__pub_x" => 1}, map! {"args" => list![], "kwargs" => map! {}}.into()),
        ("test.conf_test", vec![], Map::new(), "unconfigured".into()),
        ("test.version", vec![], Map::new(), brine_config::SALT_VERSION.into()),
        ("test.not_loaded", vec![], Map::new(), list![]),
        ("test.sleep", vec![0.into()], Map::new(), Value::Bool(true)),
    ] {
        assert_eq!(context.call(fun, Args { positional, keyword }), Ok(expected), "{fun}");
    }
    assert_eq!(context.call("test.random_hash", Args::default()).unwrap().to_string().len(), 64);
    let steps = context.call("test.collatz", Args::positional([3.into()])).unwrap();
    assert_eq!(steps.as_list().unwrap()[0], list![3, 10, 5, 16, 8, 4, 2]);
    assert_eq!(context.call("test.fib", Args::positional([10.into()])).unwrap().as_list().unwrap()[0], 55.into());
}

#[test]
fn cancelled_jobs_stop_sleeping() {
    let context = testing::context(&[]);
    context.job.cancel.cancel();
    let woken = context.call("test.sleep", Args::positional([1000.into()]));
    assert_eq!(woken, Err(CallError::Execution("the job was ended".into())));
}

#[test]
fn failures_are_errors_and_retcodes_are_set() {
    let context = testing::context(&[]);
    let error = context.call("test.exception", Args::positional(["Oh noes!".into()])).unwrap_err();
    assert_eq!(error.to_string(), "The minion function caused an exception: Oh noes!");
    for (name, message) in [
        ("ValueError", "The minion function caused an exception: ValueError: no"),
        ("TypeError", "Passed invalid arguments to test.raise_exception: no"),
        ("salt.exceptions.CommandExecutionError", "ERROR: no"),
        ("salt.exceptions.MinionError", "The minion function caused an exception: MinionError: no"),
    ] {
        let error = context.call("test.raise_exception", Args::positional([name.into(), "no".into()])).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(context.call("test.raise_exception", Args::positional(["dict".into()])), Ok(false.into()));
    assert!(context.call("test.assertion", Args::positional([false.into()])).is_err());
    assert_eq!(context.call("test.retcode", Args::positional([7.into()])), Ok(Value::Bool(true)));
    assert_eq!(context.job.retcode.load(std::sync::atomic::Ordering::Relaxed), 7);
}
