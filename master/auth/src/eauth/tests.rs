use brine_function::CallError;
use brine_value::{list, map};

use super::*;

fn external(systems: Map) -> ExternalAuth {
    ExternalAuth::new(&map! {"external_auth" => systems, "sharedsecret" => "s3cret"})
}

fn credentials(eauth: &str, username: &str, password: &str) -> Credentials {
    Credentials { eauth: eauth.into(), username: username.into(), password: password.into() }
}

#[test]
fn users_have_their_own_entries_or_those_of_groups_or_of_everyone() {
    let users = map! {
        "^filename" => "/x",
        "fred" => list!["test.*"],
        "f*" => list!["pkg.*"],
        "ops%" => list!["cmd.run"],
        "*" => list!["sys.doc"],
    };
    for (user, groups, permissive, expected) in [
        ("fred", &[][..], false, list!["test.*", "pkg.*"]),
        ("frida", &["ops"], false, list!["pkg.*", "cmd.run"]),
        ("ann", &["ops"], false, list!["cmd.run", "sys.doc"]),
        ("ann", &[], false, list!["sys.doc"]),
        ("fred", &[], true, list!["test.*", "pkg.*", "sys.doc"]),
        ("ops%", &[], false, list!["sys.doc"]),
        ("^filename", &[], false, list!["sys.doc"]),
    ] {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        assert_eq!(Value::from(entries_of(&users, user, &groups, permissive, false)), expected, "{user} {groups:?}");
    }
}

#[test]
fn names_are_globs_or_regular_expressions() {
    for (expression, user, meant) in [
        ("fred", "fred", true),
        ("fr*", "fred", true),
        ("fr(ed|ida)", "frida", true),
        ("fr", "fred", false),
        ("^(?!sudo_).*$", "fred", true),
        ("^(?!sudo_).*$", "sudo_fred", false),
        ("(", "fred", false),
    ] {
        assert_eq!(names_user(expression, user, false), meant, "{expression} {user}");
    }
}

#[test]
fn only_configured_backends_authenticate() {
    let external = external(map! {
        "sharedsecret" => map! {"fred" => list!["test.*"]},
        "kerberos" => Map::new(),
    });
    let identity = external.authenticate(&credentials("sharedsecret", "fred", "s3cret")).unwrap();
    assert_eq!(identity.username().as_str(), "fred");
    assert_eq!(external.entries(&identity), Some(vec!["test.*".into()]));
    for (eauth, user, password, reason) in [
        ("sharedsecret", "fred", "wrong", "the user name or password is wrong"),
        ("sharedsecret", "fred", "", "the user name or password is wrong"),
        ("auto", "fred", "x", "external_auth has no 'auto'"),
        (
            "kerberos",
            "fred",
            "x",
            "external_auth 'kerberos' is not supported: expected one of auto, file, ldap, pam, rest, sharedsecret or a custom module in _auth; a custom web service can authenticate these users by 'rest'",
        ),
    ] {
        let error = external.authenticate(&credentials(eauth, user, password)).unwrap_err();
        assert_eq!(error.to_string(), reason, "{eauth}");
    }
    assert_eq!(external.check().len(), 1);
    let gone = Identity { eauth: "pam".into(), ..identity };
    assert_eq!(external.entries(&gone), None);
}

#[test]
fn tokens_of_an_unavailable_backend_are_refused() {
    // There is no brine-pam next to the test binary.
    let external = external(map! {"pam" => map! {"fred" => list!["test.*"]}, "auto" => map! {}});
    let fred = |eauth: &str, entries| Identity {
        eauth: eauth.into(),
        username: UserName::found("fred"),
        groups: vec![],
        entries,
    };
    for (identity, accepted) in [
        (fred("pam", None), false),
        (fred("pam", Some(vec!["test.*".into()])), false),
        (fred("file", None), false),
        (fred("auto", None), true),
    ] {
        assert_eq!(external.must_ask(&identity), !accepted, "{identity:?}");
        assert_eq!(external.current_entries(&identity).is_ok(), accepted, "{identity:?}");
    }
}

