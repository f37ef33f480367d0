use brine_value::{list, map};

use super::*;

#[test]
fn secrets_are_hidden_at_every_depth() {
    let options = map! {
        "sharedsecret" => "one",
        "interface" => "0.0.0.0",
        "keep_acl_in_token" => false,
        "token_expire" => 43200,
        "mysql.pass" => "two",
        "cluster_secret" => Value::Nil,
        "rest_cherrypy" => map! {"port" => 8000, "webhook_secrets" => map! {"github/*" => "three"}},
        "gitfs_remotes" => list!["https://me:four@host/repository", "ssh://git@host/repository",
            map! {"https://host/other" => list![map! {"password" => "five"}]}],
    };
    let text = Value::Map(visible(options.clone())).to_string();
    for secret in ["one", "two", "three", "four", "five"] {
        assert!(!text.contains(&format!("'{secret}'")) && !text.contains(&format!(":{secret}@")), "{text}");
    }
    let visible_options = visible(options.clone());
    for name in ["interface", "keep_acl_in_token", "token_expire", "cluster_secret"] {
        assert_eq!(visible_options.get(name), options.get(name), "{name}");
    }
    let remotes = visible_options.get("gitfs_remotes").unwrap().as_list().unwrap();
    assert_eq!(remotes[..2], [format!("https://{MASK}@host/repository").into(), "ssh://git@host/repository".into()]);
}

#[test]
fn an_option_is_set_and_the_rest_of_the_file_is_kept() {
    for (text, key, value, expected) in [
        ("", "timeout", Value::from(9), "timeout: 9\n"),
        ("# mine\ntimeout: 5 # s\nuser: a\n", "timeout", 9.into(), "# mine\ntimeout: 9\nuser: a\n"),
        ("user: a", "timeout", 9.into(), "user: a\ntimeout: 9\n"),
        ("a:\n  - 1\n  # two\nb: 2\n", "a", "x".into(), "a: x\nb: 2\n"),
        ("a:\n- 1\n- 2\nab: 2\n", "a", list![3], "a:\n- 3\nab: 2\n"),
        ("{a: 1}\n", "b", 2.into(), "a: 1\nb: 2\n"),
        ("a: |\n  b: 1\n\n  c\nd: 1\n", "a", 1.into(), "a: 1\n"),
    ] {
        let edited = with_option(text, key, value.clone()).unwrap();
        assert!(edited.starts_with(expected), "{text:?}: {edited:?}");
        let read = brine_yaml::load(&edited).unwrap();
        assert_eq!(read.get(key), Some(&value), "{text:?}");
        for (name, other) in brine_yaml::load(text).unwrap().as_map().into_iter().flatten() {
            assert!(name.as_str() == Some(key) || read.as_map().unwrap().get(name) == Some(other), "{text:?}");
        }
    }
    assert!(with_option("- a\n", "b", 1.into()).is_err());
    assert!(with_option("a: [\n", "b", 1.into()).is_err());
}
