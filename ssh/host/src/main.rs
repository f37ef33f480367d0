//! `brine-ssh-host`: the program that `salt-ssh` pushes to hosts, with nothing else of Brine. Linked statically
//! (`packaging/ssh-host`), it runs on any Linux of its architecture.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    brine_jinja::limits::measure_memory(brine_allocator::held);
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(status) = brine_host::process::launcher::intercept(&words) {
        return ExitCode::from(status);
    }
    let message = match &words[..] {
        [_, word] if word == brine_ssh_host::COMMAND => match brine_ssh_host::run() {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => error.to_string(),
        },
        _ => "salt-ssh runs this program on hosts: put it into the directory ssh_program_dir".to_owned(),
    };
    // Standard output is reserved for messages to the caller.
    _ = writeln!(std::io::stderr(), "brine-ssh-host: {message}");
    ExitCode::FAILURE
}
