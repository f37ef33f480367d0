//! Module and states of PostgreSQL, by `salt-call --local` against a server that the test starts.

use crate::support::database;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::database::{DatabaseServer, Kind};
use crate::support::local_minion::Minion;
use serde_json::json;

/// Creates a minion that logs in to a server.
fn minion_of(server: &DatabaseServer) -> Minion {
    Minion::new(&format!(
        "postgres.host: 127.0.0.1\npostgres.port: {}\npostgres.user: salt\npostgres.pass: secret\n",
        server.port()
    ))
}

const SLS: &str = r#"
team:
  postgres_group.present: []
app:
  postgres_user.present:
    - password: s'cret\
    - encrypted: scram-sha-256
    - createdb: true
    - groups: team
    - valid_until: '2031-02-03 04:05:06'
"odd \"name\"":
  postgres_user.present:
    - password: x
shop:
  postgres_database.present:
    - owner: app
    - encoding: UTF8
    - template: template0
sales:
  postgres_schema.present:
    - dbname: shop
    - owner: app
pgcrypto:
  postgres_extension.present:
    - maintenance_db: shop
    - schema: sales
rights of the team:
  postgres_privileges.present:
    - name: team
    - object_name: shop
    - object_type: database
    - privileges: [CONNECT, TEMPORARY]
    - grant_option: true
plpgsql:
  postgres_language.present:
    - maintenance_db: shop
"#;

#[test]
fn states_create_missing_objects_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::Postgres, directory.path());
    let minion = minion_of(&server);
    // On a new server the states cannot inspect `shop`, which does not exist yet.
    let first = minion.apply(SLS, false);
    let change = |name: &str, change: &str| json!({name: change});
    let expected = [
        json!([true, "The group team has been created", change("team", "Present")]),
        json!([true, "The user app has been created", change("app", "Present")]),
        json!([true, "The user odd \"name\" has been created", change("odd \"name\"", "Present")]),
        json!([true, "The database shop has been created", change("shop", "Present")]),
        json!([true, "Schema sales has been created in database shop", change("sales", "Present")]),
        json!([true, "The extension pgcrypto has been installed", change("pgcrypto", "Installed")]),
        json!([true, "The privilege(s): CONNECT,TEMPORARY have been granted to team", change("team", "Present")]),
        json!([true, "Language plpgsql is already installed", {}]),
    ];
    assert_eq!(first, expected);
    for state in minion.apply(SLS, false) {
        assert_eq!((&state[0], &state[2]), (&json!(true), &json!({})), "{state}");
    }
    // The server itself accepts the password, and the role has the requested attributes.
    assert_eq!(server.client_as("app", "s'cret\\", "shop", "SELECT current_user"), "app\n");
    let role = minion.call(&["postgres.role_get", "app"]);
    assert_eq!(role["groups"], json!(["team"]));
    assert_eq!(role["expiry time"], "2031-02-03 04:05:06");
    assert_eq!((&role["can create databases"], &role["superuser"]), (&json!(true), &json!(false)));
    let privileges = minion.call(&["postgres.privileges_list", "shop", "database"]);
    assert_eq!(privileges["team"], json!({"CONNECT": true, "TEMPORARY": true}));

    let changed = SLS
        .replace("s'cret\\", "other")
        .replace("createdb: true", "createdb: false")
        .replace("- owner: app\n    - encoding", "- owner: team\n    - owner_recurse: true\n    - encoding")
        .replace("schema: sales", "schema: public");
    let planned = minion.apply(&changed, true);
    let update = json!({"app": {"createdb": false, "password": true}});
    assert_eq!(planned[1], json!([null, "User app is set to be updated", update]));
    assert_eq!(planned[3], json!([null, "Database shop exists, but parameters need to be changed", {}]));
    assert_eq!(planned[5], json!([null, "Extension pgcrypto is set to be upgraded", {}]));
    let made = minion.apply(&changed, false);
    assert_eq!(made[1], json!([true, "The user app has been updated", update]));
    let database = change("shop", "Parameters changed");
    assert_eq!(made[3], json!([true, "Parameters for database shop have been changed", database]));
    assert_eq!(made[5], json!([true, "The extension pgcrypto has been upgraded", change("pgcrypto", "Upgraded")]));
    assert_eq!(minion.call(&["postgres.schema_get", "shop", "sales"])["owner"], "team");
    assert_eq!(server.client_as("app", "other", "shop", "SELECT 1"), "1\n");

    let fixed = "shop:\n  postgres_database.present:\n    - encoding: LATIN1\n";
    let wrong = "Database shop has wrong parameters which couldn't be changed on fly.";
    assert_eq!(minion.apply(fixed, false), [json!([false, wrong, {}])]);
}

