//! `jobs`: what was asked and what came of it, from the job cache.

use std::time::Duration;

use brine_core::function::CallError;
use brine_core::job::Load;
use brine_core::wire::PublishRequest;
use brine_core::{Jid, Map, Value, functions, map};

use super::RunnerContext;

functions! {
    module "jobs", context RunnerContext;

    /// What minions returned for a job.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.lookup_jid 20261120235852025555
    fn lookup_jid(context, jid: String, missing: bool = false, display_progress: bool = false) {
        tell(context, display_progress, "Querying returner");
        let jid = parse(&jid)?;
        let returns = returns(context, &jid)?;
        let out = returns.values().find_map(|one| one.get("out")).cloned();
        let mut data: Map = returns.iter().map(|(id, one)| (id.clone(), one.get("return").cloned().unwrap_or_default())).collect();
        if missing && let Some(load) = load(context, &jid)? {
            for id in expected(&load) {
                data.entry(id).or_insert_with(|| "Minion did not return".into());
            }
        }
        let outputter = out.unwrap_or_else(|| "nested".into());
        Ok(map! {"outputter" => outputter, "data" => data}.into())
    }

    /// All of one job: what was asked, of whom, and what came of it.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.list_job 20261120235852025555
    fn list_job(context, jid: String, display_progress: bool = false) {
        tell(context, display_progress, "Querying returner");
        let jid = parse(&jid)?;
        let Some(load) = load(context, &jid)? else {
            return Ok(map! {"jid" => &jid, "Error" => "Cannot contact returner or no job with this jid"}.into());
        };
        let mut job = map! {"jid" => &jid};
        job.extend(summary(&load));
        job.insert("Minions".into(), Value::List(expected(&load)));
        job.insert("Result".into(), returns(context, &jid)?.into());
        Ok(job.into())
    }

    /// As `list_job`, below the job's id.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.print_job 20261120235852025555
    fn print_job(context, jid: String) {
        print(context, &parse(&jid)?)
    }

    /// All jobs that are kept, oldest first.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.list_jobs
    fn list_jobs(context, search_function: Option<String> = None, search_target: Option<String> = None, display_progress: bool = false) {
        tell(context, display_progress, "Querying returner for jobs");
        caught_up(context);
        let jobs = context.disk().job_cache.get_jids(None).map_err(CallError::execution)?;
        let wanted = |pattern: &Option<String>, text: Option<&Value>| {
            pattern.as_ref().is_none_or(|pattern| text.is_some_and(|text| brine_core::glob::fnmatch(pattern, &text.to_string())))
        };
        let mut listed: Vec<(Jid, Map)> = jobs
            .iter()
            .map(|load| (load.jid().clone(), summary(load)))
            .filter(|(_, job)| wanted(&search_function, job.get("Function")) && wanted(&search_target, job.get("Target")))
            .collect();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Value::Map(listed.into_iter().map(|(jid, job)| (Value::from(&jid), job.into())).collect()))
    }

    /// The newest job that is kept, as `print_job`.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.last_run
    fn last_run(context, function: Option<String> = None) {
        caught_up(context);
        let jobs = context.disk().job_cache.get_jids(None).map_err(CallError::execution)?;
        let of_function = |load: &&Load| {
            function.as_ref().is_none_or(|function| load.map().get("fun").and_then(Value::as_str) == Some(function))
        };
        let newest = jobs.iter().filter(of_function).map(Load::jid).max();
        newest.map_or(Ok(Value::Bool(false)), |jid| print(context, jid))
    }

    /// Which minions returned success for a job.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.exit_success 20261120235852025555
    fn exit_success(context, jid: String) {
        let jid = parse(&jid)?;
        let returns = returns(context, &jid)?;
        let mut result: Map = Map::new();
        if let Some(load) = load(context, &jid)? {
            result.extend(expected(&load).into_iter().map(|id| (id, Value::Bool(false))));
        }
        for (id, one) in &returns {
            let good = one.get("retcode").and_then(Value::as_i64).unwrap_or(0) == 0
                && one.get("success").and_then(Value::as_bool).unwrap_or(true);
            result.insert(id.clone(), good.into());
        }
        Ok(result.into())
    }

    /// The jobs that minions are running now.
    ///
    /// CLI Example:
    ///
    ///     salt-run jobs.active
    fn active(context, display_progress: bool = false) {
        tell(context, display_progress, "Asking minions what they run");
        let master = &context.master;
        let request = PublishRequest::new("*", "saltutil.running", &context.caller.user);
        let gather = Duration::from_secs(master.config.gather_job_timeout);
        let running = context.wait(master.ask(request, gather)).map_err(CallError::execution)?;
        let mut active = Map::new();
        for (id, mut answer) in running.returned {
            let jobs = answer.swap_remove("return").unwrap_or_default();
            for job in jobs.as_list().unwrap_or_default() {
                let Some(jid) = job.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse::<Jid>().ok()) else { continue };
                let entry = active.entry(Value::from(&jid)).or_insert_with(|| {
                    let load = Load::from_map(job.as_map().cloned().unwrap_or_default()).ok();
                    let mut entry = load.as_ref().map(summary).unwrap_or_default();
                    entry.insert("Running".into(), Value::List(Vec::new()));
                    entry.insert("Returned".into(), Value::List(Vec::new()));
                    entry.into()
                });
                let pid = job.get("pid").cloned().unwrap_or_default();
                if let Some(Value::List(list)) = entry.as_map_mut().and_then(|entry| entry.get_mut("Running")) {
                    list.push(Value::Map([(Value::from(id.as_str()), pid)].into_iter().collect()));
                }
            }
        }
        for (jid, entry) in &mut active {
            let Ok(jid) = jid.to_string().parse() else { continue };
            let returned: Vec<Value> = returns(context, &jid)?.into_keys().collect();
            if let Some(entry) = entry.as_map_mut() {
                entry.insert("Returned".into(), returned.into());
            }
        }
        Ok(active.into())
    }
}

