//! Tests of the options of returners, and of opening them.

use brine_value::{list, map};

use super::*;

#[test]
fn an_unknown_name_suggests_the_nearest_returner() {
    let message = |name| open(name, &Options::default()).err().unwrap().to_string();
    for (name, hint) in [
        ("redsi", "; did you mean 'redis'?"),
        ("sqlite", "; did you mean 'sqlite3'?"),
        ("cassandra_cql", ""),
        ("hipchat", "; the service HipChat is gone"),
    ] {
        let names: Vec<&str> = BACKENDS.iter().map(|backend| backend.name).collect();
        let expected = format!("unknown returner '{name}': expected one of {}{hint}", names.join(", "));
        assert_eq!(message(name), expected);
    }
}

#[test]
fn a_returner_that_is_not_built_names_its_package() {
    let built = [
        ("amqp", cfg!(feature = "amqp")),
        ("kafka", cfg!(feature = "kafka")),
        ("mongo", cfg!(feature = "mongo")),
        ("mysql", cfg!(feature = "mysql")),
        ("nats", cfg!(feature = "nats")),
        ("pgjsonb", cfg!(feature = "postgres")),
        ("postgres", cfg!(feature = "postgres")),
        ("postgres_local_cache", cfg!(feature = "postgres")),
    ];
    let parts: Vec<_> = brine_config::OPTIONAL_PARTS.iter().filter(|part| part.kind == "returner").collect();
    assert!(parts.iter().map(|part| part.name).eq(built.iter().map(|(name, _)| *name)));
    for (part, (name, is_built)) in parts.into_iter().zip(built) {
        let expected = format!("returner '{name}' is not part of this build: {part}");
        for error in [open(name, &Options::default()).err(), check(name, &Options::default()).err()] {
            let is_missing = error.as_ref().is_some_and(|error| error.to_string() == expected);
            assert_eq!(is_missing, !is_built, "{name}: {error:?}");
        }
    }
    // All others are in each build.
    for backend in BACKENDS.iter().filter(|backend| built.iter().all(|(name, _)| *name != backend.name)) {
        let error = check(backend.name, &Options::default()).err();
        assert!(!matches!(error, Some(ReturnerError::NotBuilt { .. })), "{}", backend.name);
    }
}

#[test]
fn disabled_returners_are_not_available() {
    let opts = map! {"disable_returners" => list!["local", "rawfile_json_return"]};
    let options = Options::new(&opts, None);
    for name in ["local", "rawfile_json"] {
        let error = open(name, &options).err().unwrap().to_string();
        assert!(error.contains("the option disable_returners names it"), "{error}");
        assert!(open(name, &Options::default()).is_ok(), "{name}");
    }
    assert!(open("syslog", &options).is_ok());
}

#[test]
fn every_backend_documents_its_options() {
    assert!(BACKENDS.is_sorted_by_key(|backend| backend.name));
    for backend in BACKENDS {
        assert!(
            (backend.name == "local" || !backend.options.is_empty()) && backend.doc.ends_with('.'),
            "{}",
            backend.name
        );
        for option in backend.options {
            let name = option.name.strip_prefix("returner.").unwrap_or(option.name);
            // Salt's names.
            let prefix = match backend.name {
                "postgres_local_cache" => "master_job_cache",
                "splunk" => "splunk_http_forwarder",
                own => own,
            };
            let is_own = name.split_once('.').is_none_or(|(returner, _)| returner == prefix);
            assert!(is_own && option.doc.ends_with('.'), "{}", option.name);
        }
    }
}

#[test]
fn default_operations_are_unsupported() {
    struct Nothing;
    impl Returner for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }
    }
    let jid = Jid::new();
    let one = Return::from_map(map! {"jid" => &jid, "id" => "a", "return" => 1}).unwrap();
    let load = Load::from_map(map! {"jid" => &jid}).unwrap();
    let errors = [
        Nothing.save_load(&load).err(),
        Nothing.returner(&one).err(),
        Nothing.save_returns(&[one]).err(),
        Nothing.save_minions(&jid, &[]).err(),
        Nothing.get_load(&jid).err(),
        Nothing.get_jid(&jid).err(),
        Nothing.get_jids(None).err(),
        Nothing.get_fun("x").err(),
        Nothing.get_minions().err(),
        Nothing.event_return(&[]).err(),
        Nothing.clean_old_jobs(Duration::ZERO).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(ReturnerError::Unsupported { returner: "nothing", .. })), "{error:?}");
    }
}
