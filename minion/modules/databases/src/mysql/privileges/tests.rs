use super::super::quote::database_pattern;
use super::*;

/// Returns the SQL for all tables of a database.
fn all_tables(database: &str) -> String {
    format!("{}.*", database_pattern(database))
}

#[test]
fn statements_of_servers_are_parsed() {
    let statement = "GRANT SELECT, INSERT (`a`, `b c`), LOCK TABLES ON `te s.t'\"\\_x``y`.* TO `o'x`@`10.0.0.%` \
                     REQUIRE SSL WITH GRANT OPTION";
    let grant = Grant::parse(statement).unwrap();
    let names: Vec<String> = grant.privileges.iter().map(Privilege::sql).collect();
    assert_eq!(names, ["SELECT", "INSERT (`a`, `b c`)", "LOCK TABLES"]);
    assert_eq!((&*grant.user, &*grant.host, grant.may_grant), ("o'x", "10.0.0.%", true));
    assert_eq!(grant.object_text, "`te s.t'\"\\_x``y`.*");
    assert!(grant.object.is_same(&Object::parse("te s.t'\"_x`y.*", true).unwrap()));
    let plain = Grant::parse("GRANT SELECT ON testdb.t TO joe@10.1.2.3 WITH MAX_QUERIES_PER_HOUR 3").unwrap();
    assert_eq!((&*plain.user, &*plain.host, plain.may_grant), ("joe", "10.1.2.3", false));
    for other in ["GRANT `role` TO `joe`@`%`", "GRANT PROXY ON ''@'%' TO 'root'@'x'", "GRANT", "SELECT 1", ""] {
        assert_eq!(Grant::parse(other), None, "{other}");
    }
}

#[test]
fn wildcards_of_databases_are_escaped_once() {
    assert_eq!(Object::parse("a_b.*", true).unwrap().sql(), all_tables("a_b"));
    assert_eq!(Object::parse("a_b.*", true).unwrap().sql(), "`a\\_b`.*");
    assert_eq!(Object::parse("a_b.t_x", true).unwrap().sql(), "`a_b`.`t_x`");
    assert_eq!(Object::parse("`a%`.*", false).unwrap().sql(), "`a%`.*");
    assert_eq!(Object::parse("*.*", true).unwrap().sql(), "*.*");
    for invalid in ["*", "shop", ".t", "shop.", "*.t"] {
        assert!(Object::parse(invalid, true).is_err(), "{invalid}");
    }
}

#[test]
fn privileges_are_words() {
    let parsed = Privilege::parse("select, Insert(A,b) ,replication client").unwrap();
    let names: Vec<String> = parsed.iter().map(Privilege::sql).collect();
    assert_eq!(names, ["SELECT", "INSERT (`a`, `b`)", "REPLICATION CLIENT"]);
    assert_eq!(Privilege::parse("all").unwrap()[0].name, ALL);
    for invalid in ["", "SELECT ON x.* TO y", "SELECT; DROP", "SELECT (a", "'x'", "SELECT,, UPDATE"] {
        assert!(Privilege::parse(invalid).is_err(), "{invalid}");
    }
}
