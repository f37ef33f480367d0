use brine_value::map;

use super::*;

fn host(opts: &Map, alternative: Option<&str>, kwargs: &Map) -> Option<String> {
    Options::new(opts, None).for_job(alternative, kwargs).get("redis", "host").unwrap()
}

#[test]
fn job_options_override_the_alternative_set_and_the_configuration() {
    let opts = map! {"redis.host" => "a", "redis" => map!{"port" => 7}, "other.redis.host" => "b"};
    assert_eq!(host(&opts, None, &map! {}).as_deref(), Some("a"));
    assert_eq!(host(&opts, Some("other"), &map! {}).as_deref(), Some("b"));
    assert_eq!(host(&opts, Some("other"), &map! {"host" => "c"}).as_deref(), Some("c"));
    assert_eq!(host(&opts, Some("unknown"), &map! {"host" => ""}).as_deref(), Some("a"));
    assert_eq!(host(&map! {"redis.host" => ""}, Some(""), &map! {}), None);
    assert_eq!(Options::new(&opts, None).get::<u16>("redis", "port").unwrap(), Some(7));
}

#[test]
fn dotted_options_are_found_nested_at_any_dot() {
    for opts in [
        map! {"other" => map! {"redis" => map! {"host" => "b"}}},
        map! {"other.redis" => map! {"host" => "b"}},
        map! {"other" => map! {"redis.host" => "b"}},
    ] {
        assert_eq!(host(&opts, Some("other"), &map! {}).as_deref(), Some("b"), "{opts:?}");
    }
}

#[test]
fn grains_replace_their_names_in_braces() {
    let options = Options::new(&map! {"id" => "web1"}, None);
    assert_eq!(options.with_grains_in("{id} on {host}: {"), "web1 on : ");
    let options = options.with_grains(map! {"host" => "h", "id" => "other"}.into());
    assert_eq!(options.with_grains_in("{id} on {host}"), "other on h");
}

#[test]
fn type_errors_name_the_option() {
    let error = Options::new(&map! {"redis.port" => "x"}, None).get::<u16>("redis", "port").unwrap_err();
    assert_eq!(error.to_string(), "option 'redis.port': expected an integer from 0 to 65535, got str");
}

#[test]
fn keep_jobs_seconds_overrides_keep_jobs() {
    for (opts, seconds) in [
        (map! {}, 86_400),
        (map! {"keep_jobs" => 2}, 7200),
        (map! {"keep_jobs" => 2, "keep_jobs_seconds" => 5}, 5),
        (map! {"keep_jobs_seconds" => 0}, 0),
        (map! {"keep_jobs" => 2, "keep_jobs_seconds" => Value::Nil}, 7200),
    ] {
        assert_eq!(Options::new(&opts, None).keep_jobs_seconds().unwrap(), seconds, "{opts:?}");
    }
    assert!(Options::new(&map! {"keep_jobs" => -1}, None).keep_jobs_seconds().is_err());
}
