//! `brine test`: runs the unit tests of states.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use brine_state_test::{Report, Session, Settings, coverage, report};
use brine_system::files::{Attributes, Entry, Flush, Links};
use brine_system::user_files;
use clap::{CommandFactory, Parser, ValueEnum, ValueHint};

use super::usage;
use crate::escape::escape_line;
use crate::ui::{ColourChoice, Ui};

pub const USAGE: &str = "brine test [options] [PATH...]";

/// The time between two looks for changed files.
const LOOK: Duration = Duration::from_millis(300);

/// Test states without a host: run the *.test.yml and saltcheck files at or below paths
#[derive(Parser, Debug)]
#[command(
    after_help = "The exit status is 1 if a test fails, 2 if a file cannot be read, else 0. No command is run, and nothing on the host is changed.\n\nExamples:\n  brine test /srv/salt                    run all tests of a tree\n  brine test web/init.test.yml            run the tests of one file\n  brine test --filter Debian              run the tests with this word in their file or name\n  brine test --update                     store the results that tests with 'snapshot' expect\n  brine test --coverage                   show the lines that no test has rendered\n  brine test --format junit > report.xml  write a report for CI"
)]
struct Arguments {
    /// Directories and test files (default: the working directory)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Run only the tests whose file or name has this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// List the tests, and run none
    #[arg(long)]
    list: bool,
    /// Store the results of tests that expect a snapshot
    #[arg(long)]
    update: bool,
    /// Report which lines and branches of SLS files and templates the tests have rendered
    #[arg(long)]
    coverage: bool,
    /// Write the coverage to a file in the format of lcov
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    coverage_lcov: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
    /// Run the tests again whenever a file of their tree changes
    #[arg(long)]
    watch: bool,
    /// The root of the state tree (default: the directory with top.sls above a test file, or PATH)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    file_root: Option<PathBuf>,
    /// Number of tests that run at once (default: one for each processor)
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Never use colours
    #[arg(long, alias = "no-colour")]
    no_color: bool,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// XML for CI systems.
    Junit,
    /// JSON.
    Json,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine test", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    let choice = if arguments.no_color { ColourChoice::Never } else { ColourChoice::Auto };
    let mut ui = Ui::new(choice);
    let paths = if arguments.paths.is_empty() { vec![PathBuf::from(".")] } else { arguments.paths.clone() };
    let settings = Settings {
        paths,
        root: arguments.file_root.clone(),
        filter: arguments.filter.clone(),
        update: arguments.update,
        coverage: arguments.coverage || arguments.coverage_lcov.is_some(),
        threads: arguments.jobs,
    };
    let session = Session::new(brine_modules::MODULES);
    if arguments.list {
        return list(&session, &settings, &mut ui);
    }
    if !arguments.watch {
        let report = session.run(&settings);
        show(&report, &arguments, &mut ui)?;
        return Ok(ExitCode::from(report.status()));
    }
    loop {
        let before = session.changed(&settings);
        let report = session.run(&settings);
        show(&report, &arguments, &mut ui)?;
        // The run itself may have written snapshots.
        let previous = if report.written.is_empty() { before } else { session.changed(&settings) };
        wait_for_change(&session, &settings, previous);
    }
}

fn wait_for_change(session: &Session, settings: &Settings, previous: Option<SystemTime>) {
    while session.changed(settings) == previous {
        std::thread::sleep(LOOK);
    }
}

fn list(session: &Session, settings: &Settings, ui: &mut Ui) -> anyhow::Result<ExitCode> {
    let (tests, broken) = session.list(settings);
    for (file, name) in &tests {
        ui.print(&escape_line(&format!("{}: {name}", file.display())))?;
    }
    for error in &broken {
        ui.print_error(&escape_line(error))?;
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

fn show(report: &Report, arguments: &Arguments, ui: &mut Ui) -> anyhow::Result<()> {
    if let (Some(path), Some(files)) = (&arguments.coverage_lcov, &report.coverage) {
        let failed = || format!("writing the coverage to {} failed", path.display());
        let write = || -> std::io::Result<()> {
            let entry = Entry::resolve(path, Links::Follow)?;
            user_files::write_with(
                entry,
                coverage::lcov(files).as_bytes(),
                Attributes::mode(0o644),
                0o644,
                Flush::Later,
            )
        };
        write().with_context(failed)?;
    }
    let text = match arguments.format {
        Format::Text => {
            let colours = report::Colours { on: !ui.colours().end().is_empty() };
            report::text(report, colours, |text| escape_line(text).to_string())
        }
        Format::Junit => report::junit(report),
        Format::Json => report::json(report),
    };
    Ok(ui.print(text.trim_end_matches('\n'))?)
}
