//! `ret`: jobs and returns that returners have stored.

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::Jid;
use brine_returners::{Options, Returner, open};
use brine_value::Map;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `ret`.
pub static FUNCTIONS: Functions<Context> = registry!("ret", [get_jid, get_fun, get_jids, get_minions]);

/// Return the returns of a job, by minion.
///
/// CLI Example:
///
///     salt '*' ret.get_jid redis 20421104181954700505
#[function]
pub fn get_jid(
    context: &Context,
    /// Name of the returner.
    returner: String,
    /// Id of the job.
    jid: String,
) -> CallResult {
    let jid: Jid = jid.parse().map_err(CallError::execution)?;
    Ok(open_returner(context, &returner)?.get_jid(&jid).map_err(CallError::execution)?.into())
}

/// Return the last return of a function, by minion.
///
/// CLI Example:
///
///     salt '*' ret.get_fun mysql network.interfaces
#[function]
pub fn get_fun(
    context: &Context,
    /// Name of the returner.
    returner: String,
    /// Name of the function.
    fun: String,
) -> CallResult {
    Ok(open_returner(context, &returner)?.get_fun(&fun).map_err(CallError::execution)?.into())
}

/// Return all jobs: their functions, arguments and targets, by job id.
///
/// CLI Example:
///
///     salt '*' ret.get_jids mysql
#[function]
pub fn get_jids(
    context: &Context,
    /// Name of the returner.
    returner: String,
) -> CallResult {
    let jobs = open_returner(context, &returner)?.get_jids(None).map_err(CallError::execution)?;
    Ok(jobs.iter().map(|job| (job.jid().to_string().into(), job.summary().into())).collect::<Map>().into())
}

/// Return the ids of all minions with returns.
///
/// CLI Example:
///
///     salt '*' ret.get_minions mysql
#[function]
pub fn get_minions(
    context: &Context,
    /// Name of the returner.
    returner: String,
) -> CallResult {
    let minions = open_returner(context, &returner)?.get_minions().map_err(CallError::execution)?;
    Ok(minions.iter().map(ToString::to_string).collect())
}

fn open_returner(context: &Context, returner: &str) -> Result<Box<dyn Returner>, CallError> {
    open(returner, &Options::new(&context.opts(), None)).map_err(CallError::execution)
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use crate::testing::context;

    #[test]
    fn unknown_returners_and_invalid_jids_are_reported() {
        let context = context(&[]);
        for (function, words, error) in
            [("ret.get_jids", vec!["sqlit3"], "sqlite3"), ("ret.get_jid", vec!["sqlite3", "today"], "today")]
        {
            let message = context.call(function, Args::positional(words.into_iter().map(Into::into))).unwrap_err();
            assert!(message.to_string().contains(error), "{message}");
        }
    }
}
