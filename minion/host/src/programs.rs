//! Runs system programs by argument lists: no shell interprets values from a state or a call.

use std::path::{Path, PathBuf};

use brine_function::CallError;
use brine_system::processes;
use brine_text::shell::quote;
use tokio_util::sync::CancellationToken;

use crate::environment;
use crate::process::{Children, Output, ProcessError, Program};

/// Finds and runs programs: [`System`], or transcripts in tests.
pub trait Programs: Send + Sync {
    /// Returns the path of a program.
    fn find(&self, name: &str) -> Option<PathBuf>;
    /// Runs a program to its end as a child of a job, unless the job is cancelled.
    fn run(&self, program: &Program, children: &Children, cancel: &CancellationToken) -> Result<Output, ProcessError>;
}

/// The installed programs.
pub struct System;

impl Programs for System {
    fn find(&self, name: &str) -> Option<PathBuf> {
        find_program(name)
    }

    fn run(&self, program: &Program, children: &Children, cancel: &CancellationToken) -> Result<Output, ProcessError> {
        program.run(children, cancel)
    }
}

/// Returns the path of a program in the `PATH` of this process.
pub fn find_program(name: &str) -> Option<PathBuf> {
    processes::find(Path::new(name))
}

/// Checks that an argument cannot be mistaken for an option.
pub fn argument(word: &str) -> Result<String, CallError> {
    if word.is_empty() || word.starts_with('-') {
        return Err(CallError::Execution(format!("'{word}' cannot be used: it starts with '-' or is empty")));
    }
    Ok(word.to_owned())
}

/// Whether programs such as `tar` take a path as one of another host: `host:path`.
pub fn is_on_another_host(path: &str) -> bool {
    path.find(':').is_some_and(|colon| !path[..colon].contains('/'))
}

/// Returns the path of a program in the `PATH` of commands.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = environment::variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Creates a program from its arguments, with additional environment variables.
pub fn program(words: &[String], env: &[(&str, &str)]) -> Program {
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Program { command, env, ..Program::default() }
}
