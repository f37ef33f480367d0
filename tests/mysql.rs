//! Module and states of MySQL, by `salt-call --local` against a MariaDB server that the test starts.

use std::fs;
use std::path::Path;

use crate::support::database::{DatabaseServer, Kind};
use crate::support::local_minion::Minion;
use serde_json::{Value, json};

/// Creates a minion that logs in to a server.
fn minion_of(server: &DatabaseServer) -> Minion {
    Minion::new(&format!("mysql.host: 127.0.0.1\nmysql.port: {}\nmysql.user: root\nmysql.pass: ''\n", server.port()))
}

const SLS: &str = r##"
shop_1:
  mysql_database.present:
    - character_set: utf8mb4
    - collate: utf8mb4_bin
app:
  mysql_user.present:
    - host: '%'
    - password: s'cret\"#;
"o'dd \"name\"\\":
  mysql_user.present:
    - password_hash: '*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4'
open:
  mysql_user.present:
    - allow_passwordless: true
rights of the app:
  mysql_grants.present:
    - grant: select,INSERT
    - database: shop_1.*
    - user: app
    - host: '%'
    - grant_option: true
"##;

#[test]
fn states_create_missing_objects_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::MariaDb, directory.path());
    let minion = minion_of(&server);
    let change = |name: &str, change: &str| json!({name: change});
    let odd = "o'dd \"name\"\\";
    let planned = minion.apply(SLS, true);
    assert_eq!(planned[0], json!([null, "Database shop_1 is not present and needs to be created", {}]));
    assert_eq!(planned[1], json!([null, "User app@% is set to be added", {}]));
    assert_eq!(planned[3], json!([null, "User open@localhost is set to be added with passwordless login", {}]));
    assert_eq!(planned[4], json!([null, "MySQL grant rights of the app is set to be created", {}]));
    let first = minion.apply(SLS, false);
    let granted = "Grant select,INSERT on shop_1.* to app@% has been added";
    let expected = [
        json!([true, "The database shop_1 has been created", change("shop_1", "Present")]),
        json!([true, "The user app@% has been added", change("app", "Present")]),
        json!([true, format!("The user {odd}@localhost has been added"), change(odd, "Present")]),
        json!([true, "The user open@localhost has been added with passwordless login", change("open", "Present")]),
        json!([true, granted, change("rights of the app", "Present")]),
    ];
    assert_eq!(first, expected);
    let second = minion.apply(SLS, false);
    let present = [
        "Database shop_1 is already present".to_owned(),
        "User app@% is already present with the desired password".to_owned(),
        format!("User {odd}@localhost is already present with the desired password hash"),
        "User open@localhost is already present with passwordless login".to_owned(),
        "Grant select,INSERT on shop_1.* to app@% is already present".to_owned(),
    ];
    assert_eq!(second, present.map(|comment| json!([true, comment, {}])));
    // The server itself accepts the passwords.
    assert_eq!(server.client_as("app", "s'cret\\\"#;", "shop_1", "SELECT 1"), "1\n");
    assert_eq!(server.client_as(odd, "mypass", "", "SELECT 1"), "1\n");
    assert_eq!(minion.call(&["mysql.verify_login", "app", "s'cret\\\"#;"]), true);
    assert_eq!(minion.call(&["mysql.verify_login", "app", "wrong"]), false);

    let changed = SLS
        .replace("s'cret\\\"#;", "12345")
        .replace("utf8mb4_bin", "utf8mb4_unicode_ci")
        .replace("select,INSERT", "SELECT")
        .replace("grant_option: true", "revoke_first: true");
    let planned = minion.apply(&changed, true);
    let collate = "Database collate utf8mb4_unicode_ci != utf8mb4_bin needs to be updated";
    assert_eq!(planned[0], json!([null, format!("{collate}\nDatabase shop_1 is going to be updated"), {}]));
    assert_eq!(planned[1], json!([null, "Password for user app@% is set to be changed", {}]));
    let made = minion.apply(&changed, false);
    let collation = json!({"collate": {"before": "utf8mb4_bin", "now": "utf8mb4_unicode_ci"}});
    assert_eq!(made[0], json!([true, collate, collation]));
    assert_eq!(made[1], json!([true, "Password for user app@% has been changed", change("app", "Updated")]));
    assert_eq!(made[4][1], "Grant SELECT on shop_1.* to app@% has been added");
    let grants = minion.call(&["mysql.user_grants", "app", "%"]);
    assert_eq!(grants[1], "GRANT SELECT ON `shop\\_1`.* TO `app`@`%`", "{grants}");
    for state in minion.apply(&changed, false) {
        assert_eq!((&state[0], &state[2]), (&json!(true), &json!({})), "{state}");
    }
}

