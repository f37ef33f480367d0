use std::os::unix::fs::PermissionsExt;

use brine_function::Args;
use brine_value::list;

use super::*;

const PROGRAM: &str = r#"#!/bin/sh
case "$1" in
    describe) echo '{"size": {"doc": "Return a size.", "args": ["path"]}, "fails": {}}' ;;
    size) cat ;;
    fails) echo "no disk" >&2; exit 3 ;;
    silent) exit 4 ;;
    nothing) ;;
    text) echo words ;;
    much) yes ;;
    waits) sleep 60 & sleep 60 ;;
    leaves) sleep 60 & echo 1 ;;
esac
"#;

#[test]
fn programs_describe_themselves_and_answer_json() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk");
    std::fs::write(&path, PROGRAM).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let functions = describe(&path).unwrap();
    assert_eq!(functions.get("size").and_then(|size| size.get("args")), Some(&list!["path"]));

    let ask = |function: &str, deadline: Option<Duration>| {
        let args = Args { positional: vec!["/".into()], keyword: map! {"unit" => "GB"} };
        let data = vec![("grains", std::sync::Arc::new(map! {"id" => "m1"}))];
        let deadline = deadline.map(|after| Instant::now() + after);
        let call = Call { kind: "modules", function: &format!("disk.{function}"), args, data, deadline };
        super::call(&path, call, || false).map_err(|error| error.to_string())
    };
    let echoed = map! {"args" => list!["/"], "kwargs" => map! {"unit" => "GB"}, "grains" => map! {"id" => "m1"}};
    for (function, expected) in [
        ("size", Ok(echoed.into())),
        ("nothing", Ok(Value::Nil)),
        ("leaves", Ok(1.into())),
        ("fails", Err("no disk")),
        ("silent", Err("'disk' ended with exit status: 4")),
        ("text", Err("the output of 'disk' is not JSON")),
        ("much", Err("16777216 bytes or more")),
    ] {
        match (ask(function, None), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{function}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{function}: {error}"),
            (got, expected) => panic!("{function}: {got:?}, not {expected:?}"),
        }
    }
    let start = Instant::now();
    let error = ask("waits", Some(Duration::from_millis(50))).unwrap_err();
    assert!(error.contains("its deadline has passed") && start.elapsed() < Duration::from_secs(30), "{error}");
}