#[test]
fn implausible_names_reach_no_backend() {
    let external = external(map! {"auto" => map! {"fred" => list!["test.*"]}});
    let long = "x".repeat(MAX_NAME + 1);
    for (user, password, accepted) in [
        ("fred", "", true),
        ("fred smith", "x", true),
        ("", "x", false),
        ("fred ", "x", false),
        (" fred", "x", false),
        ("fr\ned", "x", false),
        ("fr\0ed", "x", false),
        (long.as_str(), "x", false),
        ("fred", &"x".repeat(MAX_PASSWORD + 1), false),
    ] {
        let outcome = external.authenticate(&credentials("auto", user, password));
        assert_eq!(outcome.is_ok(), accepted, "{user:?} {outcome:?}");
    }
}

/// Spellings that some systems take for `fred`, each with its description.
const SPELLINGS: &[(&str, &str)] = &[
    ("FRED", "upper case"),
    ("Fred", "title case"),
    ("ｆred", "full width"),
    ("fred ", "trailing space"),
    (" fred", "leading space"),
    ("fr\0ed", "NUL"),
    ("fred\0", "trailing NUL"),
    ("fre\u{301}d", "combining mark"),
    ("fr\u{ad}ed", "soft hyphen"),
    ("fred\u{200b}", "zero width space"),
    ("ſred", "other letter"),
];

#[test]
fn no_backend_gives_a_user_a_second_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = |kind: &str, line: &str| {
        let path = directory.path().join(kind);
        std::fs::write(&path, line).unwrap();
        path.display().to_string()
    };
    let hash = format!("fred:{}\n", bcrypt::hash("pw", 4).unwrap());
    let digest = brine_digest::hex(brine_digest::Digest::Md5.of("fred:r:pw"));
    let users = |more: Map| {
        let mut users = map! {"fred" => list!["test.*"], "*" => list!["sys.doc"]};
        users.extend(more);
        users
    };
    let systems = [
        ("auto", users(Map::new())),
        ("sharedsecret", users(Map::new())),
        ("own", users(Map::new())),
        ("file", users(map! {"^filename" => file("text", "fred:pw\n")})),
        ("file", users(map! {"^filename" => file("htpasswd", &hash), "^filetype" => "htpasswd"})),
        (
            "file",
            users(
                map! {"^filename" => file("htdigest", &format!("fred:r:{digest}\n")), "^filetype" => "htdigest", "^realm" => "r"},
            ),
        ),
    ];
    for (name, users) in systems {
        let options = map! {"external_auth" => map! {name => users.clone()}, "sharedsecret" => "pw"};
        // The custom module takes any name, as a directory that ignores case may.
        let own = Arc::new(Any) as Arc<dyn CustomAuthModules>;
        let external = ExternalAuth::with_modules(&options, (name == "own").then_some(own));
        let identity = external.authenticate(&credentials(name, "fred", "pw")).unwrap();
        assert_eq!((identity.username().as_str(), external.entries(&identity)), ("fred", Some(vec!["test.*".into()])));
        for (spelling, what) in SPELLINGS {
            match external.authenticate(&credentials(name, spelling, "pw")) {
                Err(AuthError::Backend(error)) => panic!("{name} {what}: {error}"),
                Err(_) => {}
                // A name of its own: neither normalised nor folded it is the known user.
                Ok(identity) => {
                    assert_ne!(fold(identity.username()), "fred", "{name} {users:?} {what}");
                    assert!(is_normal(identity.username()), "{name} {what}");
                }
            }
        }
    }
}

/// A custom module that accepts everybody.
struct Any;

impl CustomAuthModules for Any {
    fn has_file(&self, module: &str) -> bool {
        module == "own"
    }

    fn may_have(&self, module: &str) -> bool {
        self.has_file(module)
    }

    fn call(&self, function: &str, _: Map) -> Option<Result<Value, CallError>> {
        (function == "own.auth").then(|| Ok(true.into()))
    }
}

