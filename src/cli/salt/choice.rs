//! Resolves the minions of a target before a job is published: to show them (`--preview-target`), count them
//! (`--batch-safe-limit`), select some (`--subset`), or suggest a target if none matches.

use std::process::ExitCode;

use brine_function::Args;
use brine_target::TargetKind;
use brine_text::nearest::{self, nearest};
use brine_value::Value;
use brine_wire::PublishRequest;

use super::super::common::ResultPrinter;
use super::job::Job;
use super::{NO_MINION, NOTHING_RETURNED};
use crate::ui::print_plain_error;

/// Returns the minions that match a target, without contacting them.
pub(super) async fn matched(job: &Job<'_>, request: &PublishRequest) -> anyhow::Result<Vec<String>> {
    let args = Args::positional([request.tgt.clone(), request.tgt_type.as_str().into()]);
    let minions = job.client.ask_runner("manage.targets", args).await?;
    Ok(minions.as_list().unwrap_or_default().iter().map(ToString::to_string).collect())
}

/// Shows the minions that match a target.
pub(super) async fn preview(
    job: &Job<'_>,
    request: PublishRequest,
    mut printer: ResultPrinter,
) -> anyhow::Result<ExitCode> {
    let minions = matched(job, &request).await?;
    if minions.is_empty() {
        print_plain_error(NOTHING_RETURNED);
        hint(job, &request).await;
        return Ok(ExitCode::from(NO_MINION));
    }
    printer.show(&minions.into(), "nested")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the job for this many random minions of its target that have its functions.
pub(super) async fn subset(job: &Job<'_>, request: PublishRequest, count: usize) -> anyhow::Result<PublishRequest> {
    let responses = job.minions_with_functions(&request).await?;
    if responses.interrupted {
        anyhow::bail!("interrupted before the job was published");
    }
    Ok(brine_client::job::subset(&request, responses.minions, count))
}

/// Prints a similar target on stderr for a target without matches. Failures are ignored.
pub(super) async fn hint(job: &Job<'_>, request: &PublishRequest) {
    let Some(target) = request.tgt.as_str() else { return };
    if request.tgt_type == TargetKind::Grain.name() {
        return grain_hint(job, target).await;
    }
    if request.tgt_type != TargetKind::Glob.name() {
        return;
    }
    if target.contains(',') {
        return print_plain_error(format_args!("a glob names no list of minions: write -L '{target}'"));
    }
    let everybody = PublishRequest::new("*", "test.ping", "");
    if let Ok(ids) = matched(job, &everybody).await
        && let Some(id) = nearest(target, ids)
    {
        print_plain_error(format_args!("'{target}' matches no minion: did you mean '{id}'?"));
    }
}

/// Prints what is meant by a target of a grain that no minion has, or of another value.
async fn grain_hint(job: &Job<'_>, target: &str) {
    let Some((name, _)) = target.split_once(':') else { return };
    let of = |tgt: &str, kind: TargetKind| PublishRequest {
        tgt_type: kind.name().to_owned(),
        ..PublishRequest::new(tgt, "", "")
    };
    let with_grain = matched(job, &of(&format!("{name}:*"), TargetKind::Grain)).await;
    let Ok(everybody) = matched(job, &of("*", TargetKind::Glob)).await else { return };
    let Some(one) = with_grain.unwrap_or_default().first().or(everybody.first()).cloned() else { return };
    let asked = job.client.ask_runner("cache.grains", Args::positional([one.as_str().into(), "glob".into()])).await;
    let Ok(grains) = asked else { return };
    let grains = grains.get(one.as_str()).and_then(Value::as_map).cloned().unwrap_or_default();
    if let Some(value) = grains.get(name) {
        print_plain_error(format_args!("no minion has this value of the grain '{name}'; that of '{one}' is: {value}"));
    } else {
        let near = nearest::hint(nearest(name, grains.keys().filter_map(Value::as_str)));
        print_plain_error(format_args!("no known minion has a grain '{name}'{near}"));
    }
}
