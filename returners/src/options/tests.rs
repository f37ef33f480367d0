use brine_value::{list, map};

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

/// Returns the option's prefix and its name, such as `redis` and `host`.
fn parts(option: &'static str) -> (&'static str, &'static str) {
    option.rsplit_once('.').unwrap_or(("", option))
}

#[test]
fn a_server_that_a_job_names_gets_no_credential_of_the_configuration() {
    let mut tried = 0;
    for backend in crate::BACKENDS {
        let names: Vec<_> = backend.options.iter().map(|option| parts(option.name)).collect();
        let of = |role| names.iter().copied().filter(move |(_, name)| roles::role(name) == role);
        for (prefix, credential) in of(Role::Credential) {
            let configured: Map =
                names.iter().map(|(prefix, name)| (format!("{prefix}.{name}").into(), "configured".into())).collect();
            let get = |kwargs: Map| -> Option<String> {
                Options::new(&configured, None).for_job(None, &kwargs).get(prefix, credential).unwrap()
            };
            let case = |name: &str| format!("{prefix}.{credential} with {name}");
            for (_, destination) in of(Role::Destination) {
                let moved = map! {destination => "evil"};
                assert_eq!(get(moved.clone()), None, "{}", case(destination));
                let with_own = map! {destination => "evil", credential => "own"};
                assert_eq!(get(with_own).as_deref(), Some("own"), "{}", case(destination));
                let same = map! {destination => "configured"};
                assert_eq!(get(same).as_deref(), Some("configured"), "{}", case(destination));
                tried += 1;
            }
            for (_, neutral) in of(Role::Neutral) {
                assert_eq!(get(map! {neutral => "other"}).as_deref(), Some("configured"), "{}", case(neutral));
            }
            assert_eq!(get(map! {"an_unknown_option" => "evil"}), None, "{}", case("an unknown option"));
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn every_option_that_sounds_like_a_credential_is_one() {
    for option in crate::BACKENDS.iter().flat_map(|backend| backend.options) {
        let (_, name) = parts(option.name);
        let sounds =
            ["pass", "token", "key", "secret", "hook", "auth", "header"].iter().any(|word| name.contains(word));
        let is_author = name == "author_icon";
        let is_own_certificate = name.ends_with("cert") && !name.ends_with("rootcert");
        assert_eq!(roles::role(name) == Role::Credential, sounds && !is_author || is_own_certificate, "{name}");
    }
}

#[test]
fn a_returner_opened_for_another_server_has_no_credential_of_the_configuration() {
    // Opening fails without the required credential, instead of using the configured one.
    let required = [
        ("slack", map! {"slack.api_key" => "s3cret", "slack.username" => "u", "slack.as_user" => true}, "api_url"),
        (
            "slack",
            map! {"slack.profile" => "p", "p" => map! {"slack.api_key" => "s3cret"}, "slack.username" => "u", "slack.as_user" => true},
            "api_url",
        ),
        ("telegram", map! {"telegram.token" => "s3cret", "telegram.chat_id" => 5}, "api_url"),
        ("mattermost", map! {"mattermost.hook" => "s3cret", "mattermost.api_url" => "http://a"}, "api_url"),
        ("splunk", map! {"splunk_http_forwarder.token" => "s3cret", "splunk_http_forwarder.indexer" => "a"}, "indexer"),
    ];
    for (name, opts, destination) in required {
        let open = |kwargs: &Map| crate::open(name, &Options::new(&opts, None).for_job(None, kwargs)).map(drop);
        open(&map! {}).unwrap();
        let error = open(&map! {destination => "http://127.0.0.1:1"}).unwrap_err().to_string();
        assert!(error.contains("is required") && !error.contains("s3cret"), "{name}: {error}");
    }
}

#[test]
fn logins_in_configured_urls_are_removed_for_a_redirected_job() {
    let opts = map! {"webhook.url" => "https://user:s3cret@host:1/a@b", "elasticsearch.hosts" => list!["http://u:p@h", "plain:9200"]};
    let url = |kwargs: &Map| Options::new(&opts, None).for_job(None, kwargs).get::<String>("webhook", "url").unwrap();
    assert_eq!(url(&map! {}).as_deref(), Some("https://user:s3cret@host:1/a@b"));
    assert_eq!(url(&map! {"verify_ssl" => false}).as_deref(), Some("https://host:1/a@b"));
    let options = Options::new(&opts, None).for_job(None, &map! {"verify_certs" => false});
    let hosts: Vec<String> = options.get("elasticsearch", "hosts").unwrap().unwrap();
    assert_eq!(hosts, ["http://h", "plain:9200"]);
}

#[test]
fn an_alternative_set_completes_its_credentials_from_the_configuration() {
    // As in Salt: both are the operator's.
    let opts = map! {"redis.password" => "s3cret", "other.redis.host" => "b"};
    let options = Options::new(&opts, None).for_job(Some("other"), &map! {"db" => 3});
    assert_eq!(options.get::<String>("redis", "password").unwrap().as_deref(), Some("s3cret"));
}