#[test]
fn states_remove_existing_objects() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::MariaDb, directory.path());
    let minion = minion_of(&server);
    minion.apply(SLS, false);
    let sls = "rights:\n  mysql_grants.absent:\n    - grant: INSERT\n    - database: shop_1.*\n    - user: app\n    \
               - host: '%'\n\
               app:\n  mysql_user.absent:\n    - host: '%'\n\
               shop_1:\n  mysql_database.absent: []\n";
    let planned = minion.apply(sls, true);
    assert_eq!(planned[0], json!([null, "MySQL grant rights is set to be revoked", {}]));
    assert_eq!(planned[1], json!([null, "User app@% is set to be removed", {}]));
    assert_eq!(planned[2], json!([null, "Database shop_1 is present and needs to be removed", {}]));
    let revoked = "Grant INSERT on shop_1.* for app@% has been revoked";
    let expected = [
        json!([true, revoked, {"rights": "Absent"}]),
        json!([true, "User app@% has been removed", {"app": "Absent"}]),
        json!([true, "Database shop_1 has been removed", {"shop_1": "Absent"}]),
    ];
    assert_eq!(minion.apply(sls, false), expected);
    let gone = [
        "Grant INSERT on shop_1.* to app@% is not present, so it cannot be revoked",
        "User app@% is not present, so it cannot be removed",
        "Database shop_1 is not present, so it cannot be removed",
    ];
    assert_eq!(minion.apply(sls, false), gone.map(|comment| json!([true, comment, {}])));
}

#[test]
fn queries_return_every_character_and_null() {
    let directory = tempfile::tempdir().unwrap();
    let server = DatabaseServer::start(Kind::MariaDb, directory.path());
    let minion = minion_of(&server);
    server.client("mysql", "CREATE DATABASE shop");
    let marker = directory.path().join("made");
    let call = |words: &[&str]| minion.call(words);
    let query = "SELECT 1 AS one, NULL AS `n<\"&`, 'NULL' AS t, 'a\tb\n&lt;</field>é😀' AS x, '' AS e";
    let answer = call(&["mysql.query", "shop", query]);
    assert_eq!(answer["columns"], json!(["one", "n<\"&", "t", "x", "e"]));
    assert_eq!(answer["results"], json!([["1", null, "NULL", "a\tb\n&lt;</field>é😀", ""]]));
    assert_eq!(answer["rows returned"], 1);
    // No text in a query runs commands of the client program.
    let hostile = format!("SELECT 'x\n\\! touch {0}\n'\n\\! touch {0}\nsystem touch {0}\n", marker.display());
    let output = minion.run(&["mysql.query", "shop", &hostile]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("MySQL Error"), "{error}");
    assert!(!marker.exists());
    let script = "-- a; comment\nCREATE TABLE t (id int, name varchar(20));\nINSERT INTO t VALUES (1, 'a;b'), (2, NULL);\n\
                  SET @x = 7;\nSELECT name FROM t ORDER BY id; SELECT @x AS x\n";
    fs::write(minion.directory.path().join("srv/s.sql"), script).unwrap();
    let answer = call(&["mysql.file_query", "shop", "salt://s.sql"]);
    assert_eq!((&answer["rows affected"], &answer["rows returned"]), (&json!(2), &json!(3)));
    assert_eq!(answer["results"], json!([[["a;b"], [null]], [["7"]]]));
    assert_eq!(call(&["mysql.query", "shop", "UPDATE t SET name = 'c'"])["rows affected"], 2);

    let file = minion.directory.path().join("output");
    let sls = format!(
        "count:\n  mysql_query.run:\n    - database: shop\n    - query: SELECT name, id FROM t ORDER BY id LIMIT 1\n    \
         - output: {}\n    - overwrite: false\n\
         script:\n  mysql_query.run_file:\n    - database: shop\n    - query_file: salt://q.sql\n    - output: grain\n    \
         - grain: db\n    - key: n\n\
         away:\n  mysql_query.run:\n    - database: none\n    - query: SELECT 1\n",
        file.display()
    );
    fs::write(minion.directory.path().join("srv/q.sql"), "SELECT COUNT(*) AS n FROM t;\n").unwrap();
    let planned = minion.apply(&sls, true);
    assert_eq!(planned[0][1], format!("Query would execute, storing result in file: {}", file.display()));
    assert_eq!(planned[1][1], "Query would execute, storing result in grain: db:n");
    let made = minion.apply(&sls, false);
    assert_eq!(made[0][2], json!({"query": format!("Executed. Output into {}", file.display())}));
    assert_eq!(fs::read_to_string(&file).unwrap(), "name:c\nid:1\n");
    assert_eq!(made[1][2], json!({"query": "Executed. Output into grain: db:n"}));
    assert_eq!(made[2], json!([null, "Database none is not present", {}]));
    assert_eq!(call(&["grains.get", "db"])["n"]["results"], json!([{"n": "2"}]));
    let comment = format!("No execution needed. File {} already set", file.display());
    assert_eq!(minion.apply(&sls, false)[0], json!([true, comment, {}]));
}

