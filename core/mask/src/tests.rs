use std::sync::LazyLock;

use brine_value::{Map, Value, list, map, msgpack};
use proptest::prelude::*;

use super::*;

struct SetPassword;

impl Parameters for SetPassword {
    fn positional(&self, function: &str) -> Vec<&'static str> {
        if function == "shadow.set_password" { vec!["name", "password"] } else { Vec::new() }
    }
}

fn mask() -> Mask {
    static COMPILED: LazyLock<Mask> = LazyLock::new(|| Mask::default().with_parameters(Arc::new(SetPassword)));
    COMPILED.clone()
}

#[test]
fn names_are_secret_by_their_words() {
    let mask = mask();
    for name in [
        "password",
        "Password",
        "db_password",
        "dbPassword",
        "passwd",
        "key_passphrase",
        "token",
        "X-Auth-Token",
        "client_secret",
        "credentials",
        "key",
        "api_key",
        "api-key",
        "apiKey",
        "apikey",
        "API_KEY",
        "private_key",
        "privateKey",
        "secret_key",
        "pillar",
        "ret_kwargs",
        "priv",
        "pass",
        "ssh_pass",
        "Authorization",
    ] {
        assert!(mask.is_secret("test.arg", name), "{name}");
    }
    for name in [
        "name",
        "keysize",
        "keyring",
        "keyserver",
        "keyid",
        "key_id",
        "monkey",
        "pub_key",
        "public_key",
        "ssh_public_key",
        "passive",
        "compass",
        "pillarenv",
        "tgt",
        "match",
        "routing_key",
        "author",
        "bypass",
    ] {
        assert!(!mask.is_secret("test.arg", name), "{name}");
    }
    assert!(mask.is_secret("sdb.set", "value") && mask.is_secret("wheel.pillar_roots.write", "data"));
    assert!(!mask.is_secret("sdb.get", "value") && !mask.is_secret("file.write", "data"));
    for function in [
        "grains.get",
        "grains.setval",
        "config.get",
        "runner.config.get",
        "pillar.get",
        "cache.fetch",
        "ssh.set_auth_key",
    ] {
        assert!(!mask.is_secret(function, "key"), "{function}");
        assert!(mask.is_secret(function, "password"), "{function}");
    }
}

#[test]
fn names_are_configurable() {
    let mask = Mask::new(&["*pin".into()], &["spin".into(), "lock.open:pin".into()]).unwrap();
    let is_secret = |function: &str, name: &str| mask.is_secret(function, name);
    assert!(is_secret("lock.close", "pin") && is_secret("", "card-PIN"));
    assert!(!is_secret("lock.open", "pin") && !is_secret("", "spin") && !is_secret("", "password"));
    assert!(Mask::new(&["[".into()], &[]).is_ok(), "as in Salt, a lone bracket is literal");
}

