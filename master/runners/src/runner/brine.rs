//! `brine`: upgrades the programs of a fleet, in batches that stop at failures.

use std::collections::BTreeSet;
use std::time::Duration;

use brine_bus::{Filter, Start, Subscription};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_job::batch_size;
use brine_job::orchestration::{MinionResult, OrchestratedJob};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use tokio::time::{Instant, timeout_at};

use super::RunnerContext;
use super::salt::with_keywords;

/// Runner functions of `brine`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("brine", [upgrade]);

/// The longest time for a batch, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;

/// The arguments of `brine.upgrade`.
#[derive(Args)]
pub struct UpgradeArgs {
    /// Target: which minions.
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Minions that are upgraded at once: a number, or a percentage of those that answer a ping.
    #[default("10%".into())]
    batch: String,
    /// The new program, as for the execution function `brine.upgrade`.
    source: Option<String>,
    /// The version that the new program must have.
    version: Option<String>,
    /// The environment of the file server.
    saltenv: Option<String>,
    /// Whether the new program may be an older version.
    #[default(false)]
    allow_downgrade: bool,
    /// Whether the new program may be another build of the running version.
    #[default(false)]
    force: bool,
    /// Minions that may fail before no further batch begins.
    #[default(0)]
    max_failures: usize,
    /// Seconds within which each minion of a batch must return, change its program and tell the outcome.
    #[default(300.0)]
    timeout: f64,
}

/// Upgrade the programs of minions by the execution function `brine.upgrade`, in batches: a batch begins when all minions of
/// the one before have told in their start events how the upgrade ended, and answered a ping. No further batch begins when more than
/// `max_failures` minions have failed. Return the minions that were `upgraded`, those that had the program already
/// (`unchanged`), those that `failed`, with the reason, the `missing` ones, which did not answer a ping, and the `skipped`
/// ones, whose batch has not begun.
///
/// CLI Example:
///
///     salt-run brine.upgrade 'web*' batch=10% version=0.2.0
#[function]
pub fn upgrade(context: &RunnerContext, #[args] args: UpgradeArgs) -> CallResult {
    let limit = brine_runtime::seconds::within(1.0..=MAX_TIMEOUT, args.timeout);
    let user = &context.caller.user;
    let target = |fun: &str| PublishRequest {
        tgt: args.tgt.clone(),
        tgt_type: args.tgt_type.clone(),
        ..PublishRequest::new("*", fun, user)
    };
    let wait = context.master.config.timeout.seconds();
    let pinged = context.wait(context.master.jobs.publish_and_wait(target("test.ping"), wait));
    let pinged = pinged.map_err(CallError::execution)?;
    let mut present: Vec<String> = pinged.returned.into_iter().map(|(id, _)| id).collect();
    present.sort();
    let size = batch_size(&args.batch, present.len()).map_err(CallError::execution)?;
    let mut report = Report { missing: pinged.missing, ..Report::default() };
    report.missing.sort();
    let mut batches = present.chunks(size);
    for batch in batches.by_ref() {
        let mut request = target("brine.upgrade");
        (request.tgt, request.tgt_type) = (batch.iter().cloned().collect(), "list".into());
        request.arg = with_keywords(Vec::new(), keywords(&args));
        run_batch(context, request, batch, limit, &mut report)?;
        context.progress_event(&report.to_map(true));
        if report.failed.len() > args.max_failures {
            break;
        }
    }
    report.skipped = batches.flatten().cloned().collect();
    let is_good = report.failed.len() <= args.max_failures;
    Ok(report.to_map(is_good).into())
}

/// Returns the arguments for the execution function.
fn keywords(args: &UpgradeArgs) -> Map {
    let mut keywords = map! {"allow_downgrade" => args.allow_downgrade, "force" => args.force};
    for (name, value) in [("source", &args.source), ("version", &args.version), ("saltenv", &args.saltenv)] {
        keywords.extend(value.as_deref().map(|value| (name.into(), value.into())));
    }
    keywords
}

