//! Limits what requests of users with limited rights carry beside functions, targets and arguments: returners and
//! their options, executors, metadata, timeouts. The list of all fields is [`brine_job::rule_of_option`].

use brine_auth::Acl;
use brine_config::MasterConfig;
use brine_job::{Rule, rule_of_option};
use brine_value::{FromValue, Map, Value};
use brine_wire::PublishRequest;

/// An option that no entry permits, with the part of its value that is not permitted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("option '{0}' is not permitted: see '@options' in docs/access.md")]
pub struct OptionRefused(pub String);

/// The longest name of an option or returner in the log and in events, in characters.
const MAX_SHOWN: usize = 64;

impl OptionRefused {
    fn new(name: &str) -> Self {
        OptionRefused(name.chars().take(MAX_SHOWN).collect())
    }

    fn of_value(name: &str, value: &str) -> Self {
        OptionRefused::new(&format!("{name}: {value}"))
    }
}

/// Checks the options of a request, and removes those that have no effect or that only the master's own tools may set.
/// `is_passed_on` keeps the latter: they come from the local syndic or from `sudo`.
pub(super) fn limit(
    acl: &Acl,
    config: &MasterConfig,
    request: &mut PublishRequest,
    is_passed_on: bool,
) -> Result<(), OptionRefused> {
    permit_returners(acl, config, &request.ret)?;
    let mut refused = None;
    let mut dropped = Vec::new();
    request.kwargs.retain(|name, value| {
        let name = name.to_string();
        match rule_of_option(&name) {
            Some(Rule::Call | Rule::Display) => true,
            Some(Rule::Internal) if is_passed_on => true,
            Some(Rule::Internal) | None => {
                dropped.push(OptionRefused::new(&name).0);
                false
            }
            // An unset option asks for nothing, but an empty list could replace the minion's own.
            Some(Rule::Permission | Rule::Seconds) if !value.is_truthy() => false,
            Some(Rule::Seconds) if is_within(value, config.max_user_timeout) => true,
            Some(Rule::Permission | Rule::Seconds) => {
                if !acl.permits_option(&name, value) {
                    refused.get_or_insert(OptionRefused::new(&name));
                }
                true
            }
        }
    });
    if !dropped.is_empty() {
        brine_job::metrics::FIELDS_DROPPED.add(dropped.len() as u64);
        tracing::warn!(
            user = request.user,
            options = dropped.join(", "),
            "options of a publish request are ignored: they are unknown, or only the master's own tools may set them"
        );
    }
    refused.map_or(Ok(()), Err)
}

/// Checks the returners of a job, separated by commas. All jobs use `ext_job_cache`, so it needs no permission.
pub fn permit_returners(acl: &Acl, config: &MasterConfig, names: &str) -> Result<(), OptionRefused> {
    let is_refused =
        |name: &&str| config.ext_job_cache.as_deref() != Some(*name) && !acl.permits_option("ret", &Value::from(*name));
    brine_returners::split(names).find(is_refused).map_or(Ok(()), |name| Err(OptionRefused::of_value("ret", name)))
}

/// Checks the returner that a runner function reads from. The master reads from its own job caches in any case.
pub fn permit_source(acl: &Acl, config: &MasterConfig, source: Option<&Value>) -> Result<(), OptionRefused> {
    let Some(source) = source.filter(|source| source.is_truthy()) else { return Ok(()) };
    let own = [config.ext_job_cache.as_deref(), Some(config.master_job_cache.as_str())];
    let is_own = source.as_str().is_some_and(|name| own.contains(&Some(name)));
    if is_own || acl.permits_option(SOURCE, source) {
        return Ok(());
    }
    Err(OptionRefused::of_value(SOURCE, &source.to_string()))
}

/// The argument of runner functions that names a returner.
pub const SOURCE: &str = "ext_source";

/// Explains which options of a job the entries permit.
pub(super) fn explain(acl: &Acl, config: &MasterConfig, options: &Map) -> Option<OptionRefused> {
    let mut request = PublishRequest::new("", "", "");
    request.ret = options.get("ret").map(ToString::to_string).unwrap_or_default();
    request.kwargs.clone_from(options);
    request.kwargs.retain(|name, _| !matches!(name.as_str(), Some("ret" | SOURCE)));
    let unknown = options
        .keys()
        .map(ToString::to_string)
        .find(|name| name != SOURCE && matches!(rule_of_option(name), None | Some(Rule::Internal)));
    unknown
        .map(|name| OptionRefused::new(&name))
        .or_else(|| limit(acl, config, &mut request, false).err())
        .or_else(|| permit_source(acl, config, options.get(SOURCE)).err())
}

