//! Calling the system's programs word by word: no shell reads what comes from a state or a call.

use std::path::PathBuf;

use brine_function::CallError;
use brine_text::shell::quote;
use brine_value::Value;

use crate::context::{Context, Job, Programs};
use crate::host::process::{Output, ProcessError, Program};
use crate::modules::cmd::find_program;

/// The programs that are really there.
pub struct System;

impl Programs for System {
    fn find(&self, name: &str) -> Option<PathBuf> {
        find_program(name)
    }

    fn run(&self, program: &Program, job: &Job) -> Result<Output, ProcessError> {
        program.run(&job.children, &job.cancel)
    }
}

/// A word that a program must not take for an option.
pub fn argument(word: &str) -> Result<String, CallError> {
    if word.is_empty() || word.starts_with('-') {
        return Err(CallError::Execution(format!("'{word}' cannot be used: it starts with '-' or is empty")));
    }
    Ok(word.to_owned())
}

/// Where a program is that is looked for in the folders of `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = crate::modules::environ::variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// A program by its words, with more variables in its environment.
pub fn program(words: &[String], env: &[(&str, &str)]) -> Program {
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Program { command, env, ..Program::default() }
}

/// Runs a program to its end. Its exit status is not the job's: the function says what it means.
pub fn run(context: &Context, words: &[String], env: &[(&str, &str)]) -> Result<Output, CallError> {
    context.minion.programs.run(&program(words, env), &context.job).map_err(CallError::execution)
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
