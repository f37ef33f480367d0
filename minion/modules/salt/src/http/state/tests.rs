use brine_value::{list, map};

use super::*;
use crate::testing;

#[test]
fn query_results_equal_salts() {
    let port = brine_testing::web::server(|asked| {
        if asked.starts_with("GET /good ") {
            ("200 OK", "text/plain", "all is well".to_owned())
        } else {
            ("503 Service Unavailable", "text/plain", "later".to_owned())
        }
    });
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let report = |path: &str, test: bool, mut args: Map| {
        let context = testing::state_context(test, &[]);
        args.insert("name".into(), url(path).into());
        let outcome = context.call.minion.states.call(&context, "http.query", Args::keyword(args)).unwrap();
        format!("{}: {}", outcome.get("result").unwrap(), outcome.get("comment").unwrap())
    };
    let story = [
        report("good", false, Map::new()),
        report("good", false, map! {"match" => "well", "status" => 200}),
        report(
            "good",
            false,
            map! {"match" => "^all.*l$", "match_type" => "pcre", "status" => list![200, 201], "status_type" => "list"},
        ),
        report("good", false, map! {"match" => "ill", "status" => "20.", "status_type" => "pcre"}),
        report("bad", false, map! {"status" => 200}),
        report("bad", false, map! {"status" => list![200], "status_type" => "list"}),
        report("bad", false, map! {"status" => 503}),
        report("good", true, map! {"status" => 200}),
        report("bad", true, map! {"status" => 200, "test_url" => url("good")}).replace(&port.to_string(), "PORT"),
    ];
    insta::assert_snapshot!(story.join("\n"), @r#"
        False:  Either match text (match) or a status code (status) is required.
        True: Match text "well" was found. Status 200 was found.
        True: Match pattern "^all.*l$" was found. Status 200 was found.
        False: Match text "ill" was not found. Status pattern "20." was found.
        False: Status 200 was not found.
        False: Statuses [200] were not found.
        True: Status 503 was found.
        None: Status 200 was not found. (TEST MODE)
        None: Status 200 was found. (TEST MODE, TEST URL WAS: http://127.0.0.1:PORT/good)
        "#);
}
