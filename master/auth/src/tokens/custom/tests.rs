use std::collections::BTreeMap;
use std::sync::Mutex;

use brine_value::{list, map};

use super::*;
use crate::names::UserName;

/// A store that numbers its tokens `t1`, `t2`, ...; `made` replaces the result of `mk_token`.
#[derive(Default)]
struct Fake {
    tokens: Mutex<BTreeMap<String, Value>>,
    made: Option<Value>,
    calls: Mutex<Vec<String>>,
}

impl CustomTokens for Fake {
    fn call(&self, function: &'static str, args: Vec<Value>) -> Result<Value, CallError> {
        let first = args.first().map(ToString::to_string).unwrap_or_default();
        self.calls.lock().unwrap().push(function.to_owned());
        let mut tokens = self.tokens.lock().unwrap();
        match function {
            "mk_token" => {
                let secret = format!("t{}", tokens.len() + 1);
                tokens.insert(secret.clone(), args[0].clone());
                Ok(self.made.clone().unwrap_or_else(|| map! {"token" => secret}.into()))
            }
            "get_token" if first == "broken" => Err(CallError::execution("no file /tokens/broken")),
            "get_token" => Ok(tokens.get(&first).cloned().unwrap_or_else(Value::map)),
            "rm_token" => Ok(tokens.remove(&first).map_or(Value::Nil, |_| Value::map())),
            _ => Ok(tokens.keys().cloned().collect::<Vec<_>>().into()),
        }
    }
}

fn fred() -> Identity {
    let entries = Some(vec!["test.*".into()]);
    Identity { eauth: "file".into(), username: UserName::found("fred"), groups: vec!["ops".into()], entries }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn token_data_has_salts_format() {
    let custom = Fake::default();
    let made = create(&custom, fred(), Duration::from_secs(10), at(1_000)).unwrap();
    assert_eq!(made.secret, "t1");
    let data = map! {
        "start" => 1_000.0,
        "expire" => 1_010.0,
        "name" => "fred",
        "eauth" => "file",
        "auth_list" => list!["test.*"],
        "groups" => list!["ops"],
    };
    assert_eq!(custom.tokens.lock().unwrap()["t1"], data.into());
    assert_eq!(get(&custom, "t1", at(1_009)).unwrap(), Some(made.token));
}

#[test]
fn expired_tokens_are_removed_and_others_are_kept() {
    let custom = Fake::default();
    for seconds in [10, 20, 30] {
        create(&custom, fred(), Duration::from_secs(seconds), at(1_000)).unwrap();
    }
    assert_eq!(get(&custom, "t1", at(1_010)).unwrap(), None);
    assert_eq!(custom.tokens.lock().unwrap().len(), 2);
    custom.tokens.lock().unwrap().insert("other".into(), map! {"name" => "of another program"}.into());
    assert_eq!(remove_expired(&custom, at(1_020)).unwrap(), 1);
    let listed = list(&custom, at(1_021)).unwrap();
    assert_eq!(listed.iter().map(|(secret, _)| secret.as_str()).collect::<Vec<_>>(), ["t3"]);
    assert!(custom.tokens.lock().unwrap().contains_key("other"));
}

#[test]
fn tokens_that_could_be_paths_never_reach_the_store() {
    let custom = Fake::default();
    for secret in ["", "../t1", "/etc/passwd", ".t1", "a\0b", "a b", "t1\n", &"a".repeat(MAX_LENGTH + 1)] {
        assert_eq!(get(&custom, secret, at(0)).unwrap(), None, "{secret:?}");
    }
    assert!(custom.calls.lock().unwrap().is_empty());
    for made in [Value::map(), Value::Nil, map! {"token" => 7}.into(), map! {"token" => "../x"}.into()] {
        let custom = Fake { made: Some(made.clone()), ..Fake::default() };
        let error = create(&custom, fred(), Duration::from_secs(10), at(0)).unwrap_err();
        assert!(error.starts_with("mk_token returned"), "{made}: {error}");
    }
}

#[test]
fn data_that_is_not_a_token_authenticates_nobody() {
    let custom = Fake::default();
    for (secret, data) in [
        ("a", Value::Nil),
        ("b", "fred".into()),
        ("c", map! {"name" => "fred", "eauth" => "file"}.into()),
        ("d", map! {"name" => "fred", "eauth" => "file", "expire" => "2040"}.into()),
        ("e", map! {"name" => "fred", "eauth" => "file", "expire" => f64::NAN}.into()),
        ("f", map! {"name" => 1, "eauth" => "file", "expire" => 4_000_000_000_i64}.into()),
    ] {
        custom.tokens.lock().unwrap().insert(secret.to_owned(), data);
        assert_eq!(get(&custom, secret, at(1_000)).unwrap(), None, "{secret}");
    }
    let far = map! {"name" => "fred", "eauth" => "file", "expire" => f64::INFINITY};
    custom.tokens.lock().unwrap().insert("g".into(), far.into());
    assert_eq!(get(&custom, "g", at(1_000)).unwrap().unwrap().expire, Timestamp::MAX);
}

#[test]
fn errors_do_not_show_the_token() {
    let error = get(&Fake::default(), "broken", at(0)).unwrap_err();
    assert_eq!(error, "no file /tokens/<token>");
}
