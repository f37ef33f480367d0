//! Halting and restarting the host.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::Value;

/// Execution functions of `system`.
pub static FUNCTIONS: Functions<Context> = registry!("system", [halt, init, poweroff, reboot, shutdown]);

/// Halt the host.
///
/// CLI Example:
///
///     salt '*' system.halt
#[function]
pub fn halt(context: &Context) -> CallResult {
    run(context, &["halt"])
}

/// Change the runlevel.
///
/// CLI Example:
///
///     salt '*' system.init 3
#[function]
pub fn init(
    context: &Context,
    /// Runlevel.
    runlevel: Value,
) -> CallResult {
    run(context, &["init", &argument(&runlevel.to_string())?])
}

/// Power the host off.
///
/// CLI Example:
///
///     salt '*' system.poweroff
#[function]
pub fn poweroff(context: &Context) -> CallResult {
    run(context, &["poweroff"])
}

/// Restart the host now, or at a time: in a number of minutes, or at `hh:mm`.
///
/// CLI Example:
///
///     salt '*' system.reboot
#[function]
pub fn reboot(
    context: &Context,
    /// Minutes until then; now by default.
    #[default]
    at_time: Value,
) -> CallResult {
    run(context, &["shutdown", "-r", &time(&at_time)?])
}

/// Shut the host down now, or at a time: in a number of minutes, or at `hh:mm`.
///
/// CLI Example:
///
///     salt '*' system.shutdown 5
#[function]
pub fn shutdown(
    context: &Context,
    /// Minutes until then; now by default.
    #[default]
    at_time: Value,
) -> CallResult {
    run(context, &["shutdown", "-h", &time(&at_time)?])
}

fn time(at_time: &Value) -> Result<String, CallError> {
    if at_time.is_truthy() { argument(&at_time.to_string()) } else { Ok("now".into()) }
}

/// Runs a program and returns its output; its exit status becomes the job's.
fn run(context: &Context, words: &[&str]) -> CallResult {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let output = brine_context::programs::run(context, &words, &[])?;
    context.set_retcode(output.retcode);
    Ok(format!("{}{}", output.stdout, output.stderr).trim_end().into())
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use super::*;
    use crate::testing;

    #[test]
    fn hosts_are_halted_and_restarted() {
        let programs = testing::Scripted::new("$ halt\n$ init 3\n$ poweroff\n$ shutdown ...\n");
        let context = testing::context_with(map! {}, programs.clone());
        for (function, time) in [
            ("halt", Value::Nil),
            ("init", 3.into()),
            ("poweroff", Value::Nil),
            ("reboot", Value::Nil),
            ("reboot", 5.into()),
            ("shutdown", "22:00".into()),
        ] {
            let argument = Some(time).filter(|time| !time.is_nil());
            context.call(&format!("system.{function}"), Args::positional(argument)).unwrap();
        }
        let ran = programs.ran();
        for command in ["halt", "init 3", "poweroff", "shutdown -r now", "shutdown -r 5", "shutdown -h 22:00"] {
            assert!(ran.contains(command), "{command}: {ran}");
        }
        let refused = context.call("system.reboot", Args::positional(["--halt".into()]));
        assert!(refused.is_err());
    }
}
