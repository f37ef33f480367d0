//! Tests of the input of `psql`, and of the results for its output; `tests/postgres.rs` tests with a real server.

use brine_testing::Scripted;
use brine_value::{Map, Value, list, map};

use crate::testing::context_with;

const PSQL: &str = "$ psql --no-align --no-readline --no-psqlrc --no-password";

#[test]
fn arguments_select_the_server() {
    let programs = Scripted::new(&format!(
        "{PSQL} --username joe --host db1 --port 5433 --dbname shop ...\n| name,owner,acl\n| public,postgres,\n\
         {PSQL} --dbname ...\n! psql: error: connection refused\n= 2\n"
    ));
    let context = context_with(map! {}, programs.clone());
    let server = map! {"db_user" => "joe", "db_host" => "db1", "db_port" => 5433};
    let answers = brine_testing::answers(
        &context,
        &[
            ("postgres.schema_list", list!["shop"], server),
            ("postgres.db_list", Value::List(Vec::new()), map! {"host" => "", "maintenance_db" => "a=b"}),
            ("postgres.db_create", list!["x\"y"], map! {"encoding" => "a'b\\"}),
        ],
    );
    assert_eq!(
        answers,
        "postgres.schema_list: {\"public\": {\"owner\": \"postgres\", \"acl\": \"\"}}\n\
         postgres.db_list: ERROR: connection refused\npostgres.db_create: false"
    );
    let ran = programs.ran();
    // The database is not passed as a connection string, and no statement is among the arguments.
    assert!(ran.contains("--dbname 'dbname=") && ran.contains("a=b"), "{ran}");
    assert!(ran.ends_with("--dbname postgres -q -v ON_ERROR_STOP=1 -f -"), "{ran}");
}

#[test]
fn privileges_are_checked() {
    let context = context_with(map! {}, Scripted::new(&format!("{PSQL} ...\n")));
    let call = |words: Value| brine_testing::answers(&context, &[("postgres.privileges_grant", words, Map::new())]);
    for (words, error) in [
        (list!["joe", "t", "view", "SELECT"], "Invalid object_type: view provided"),
        (list!["joe", "t", "table", "SELECT,FLY"], "Invalid privilege(s): SELECT,FLY provided for object table"),
        (list!["joe", "t", "table"], "Invalid privilege(s):  provided for object table"),
        (list!["joe", "g", "group", "SELECT"], "The privileges option should not be set for object_type group"),
    ] {
        assert_eq!(call(words), format!("postgres.privileges_grant: ERROR: {error}"));
    }
}
