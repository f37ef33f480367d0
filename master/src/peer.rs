//! What minions may have done by others: jobs (`peer`) and runner functions (`peer_run`).

use std::sync::Arc;
use std::time::Duration;

use brine_ids::{Jid, MinionId};
use brine_runtime::executors::MayBlock;
use brine_target::{Match, Pcre, Target, TargetKind};
use brine_value::{Map, Value, map};
use brine_wire::{PeerPublish, PeerRun, PublishRequest};

use crate::Shared;
use crate::calls::Kind;
use crate::disk::Disk;

/// How long the master waits for returns in a minion's name if the minion does not say.
const WAIT: Duration = Duration::from_secs(5);
/// The longest that it waits, whatever the minion says.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// How long a minion that asks for returns waits for the job cache to have kept the newest.
const CAUGHT_UP: Duration = Duration::from_secs(5);

/// The entries that a minion's id has in an option like `peer`: its keys are regular expressions that match at
/// the start of the id.
pub(crate) fn rules_for<'a>(option: &'a Map, id: &MinionId) -> Vec<&'a Value> {
    let matching = option.iter().filter(|(pattern, _)| is_match(&pattern.to_string(), id.as_str()));
    matching.filter_map(|(_, rules)| rules.as_list()).flatten().collect()
}

/// As Python's `re.match`. What is no regular expression matches nothing.
fn is_match(pattern: &str, text: &str) -> bool {
    match Pcre::parse(pattern) {
        Ok(pattern) => pattern.is_match(text),
        Err(error) => {
            tracing::error!(%error, "a rule for peers is passed over");
            false
        }
    }
}

/// Whether rules allow a function. `may_reach` says whether a target holds all minions that are meant.
fn allows(rules: &[&Value], fun: &str, arg: &[Value], may_reach: &dyn Fn(&str) -> bool) -> bool {
    rules.iter().any(|rule| match rule {
        Value::Str(pattern) => is_match(pattern, fun),
        // Functions at some minions: {web*: [test.ping]}.
        Value::Map(only) => match only.first() {
            Some((target, functions)) if only.len() == 1 => {
                may_reach(&target.to_string()) && one_or_many(functions).iter().any(|rule| allows_call(rule, fun, arg))
            }
            _ => false,
        },
        _ => false,
    })
}

/// A function's pattern, or one with conditions on arguments: `{cmd.run: {args: [ls.*]}}`.
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
    let given = brine_function::Args::from_wire(arg);
    let fits = |pattern: &Value, value: Option<&Value>| match value {
        Some(value) => pattern.is_nil() || is_match(&pattern.to_string(), &value.to_string()),
        None => false,
    };
    let positional = condition.get("args").and_then(Value::as_list).unwrap_or_default();
    let keyword = condition.get("kwargs").and_then(Value::as_map);
    positional.iter().enumerate().all(|(at, pattern)| fits(pattern, given.positional.get(at)))
        && keyword.is_none_or(|keyword| keyword.iter().all(|(name, pattern)| fits(pattern, given.keyword.get(name))))
}

fn one_or_many(value: &Value) -> &[Value] {
    value.as_list().unwrap_or(std::slice::from_ref(value))
}

