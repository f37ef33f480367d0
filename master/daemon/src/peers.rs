//! Peer communication: jobs (`peer`) and runner functions (`peer_run`) that minions request.

use std::sync::Arc;
use std::time::Duration;

use brine_auth::Acl;
use brine_carriers::{MAX_DEPTH, called};
use brine_config::MasterConfig;
use brine_function::Args;
use brine_function::carriers::Place;
use brine_ids::{Jid, MinionId};
use brine_master_access::access::{SOURCE, permit_returners, permit_source};
use brine_master_calls::{RunnerCalls, Services};
use brine_master_custom::Kind;
use brine_master_facts::id_rules::{is_match, rules_for};
use brine_master_facts::{Facts, resolve};
use brine_master_jobs::Jobs;
use brine_master_store::events::{Events, JOB_CACHE_TIMEOUT};
use brine_master_store::storage::Storage;
use brine_runtime::executors::Blocking;
use brine_target::TargetKind;
use brine_value::{Map, Value, map};
use brine_wire::{PeerPublish, PeerRun, PublishRequest};

/// The default timeout of a job that a minion publishes.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum timeout of a job that a minion publishes.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// Returns whether rules allow a function. `may_reach` is whether a target contains all targeted minions.
fn allows(rules: &[&Value], fun: &str, arg: &[Value], may_reach: &dyn Fn(&str) -> bool) -> bool {
    rules.iter().any(|rule| match rule {
        Value::Str(pattern) => is_match(pattern, fun),
        // Functions on some minions only: `{web*: [test.ping]}`.
        Value::Map(only) => match only.first() {
            Some((target, functions)) if only.len() == 1 => {
                may_reach(&target.to_string()) && one_or_many(functions).iter().any(|rule| allows_call(rule, fun, arg))
            }
            _ => false,
        },
        _ => false,
    })
}

/// Returns whether rules allow a function, and those that its arguments name ([`called`]) with their options. Functions
/// that publish jobs are refused, because jobs could loop.
fn allows_all(rules: &[&Value], fun: &str, arg: &[Value], may_reach: &dyn Fn(&str) -> bool, depth: usize) -> bool {
    if depth > MAX_DEPTH || fun.starts_with("publish.") || !allows(rules, fun, arg, may_reach) {
        return false;
    }
    let options = options_of(rules);
    called(fun, &Args::from_wire(arg)).iter().all(|one| {
        let everywhere: &dyn Fn(&str) -> bool = &|target| target == "*";
        let may_reach = match one.place {
            Place::Same => may_reach,
            Place::Minions { .. } | Place::Host => everywhere,
            Place::Runner | Place::Wheel => return false,
        };
        options.permits_options(&one.options)
            && allows_all(rules, &one.function, &one.args.to_wire(), may_reach, depth + 1)
    })
}

/// Evaluates the pattern of a function, or one with conditions on arguments: `{cmd.run: {args: [ls.*]}}`.
fn allows_call(rule: &Value, fun: &str, arg: &[Value]) -> bool {
    match rule {
        Value::Str(pattern) => is_match(pattern, fun),
        Value::Map(conditional) => match conditional.first() {
            Some((pattern, conditions)) if conditional.len() == 1 => {
                is_match(&pattern.to_string(), fun)
                    && one_or_many(conditions).iter().any(|condition| allows_args(condition, arg))
            }
            _ => false,
        },
        _ => false,
    }
}

fn allows_args(condition: &Value, arg: &[Value]) -> bool {
    let Some(condition) = condition.as_map() else { return false };
    let args = Args::from_wire(arg);
    let fits = |pattern: &Value, value: Option<&Value>| match value {
        Some(value) => pattern.is_nil() || is_match(&pattern.to_string(), &value.to_string()),
        None => false,
    };
    let positional = condition.get("args").and_then(Value::as_list).unwrap_or_default();
    let keyword = condition.get("kwargs").and_then(Value::as_map);
    positional.iter().enumerate().all(|(at, pattern)| fits(pattern, args.positional.get(at)))
        && keyword.is_none_or(|keyword| keyword.iter().all(|(name, pattern)| fits(pattern, args.keyword.get(name))))
}

fn one_or_many(value: &Value) -> &[Value] {
    value.as_list().unwrap_or(std::slice::from_ref(value))
}

/// Returns the permissions for options of jobs among rules: those with `@options`, in the form of `publisher_acl`.
fn options_of(rules: &[&Value]) -> Acl {
    let is_for_options = |rule: &&Value| match rule {
        Value::Str(scope) => scope == OPTIONS,
        Value::Map(rules) => rules.len() == 1 && rules.contains_key(OPTIONS),
        _ => false,
    };
    Acl::new(rules.iter().copied().filter(is_for_options))
}

/// The scope of rules for options of jobs.
const OPTIONS: &str = "@options";

/// Publishes jobs and calls runner functions on behalf of minions.
pub(crate) struct Peers {
    config: Arc<MasterConfig>,
    storage: Blocking<Storage>,
    events: Events,
    facts: Arc<Facts>,
    jobs: Arc<Jobs>,
    calls: Arc<RunnerCalls>,
}

