use brine_value::map;

use super::*;
use crate::testing;

#[test]
fn responses_of_web_servers_are_returned() {
    let port = brine_testing::web::server(|asked| {
        let line = asked.lines().next().unwrap_or_default();
        let login = asked.lines().any(|line| line.eq_ignore_ascii_case("authorization: Basic bWU6c2VjcmV0"));
        let body = asked.rsplit("\r\n\r\n").next().unwrap_or_default();
        match line.split(' ').nth(1).unwrap_or_default() {
            "/json" => ("200 OK", "application/json", r#"{"a": [1]}"#.to_owned()),
            "/none" => ("404 Not Found", "text/plain", "nothing".to_owned()),
            path => ("200 OK", "text/plain", format!("{path} {login} {body}")),
        }
    });
    let context = testing::context(&[]);
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    for (path, kwargs, wanted) in [
        (
            "/json",
            map! {"decode" => true, "status" => true},
            r#"{"body": "{\"a\": [1]}", "status": 200, "dict": {"a": [1]}}"#,
        ),
        (
            "/x",
            map! {"decode" => true, "params" => map! {"a b" => 1}},
            r#"{"body": "/x?a%20b=1 false ", "text": "/x?a%20b=1 false "}"#,
        ),
        (
            "/x",
            map! {"method" => "post", "data" => map! {"k" => "v"}, "username" => "me", "password" => "secret"},
            r#"{"body": "/x true k=v"}"#,
        ),
        ("/none", map! {"text" => true}, r#"{"body": "nothing", "status": 404, "error": "HTTP 404: Not Found"}"#),
        ("/none", map! {"raise_error" => false, "status" => true}, r#"{"body": "nothing", "status": 404}"#),
        ("/none", map! {"test" => true}, "{}"),
    ] {
        let report = ask(&context, &url(path), &kwargs).unwrap();
        assert_eq!(brine_value::json::to_json(&report.into()), wanted, "{path}");
    }
    let unused = brine_system::ports::free_port().unwrap();
    let report = ask(&context, &format!("http://127.0.0.1:{unused}/"), &map! {"status" => true}).unwrap();
    let wanted = map! {"status" => 0, "error" => "[Errno 111] Connection refused"};
    assert_eq!(report, wanted);
}
