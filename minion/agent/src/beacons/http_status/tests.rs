use brine_value::list;

use super::super::tests::{poll_once, wrong};
use super::*;

fn of(site: Map) -> Value {
    list![map! {"sites" => map! {"s" => site}}]
}

fn checks(checks: &[(&str, Value, &str)]) -> Value {
    checks.iter().map(|(comp, value, path)| map! {"comp" => *comp, "value" => value.clone(), "path" => *path}).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_checks_are_reported() {
    let port = brine_testing::web::server(|request| match request.split(' ').nth(1).unwrap() {
        "/status" => ("200 OK", "application/json", r#"{"disks": [{"state": "up", "free": 5}], "all": "ok"}"#.into()),
        "/text" => ("404 Not Found", "text/plain", "gone".into()),
        other => panic!("{other}"),
    });
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let polled = |path: &str, status: Value, content: Value| {
        let site = map! {"url" => url(path), "status" => status, "content" => content};
        poll_once("http_status", &of(site)).unwrap()
    };
    let none = || list![];
    assert!(polled("/status", checks(&[("==", 200.into(), ""), (">", 400.into(), "")]), none()).is_empty());
    let failure = map! {"expected" => 300, "received" => 404, "url" => url("/text"), "path" => ""};
    assert_eq!(polled("/text", checks(&[(">", 300.into(), "")]), none()), [failure]);
    let content = checks(&[
        ("==", "up".into(), "disks:0:state"),
        ("<=", 5.5.into(), "disks:0:free"),
        ("search", "^o.$".into(), "all"),
        ("!=", "ok".into(), "all"),
        ("==", "x".into(), "none"),
    ]);
    let received = |path: &str, expected: Value, received: Value| {
        map! {"expected" => expected, "received" => received, "url" => url("/status"), "path" => path}
    };
    assert_eq!(
        polled("/status", none(), content),
        [received("disks:0:free", 5.5.into(), 5.into()), received("all", "ok".into(), "ok".into())]
    );
    let not_json = polled("/text", none(), checks(&[("==", 1.into(), "a")]));
    assert_eq!(not_json[0].get("status_code"), Some(&404.into()));
    assert!(not_json[0].get("error").unwrap().to_string().starts_with("the content is not JSON: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_answer_are_reported_in_time() {
    // Accepts connections and answers none.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let start = std::time::Instant::now();
    let report = poll_once("http_status", &of(map! {"url" => &url, "timeout" => 0.2})).unwrap();
    assert!(start.elapsed() < MAX_TIMEOUT);
    assert_eq!((report[0].get("url"), report[0].get("status_code")), (Some(&Value::from(url)), Some(&Value::Nil)));
}

#[test]
fn options_are_checked_and_the_timeout_is_bounded() {
    let site_of = |timeout: i64| site(&map! {"url" => "http://x", "timeout" => timeout}.into()).unwrap().timeout;
    assert_eq!((site_of(30), site_of(2)), (MAX_TIMEOUT, Duration::from_secs(2)));
    let check = |check: Map| of(map! {"url" => "http://x", "status" => list![check]});
    for (config, error) in [
        (list![], "option 'sites' is missing"),
        (list![map! {"sites" => map! {}}], "option 'sites': expected 1 to 64 sites, got 0"),
        (of(map! {}), "sites: s: option 'url' is missing"),
        (of(map! {"url" => "x", "timeout" => -1}), "sites: s: option 'timeout': expected seconds, got -1"),
        (of(map! {"url" => "x", "status" => 200}), "sites: s: option 'status': expected a list of checks, got 200"),
        (check(map! {"value" => 1}), "sites: s: a check has no 'comp'"),
        (check(map! {"comp" => "=="}), "sites: s: a check has no 'value'"),
        (check(map! {"comp" => "~", "value" => 1}), "sites: s: comp '~' is none of ==, <, >, <=, >=, !=, search"),
        (check(map! {"comp" => "search", "value" => "("}), "sites: s: value '(': "),
    ] {
        let report = wrong("http_status", &config);
        assert!(report.starts_with(error), "{report}");
    }
}
