use brine_value::map;

use super::*;

#[test]
fn user_names_are_escaped_in_dns_and_filters() {
    let (name, filter) =
        (Template::parse("uid={{ username }},ou=People").unwrap(), Template::parse("uid={{username}}").unwrap());
    for (user, as_name, as_filter) in [
        ("fred", "uid=fred,ou=People", "(uid=fred)"),
        ("*", "uid=*,ou=People", "(uid=\\2a)"),
        ("x)(uid=*", "uid=x)(uid\\3d*,ou=People", "(uid=x\\29\\28uid=\\2a)"),
        ("admin,ou=Root", "uid=admin\\2cou\\3dRoot,ou=People", "(uid=admin,ou=Root)"),
        ("a\\b", "uid=a\\5cb,ou=People", "(uid=a\\5cb)"),
        ("{{ username }}", "uid={{ username }},ou=People", "(uid={{ username }})"),
    ] {
        assert_eq!((name.name(user).as_str(), filter.filter(user).as_str()), (as_name, as_filter), "{user}");
    }
    for text in ["uid={{ user }}", "{{ username | upper }}", "{{ username", "{% if username %}x{% endif %}"] {
        assert!(Template::parse(text).is_err(), "{text}");
    }
}

#[test]
fn attributes_with_the_name_are_found_in_templates() {
    for (text, attributes) in [
        ("uid={{ username }}", &["uid"][..]),
        ("(uid={{ username }})", &["uid"]),
        ("(&(objectClass=person)(|(sAMAccountName={{ username }})(mail={{username}})))", &["sAMAccountName", "mail"]),
        ("(&(uid~={{ username }})(!(locked=*)))", &["uid"]),
        ("(uid:caseExactMatch:={{ username }})", &["uid"]),
        ("cn={{ username }},ou=People,dc=example", &["cn"]),
        ("mail=x-{{ username }}@example.com", &[]),
        ("uid=fixed", &[]),
    ] {
        assert_eq!(Template::parse(text).unwrap().attributes().collect::<Vec<_>>(), attributes, "{text}");
    }
}

#[test]
fn salts_options_are_read() {
    let service = map! {
        "auth.ldap.binddn" => "cn=salt,dc=example",
        "auth.ldap.bindpw" => "pw",
        "auth.ldap.filter" => "uid={{ username }}",
        "auth.ldap.basedn" => "dc=example",
    };
    let with = |more: Map| {
        let mut all = service.clone();
        all.extend(more);
        Settings::new(&all)
    };
    let defaults = with(Map::new()).unwrap();
    assert_eq!(defaults.servers, ["ldap://localhost:389"]);
    assert_eq!(defaults.directory, Directory::Other { base: "ou=Groups,dc=example".to_owned() });
    assert!(defaults.verify && defaults.master.is_some() && defaults.user_dn.is_none());
    for (more, servers) in [
        (map! {"auth.ldap.tls" => true}, vec!["ldaps://localhost:636"]),
        (map! {"auth.ldap.server" => "ldap.example", "auth.ldap.port" => 3389}, vec!["ldap://ldap.example:3389"]),
        (map! {"auth.ldap.server" => "::1", "auth.ldap.port" => "3389"}, vec!["ldap://[::1]:3389"]),
        (map! {"auth.ldap.uri" => "ldaps://a ldaps://b"}, vec!["ldaps://a", "ldaps://b"]),
    ] {
        assert_eq!(with(more.clone()).unwrap().servers, servers, "{more:?}");
    }
    let whole = with(map! {"auth.ldap.groupou" => ""}).unwrap();
    assert_eq!(whole.directory, Directory::Other { base: "dc=example".to_owned() });
    for (more, option) in [
        (map! {"auth.ldap.tls" => true, "auth.ldap.starttls" => true}, "auth.ldap.starttls"),
        (map! {"auth.ldap.auth_by_group_membership_only" => true}, "auth.ldap.auth_by_group_membership_only"),
        (map! {"auth.ldap.uri" => "http://x"}, "auth.ldap.uri"),
        (map! {"auth.ldap.uri" => "ldap://"}, "auth.ldap.uri"),
        (map! {"auth.ldap.port" => "x"}, "auth.ldap.port"),
        (map! {"auth.ldap.scope" => 3}, "auth.ldap.scope"),
        (map! {"auth.ldap.filter" => "uid=*"}, "auth.ldap.filter"),
        (map! {"auth.ldap.filter" => Value::Nil}, "auth.ldap.filter"),
        (map! {"auth.ldap.bindpw" => Value::Nil}, "auth.ldap.binddn"),
        (map! {"auth.ldap.binddn" => Value::Nil}, "auth.ldap.binddn"),
        (map! {"auth.ldap.groupclass" => "x)(uid=*"}, "auth.ldap.groupclass"),
        (map! {"auth.ldap.freeipa" => true}, "auth.ldap.group_basedn"),
        (map! {"auth.ldap.tls" => "perhaps"}, "auth.ldap.tls"),
    ] {
        assert_eq!(with(more.clone()).err().map(|(option, _)| option), Some(option), "{more:?}");
    }
    assert!(with(map! {"auth.ldap.binddn" => Value::Nil, "auth.ldap.anonymous" => true}).is_ok());
}