/// Upgrades the minions of one batch, and waits for the outcome of each.
fn run_batch(
    context: &RunnerContext,
    request: PublishRequest,
    batch: &[String],
    limit: Duration,
    report: &mut Report,
) -> Result<(), CallError> {
    // Before the job, so that no event is missed.
    let mut events = context.master.bus.subscribe(told_events(), Start::Now).map_err(CallError::execution)?;
    let deadline = Instant::now() + limit;
    let ask = OrchestratedJob { request, timeout: None, batch: None, failhard: false, subset: None };
    let ran = context.wait(async { timeout_at(deadline, context.master.jobs.run_to_end(ask)).await });
    let results = match ran {
        Ok(results) => results.map_err(CallError::execution)?,
        Err(_) => Vec::new(),
    };
    let jid = results.first().map(|result| result.jid.to_string()).unwrap_or_default();
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    for id in batch {
        match returned(results.iter().find(|result| result.id == *id)) {
            Returned::Staged => _ = waiting.insert(id.clone()),
            Returned::Unchanged => report.unchanged.push(id.clone()),
            Returned::Failed(reason) => report.fail(id, reason),
        }
    }
    let before = report.upgraded.len();
    context.wait(await_outcomes(&mut events, &jid, deadline, &mut waiting, report));
    for id in waiting {
        report.fail(&id, format!("no start event with the outcome within {limit:?}"));
    }
    check_publishes(context, before, report)
}