#[test]
fn users_of_a_directory_that_ignores_case_are_named_in_any_spelling() {
    let directory = ExternalAuth::new(&map! {
        "external_auth" => map! {"ldap" => map! {"Fred" => list!["test.*"], "*" => list!["sys.doc"]}},
        "auth.ldap.binddn" => "uid={{ username }},dc=example",
    });
    let exact = external(map! {"auto" => map! {"Fred" => list!["test.*"], "*" => list!["sys.doc"]}});
    for (external, eauth, user, entries, named) in [
        (&directory, "ldap", "fred", list!["test.*"], true),
        (&directory, "ldap", "Fred", list!["test.*"], true),
        (&directory, "ldap", "ann", list!["sys.doc"], false),
        (&exact, "auto", "Fred", list!["test.*"], true),
        (&exact, "auto", "fred", list!["sys.doc"], false),
    ] {
        let identity = Identity::assumed(eauth, user, Vec::new());
        assert_eq!(external.entries(&identity).map(Value::from), Some(entries), "{eauth} {user}");
        assert_eq!(external.is_named(&identity, "Fred"), named, "{eauth} {user}");
    }
}

#[test]
fn unsupported_backends_are_refused_by_name() {
    for name in ["django", "mysql", "yubico", "keystone", "pki"] {
        let external = external([(name.into(), Map::new().into())].into_iter().collect());
        let errors = external.check();
        assert!(matches!(&errors[..], [AuthError::Unsupported(reported)] if reported == name), "{errors:?}");
    }
}

/// A custom module `own` that accepts one password, and whose other functions return these values.
struct Modules(Value, Value);

impl CustomAuthModules for Modules {
    fn has_file(&self, module: &str) -> bool {
        module == "own" || module == "auto"
    }

    fn may_have(&self, module: &str) -> bool {
        self.has_file(module)
    }

    fn call(&self, function: &str, arguments: Map) -> Option<Result<Value, CallError>> {
        let (module, function) = function.split_once('.')?;
        assert_eq!(arguments.get("eauth"), Some(&module.into()));
        match function {
            "auth" if arguments.get("username") == Some(&"bad".into()) => Some(Err(CallError::execution("no server"))),
            "auth" => Some(Ok((arguments.get("password") == Some(&"good".into())).into())),
            "groups" => Some(Ok(self.0.clone())),
            "acl" => Some(Ok(self.1.clone())),
            _ => None,
        }
    }
}

#[test]
fn custom_modules_verify_passwords_and_return_groups_and_entries() {
    let with = |groups: Value, entries: Value| {
        let users = map! {"fred" => list!["test.*"], "ops%" => list!["cmd.run"]};
        let options = map! {"external_auth" => map! {"own" => users.clone(), "auto" => users, "other" => map! {}}};
        ExternalAuth::with_modules(&options, Some(Arc::new(Modules(groups, entries))))
    };
    for (groups, acl, expected) in [
        (Value::Nil, Value::Nil, list!["test.*"]),
        (list!["ops"], Value::Nil, list!["test.*", "cmd.run"]),
        (list!["ops"], list!["sys.doc"], list!["sys.doc"]),
        (Value::Nil, list![], list![]),
    ] {
        let external = with(groups, acl);
        let identity = external.authenticate(&credentials("own", "fred", "good")).unwrap();
        assert_eq!(external.entries(&identity).map(Value::from), Some(expected));
    }
    let external = with(Value::Nil, Value::Nil);
    // A file takes precedence over the built-in backend, which accepts every password.
    for (eauth, user, password) in [("own", "fred", "wrong"), ("own", "fred", ""), ("auto", "fred", "wrong")] {
        let error = external.authenticate(&credentials(eauth, user, password)).unwrap_err();
        assert!(matches!(error, AuthError::Denied), "{error}");
    }
    let error = external.authenticate(&credentials("own", "bad", "good")).unwrap_err();
    assert_eq!(error.to_string(), "external_auth 'own' failed: no server");
    let error = with("x".into(), Value::Nil).authenticate(&credentials("own", "fred", "good")).unwrap_err();
    assert_eq!(error.to_string(), "external_auth 'own' failed: 'groups' is invalid: expected a list, got str");
    assert!(matches!(&external.check()[..], [AuthError::Unsupported(name)] if name == "other"));
}

#[test]
fn debug_output_has_no_passwords() {
    assert!(!format!("{:?}", credentials("file", "fred", "hunter2")).contains("hunter2"));
}
