//! `quota`: disk quotas of users and groups, with the programs of the package `quota`.

mod limits;
mod parse;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::programs::{run, succeeds};
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};

use self::parse::Kind;

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], unavailable: Some(unavailable), ..Module::EMPTY };

/// Execution functions of `quota`.
pub static FUNCTIONS: Functions<Context> = registry!("quota", [report, limits::set_, warn, stats, on, off, get_mode]);

fn unavailable(context: &Context) -> Option<String> {
    context.minion.programs.find("setquota").is_none().then(|| "quota module could not be loaded".into())
}

/// Return the usage and the limits of users and groups on a file system. Blocks are kilobytes.
///
/// CLI Example:
///
///     salt '*' quota.report /media/data
#[function]
pub fn report(
    context: &Context,
    /// The mount point, or the device.
    mount: String,
) -> CallResult {
    let mut quotas = Map::new();
    for (title, kind) in [("User Quotas", Kind::User), ("Group Quotas", Kind::Group)] {
        let output = repquota(context, &mount, kind)?;
        log(context, "reading quotas", &output);
        quotas.insert(title.into(), parse::report(&output.stdout, kind).into());
    }
    Ok(map! {mount => quotas}.into())
}

/// Send mail to users whose usage exceeds their limits.
///
/// CLI Example:
///
///     salt '*' quota.warn
#[function]
pub fn warn(context: &Context) -> CallResult {
    succeeds(context, &["warnquota".to_owned()])?;
    Ok(Value::Nil)
}

/// Return the counters of the kernel's quota subsystem.
///
/// CLI Example:
///
///     salt '*' quota.stats
#[function]
pub fn stats(context: &Context) -> CallResult {
    let output = run(context, &["quotastats".to_owned()], &[])?;
    log(context, "reading quota statistics", &output);
    let pairs = output.stdout.lines().filter_map(|line| line.split_once(": "));
    Ok(pairs.map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
}

/// Enable the quotas of a file system, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' quota.on /media/data
#[function]
pub fn on(
    context: &Context,
    /// Path of the mount point or device.
    device: String,
) -> CallResult {
    succeeds(context, &["quotaon".to_owned(), argument(&device)?])
}

/// Disable the quotas of a file system, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' quota.off /media/data
#[function]
pub fn off(
    context: &Context,
    /// Path of the mount point or device.
    device: String,
) -> CallResult {
    succeeds(context, &["quotaoff".to_owned(), argument(&device)?])
}

/// Return by mount point the `device`, and whether the quotas of `user`, `group` and `project` are `on` or `off`. A
/// file system without quotas is `disabled`, one that does not exist is `Not found`.
///
/// CLI Example:
///
///     salt '*' quota.get_mode /media/data
#[function]
pub fn get_mode(
    context: &Context,
    /// Path of the mount point or device.
    device: String,
) -> CallResult {
    let words = ["quotaon".to_owned(), "-p".to_owned(), argument(&device)?];
    // The exit status is that of failures, but also of quotas that are on.
    let output = context.run_program(&Program { merge: true, ..program(&words, &[]) }).map_err(CallError::execution)?;
    Ok(parse::modes(&output.stdout, &device).into())
}

fn repquota(context: &Context, mount: &str, kind: Kind) -> Result<Output, CallError> {
    let words = ["repquota", "-vp", kind.flag()].map(str::to_owned).into_iter().chain([argument(mount)?]);
    run(context, &words.collect::<Vec<_>>(), &[])
}

/// Logs the error messages of a failed program, whose exit status becomes the job's.
fn log(context: &Context, operation: &str, output: &Output) {
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, "{operation} failed: {}", output.stderr);
    }
}