#[test]
fn arguments_are_masked_by_keyword_position_text_and_nested_name() {
    for (function, given, masked) in [
        (
            "test.arg",
            list![1, map! {"__kwarg__" => true, "password" => "x", "a" => 1}],
            list![1, map! {"__kwarg__" => true, "password" => MASK, "a" => 1}],
        ),
        ("shadow.set_password", list!["root", "x"], list!["root", MASK]),
        ("test.arg", list!["password=x", "a=b"], list![format!("password={MASK}"), "a=b"]),
        (
            "test.arg",
            list![map! {"a" => list![map! {"token" => "x"}]}],
            list![map! {"a" => list![map! {"token" => MASK}]}],
        ),
        (
            "state.apply",
            list!["web", map! {"__kwarg__" => true, "pillar" => map! {"a" => "x"}}],
            list!["web", map! {"__kwarg__" => true, "pillar" => MASK}],
        ),
        ("test.arg", list![map! {"secrets" => list!["x", "y"]}], list![map! {"secrets" => MASK}]),
        // Texts that are data, as command lines and some clients send them.
        ("cmd.run", list!["id", r#"env={"DB_PASSWORD": "x"}"#], list!["id", format!("env={MASK}")]),
        ("test.arg", list!["{a: {token: x}}"], list![MASK]),
        (
            "test.arg",
            list![map! {"__kwarg__" => true, "a" => "[{'token': 'x'}]"}],
            list![map! {"__kwarg__" => true, "a" => MASK}],
        ),
    ] {
        let given = given.as_list().unwrap().to_vec();
        assert_eq!(mask().arguments(function, &given).map(Value::List), Some(masked), "{function} {given:?}");
    }
    for (function, given) in [
        ("test.ping", list![]),
        ("test.arg", list!["{a: token}", "b={c: 1}", "token: x", "{", "[:]"]),
        ("test.arg", list!["x", map! {"__kwarg__" => true, "a" => map! {"b" => 1}}]),
        ("grains.get", list![map! {"__kwarg__" => true, "key" => "os"}]),
        ("user.present", list![map! {"__kwarg__" => true, "hash_password" => true, "password" => Value::Nil}]),
        ("test.arg", list![map! {"password" => MASK}]),
        ("cmd.run", list!["echo a key=b"]),
    ] {
        assert_eq!(mask().arguments(function, given.as_list().unwrap()), None, "{function} {given:?}");
    }
}

#[test]
fn records_of_one_and_of_several_functions_are_masked() {
    let job = map! {"fun" => "test.arg", "arg" => list![map! {"password" => "x"}], "ret_kwargs" => map! {"host" => "x"},
    "tgt" => "*", "metadata" => map! {"token" => "x", "a" => 1}};
    let masked = map! {"arg" => list![map! {"password" => MASK}], "ret_kwargs" => MASK,
    "metadata" => map! {"token" => MASK, "a" => 1}};
    assert_eq!(mask().record(&job), masked);
    let several =
        map! {"fun" => list!["test.ping", "shadow.set_password"], "arg" => list![list![], list!["root", "x"]]};
    assert_eq!(mask().record(&several), map! {"arg" => list![list![], list!["root", MASK]]});
    let plain = map! {"fun" => "test.ping", "fun_args" => list![], "return" => map! {"password" => "x"}};
    assert_eq!(mask().record(&plain), Map::new(), "results are not arguments");
}

#[test]
fn masked_data_is_recognised() {
    for (value, masked) in [
        (list![map! {"a" => MASK}], true),
        (list![format!("password={MASK}")], true),
        (list!["a", map! {"a" => 1}], false),
    ] {
        assert_eq!(is_masked(&value), masked, "{value}");
    }
}

#[test]
fn messages_and_results_lose_the_secrets_of_their_call() {
    let arguments = list![
        "token=abcdef",
        map! {"__kwarg__" => true, "password" => "hunter2", "pass" => "ab",
        "pillar" => map! {"color" => "blue", "passwd" => "s3cret"}}
    ];
    let secrets = mask().secrets("test.arg", arguments.as_list().unwrap());
    let text = "not valid: password=hunter2, pass=ab, about abcdef; color=blue s3cret";
    let scrubbed = "not valid: password=**********, pass=**********, about **********; color=blue **********";
    assert_eq!(secrets.scrub(text), scrubbed);
    let result = map! {"kwargs" => map! {"password" => "hunter2"}, "args" => list!["abc"]}.into();
    let expected = map! {"kwargs" => map! {"password" => MASK}, "args" => list!["abc"]};
    assert_eq!(secrets.scrub_value(&result), Some(expected.into()));
    assert_eq!(secrets.scrub_value(&list!["blue"]), None);
    assert!(mask().secrets("test.ping", &[]).is_empty());
    // A positional value may look like a keyword, and a text may be data.
    for (function, arguments, text) in [
        ("shadow.set_password", list!["root", "abc=def"], "abc=def"),
        ("cmd.run", list!["id", r#"env={"DB_PASSWORD": "hunter2"}"#], "hunter2"),
        ("test.arg", list![map! {"__kwarg__" => true, "a" => "{token: hunter2, b: 1}"}], "hunter2"),
    ] {
        assert_eq!(mask().secrets(function, arguments.as_list().unwrap()).scrub(text), MASK, "{function}");
    }
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z=_]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec(("[a-z_]{1,8}", inner), 0..4)
                .prop_map(|pairs| Value::Map(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())),
        ]
    })
}

fn contains(value: &Value, marker: &str) -> bool {
    msgpack::pack(value).windows(marker.len()).any(|part| part == marker.as_bytes())
}

const MARKER: &str = "MARKER-4711";

proptest! {
    #[test]
    fn a_secret_anywhere_in_the_data_is_masked(
        around in data(), inside in data(), name in prop::sample::select(vec!["password", "api_key", "token", "pillar"]),
        depth in 0_usize..4,
    ) {
        // The marker is a leaf, or deep inside of the value with the secret name, and that below other data.
        let mut value = Value::Map(map! {name => list![inside, map! {"x" => MARKER}]});
        for level in 0..depth {
            value = if level % 2 == 0 { list![around.clone(), value] } else { map! {"a" => value, "b" => 1}.into() };
        }
        let record = map! {"fun" => "test.arg", "arg" => list![value]};
        let masked = mask().record(&record);
        prop_assert!(!contains(&masked.clone().into(), MARKER));
        prop_assert!(masked.contains_key("arg"));
        // Masking twice changes nothing.
        let mut again = record;
        again.extend(masked);
        prop_assert_eq!(mask().record(&again), Map::new());
    }

    #[test]
    fn data_without_secret_names_is_not_copied(value in data()) {
        let none = Mask::new(&["never".into()], &[]).unwrap();
        prop_assert_eq!(none.value("test.arg", &value), None);
    }
}