impl Shared {
    /// Publishes a job in a minion's name: its id and who is meant, as Salt gives it. Nothing if the minion may
    /// not.
    pub(crate) async fn peer_publish(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Value {
        let Some(request) = self.peer_request(id, asked).await else { return Value::map() };
        match self.publish(request).await {
            Ok(published) => map! {"jid" => published.jid.as_ref(), "minions" => published.minions}.into(),
            Err(error) => refused(id, &error.to_string()),
        }
    }

    /// As [`Shared::peer_publish`], but waits for the returns.
    pub(crate) async fn peer_publish_and_wait(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Value {
        let (timeout, full) = (asked.timeout.unwrap_or(WAIT).min(LONGEST_WAIT), asked.full);
        let Some(request) = self.peer_request(id, asked).await else { return Value::map() };
        let answers = match self.ask(request, timeout).await {
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

    /// The job as it is published, if the minion may have it done.
    async fn peer_request(self: &Arc<Self>, id: &MinionId, asked: PeerPublish) -> Option<PublishRequest> {
        let (shared, asker) = (Arc::clone(self), id.clone());
        // Targets are looked up in the store.
        let checked =
            self.disk.run(move |disk| shared.may_publish(disk, &asker, &asked).then_some(asked.request)).await;
        let Ok(Some(mut request)) = checked else {
            refused(id, "the option 'peer' does not allow it");
            return None;
        };
        if request.tgt_type.starts_with("node") {
            "nodegroup".clone_into(&mut request.tgt_type);
        }
        request.user = crate::process_user();
        request.kwargs = map! {"id" => id};
        Some(request)
    }

    /// Whether the option `peer` lets a minion have this done. Each of several functions must be allowed.
    fn may_publish(&self, disk: &Disk, id: &MinionId, asked: &PeerPublish) -> bool {
        let functions = asked.functions();
        let rules = rules_for(&self.config.peer, id);
        // A job that publishes jobs would never end.
        if rules.is_empty() || functions.is_empty() || functions.iter().any(|fun| fun.starts_with("publish.")) {
            return false;
        }
        let kind = if asked.request.tgt_type.starts_with("node") { "nodegroup" } else { &asked.request.tgt_type };
        let parsed = kind.parse::<TargetKind>().and_then(|kind| self.target(kind, asked.request.tgt.clone()));
        let Ok(target) = parsed else { return false };
        let Ok((meant, _)) = self.resolve(disk, &target) else { return false };
        let Ok((exactly, _)) = self.resolve(disk, &target.with_exact_pillar()) else { return false };
        if meant.iter().any(|id| !exactly.contains(id)) {
            return false;
        }
        let may_reach = |valid: &str| match valid {
            "*" => true,
            _ if valid.starts_with('@') => false,
            _ => self
                .target(TargetKind::Compound, valid.into())
                .is_ok_and(|valid| meant.iter().all(|id| valid.check(&disk.minion_data.facts(id)) != Match::No)),
        };
        let arg = &asked.request.arg;
        match &functions[..] {
            [fun] => allows(&rules, fun, arg, &may_reach),
            several => several.iter().enumerate().all(|(at, fun)| {
                let own = arg.get(at).and_then(Value::as_list).unwrap_or_default();
                allows(&rules, fun, own, &may_reach)
            }),
        }
    }

    fn target(&self, kind: TargetKind, tgt: Value) -> Result<Target, brine_target::TargetError> {
        Target::parse(kind, tgt, ":", &self.config.nodegroups)
    }

    /// What has come back for a job that this minion had published: by minion, `ret` and `out`.
    pub(crate) async fn peer_returns(self: &Arc<Self>, id: &MinionId, jid: Jid) -> Value {
        self.jobs_caught_up(CAUGHT_UP).await;
        let asker = id.clone();
        let read = self.disk.run(move |disk| {
            let load = disk.job_cache.get_load(&jid)?;
            if load.is_none_or(|load| load.map().get("id").and_then(Value::as_str) != Some(asker.as_str())) {
                return Ok(None);
            }
            disk.job_cache.get_jid(&jid).map(Some)
        });
        let returns = match read.await {
            Ok(Ok(Some(returns))) => returns,
            Ok(Ok(None)) => return refused(id, "the job is not one that it had published"),
            Ok(Err(error)) => return refused(id, &error.to_string()),
            Err(_) => return Value::map(),
        };
        let shown = returns.into_iter().map(|(minion, one)| {
            let mut shown = map! {"ret" => one.get("return").cloned().unwrap_or_default()};
            if let Some(out) = one.get("out") {
                shown.insert("out".into(), out.clone());
            }
            (minion, Value::Map(shown))
        });
        Value::Map(shown.collect())
    }

    /// Calls a runner function for a minion, if the option `peer_run` lets it: what the function returned.
    pub(crate) async fn peer_run(self: &Arc<Self>, id: &MinionId, asked: PeerRun) -> Value {
        let rules = rules_for(&self.config.peer_run, id);
        if !rules.iter().any(|rule| rule.as_str().is_some_and(|rule| is_match(rule, &asked.fun))) {
            return refused(id, "the option 'peer_run' does not allow it");
        }
        let started = self.start_call(Kind::Runner, &asked.fun, asked.args, &crate::process_user(), &Map::new()).await;
        let mut finished = started.finish().await;
        finished.get_mut("data").and_then(|data| data.as_map_mut()?.shift_remove("return")).unwrap_or_default()
    }

    /// Forgets a minion's key at its own wish, if `allow_minion_key_revoke` lets it; whether it is forgotten.
    /// Blocks.
    pub(crate) fn revoke(self: &Arc<Self>, id: &MinionId, thread: &MayBlock) -> bool {
        if !self.config.allow_minion_key_revoke {
            refused(id, "the option 'allow_minion_key_revoke' does not allow it");
            return false;
        }
        let (jid, thread) = (Jid::new(), thread.clone());
        let caller = crate::calls::Caller { jid, user: id.to_string(), caused: Map::new(), thread };
        let key = crate::keys::Key { id: id.clone(), state: crate::keys::KeyState::Accepted };
        let results = crate::wheel::key::apply(&self.wheel_context(caller), crate::keys::Act::Delete, &[key]);
        let revoked = results.iter().all(|(_, result)| result.is_ok());
        if revoked {
            // Who hears of the key's end by the bus may hear of it after the minion's next request.
            self.sessions.end(id);
        }
        revoked
    }
}

/// The answer to a minion that may not do what it asks: nothing, and the reason in the master's log alone.
fn refused(id: &MinionId, reason: &str) -> Value {
    brine_wire::metrics::REQUESTS_REFUSED.add(1);
    tracing::warn!(minion = %id, reason, "what a minion asks of others is refused");
    Value::map()
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn rules_are_those_of_every_pattern_that_the_id_starts_with() {
        let option =
            map! {"web" => list!["a"], ".*" => list!["b"], "db" => list!["c"], "(" => list!["d"], "web1" => "e"};
        let id: MinionId = "web1".parse().unwrap();
        assert_eq!(rules_for(&option, &id), [&Value::from("a"), &Value::from("b")]);
    }

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
}