#[test]
fn states_remove_existing_objects() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::Postgres, directory.path());
    let minion = minion_of(&server);
    minion.apply(SLS, false);
    let sls = "pgcrypto:\n  postgres_extension.absent:\n    - maintenance_db: shop\n\
               sales:\n  postgres_schema.absent:\n    - dbname: shop\n\
               rights:\n  postgres_privileges.absent:\n    - name: team\n    - object_name: shop\n    \
               - object_type: database\n    - privileges: [TEMPORARY]\n\
               membership:\n  postgres_privileges.absent:\n    - name: app\n    - object_name: team\n    \
               - object_type: group\n\
               team:\n  postgres_group.absent: []\n\
               shop:\n  postgres_database.absent: []\n\
               team again:\n  postgres_group.absent:\n    - name: team\n";
    let planned = minion.apply(sls, true);
    assert_eq!(planned[0], json!([null, "Extension pgcrypto is set to be removed", {}]));
    assert_eq!(planned[3], json!([null, "The privilege(s): team are set to be revoked from app", {}]));
    let made = minion.apply(sls, false);
    assert_eq!(made[0], json!([true, "Extension pgcrypto has been removed", {"pgcrypto": "Absent"}]));
    assert_eq!(made[1], json!([true, "Schema sales has been removed from database shop", {"sales": "Absent"}]));
    assert_eq!(made[2][1], "The privilege(s): TEMPORARY have been revoked from team");
    assert_eq!(made[3][1], "The privilege(s): team have been revoked from app");
    // The group still has a privilege: the server's reason is in the comment.
    let comment = made[4][1].as_str().unwrap();
    assert!(
        comment.starts_with("Group team failed to be removed: ") && comment.contains("privileges for database shop")
    );
    assert_eq!(made[5], json!([true, "Database shop has been removed", {"shop": "Absent"}]));
    assert_eq!(made[6], json!([true, "Group team has been removed", {"team": "Absent"}]));
    let gone = minion.apply("shop:\n  postgres_database.absent: []\n", false);
    assert_eq!(gone, [json!([true, "Database shop is not present, so it cannot be removed", {}])]);
}