fn is_within(value: &Value, limit: u64) -> bool {
    f64::from_value(value).is_some_and(|number| (0.0..=limit as f64).contains(&number))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    fn config() -> MasterConfig {
        let directory = tempfile::tempdir().unwrap();
        let mut config = MasterConfig::load(directory.path(), &map! {}).unwrap().config;
        config.ext_job_cache = Some("redis".to_owned());
        config.max_user_timeout = 60;
        config
    }

    fn limited(entries: &Value, kwargs: Map, ret: &str) -> (Result<(), String>, Map) {
        let config = config();
        let mut request =
            PublishRequest { ret: ret.to_owned(), kwargs, ..PublishRequest::new("*", "test.ping", "fred") };
        let acl = Acl::new(entries.as_list().unwrap());
        let result = limit(&acl, &config, &mut request, false).map_err(|OptionRefused(option)| option);
        (result, request.kwargs)
    }

    /// Every field that a request may carry, with a value; `None` for one that has no effect.
    fn fields() -> Vec<(&'static str, Value, Option<Rule>)> {
        vec![
            ("delimiter", "|".into(), Some(Rule::Call)),
            ("show_jid", true.into(), Some(Rule::Display)),
            ("full_return", true.into(), Some(Rule::Display)),
            ("batch", "10%".into(), Some(Rule::Display)),
            ("_reads_no_files", true.into(), Some(Rule::Display)),
            ("timeout", 61.into(), Some(Rule::Seconds)),
            ("gather_job_timeout", 1e9.into(), Some(Rule::Seconds)),
            ("batch_wait", "a day".into(), Some(Rule::Seconds)),
            ("to", i64::MAX.into(), Some(Rule::Seconds)),
            ("ret_config", "other".into(), Some(Rule::Permission)),
            ("ret_kwargs", map! {"filename" => "/etc/profile.d/x.sh"}.into(), Some(Rule::Permission)),
            ("metadata", map! {"x" => "$(id)"}.into(), Some(Rule::Permission)),
            ("module_executors", list!["sudo"], Some(Rule::Permission)),
            ("executor_opts", map! {"splay" => 1}.into(), Some(Rule::Permission)),
            ("start_event", true.into(), Some(Rule::Permission)),
            ("id", "web1".into(), Some(Rule::Internal)),
            ("auth_list", list![".*"], Some(Rule::Internal)),
            ("master_id", "m".into(), Some(Rule::Internal)),
            ("_cause", 5.into(), Some(Rule::Internal)),
            ("unknown", 5.into(), None),
        ]
    }

    #[test]
    fn options_need_a_permission_of_their_own() {
        for (name, value, rule) in fields() {
            assert_eq!(rule_of_option(name), rule, "{name}");
            let of = |entries: Value| limited(&entries, map! {name => value.clone()}, "");
            let everything_else = list![".*", "@runner", "@wheel", "@jobs", map! {"events" => "*"}];
            let (result, kwargs) = of(everything_else);
            let is_free = matches!(rule, Some(Rule::Call | Rule::Display));
            let is_dropped = matches!(rule, None | Some(Rule::Internal));
            assert_eq!(result.is_ok(), is_free || is_dropped, "{name}");
            if let Err(option) = result {
                assert_eq!(option, name);
            }
            assert_eq!(kwargs.is_empty(), is_dropped, "{name}");
            for entries in [list!["@options"], list![map! {"@options" => list![name]}]] {
                let (result, kwargs) = of(entries);
                assert_eq!((result, kwargs.is_empty()), (Ok(()), is_dropped), "{name}");
            }
        }
    }

    #[test]
    fn returners_need_a_permission_unless_every_job_uses_them() {
        let one = list![map! {"@options" => list![map! {"ret" => list!["mysql"]}]}];
        for (entries, ret, refused) in [
            (list![".*"], "", None),
            (list![".*"], "redis", None),
            (list![".*"], " redis ,", None),
            (list![".*"], "mysql", Some("ret: mysql")),
            (one.clone(), "mysql,redis", None),
            (one.clone(), "mysql,rawfile_json", Some("ret: rawfile_json")),
            (one, "mysqlx", Some("ret: mysqlx")),
        ] {
            assert_eq!(limited(&entries, map! {}, ret).0.err().as_deref(), refused, "{entries} {ret}");
        }
    }

    #[test]
    fn timeouts_within_the_limit_and_unset_options_need_no_permission() {
        let kwargs = map! {
            "timeout" => 60, "gather_job_timeout" => 0.5, "batch_wait" => "7", "to" => 5,
            "ret_kwargs" => map! {}, "metadata" => Value::Nil, "start_event" => false, "module_executors" => list![],
        };
        let (result, kwargs) = limited(&list!["test.ping"], kwargs, "");
        assert_eq!(result, Ok(()));
        assert_eq!(kwargs.len(), 4, "{kwargs:?}");
        for wrong in [Value::from(f64::NAN), (-1).into(), "inf".into(), list![1], i64::MAX.into()] {
            assert!(limited(&list!["test.ping"], map! {"timeout" => wrong.clone()}, "").0.is_err(), "{wrong}");
        }
    }

    #[test]
    fn sources_of_jobs_need_a_permission_unless_they_are_the_masters_own() {
        let config = config();
        let acl = |entries: Value| Acl::new(entries.as_list().unwrap());
        for (entries, source, permitted) in [
            (list!["@runner"], Value::Nil, true),
            (list!["@runner"], "".into(), true),
            (list!["@runner"], "redis".into(), true),
            (list!["@runner"], "local_cache".into(), true),
            (list!["@runner"], "mysql".into(), false),
            (list!["@runner"], list!["redis"], false),
            (list![map! {"@options" => map! {"ext_source" => "mysql"}}], "mysql".into(), true),
            (list![map! {"@options" => map! {"ext_source" => "mysql"}}], "sqlite3".into(), false),
        ] {
            assert_eq!(
                permit_source(&acl(entries.clone()), &config, Some(&source)).is_ok(),
                permitted,
                "{entries} {source}"
            );
        }
    }
}
