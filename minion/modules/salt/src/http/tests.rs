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
    for (path, kwargs, expected) in [
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
        assert_eq!(brine_value::json::to_json(&report.into()), expected, "{path}");
    }
    let unused = brine_system::ports::free_port().unwrap();
    let report = ask(&context, &format!("http://127.0.0.1:{unused}/"), &map! {"status" => true}).unwrap();
    let expected = map! {"status" => 0, "error" => "[Errno 111] Connection refused"};
    assert_eq!(report, expected);
}

/// As in Salt, a redirect that cannot be followed is an error with its status, as are incomplete bodies.
#[test]
fn odd_answers_are_errors() {
    let port = brine_testing::web::odd_server();
    let context = testing::context(&[]);
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    for (path, _) in
        brine_testing::web::ODD.iter().filter(|(path, _)| !["no_content", "reset_content", "part"].contains(path))
    {
        let report = ask(&context, &url(path), &map! {"status" => true}).unwrap();
        assert!(report.get("error").is_some_and(Value::is_truthy), "{path}: {report:?}");
    }
    for (path, _) in brine_testing::web::WHOLE {
        assert_eq!(ask(&context, &url(path), &map! {}).unwrap(), map! {"body" => "whole"}, "{path}");
    }
    for (path, error) in [("loop", "HTTP 302: Found"), ("ftp", "Unsupported url scheme: ftp://127.0.0.1/x")] {
        assert_eq!(ask(&context, &url(path), &map! {}).unwrap()["error"], error.into(), "{path}");
    }
}

/// What is sent to one server does not follow to another.
#[test]
fn headers_and_bodies_stay_with_their_server() {
    let other = brine_testing::web::server(|asked| ("200 OK", "text/plain", asked.to_owned()));
    let port = brine_testing::web::raw_server(move |asked| {
        let path = asked.split(' ').nth(1).unwrap_or_default();
        if path == "/echo" {
            return format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{asked}", asked.len());
        }
        let (status, target) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        let target = if target == "own" { "/echo".to_owned() } else { format!("http://127.0.0.1:{other}/echo") };
        format!("HTTP/1.1 {status} Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n")
    });
    let context = testing::context(&[]);
    let secrets = map! {
        "header_dict" => map! {"X-Secret" => "s3cret", "Cookie" => "s3cret", "Authorization" => "s3cret", "Accept" => "text/x"},
    };
    for status in [301, 302, 303, 307, 308] {
        let asked = |kind: &str, kwargs: &Map| {
            ask(&context, &format!("http://127.0.0.1:{port}/{status}/{kind}"), kwargs).unwrap()
        };
        let own = asked("own", &secrets)["body"].to_string();
        assert_eq!(own.matches("s3cret").count(), 3, "{status}: {own}");
        let foreign = asked("other", &secrets)["body"].to_string();
        assert!(!foreign.contains("s3cret") && foreign.contains("text/x"), "{status}: {foreign}");
        let login = asked("other", &map! {"username" => "me", "password" => "s3cret"})["body"].to_string();
        assert!(!login.to_lowercase().contains("authorization"), "{status}: {login}");
        let form = asked("other", &map! {"method" => "POST", "data" => "s3cret"});
        assert!(!form.get("body").is_some_and(|body| body.to_string().contains("s3cret")), "{status}: {form:?}");
        assert_eq!(form.contains_key("error"), status > 303, "{status}: {form:?}");
    }
}
