//! Runs scripts and code of other languages.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::process::{Output, Program};
use brine_value::{Map, Value, map};

use super::scratch::{Scratch, script_content};
use super::{CommandArgs, finish, joined, permission, plain, result_of_all, run_script_if};

/// Run a script from `salt://` or from this host with the arguments `args`, and return its pid, retcode, stdout and
/// stderr. With `template`, the script is rendered first.
///
/// CLI Example:
///
///     salt '*' cmd.script salt://scripts/runme.sh 'arg1 arg2 "arg 3"'
#[function]
pub fn script(
    context: &Context,
    /// URL (`salt://`, `https://`) or path of the script.
    source: String,
    /// Arguments of the script, as a string or a list.
    #[default]
    args: Value,
    #[args] how: CommandArgs,
) -> CallResult {
    if how.bg.is_truthy() {
        let advice = "copy the script to the minion, and start it by cmd.run_bg";
        return Err(CallError::Execution(format!("a script does not run in the background (bg): {advice}")));
    }
    let saltenv = how.saltenv.clone().or_else(|| context.config().saltenv.clone()).unwrap_or_else(|| "base".into());
    let Some(content) = script_content(context, &source, &saltenv, &how)? else {
        let output = Output { pid: 0, retcode: 1, stdout: String::new(), stderr: String::new(), timed_out: false };
        context.set_retcode(1);
        return Ok(result_of_all(output).into_iter().chain(map! {"cache_error" => true}).collect::<Map>().into());
    };
    let check = |command: &str| permission::check(context, command);
    Ok(result_of_all(run_script_if(check, context, &content, &args, &how)?).into())
}

/// Run a script as `script`, and return only its exit status.
///
/// CLI Example:
///
///     salt '*' cmd.script_retcode salt://scripts/runme.sh
#[function]
pub fn script_retcode(
    context: &Context,
    /// URL (`salt://`, `https://`) or path of the script.
    source: String,
    /// Arguments of the script, as a string or a list.
    #[default]
    args: Value,
    #[args] how: CommandArgs,
) -> CallResult {
    // As in Salt, the script is rendered by default.
    let template = how.template.or_else(|| Some("jinja".into()));
    let all = script(context, source, args, CommandArgs { template, ..how })?;
    Ok(all.get("retcode").cloned().unwrap_or_default())
}

/// The arguments of `cmd.exec_code` and `cmd.exec_code_all`.
#[derive(Args)]
pub struct CodeArgs {
    /// Interpreter, such as `ruby`.
    lang: String,
    /// Code to run.
    code: String,
    /// Working directory.
    cwd: Option<String>,
    /// Arguments of the code, as a string or a list.
    #[default]
    args: Value,
    /// Further arguments, as those of `cmd.run`.
    #[keywords]
    kwargs: Map,
}

impl CodeArgs {
    fn run(self, context: &Context) -> Result<Output, CallError> {
        let mut code = self.code;
        if !code.ends_with('\n') {
            code.push('\n');
        }
        let how = CommandArgs { cwd: self.cwd, ..CommandArgs::read(&self.kwargs)? };
        let script = Scratch::new(code.as_bytes(), how.runas.as_deref())?;
        permission::check(context, &format!("{} {}{}", self.lang, script.path().display(), plain(&self.args)))?;
        let command = format!("{} {}{}", self.lang, script.path().display(), joined(&self.args));
        let program = Program { shell: None, ..how.program(context, &command)? };
        finish(context, &program, &how)
    }
}

/// Pass code to an interpreter, and return its standard output.
///
/// CLI Example:
///
///     salt '*' cmd.exec_code ruby 'puts "cheese"'
#[function]
pub fn exec_code(context: &Context, #[args] code: CodeArgs) -> CallResult {
    Ok(code.run(context)?.stdout.into())
}

/// Pass code to an interpreter as `exec_code`, and return its pid, retcode, stdout and stderr.
///
/// CLI Example:
///
///     salt '*' cmd.exec_code_all ruby 'puts "cheese"'
#[function]
pub fn exec_code_all(context: &Context, #[args] code: CodeArgs) -> CallResult {
    Ok(result_of_all(code.run(context)?).into())
}
