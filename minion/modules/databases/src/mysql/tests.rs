//! Tests of the calls of the client program; `tests/mysql.rs` tests with a real server.

use brine_testing::Scripted;
use brine_value::{Map, list, map};

use crate::testing::context_with;

#[test]
fn secrets_are_not_arguments() {
    let programs =
        Scripted::new("$ mariadb ...\n! ERROR 1045 (28000): Access denied for user 'joe'@'localhost'\n= 1\n");
    let context = context_with(map! {}, programs.clone());
    let connection = map! {"connection_user" => "joe", "connection_pass" => "s3cret"};
    let answers = brine_testing::answers(&context, &[("mysql.query", list!["shop", "SELECT 'private'"], connection)]);
    assert_eq!(answers, "mysql.query: ERROR: MySQL Error 1045: Access denied for user 'joe'@'localhost'");
    let ran = programs.ran();
    assert!(ran.contains("--defaults-file=") && !ran.contains("s3cret") && !ran.contains("private"), "{ran}");
}

#[test]
fn character_sets_that_quoting_does_not_know_are_refused() {
    let context = context_with(map! {}, Scripted::new("$ mariadb ...\n"));
    let charset = map! {"connection_charset" => "gbk"};
    let answers = brine_testing::answers(
        &context,
        &[("mysql.version", list![], charset), ("mysql.plugin_status", list![""], Map::new())],
    );
    assert_eq!(
        answers,
        "mysql.version: ERROR: mysql.charset is invalid: expected utf8, utf8mb3 or utf8mb4, got 'gbk'\n\
         mysql.plugin_status: ERROR: plugin name is invalid: expected a name, got an empty string"
    );
}
