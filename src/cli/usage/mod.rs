//! Parses command lines as Salt's tools do: options anywhere and in unambiguous abbreviations, the last of several
//! wins, with the messages and the exit status (64) of Python's option parser.

use std::error::Error as _;
use std::ffi::OsString;
use std::process::ExitCode;

use super::docs;
use super::salt_options::{self, UnimplementedOption};
use super::saltfile;
use crate::ui::{print_plain, print_plain_error};
use anyhow::Context as _;
use brine_text::nearest::nearest;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{ArgAction, ArgMatches, Command, FromArgMatches};

/// The option that reads further arguments from stdin.
const ARGS_STDIN: &str = "args-stdin";
/// The exit status of usage errors.
const USAGE_STATUS: u8 = 64;

/// Parses the arguments of a tool. Help, version and usage errors are printed, and the error is the exit status.
/// `usage` is the text after `Usage: `.
pub fn parse<T: FromArgMatches>(
    name: &'static str,
    usage: &'static str,
    command: Command,
    words: Vec<OsString>,
) -> Result<T, ExitCode> {
    parse_by(name, usage, command, &words, T::from_arg_matches)
}

/// Parses like [`parse`], with the option `--args-stdin`, which reads further arguments from stdin, one a line.
///
/// # Errors
/// Stdin cannot be read.
pub fn parse_with_stdin<T: FromArgMatches>(
    name: &'static str,
    usage: &'static str,
    command: fn() -> Command,
    mut words: Vec<OsString>,
) -> anyhow::Result<Result<T, ExitCode>> {
    let option =
        clap::Arg::new(ARGS_STDIN).long(ARGS_STDIN).action(ArgAction::SetTrue).help_heading(None::<&'static str>);
    let option = option.help("Read further options and arguments from stdin, one a line");
    let with_option = || command().arg(option.clone());
    let first = |matches: &ArgMatches| Ok((T::from_arg_matches(matches), matches.get_flag(ARGS_STDIN)));
    let (read, more) = match parse_by(name, usage, with_option(), &words, first) {
        Ok(read) => read,
        Err(status) => return Ok(Err(status)),
    };
    if more {
        let lines = std::io::read_to_string(std::io::stdin()).context("reading arguments from stdin failed")?;
        words.extend(lines.lines().map(OsString::from));
        return Ok(parse(name, usage, with_option(), words));
    }
    Ok(match read {
        Ok(read) => Ok(read),
        Err(_) => parse(name, usage, with_option(), words),
    })
}

fn parse_by<T>(
    name: &'static str,
    usage: &'static str,
    command: Command,
    words: &[OsString],
    read: impl FnOnce(&ArgMatches) -> Result<T, Error>,
) -> Result<T, ExitCode> {
    let mut command = complete(name, usage, command);
    let words = &saltfile::apply(name, &command, words).map_err(|message| error(name, usage, &message))?;
    let matches = command.try_get_matches_from_mut(words);
    match matches.as_ref().ok().and_then(|matches| salt_options::unimplemented_option(matches, name)) {
        Some(UnimplementedOption::Refused(option, why)) => {
            return Err(error(name, usage, &format!("option --{option}: {why}")));
        }
        Some(UnimplementedOption::Version) => {
            print_plain(versions(command.render_version().trim_end()));
            return Err(ExitCode::SUCCESS);
        }
        None => {}
    }
    matches.and_then(|matches| read(&matches)).map_err(|mistake| match mistake.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print_plain(mistake.render().to_string().trim_end());
            ExitCode::SUCCESS
        }
        _ => error(name, usage, &describe(&mistake, words, &command)),
    })
}

/// Returns the whole command line of a tool: with Salt's options that Brine does not implement, parsed as in Python.
pub fn complete(name: &'static str, usage: &'static str, command: Command) -> Command {
    let more = docs::pointers::more(name);
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let command = command.after_help(format!("{examples}{more}"));
    let command = like_python(command.name(name).bin_name(name).override_usage(usage));
    salt_options::add(command, name)
}

/// Returns what `--versions-report` prints: the version of a tool, and what its program was built from and for.
pub fn versions(version: &str) -> String {
    let or_none = |text: &'static str, none| if text.is_empty() { none } else { text };
    let commit = or_none(env!("BRINE_COMMIT"), "unknown (not a release build from git)");
    let features = or_none(env!("BRINE_FEATURES"), "none");
    format!("{version}\n  Commit: {commit}\nFeatures: {features}\n  Target: {}", env!("BRINE_TARGET"))
}

/// Returns the help of a tool.
pub fn help(name: &'static str, usage: &'static str, command: Command) -> String {
    like_python(command.name(name).override_usage(usage)).render_help().to_string()
}