#[test]
fn special_characters_in_names_are_quoted() {
    let directory = tempfile::tempdir().unwrap();
    // Neither mode changes the quoting of names.
    let options = vec!["--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES".to_owned()];
    let server = DatabaseServer::start_with(Kind::MariaDb, directory.path(), options);
    let minion = minion_of(&server);
    server.client("mysql", "CREATE DATABASE keep");
    let call = |function: &str, words: &[&str]| minion.call(&[&[function], words].concat());
    for evil in ["x`; DROP DATABASE keep; --", "a'b\"c\\", "f_o%o", "é😀"] {
        let (user, password) = (&evil[..evil.len().min(20)], &format!("p{evil}"));
        // The server's names may only contain characters of up to three bytes.
        if !evil.contains('😀') {
            assert_eq!(call("mysql.db_create", &[evil]), true, "{evil}");
            assert_eq!(call("mysql.db_exists", &[evil]), true, "{evil}");
            assert_eq!(call("mysql.db_tables", &[evil]), json!([]), "{evil}");
            assert_eq!(call("mysql.user_create", &[user, "%", password]), true, "{evil}");
            assert_eq!(call("mysql.user_exists", &[user, "%", password]), true, "{evil}");
            assert_eq!(call("mysql.verify_login", &[user, password]), true, "{evil}");
            let grant = ["SELECT, INSERT", &format!("{evil}.*"), user, "%"];
            assert_eq!(call("mysql.grant_exists", &grant), false, "{evil}");
            assert_eq!(call("mysql.grant_add", &grant), true, "{evil}");
            assert_eq!(call("mysql.grant_exists", &grant), true, "{evil}");
            assert_eq!(call("mysql.grant_revoke", &grant), true, "{evil}");
            assert_eq!(call("mysql.grant_exists", &grant), false, "{evil}");
            assert_eq!(call("mysql.user_remove", &[user, "%"]), true, "{evil}");
            assert_eq!(call("mysql.db_remove", &[evil]), true, "{evil}");
        }
        assert_eq!(call("mysql.db_exists", &[evil]), false, "{evil}");
    }
    assert_eq!(call("mysql.db_exists", &["keep"]), true);
    // `_` is not a wildcard: `k_ep` does not match `keep`.
    assert_eq!(call("mysql.db_exists", &["k_ep"]), false);
}