/// Pings the minions that were upgraded after the first `before`: a minion that can send need not receive.
fn check_publishes(context: &RunnerContext, before: usize, report: &mut Report) -> Result<(), CallError> {
    let upgraded = report.upgraded.split_off(before);
    if upgraded.is_empty() {
        return Ok(());
    }
    let tgt = upgraded.iter().cloned().collect();
    let request =
        PublishRequest { tgt, tgt_type: "list".into(), ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let pinged = context.master.jobs.publish_and_wait(request, context.master.config.timeout.seconds());
    let pinged = context.wait(pinged).map_err(CallError::execution)?;
    for id in upgraded {
        if pinged.missing.contains(&id) {
            report.fail(&id, "upgraded, but it does not answer a ping".into());
        } else {
            report.upgraded.push(id);
        }
    }
    Ok(())
}

/// What a minion has returned.
#[derive(Debug, PartialEq)]
enum Returned {
    Staged,
    Unchanged,
    Failed(String),
}

fn returned(result: Option<&MinionResult>) -> Returned {
    let Some(fields) = result.and_then(|result| result.returned.as_ref()) else {
        return Returned::Failed("the minion did not return".into());
    };
    let value = fields.get("return").cloned().unwrap_or_default();
    match value.get("result").and_then(Value::as_str) {
        Some("staged") => Returned::Staged,
        Some("unchanged") => Returned::Unchanged,
        _ => Returned::Failed(value.to_string()),
    }
}

/// Waits until each of these minions has told how the upgrade of this job ended.
async fn await_outcomes(
    events: &mut Subscription,
    jid: &str,
    deadline: Instant,
    waiting: &mut BTreeSet<String>,
    report: &mut Report,
) {
    while !waiting.is_empty() {
        let Ok(Some(event)) = timeout_at(deadline, events.recv()).await else { return };
        let Some((id, reason)) = outcome(event.tag(), &event.data(), jid) else { continue };
        if !waiting.remove(&id) {
            continue;
        }
        match reason {
            None => report.upgraded.push(id),
            Some(reason) => report.fail(&id, reason),
        }
    }
}

/// Returns the filter of the events that tell outcomes: of minions of this master, and of those below syndics.
fn told_events() -> Filter {
    Filter::Prefixes(["salt/minion/", "syndic/"].map(Into::into).to_vec())
}

/// Returns a tag without the syndics that have passed it on.
fn below_syndics(mut tag: &str) -> &str {
    while let Some((_, rest)) = tag.strip_prefix("syndic/").and_then(|rest| rest.split_once('/')) {
        tag = rest;
    }
    tag
}

/// Returns the minion of an event that tells the outcome of this job, and the reason if the upgrade has failed. A minion
/// tells only its own; a syndic, whose id events of start then have, those of its minions.
fn outcome(tag: &str, data: &Map, jid: &str) -> Option<(String, Option<String>)> {
    let own = below_syndics(tag);
    let (id, kind) = own.strip_prefix("salt/minion/")?.rsplit_once('/')?;
    let outcome = match kind {
        "start" => data.get("upgrade")?,
        "upgrade" => data.get("data")?,
        _ => return None,
    };
    let field = |name: &str| outcome.get(name).and_then(Value::as_str);
    let is_its_own = own != tag || data.get("id").and_then(Value::as_str) == Some(id);
    if !is_its_own || field("jid") != Some(jid) {
        return None;
    }
    let reason = (field("result") != Some("done")).then(|| field("reason").unwrap_or("unknown").to_owned());
    Some((id.to_owned(), reason))
}

/// The outcome of all minions.
#[derive(Debug, Default)]
struct Report {
    upgraded: Vec<String>,
    unchanged: Vec<String>,
    failed: Map,
    missing: Vec<String>,
    skipped: Vec<String>,
}

impl Report {
    fn fail(&mut self, id: &str, reason: String) {
        self.failed.insert(id.into(), reason.into());
    }

    fn to_map(&self, result: bool) -> Map {
        let mut upgraded = self.upgraded.clone();
        upgraded.sort();
        map! {
            "result" => result, "upgraded" => upgraded, "unchanged" => self.unchanged.clone(),
            "failed" => self.failed.clone(), "missing" => self.missing.clone(), "skipped" => self.skipped.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minion_tells_only_its_own_outcome_of_the_job() {
        let upgrade = |result: &str, jid: &str| map! {"result" => result, "jid" => jid, "reason" => "it crashed"};
        let start = |id: &str, result: &str, jid: &str| map! {"id" => id, "upgrade" => upgrade(result, jid)};
        let told = |tag: &str, data: &Map| outcome(tag, data, "7");
        assert_eq!(told("salt/minion/web1/start", &start("web1", "done", "7")), Some(("web1".into(), None)));
        let passed_on = told("syndic/s1/syndic/s2/salt/minion/web1/start", &start("s1", "done", "7"));
        assert_eq!(passed_on, Some(("web1".into(), None)));
        let failed = Some(("web1".into(), Some("it crashed".into())));
        assert_eq!(told("salt/minion/web1/start", &start("web1", "rolled_back", "7")), failed);
        let given_up = map! {"id" => "web1", "data" => upgrade("rolled_back", "7")};
        assert_eq!(told("salt/minion/web1/upgrade", &given_up), failed);
        for (tag, data) in [
            ("salt/minion/web1/start", start("web2", "done", "7")),
            ("salt/minion/web1/start", start("web1", "done", "8")),
            ("salt/minion/web1/other", start("web1", "done", "7")),
            ("syndic/salt/minion/web1/start", start("web1", "done", "7")),
            ("salt/minion/web1/start", map! {"id" => "web1"}),
        ] {
            assert_eq!(told(tag, &data), None, "{tag} {data:?}");
        }
    }

    #[test]
    fn returns_of_minions_are_staged_unchanged_or_failed() {
        let result = |value: Value| MinionResult {
            id: "web1".into(),
            jid: brine_ids::Jid::new(),
            returned: Some(map! {"return" => value}),
            is_unknown: false,
        };
        let staged = result(map! {"result" => "staged"}.into());
        assert_eq!(returned(Some(&staged)), Returned::Staged);
        let unchanged = result(map! {"result" => "unchanged"}.into());
        assert_eq!(returned(Some(&unchanged)), Returned::Unchanged);
        let failed = result("ERROR: no".into());
        assert_eq!(returned(Some(&failed)), Returned::Failed("ERROR: no".into()));
        assert_eq!(returned(None), Returned::Failed("the minion did not return".into()));
    }
}