/// Configures a command to parse options as Python's option parser does.
fn like_python(command: Command) -> Command {
    command
        .version(concat!(env!("CARGO_PKG_VERSION"), " (Brine)"))
        .disable_version_flag(true)
        .no_binary_name(true)
        .infer_long_args(true)
        .args_override_self(true)
        // The argument after an option with a value is its value, even if it begins with a dash.
        .mut_args(|arg| {
            let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !arg.is_positional();
            if takes_value { arg.allow_hyphen_values(true) } else { arg }
        })
}

/// Prints a usage error and returns its exit status.
pub fn error(name: &str, usage: &str, message: &str) -> ExitCode {
    print_plain_error(format_args!("Usage: {usage}\n\n{name}: error: {message}"));
    ExitCode::from(USAGE_STATUS)
}

/// Formats the documentation of a function as Salt's tools print it below the function's name: indented, after an
/// empty line. Documentation from Salt's functions has this form already.
pub fn docstring(doc: &str) -> String {
    if doc.starts_with('\n') {
        return doc.to_owned();
    }
    let lines = doc.lines().map(|line| format!("\n    {line}").trim_end_matches(' ').to_owned());
    format!("\n{}", lines.collect::<String>().trim_start_matches('\n'))
}

/// Parses an integer, for clap's `value_parser`.
pub fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("invalid integer value: '{text}'"))
}

/// Describes a usage error with the messages of Python's option parser, which Salt's users know.
fn describe(mistake: &Error, words: &[OsString], command: &Command) -> String {
    let context = |kind| match mistake.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let option = || spelling(&context(ContextKind::InvalidArg), words, command);
    match mistake.kind() {
        ErrorKind::UnknownArgument => {
            let option = context(ContextKind::InvalidArg);
            let option = option.split('=').next().unwrap_or_default();
            let meant = candidates(option, command);
            if meant.len() > 1 {
                return format!("ambiguous option: {option} ({}?)", meant.join(", "));
            }
            let options = long_options(command).filter(|_| option.starts_with("--"));
            let hint = nearest(option, options).map(|nearest| format!(" (did you mean '{nearest}'?)"));
            format!("no such option: {option}{}", hint.unwrap_or_default())
        }
        ErrorKind::InvalidValue if context(ContextKind::InvalidValue).is_empty() => {
            format!("{} option requires 1 argument", option())
        }
        ErrorKind::TooManyValues => format!("{} option does not take a value", option()),
        ErrorKind::ValueValidation => {
            let cause = mistake.source().map(ToString::to_string).unwrap_or_default();
            let value = context(ContextKind::InvalidValue);
            // Errors of the standard library do not name the value.
            let named = if cause.contains(&value) { cause } else { format!("invalid value '{value}': {cause}") };
            format!("option {}: {named}", option())
        }
        _ => {
            // Names of arguments follow on lines of their own.
            let text = mistake.to_string();
            let message = text.split("\n\n").next().unwrap_or_default();
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            message.strip_prefix("error: ").unwrap_or(&message).to_owned()
        }
    }
}

/// Returns all long options of a command, with their dashes.
fn long_options(command: &Command) -> impl Iterator<Item = String> {
    let names = |arg: &clap::Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long().into_iter().chain(aliases).map(|name| format!("--{name}")).collect::<Vec<_>>()
    };
    command.get_arguments().flat_map(names)
}

/// Returns the options that an abbreviation matches, sorted.
fn candidates(option: &str, command: &Command) -> Vec<String> {
    let mut all: Vec<String> = long_options(command).filter(|name| name.starts_with(option)).collect();
    all.retain(|_| option.starts_with("--") && option.len() > 2);
    all.sort();
    all
}

/// Returns an option as it was typed: clap reports `-t` as `--timeout <N>`, too.
fn spelling(option: &str, words: &[OsString], command: &Command) -> String {
    let long = option.split([' ', '=']).next().unwrap_or_default();
    let argument = command.get_arguments().find(|arg| arg.get_long() == long.strip_prefix("--"));
    let is_typed = words.iter().any(|word| {
        // The typed option may be abbreviated.
        let word = word.to_string_lossy();
        let name = word.split('=').next().unwrap_or_default();
        name.len() > "--".len() && long.starts_with(name)
    });
    match argument.and_then(clap::Arg::get_short) {
        Some(short) if !is_typed => format!("-{short}"),
        _ => long.to_owned(),
    }
}

/// Parses a floating-point number, for clap's `value_parser`.
pub fn float(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("invalid floating-point value: '{text}'"))
}

#[cfg(test)]
mod tests;