#[test]
fn functions_return_data_and_report_errors() {
    let directory = tempfile::tempdir().unwrap();
    let options = vec!["--log-bin=binlog".to_owned()];
    let server = DatabaseServer::start_with(Kind::MariaDb, directory.path(), options);
    let minion = minion_of(&server);
    let call = |function: &str, words: &[&str]| minion.call(&[&[function], words].concat());
    assert!(call("mysql.version", &[]).as_str().unwrap().contains("MariaDB"));
    assert!(call("mysql.status", &[])["Uptime"].is_string());
    assert_eq!(call("mysql.slave_lag", &[]), -1);
    assert_eq!(call("mysql.get_slave_status", &[]), json!([]));
    assert_eq!(call("mysql.free_slave", &[]), "");
    assert!(call("mysql.get_master_status", &[])["Position"].is_i64());
    assert_eq!(call("mysql.processlist", &[])[0]["Info"], "SHOW FULL PROCESSLIST");
    let global = call("mysql.showglobal", &[]);
    let is_port = |row: &&Value| row["Variable_name"] == "port";
    assert_eq!(global.as_array().unwrap().iter().find(is_port).unwrap()["Value"], server.port().to_string());
    assert!(call("mysql.showvariables", &[]).as_array().unwrap().len() > 100);

    server.client("mysql", "CREATE DATABASE shop; CREATE TABLE shop.t (id int, name varchar(9)) ENGINE=Aria");
    assert_eq!(call("mysql.db_tables", &["shop"]), json!(["t"]));
    let checked = call("mysql.db_check", &["shop"]);
    assert_eq!(checked[0][0]["Msg_text"], "OK", "{checked}");
    assert_eq!(call("mysql.db_repair", &["shop", "t"])[0]["Op"], "repair");
    assert_eq!(call("mysql.db_optimize", &["shop", "t"])[0]["Table"], "shop.t");
    assert_eq!(call("mysql.alter_db", &["shop", "character_set=latin1"]), true);
    assert_eq!(call("mysql.db_get", &["shop"])["character_set"], "latin1");
    assert_eq!(call("mysql.db_create", &["shop"]), false);
    assert_eq!(call("mysql.db_remove", &["mysql"]), false);
    assert_eq!(call("mysql.db_tables", &["none"]), false);

    assert_eq!(call("mysql.user_create", &["joe"]), false);
    assert_eq!(call("mysql.user_create", &["joe", "unix_socket=True"]), true);
    assert_eq!(call("mysql.user_exists", &["joe", "passwordless=True", "unix_socket=True"]), true);
    assert_eq!(call("mysql.user_chpass", &["joe", "localhost", "new"]), true);
    assert_eq!(call("mysql.verify_login", &["joe", "new"]), true);
    assert_eq!(call("mysql.user_info", &["joe"])["max_questions"], 0);
    let joe = json!({"User": "joe", "Host": "localhost"});
    assert!(call("mysql.user_list", &[]).as_array().unwrap().contains(&joe));
    // A column's privilege is less than the table's, and all include each.
    let one = ["SELECT(Name)", "shop.t", "joe"];
    assert_eq!(call("mysql.grant_add", &one), true);
    assert_eq!(call("mysql.grant_exists", &one), true);
    assert_eq!(call("mysql.grant_exists", &["SELECT", "shop.t", "joe"]), false);
    let all = ["ALL", "*.*", "joe"];
    assert_eq!(call("mysql.grant_add", &[&all[..], &["ssl_option=[{SSL: false}]"]].concat()), true);
    assert_eq!(call("mysql.grant_exists", &all), true);
    assert_eq!(call("mysql.grant_exists", &["REPLICATION CLIENT", "*.*", "joe"]), true);
    assert_eq!(call("mysql.grant_exists", &[&all[..], &["grant_option=True"]].concat()), false);
    assert_eq!(call("mysql.grant_revoke", &all), true);
    assert_eq!(call("mysql.grant_add", &["FLY", "*.*", "joe"]), false);

    assert_eq!(call("mysql.plugin_status", &["mysql_native_password"]), "ACTIVE");
    assert_eq!(call("mysql.plugin_status", &["none"]), "");
    assert_eq!(call("mysql.plugin_add", &["none"]), false);
    assert_eq!(call("mysql.plugin_remove", &["none"]), true);
    let native = json!({"name": "mysql_native_password", "status": "ACTIVE"});
    assert!(call("mysql.plugins_list", &[]).as_array().unwrap().contains(&native));

    // The socket, and the server's own option file.
    let socket = directory.path().join("data/socket").display().to_string();
    let by_socket = format!("connection_unix_socket={socket}");
    assert_eq!(call("mysql.db_exists", &["shop", &by_socket]), true);
    let file = directory.path().join("my.cnf");
    fs::write(&file, format!("[client]\nuser=salt\npassword=secret\nsocket={socket}\n")).unwrap();
    let by_file = format!("connection_default_file={}", file.display());
    let answer = call("mysql.query", &["shop", "SELECT CURRENT_USER()", &by_file]);
    assert_eq!(answer["results"], json!([["salt@%"]]));

    // An unreachable server causes an error with the reason, not an empty result.
    drop(server);
    let output = minion.run(&["mysql.db_list"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("MySQL Error 2002"), "{error}");
    let sls = "shop:\n  mysql_database.present: []\n";
    let state = &minion.apply(sls, false)[0];
    assert!(state[0] == false && state[1].as_str().unwrap().starts_with("MySQL Error 2002"), "{state}");
    assert!(!Path::new("/made").exists());
}
