use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, list, map};

use crate::testing;

/// Return true.
#[function]
fn up(_context: &(), #[default(1)] count: i64) -> CallResult {
    Ok(count.into())
}

/// Return false.
#[function]
fn list_jobs(_context: &()) -> CallResult {
    Ok(false.into())
}

static MANAGE_FUNCTIONS: Functions<()> = registry!("manage", [up]);
static JOBS_FUNCTIONS: Functions<()> = registry!("jobs", [list_jobs]);

#[test]
fn declared_runner_functions_are_named_and_documented() {
    brine_context::runners::declare(|| vec![JOBS_FUNCTIONS.declaration(), MANAGE_FUNCTIONS.declaration()]);
    let context = testing::context(&[]);
    let spec = map! {"args" => list!["count"], "defaults" => list![1], "varargs" => Value::Nil, "kwargs" => Value::Nil};
    let suggestion = "'manage.upp' is not available. Did you mean 'manage.up'?";
    for (fun, names, expected) in [
        ("sys.list_runners", &[][..], list!["jobs", "manage"]),
        ("sys.list_runners", &["m*"], list!["manage"]),
        ("sys.list_runners", &["*.list_*", "nosuch"], list!["jobs"]),
        ("sys.list_runners", &["jobs.list_jobs"], list![]),
        ("sys.list_runner_functions", &[], list!["jobs.list_jobs", "manage.up"]),
        ("sys.list_runner_functions", &["jobs", "man*"], list!["jobs.list_jobs", "manage.up"]),
        ("sys.list_runner_functions", &["job"], list![]),
        ("sys.runner_argspec", &["manage.up"], map! {"manage.up" => spec}.into()),
        ("sys.runner_doc", &["manage"], map! {"manage.up" => "Return true."}.into()),
        ("sys.runner_doc", &["manage.upp"], map! {"manage.upp" => suggestion}.into()),
    ] {
        let args = Args::positional(names.iter().map(|name| Value::from(*name)));
        assert_eq!(context.call(fun, args).unwrap(), expected, "{fun} {names:?}");
    }
}

#[test]
fn documentation_is_found_and_unknown_names_reported() {
    let context = testing::context(&[]);
    for (fun, name, part) in [
        ("sys.doc", "test.ping", "salt '*' test.ping"),
        ("sys.doc", "file.managed", "'file.managed' is a state: see sys.state_doc file.managed"),
        ("sys.doc", "test.pingg", "'test.pingg' is not available. Did you mean 'test.ping'?"),
        ("sys.doc", "nosuch", "'nosuch' is not available."),
        ("sys.state_doc", "file.managed", ""),
        ("sys.state_doc", "file.managd", "Did you mean 'file.managed'?"),
        ("sys.state_doc", "test.ping", "'test.ping' is an execution function: see sys.doc test.ping"),
    ] {
        let docs = context.call(fun, Args::positional([name.into()])).unwrap();
        assert_eq!(docs.as_map().unwrap().len(), 1, "{fun} {name}");
        assert!(docs.get(name).unwrap().to_string().contains(part), "{fun} {name}: {docs}");
    }
    let call = |fun: &str, names: &[&str]| {
        context.call(fun, Args::positional(names.iter().map(|name| Value::from(*name)))).unwrap()
    };
    for (fun, names, expected) in [
        ("sys.list_returners", &["sql*", "redis", "nosuch"][..], list!["redis", "sqlite3"]),
        ("sys.list_returner_functions", &["sqlite3"], list!["sqlite3.returner"]),
        ("sys.list_renderers", &["j*"], list!["jinja", "json"]),
    ] {
        assert_eq!(call(fun, names), expected, "{fun}");
    }
    assert!(call("sys.list_returners", &[]).as_list().unwrap().len() > 10);
    for (fun, name, key, part) in [
        ("sys.returner_doc", "sqlite3", "sqlite3.returner", "sqlite3.database: "),
        ("sys.returner_doc", "redis.*", "redis.returner", "redis.port: The port of the server. (default: 6379)"),
        ("sys.renderer_doc", "yaml", "yaml", "Read YAML."),
    ] {
        let docs = call(fun, &[name]);
        assert_eq!(docs.as_map().unwrap().len(), 1, "{fun} {name}");
        assert!(docs.get(key).unwrap().to_string().contains(part), "{fun} {name}: {docs}");
    }
    for (fun, pattern) in [("sys.doc", "test"), ("sys.doc", "test.*"), ("sys.state_doc", "file")] {
        let docs = context.call(fun, Args::positional([pattern.into()])).unwrap();
        assert!(docs.as_map().unwrap().len() > 10, "{fun} {pattern}");
    }
}
