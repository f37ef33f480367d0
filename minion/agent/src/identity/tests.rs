use brine_value::{list, map};

use super::*;

fn identified(directory: &std::path::Path, options: &Map) -> Result<(IdOrigin, MinionConfig), String> {
    let mut options = options.clone();
    options.insert("root_dir".into(), directory.to_owned().into());
    let mut config = MinionConfig::load(directory, &options).unwrap().config;
    let origin = identify(&mut config).map_err(|error| error.to_string())?;
    cache(&config, &origin);
    Ok((origin, config))
}

#[test]
fn the_id_function_names_a_minion_once() {
    let echo = |id: &str| map! {"id_function" => map! {"test.echo" => map! {"text" => id}}};
    let directory = tempfile::tempdir().unwrap();
    let more = map! {"minion_id_lowercase" => true, "append_minionid_config_dirs" => list!["pki_dir"]};
    let options = echo("Web1").into_iter().chain(more).collect();
    let (origin, config) = identified(directory.path(), &options).unwrap();
    assert_eq!(origin, IdOrigin::Generated("web1".parse().unwrap()));
    assert_eq!(
        (config.id.as_deref(), config.pki_dir),
        (Some("web1"), directory.path().join("etc/salt/pki/minion/web1"))
    );
    // The stored id is used from then on, unless caching is off.
    let (origin, config) = identified(directory.path(), &echo("web2")).unwrap();
    assert_eq!((origin, config.id.as_deref()), (IdOrigin::Configured, Some("web1")));
    let mut uncached = echo("web2");
    uncached.insert("minion_id_caching".into(), false.into());
    let (origin, config) = identified(directory.path(), &uncached).unwrap();
    assert_eq!((origin, config.id.as_deref()), (IdOrigin::Generated("web2".parse().unwrap()), Some("web2")));
    assert_eq!(std::fs::read_to_string(directory.path().join("minion_id")).unwrap(), "web1");
}

#[test]
fn a_configured_id_needs_no_function() {
    let directory = tempfile::tempdir().unwrap();
    let (origin, _) = identified(directory.path(), &map! {"id" => "web1", "id_function" => "test.nope"}).unwrap();
    assert_eq!(origin, IdOrigin::Configured);
    assert!(!directory.path().join("minion_id").exists());
}

#[test]
fn id_functions_that_return_no_valid_id_are_refused() {
    for (function, message) in [
        (Value::from("test.nope"), "option 'id_function': calling test.nope failed: "),
        ("test.ping".into(), "option 'id_function': test.ping must return the id as a string, got bool"),
        (map! {"test.echo" => map! {"text" => ""}}.into(), "test.echo must return the id as a string"),
        (map! {"test.echo" => map! {"text" => "a/b"}}.into(), "a/b"),
        (map! {"test.echo" => map! {"word" => 1}}.into(), "calling test.echo failed: "),
        (map! {"test.echo" => list![1]}.into(), "expected a mapping of keyword arguments for test.echo, got list"),
        (list!["test.ping"], "expected the name of a function"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let error = identified(directory.path(), &map! {"id_function" => function.clone()}).unwrap_err();
        assert!(error.contains(message), "{function}: {error}");
    }
}
