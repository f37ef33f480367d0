use std::sync::LazyLock;

use brine_value::{Map, Value, json, list, map, msgpack};
use proptest::prelude::*;

use super::*;

struct SetPassword;

impl Parameters for SetPassword {
    fn positional(&self, function: &str) -> Vec<&'static str> {
        match function {
            "shadow.set_password" | "runner.lock.open" => vec!["name", "password"],
            "runner.batch.start" => vec!["tgt", "fun", "arg"],
            _ => Vec::new(),
        }
    }

    fn carrier(&self, function: &str) -> Option<&'static Carrier> {
        brine_carriers::carrier(function)
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
        "sshkey",
        "ssh_key",
        "deploySshKey",
        "accesskey",
        "passphrase",
        "auth_token",
        "basic_auth",
        "aws_creds",
        "wpa_psk",
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
        "pubkey",
        "sshpubkey",
        "hotkey",
        "eauth",
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
    for (function, arguments, masked) in [
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
        // Texts that contain data.
        ("test.arg", list!["token: x"], list![format!("token: {MASK}")]),
        (
            "file.write",
            list!["/x", map! {"__kwarg__" => true, "args" => list!["password=x\nb=1"]}],
            list!["/x", map! {"__kwarg__" => true, "args" => list![format!("password={MASK}\nb=1")]}],
        ),
        ("slsutil.renderer", list!["string=a: 1\ntoken: x"], list![format!("string=a: 1\ntoken: {MASK}")]),
        ("git.clone", list!["/x", "https://u:x@h/r"], list!["/x", format!("https://u:{MASK}@h/r")]),
        // Arguments for another function have the names of its parameters.
        (
            "schedule.add",
            list![
                "j",
                map! {"__kwarg__" => true, "function" => "shadow.set_password", "job_args" => list!["root", "x"]}
            ],
            list![
                "j",
                map! {"__kwarg__" => true, "function" => "shadow.set_password", "job_args" => list!["root", MASK]}
            ],
        ),
        (
            "schedule.add",
            list!["j", "function=shadow.set_password", "job_args=[root, x]", "job_kwargs={key: x}"],
            list!["j", "function=shadow.set_password", format!("job_args={MASK}"), format!("job_kwargs={MASK}")],
        ),
        (
            "mine.send",
            list!["users", "root", "x", "mine_function=shadow.set_password"],
            list!["users", "root", MASK, "mine_function=shadow.set_password"],
        ),
        (
            "runner.batch.start",
            list!["*", "shadow.set_password", list!["root", "x"]],
            list!["*", "shadow.set_password", list!["root", MASK]],
        ),
        (
            "runner.batch.start",
            list!["*", list!["test.ping", "shadow.set_password"], list![list![], list!["root", "x"]]],
            list!["*", list!["test.ping", "shadow.set_password"], list![list![], list!["root", MASK]]],
        ),
        (
            "runner.salt.execute",
            list![
                "*",
                map! {"__kwarg__" => true, "fun" => "shadow.set_password", "arg" => list!["root", "x"], "key" => "x"}
            ],
            list![
                "*",
                map! {"__kwarg__" => true, "fun" => "shadow.set_password", "arg" => list!["root", MASK], "key" => MASK}
            ],
        ),
        (
            "runner.queue.insert_runner",
            list!["lock.open", list!["front", "x"]],
            list!["lock.open", list!["front", MASK]],
        ),
        ("test.cross_test", list!["shadow.set_password", "root", "x"], list!["shadow.set_password", "root", MASK]),
    ] {
        let arguments = arguments.as_list().unwrap().to_vec();
        assert_eq!(mask().arguments(function, &arguments).map(Value::List), Some(masked), "{function} {arguments:?}");
    }
    for (function, arguments) in [
        ("test.ping", list![]),
        ("test.arg", list!["{a: token}", "b={c: 1}", "{", "[:]", "a=true", "{token: null}"]),
        ("test.arg", list!["x", map! {"__kwarg__" => true, "a" => map! {"b" => 1}}]),
        ("grains.get", list![map! {"__kwarg__" => true, "key" => "os"}]),
        ("user.present", list![map! {"__kwarg__" => true, "hash_password" => true, "password" => Value::Nil}]),
        ("test.arg", list![map! {"password" => MASK}]),
        ("cmd.run", list!["echo a key=b"]),
    ] {
        assert_eq!(mask().arguments(function, arguments.as_list().unwrap()), None, "{function} {arguments:?}");
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
        (list![format!("https://u:{MASK}@h")], true),
        (list![format!("echo {MASK}{MASK}")], false),
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
        ("test.arg", list![r#"{"token": "hun\"ter2"}"#], "hun\"ter2"),
        ("test.arg", list!["a: 1\ntoken: hunter2"], "hunter2"),
        ("git.clone", list!["https://u:hunt%40r2@h"], "hunt@r2"),
        (
            "schedule.add",
            list![
                "j",
                map! {"__kwarg__" => true, "function" => "shadow.set_password", "job_args" => list!["root", "hunter2"]}
            ],
            "hunter2",
        ),
        ("mine.send", list!["shadow.set_password", "root", "hunter2"], "hunter2"),
        (
            "runner.batch.start",
            list!["*", list!["test.ping", "shadow.set_password"], list![list![], list!["root", "hunter2"]]],
            "hunter2",
        ),
    ] {
        assert_eq!(mask().secrets(function, arguments.as_list().unwrap()).scrub(text), MASK, "{function}");
    }
}

#[test]
fn short_secrets_are_removed_behind_their_name_and_in_urls() {
    let arguments = list!["token=ab", "https://u:cd@h"];
    let secrets = mask().secrets("test.arg", arguments.as_list().unwrap());
    assert_eq!(secrets.scrub("about token=ab, https://u:cd@h"), format!("about token={MASK}, https://u:{MASK}@h"));
    // Beyond a number, texts are removed as a whole.
    let many: Vec<Value> = (0..3000).map(|number| format!("token=secret{number}").into()).collect();
    assert_eq!(mask().secrets("test.arg", &many).scrub("x"), MASK);
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
    fn a_secret_in_a_text_is_masked(
        secret in "MARKER-[a-z'\"\\\\ :,{}&@/?#=-]{0,8}x", before in "[a-z]{0,4}", style in 0_usize..6,
        name in prop::sample::select(vec!["password", "api_key", "sshkey", "Authorization"]),
    ) {
        let quoted = Value::from(secret.as_str());
        let text = match style {
            0 => json::to_json(&map! {"a" => before.as_str(), name => quoted}.into()),
            1 => format!("{{a: '{before}', {name}: '{}'}}", secret.replace('\'', "''")),
            2 => format!("a: {before}\n{name}: {}\nb: 1", json::to_json(&quoted)),
            3 => format!("a: {before}\n{name}: |\n  {secret}\n  {before}\nb: 1"),
            4 => format!("{name}={secret}\nb=1"),
            _ => format!("a: {before}\n- {name}:\n  - {}\n", json::to_json(&quoted)),
        };
        for argument in [text.as_str().into(), format!("text={text}").into(), map! {"x" => text.as_str()}.into()] {
            let argument: Value = argument;
            let arguments = [argument];
            let masked = mask().arguments("test.arg", &arguments).map(Value::List);
            prop_assert!(masked.as_ref().is_some_and(|masked| !contains(masked, "MARKER")), "{} {:?}", text, masked);
            prop_assert!(is_masked(&masked.unwrap()), "{}", text);
            let scrubbed = mask().secrets("test.arg", &arguments).scrub(&format!("wrong value: {secret}"));
            prop_assert!(!scrubbed.contains("MARKER"), "{} {}", text, scrubbed);
        }
    }

    #[test]
    fn data_without_secret_names_is_not_copied(value in data()) {
        let none = Mask::new(&["never".into()], &[]).unwrap();
        prop_assert_eq!(none.value("test.arg", &value), None);
    }
}

#[test]
fn the_deepest_decoded_arguments_are_masked() {
    use brine_value::msgpack::MAX_DEPTH;

    let secret = Value::from(map! {"password" => "MARKER"});
    let deep =
        (0..MAX_DEPTH).fold(secret, |inner, n| if n % 2 == 0 { list![inner] } else { map! {"a" => inner}.into() });
    let record = map! {"fun" => "x.y", "arg" => list![deep.clone()], "fun_args" => list![deep]};
    let masked = Mask::default().record(&record);
    assert!(masked.len() == 2 && !Value::from(masked.clone()).to_string().contains("MARKER"), "{masked:?}");
}
