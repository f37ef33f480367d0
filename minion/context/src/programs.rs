//! Running of system programs in a job.

use brine_function::CallError;
use brine_host::process::Output;
use brine_host::programs::program;
use brine_value::Value;

use crate::Context;

/// Runs a program to its end. Its exit status does not become the job's retcode: the function interprets it.
pub fn run(context: &Context, words: &[String], env: &[(&str, &str)]) -> Result<Output, CallError> {
    context.run_program(&program(words, env)).map_err(CallError::execution)
}

/// Runs a program that changes something, and returns whether it succeeded. Its exit status becomes the job's, and its error
/// messages are logged.
pub fn succeeds(context: &Context, words: &[String]) -> Result<Value, CallError> {
    let output = run(context, words, &[])?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        let program = words.first().map(String::as_str).unwrap_or_default();
        tracing::error!(jid = context.job.jid, program, retcode = output.retcode, "{}", output.stderr);
    }
    Ok((output.retcode == 0).into())
}