#[test]
fn functions_return_data_and_report_errors() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::Postgres, directory.path());
    let minion = minion_of(&server);
    let rows = minion.call(&["postgres.psql_query", "SELECT 1 AS one, NULL AS none, E'a,\"b\\n' AS text;"]);
    assert_eq!(rows, json!([{"one": "1", "none": "", "text": "a,\"b\n"}]));
    let version = minion.call(&["postgres.version"]);
    assert!(version.as_str().unwrap().starts_with(|first: char| first.is_ascii_digit()), "{version}");

    server.client("postgres", "CREATE TABLE \"My Items\" (id int); CREATE ROLE reader");
    server.client("postgres", "CREATE FUNCTION twice(n integer) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'");
    let on_table = ["reader", "My Items", "table"];
    let call = |function: &str, words: &[&str]| minion.call(&[&[function], words].concat());
    let privileges = |more: &[&'static str]| [&on_table[..], more].concat();
    assert_eq!(call("postgres.has_privileges", &privileges(&["SELECT"])), false);
    assert_eq!(call("postgres.privileges_grant", &privileges(&["SELECT, insert"])), true);
    assert_eq!(call("postgres.privileges_grant", &privileges(&["SELECT"])), false);
    assert_eq!(call("postgres.has_privileges", &privileges(&["INSERT"])), true);
    assert_eq!(call("postgres.has_privileges", &privileges(&["ALL"])), false);
    assert_eq!(call("postgres.privileges_grant", &privileges(&["ALL"])), true);
    assert_eq!(call("postgres.has_privileges", &privileges(&["ALL"])), true);
    assert_eq!(call("postgres.has_privileges", &privileges(&["ALL", "grant_option=True"])), false);
    assert_eq!(call("postgres.privileges_revoke", &privileges(&["ALL"])), true);
    let function = ["reader", "twice(integer)", "function", "EXECUTE"];
    assert_eq!(call("postgres.privileges_grant", &function), true);
    assert_eq!(call("postgres.has_privileges", &function), true);

    // Names are quoted, whatever characters they contain.
    let evil = "x\"; DROP TABLE \"My Items\"; --";
    assert_eq!(call("postgres.user_create", &[evil]), true);
    assert_eq!(call("postgres.user_exists", &[evil]), true);
    assert_eq!(call("postgres.db_create", &[evil, "owner=a\"b"]), false);
    let commands = "x\\! touch made\n\\! touch made\n";
    // An argument of several lines is no keyword argument, but the YAML of its value may have several.
    let quoted = format!("valid_until={commands:?}");
    assert_eq!(call("postgres.user_create", &[commands, &quoted]), false);
    assert!(!Path::new("/made").exists());
    assert_eq!(call("postgres.user_remove", &[evil]), true);
    let left = server.client("postgres", "SELECT count(*) FROM \"My Items\"");
    assert_eq!(left, "0\n");

    let space = directory.path().join("space");
    fs::create_dir(&space).unwrap();
    database::hand_over_directory(Kind::Postgres, &space);
    let sls = format!(
        "fast:\n  postgres_tablespace.present:\n    - directory: {}\n    - options: {{seq_page_cost: 1.5}}\n",
        space.display()
    );
    assert_eq!(minion.apply(&sls, false)[0][1], "The tablespace fast has been created");
    assert_eq!(minion.apply(&sls, false)[0][1], "Tablespace fast is already present");
    let changed = sls.replace("1.5", "1.75");
    assert_eq!(minion.apply(&changed, false)[0][2], json!({"fast": {"options": {"seq_page_cost": 1.75}}}));
    assert_eq!(minion.call(&["postgres.tablespace_list"])["fast"]["Opts"], "{seq_page_cost=1.75}");

    // An unreachable server causes an error with the reason, not an empty result.
    drop(server);
    let output = minion.run(&["postgres.db_list"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("Connection refused"), "{error}");
}

#[test]
fn data_directories_are_created_by_the_user_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::Postgres, directory.path());
    let minion = minion_of(&server);
    let programs = database::postgres_program("initdb");
    let program = programs
        .get_args()
        .next()
        .map_or_else(|| programs.get_program().to_owned(), |_| programs.get_args().last().unwrap().to_owned());
    let bins = Path::new(&program).parent().unwrap().display().to_string();
    let config = minion.directory.path().join("minion");
    fs::write(&config, format!("{}postgres.bins_dir: {bins}\n", fs::read_to_string(&config).unwrap())).unwrap();
    let data = directory.path().join("made");
    fs::create_dir(&data).unwrap();
    database::hand_over_directory(Kind::Postgres, &data);
    let account = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let runas = if account.trim() == "root" { "postgres" } else { account.trim() };
    let sls = format!(
        "{}:\n  postgres_initdb.present:\n    - password: secret\n    - auth: scram-sha-256\n    - runas: {runas}\n    \
         - checksums: true\n",
        data.display()
    );
    let made = minion.apply(&sls, false);
    assert_eq!(made[0][1], format!("Postgres data directory {} has been initialized", data.display()));
    assert_eq!(
        minion.apply(&sls, false)[0][1],
        format!("Postgres data directory {} is already present", data.display())
    );
    let broken = sls.replace("scram-sha-256", "nonsense").replace("made:", "made2:");
    let comment = minion.apply(&broken, false)[0][1].to_string();
    assert!(comment.contains("initialization failed: initdb failed: "), "{comment}");
}
