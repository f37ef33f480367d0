//! Finds what the last word of a command line can be.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use super::names::{self, Names};
use crate::cli::{COMMANDS, TOOLS, Tool};

/// A possible word, with a description.
#[derive(Debug, PartialEq, Eq)]
pub struct Candidate {
    pub value: String,
    pub about: String,
}

impl Candidate {
    pub fn new(value: impl Into<String>, about: &str) -> Self {
        // One line, without what would begin another column.
        let about = about.split(['\n', '\t']).next().unwrap_or_default().trim().to_owned();
        Candidate { value: value.into(), about }
    }
}

/// What a word can be.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// One of these; those that do not begin like the word are left out.
    Candidates(Vec<Candidate>),
    /// The path of a file: the shell knows how to complete it.
    Files,
    /// The path of a directory.
    Directories,
}

/// A command line up to the word that is completed.
pub(super) struct Line<'a> {
    /// Salt's name of the tool.
    pub tool: &'static str,
    /// The options of the tool.
    command: Command,
    /// The ids and values of the options before the word.
    options: Vec<(String, String)>,
    /// The words that are no options.
    pub words: Vec<&'a str>,
    /// The id of the option whose value the word is.
    open: Option<String>,
}

impl Line<'_> {
    /// Whether an option is given.
    pub fn has(&self, id: &str) -> bool {
        self.options.iter().any(|(other, _)| other == id)
    }

    /// Returns the last value of an option.
    pub fn value(&self, id: &str) -> Option<&str> {
        self.options.iter().rev().find(|(other, _)| other == id).map(|(_, value)| value.as_str())
    }
}

/// Completes the last of these words, of which the first is the name of the program.
pub fn complete(words: &[String]) -> Answer {
    let [program, rest @ ..] = words else { return Answer::Candidates(Vec::new()) };
    let (last, before) = rest.split_last().map_or(("", rest), |(last, before)| (last.as_str(), before));
    let name = program.rsplit('/').next().unwrap_or(program);
    let (tool, before) = match (TOOLS.iter().find(|tool| tool.name == name), before) {
        (Some(tool), before) => (tool, before),
        (None, []) => return tools(last),
        (None, [command, before @ ..]) if command == "help" && before.is_empty() => return tools(last),
        (None, [command, before @ ..]) => match crate::cli::tool(command) {
            Some(tool) => (tool, before),
            None => return Answer::Candidates(Vec::new()),
        },
    };
    let before: Vec<&str> = before.iter().map(|word| unquoted(word)).collect();
    let line = read(tool, &before);
    let names = Names::new(line.value("config_dir").map(PathBuf::from));
    last_word(&line, &names, last.trim_start_matches(['\'', '"']))
}

/// Returns a word without the quotes around it.
fn unquoted(word: &str) -> &str {
    let inner = |quote| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('\'').or_else(|| inner('"')).unwrap_or(word)
}

fn tools(last: &str) -> Answer {
    let all = TOOLS.iter().chain(COMMANDS).map(|tool| Candidate::new(tool.command, tool.about));
    beginning(last, all.collect())
}

/// Keeps what begins like a word.
fn beginning(word: &str, mut candidates: Vec<Candidate>) -> Answer {
    candidates.retain(|candidate| candidate.value.trim_start_matches('\'').starts_with(word));
    Answer::Candidates(candidates)
}

/// Reads the words before the one that is completed.
fn read<'a>(tool: &'static Tool, before: &[&'a str]) -> Line<'a> {
    let command = tool.command_line();
    let mut line = Line { tool: tool.name, command, options: Vec::new(), words: Vec::new(), open: None };
    for word in before {
        if let Some(id) = line.open.take() {
            line.options.push((id, (*word).to_owned()));
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let Some(arg) = by_long(&line.command, name) else { continue };
            let id = arg.get_id().to_string();
            match value {
                None if takes_value(arg) => line.open = Some(id),
                value => line.options.push((id, value.unwrap_or_default().to_owned())),
            }
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            read_short(&mut line, short);
        } else {
            line.words.push(word);
        }
    }
    line
}

/// Reads several short options of one letter, of which the last one may have a value.
fn read_short(line: &mut Line<'_>, letters: &str) {
    for (at, letter) in letters.char_indices() {
        let Some(arg) = line.command.get_arguments().find(|arg| arg.get_short() == Some(letter)) else { return };
        let (id, rest) = (arg.get_id().to_string(), &letters[at + letter.len_utf8()..]);
        match takes_value(arg) {
            true if rest.is_empty() => line.open = Some(id),
            true => line.options.push((id, rest.to_owned())),
            false => {
                line.options.push((id, String::new()));
                continue;
            }
        }
        return;
    }
}

/// Returns the option of this name or its only one that begins like this.
fn by_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let names = |arg: &Arg| -> Vec<String> {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long().into_iter().chain(aliases).map(str::to_owned).collect()
    };
    let exact = command.get_arguments().find(|arg| names(arg).iter().any(|other| other == name));
    exact.or_else(|| {
        let mut near = command.get_arguments().filter(|arg| names(arg).iter().any(|other| other.starts_with(name)));
        near.next().filter(|_| near.next().is_none())
    })
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn last_word(line: &Line<'_>, names: &Names, last: &str) -> Answer {
    if let Some(id) = &line.open {
        let arg = line.command.get_arguments().find(|arg| arg.get_id() == id.as_str());
        return arg.map_or(Answer::Candidates(Vec::new()), |arg| value_of(line, names, arg, last, ""));
    }
    if let Some((name, value)) = last.strip_prefix("--").and_then(|long| long.split_once('=')) {
        let Some(arg) = by_long(&line.command, name) else { return Answer::Candidates(Vec::new()) };
        return value_of(line, names, arg, value, &format!("--{name}="));
    }
    if last.starts_with('-') {
        return beginning(last, options(&line.command));
    }
    match names::positional(line, names, last) {
        Answer::Candidates(candidates) => beginning(last, candidates),
        other => other,
    }
}

fn options(command: &Command) -> Vec<Candidate> {
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    visible
        .filter_map(|arg| {
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            Some(Candidate::new(format!("--{}", arg.get_long()?), &about))
        })
        .collect()
}

/// Completes the value of an option.
fn value_of(line: &Line<'_>, names: &Names, arg: &Arg, value: &str, prefix: &str) -> Answer {
    let possible = arg.get_possible_values();
    let kind = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default();
    let candidates = match (arg.get_id().as_str(), kind.as_str()) {
        _ if !possible.is_empty() => {
            let about = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string);
            possible.iter().map(|value| Candidate::new(value.get_name(), &about(value).unwrap_or_default())).collect()
        }
        (_, "DIR") => return Answer::Directories,
        (_, "FILE" | "PATH") => return Answer::Files,
        (id, kind) => names::value(line, names, id, kind),
    };
    match beginning(value, candidates) {
        Answer::Candidates(mut candidates) => {
            for candidate in &mut candidates {
                candidate.value.insert_str(0, prefix);
            }
            Answer::Candidates(candidates)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
