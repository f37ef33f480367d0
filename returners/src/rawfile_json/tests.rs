use brine_value::{Value, map};

use super::*;

fn at(path: &std::path::Path) -> Box<dyn Returner> {
    open(&Options::new(&map! {"rawfile_json.filename" => path.display().to_string()}, None)).unwrap()
}

#[test]
fn each_return_and_event_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    let returner = at(&path);
    returner.event_return(&[]).unwrap();
    assert!(!path.exists(), "an empty write creates no file");
    let one = map! {"jid" => "20261120235852025555", "id" => "web1", "fun" => "test.arg", "return" => "ü\n\u{1}", "retcode" => 0};
    let one = Return::from_map(one).unwrap();
    returner.returner(&one).unwrap();
    let events = [Event::from_map("a/b", &map! {"x" => Value::Nil}), Event::from_map("c", &map! {})];
    returner.event_return(&events.map(Result::unwrap)).unwrap();
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        {"jid": "20261120235852025555", "id": "web1", "fun": "test.arg", "return": "ü\n\u0001", "retcode": 0}
        {"data": {"x": null}, "tag": "a/b"}
        {"data": {}, "tag": "c"}
        "#);
}

#[test]
fn lines_of_several_threads_do_not_interleave() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let long = "x".repeat(20_000);
                let event = Event::from_map("t", &map! {"thread" => thread, "text" => long}).unwrap();
                for _ in 0..20 {
                    at(path).event_return(&[event.clone(), event.clone()]).unwrap();
                }
            });
        }
    });
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().count(), 160);
    assert!(written.lines().all(|line| brine_value::json::from_json(line).is_ok()));
}

#[test]
fn write_errors_name_the_file() {
    let event = Event::from_map("t", &map! {}).unwrap();
    for path in ["/nonexistent/events", "/dev/full"] {
        let error = at(path.as_ref()).event_return(std::slice::from_ref(&event)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("writing to {path} (rawfile_json) failed: ")), "{error}");
    }
}