impl Peers {
    /// Creates the peer communication of a master.
    pub fn new(calls: Arc<RunnerCalls>) -> Self {
        let Services { config, storage, events, facts, jobs, .. } = &*calls.services;
        Peers {
            config: Arc::clone(config),
            storage: storage.clone(),
            events: events.clone(),
            facts: Arc::clone(facts),
            jobs: Arc::clone(jobs),
            calls: Arc::clone(&calls),
        }
    }

    /// Publishes a job on behalf of a minion. Returns its jid and minions, as in Salt; an empty mapping if it is
    /// refused.
    pub async fn publish(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Value {
        let Some(request) = self.request(id, asked).await else { return Value::map() };
        match self.jobs.publish(request).await {
            Ok(published) => map! {"jid" => published.jid.as_ref(), "minions" => published.minions}.into(),
            Err(error) => refused(id, &error.to_string()),
        }
    }

    /// Publishes a job on behalf of a minion, and returns the returns that arrive within its timeout.
    pub async fn publish_and_wait(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Value {
        let (timeout, full) = (asked.timeout.unwrap_or(TIMEOUT).min(MAX_TIMEOUT), asked.full);
        let Some(request) = self.request(id, asked).await else { return Value::map() };
        let answers = match self.jobs.publish_and_wait(request, timeout).await {
            Ok(answers) => answers,
            Err(error) => return refused(id, &error.to_string()),
        };
        let mut returned = Map::new();
        for (minion, mut one) in answers.returned {
            let value = one.shift_remove("return").unwrap_or_default();
            if full {
                returned.insert("__jid__".into(), one.get("jid").cloned().unwrap_or_default());
                one.insert("ret".into(), value);
                returned.insert(minion.into(), one.into());
            } else {
                returned.insert(minion.into(), value);
            }
        }
        returned.into()
    }

    /// Returns the job to publish, if the minion may publish it.
    async fn request(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Option<PublishRequest> {
        let (peers, requester) = (Arc::clone(self), id.clone());
        let acl = options_of(&rules_for(&self.config.peer, id));
        if let Err(error) = permit_returners(&acl, &self.config, &asked.request.ret) {
            refused(id, &error.to_string());
            return None;
        }
        let checked = self
            .storage
            .run(move |storage| peers.may_publish(storage, &requester, &asked).then_some(asked.request))
            .await;
        let Ok(Some(mut request)) = checked else {
            refused(id, "the option 'peer' does not allow it");
            return None;
        };
        if request.tgt_type.starts_with("node") {
            "nodegroup".clone_into(&mut request.tgt_type);
        }
        request.user = brine_master_access::access::process_user();
        request.kwargs = map! {"id" => id};
        Some(request)
    }

    /// Whether the option `peer` permits a minion to publish a job. Every function of the job must be permitted.
    fn may_publish(&self, storage: &Storage, id: &MinionId, asked: &PeerPublish) -> bool {
        let functions = asked.functions();
        let rules = rules_for(&self.config.peer, id);
        if rules.is_empty() || functions.is_empty() {
            return false;
        }
        let kind = if asked.request.tgt_type.starts_with("node") { "nodegroup" } else { &asked.request.tgt_type };
        let parsed =
            kind.parse::<TargetKind>().and_then(|kind| self.facts.target(kind, asked.request.tgt.clone(), ":"));
        let Ok(target) = parsed else { return false };
        let Ok(targeted) = resolve(storage, &target) else { return false };
        let Ok(exactly) = resolve(storage, &target.with_exact_pillar()) else { return false };
        if targeted.minions.iter().any(|id| !exactly.minions.contains(id)) {
            return false;
        }
        let may_reach = |valid: &str| match valid {
            "*" => true,
            _ if valid.starts_with('@') => false,
            _ => self
                .facts
                .target(TargetKind::Compound, valid.into(), ":")
                .is_ok_and(|valid| targeted.minions.iter().all(|id| storage.minion_data.is_permitted(&valid, id))),
        };
        let arg = &asked.request.arg;
        match &functions[..] {
            [fun] => allows_all(&rules, fun, arg, &may_reach, 0),
            several => several.iter().enumerate().all(|(at, fun)| {
                let own = arg.get(at).and_then(Value::as_list).unwrap_or_default();
                allows_all(&rules, fun, own, &may_reach, 0)
            }),
        }
    }

    /// Returns the returns of a job that this minion has published: `ret` and `out` by minion.
    pub async fn returns(&self, id: &MinionId, jid: Jid) -> Value {
        self.events.job_cache_caught_up(JOB_CACHE_TIMEOUT).await;
        let requester = id.clone();
        let read = self.storage.run(move |storage| {
            let load = storage.job_cache.get_load(&jid)?;
            if load.is_none_or(|load| load.map().get("id").and_then(Value::as_str) != Some(requester.as_str())) {
                return Ok(None);
            }
            storage.job_cache.get_jid(&jid).map(Some)
        });
        let returns = match read.await {
            Ok(Ok(Some(returns))) => returns,
            Ok(Ok(None)) => return refused(id, "the minion has not published the job"),
            Ok(Err(error)) => return refused(id, &error.to_string()),
            Err(_) => return Value::map(),
        };
        let results = returns.into_iter().map(|(minion, one)| {
            let mut result = map! {"ret" => one.get("return").cloned().unwrap_or_default()};
            if let Some(out) = one.get("out") {
                result.insert("out".into(), out.clone());
            }
            (minion, Value::Map(result))
        });
        Value::Map(results.collect())
    }

    /// Calls a runner function on behalf of a minion, if the option `peer_run` permits it. Returns its result.
    pub async fn run(&self, id: &MinionId, mut asked: PeerRun) -> Value {
        let rules = rules_for(&self.config.peer_run, id);
        if !rules.iter().any(|rule| rule.as_str().is_some_and(|rule| is_match(rule, &asked.fun))) {
            return refused(id, "the option 'peer_run' does not allow it");
        }
        let own = rules_for(&self.config.peer, id);
        let is_allowed = called(&format!("runner.{}", asked.fun), &asked.args).iter().all(|one| match one.place {
            Place::Runner => {
                let is_last = called(&one.full_name(), &one.args).is_empty();
                is_last && rules.iter().any(|rule| rule.as_str().is_some_and(|rule| is_match(rule, &one.function)))
            }
            Place::Wheel => false,
            Place::Same | Place::Minions { .. } | Place::Host => {
                options_of(&rules).permits_options(&one.options)
                    && allows_all(&own, &one.function, &one.args.to_wire(), &|target| target == "*", 1)
            }
        });
        if !is_allowed {
            return refused(id, "the option 'peer' does not allow a function that the arguments name");
        }
        let source = self.calls.argument(Kind::Runner, &asked.fun, &asked.args, SOURCE);
        if let Err(error) = permit_source(&options_of(&rules), &self.config, source) {
            return refused(id, &error.to_string());
        }
        if asked.fun == "mine.get" {
            // A minion reads the mine as itself: `allow_tgt` and `mine_get` withhold data from it.
            asked.args.keyword.insert("id".into(), id.as_str().into());
        }
        let started =
            self.calls.start_for_peer(&asked.fun, asked.args, &brine_master_access::access::process_user()).await;
        let mut finished = started.finish().await;
        finished.get_mut("data").and_then(|data| data.as_map_mut()?.shift_remove("return")).unwrap_or_default()
    }
}

/// Logs a refused request. Returns the response, which does not reveal the reason.
pub(crate) fn refused(id: &MinionId, reason: &str) -> Value {
    brine_wire::metrics::REQUESTS_REFUSED.add(1);
    tracing::warn!(minion = %id, reason, "request of a minion on behalf of others refused");
    Value::map()
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn functions_are_allowed_by_pattern_target_and_arguments() {
        let rules = list![
            "test\\.",
            map! {"web*" => list!["grains.items", map! {"cmd.run" => map! {"args" => list!["ls"], "kwargs" => map! {"cwd" => "/tmp"}}}]},
            map! {"db*" => "service.restart"},
            map! {"a" => "x", "b" => "x"},
            5,
        ];
        let rules: Vec<&Value> = rules.as_list().unwrap().iter().collect();
        let in_tmp = |word: &str| vec![word.into(), map! {"cwd" => "/tmp", "__kwarg__" => true}.into()];
        for (fun, arg, allowed) in [
            ("test.ping", vec![], true),
            ("my.test.ping", vec![], false),
            ("grains.items", vec![], true),
            ("cmd.run", in_tmp("ls -l"), true),
            ("cmd.run", in_tmp("rm"), false),
            ("cmd.run", vec!["ls".into()], false),
            ("service.restart", vec!["x".into()], false),
            ("x", vec![], false),
        ] {
            assert_eq!(allows(&rules, fun, &arg, &|target| target == "web*"), allowed, "{fun} {arg:?}");
        }
    }

    #[test]
    fn functions_in_arguments_have_to_be_allowed() {
        let rules = list![
            "schedule.add",
            "test.echo",
            map! {"web*" => "cmd.run"},
            map! {"@options" => list![map! {"ret" => "redis*"}]}
        ];
        let rules: Vec<&Value> = rules.as_list().unwrap().iter().collect();
        let scheduled = |function: &str| vec![Value::from("j"), format!("function={function}").into()];
        let with = |option: &str| [scheduled("test.echo"), vec![option.into()]].concat();
        for (fun, arg, allowed) in [
            ("schedule.add", scheduled("test.echo"), true),
            ("schedule.add", scheduled("cmd.run"), true),
            ("schedule.add", scheduled("file.remove"), false),
            ("schedule.add", scheduled("publish.publish"), false),
            ("schedule.add", with("returner=redis"), true),
            ("schedule.add", with("returner=rawfile_json"), false),
            ("schedule.add", with("returner=redis,rawfile_json"), false),
            ("publish.publish", vec!["*".into(), "test.echo".into()], false),
            ("test.cross_test", vec!["test.echo".into()], false),
        ] {
            assert_eq!(allows_all(&rules, fun, &arg, &|target| target == "web*", 0), allowed, "{fun} {arg:?}");
        }
    }
}