/// Says on the bus what the call is about to do, if whoever called wants to know.
fn tell(context: &RunnerContext, wanted: bool, message: &str) {
    if wanted {
        context.progress(message);
    }
}

fn parse(jid: &str) -> Result<Jid, CallError> {
    jid.parse().map_err(CallError::execution)
}

/// Waits, for a second at most, until the job cache has seen what has been fired so far.
fn caught_up(context: &RunnerContext) {
    context.wait(context.master.jobs_caught_up(Duration::from_secs(1)));
}

fn load(context: &RunnerContext, jid: &Jid) -> Result<Option<Load>, CallError> {
    caught_up(context);
    context.disk().job_cache.get_load(jid).map_err(CallError::execution)
}

fn returns(context: &RunnerContext, jid: &Jid) -> Result<Map, CallError> {
    caught_up(context);
    context.disk().job_cache.get_jid(jid).map_err(CallError::execution)
}

fn expected(load: &Load) -> Vec<Value> {
    load.map().get("minions").and_then(Value::as_list).map(<[Value]>::to_vec).unwrap_or_default()
}

fn print(context: &RunnerContext, jid: &Jid) -> Result<Value, CallError> {
    let Some(load) = load(context, jid)? else { return Ok(Value::map()) };
    let mut job = summary(&load);
    job.insert("Minions".into(), Value::List(expected(&load)));
    job.insert("Result".into(), returns(context, jid)?.into());
    Ok(Value::Map([(Value::from(jid), job.into())].into_iter().collect()))
}

/// A job as listings show it.
fn summary(load: &Load) -> Map {
    let field = |name: &str| load.map().get(name).cloned().unwrap_or_default();
    let user = match field("user") {
        Value::Nil => "root".into(),
        user => user,
    };
    map! {
        "Function" => field("fun"),
        "Arguments" => field("arg"),
        "Target" => field("tgt"),
        "Target-type" => field("tgt_type"),
        "User" => user,
        "StartTime" => load.jid().start_time(),
    }
}
