//! The command line of `salt-key`, and the precedence of its actions.

use std::ffi::OsString;
use std::path::PathBuf;

use brine_master_store::keys::{Act, KeyState};
use brine_value::FromValue;
use clap::{Command, CommandFactory, Parser};

use crate::cli::common::{CommonOptions, OutputArguments};
use crate::cli::credentials::Credentials;
use crate::cli::usage;

/// Accept, reject, list and delete the keys of minions
#[derive(Parser, Debug)]
#[command(
    disable_version_flag = true,
    after_help = "\
Examples:
  salt-key                        list all keys
  salt-key -a web1                accept a key, after asking
  salt-key -y -a 'web*,db?'       accept these keys without asking
  salt-key -f web1                show a fingerprint, to compare with the minion's own
  salt-key -y -d 'old*'           delete keys
  salt-key -l un --out json       list pending keys, for scripts
  salt-key --auth pam -a web1     accept a key as a user of the master's external_auth"
)]
pub struct Arguments {
    /// Answer yes to all questions
    #[arg(short, long)]
    pub yes: bool,
    /// Accepted for compatibility with Salt; has no effect
    #[arg(short, long)]
    quiet: bool,
    /// Whether the publish key is rotated when keys are deleted or rejected: True or False
    #[arg(long, value_name = "BOOL", value_parser = boolean)]
    pub rotate_aes_key: Option<bool>,
    #[command(flatten)]
    pub common: CommonOptions,
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    pub actions: Actions,
    #[command(flatten)]
    pub making: KeyGeneration,
    #[command(flatten)]
    pub credentials: Credentials,
    /// Refused: ignored by Salt.
    #[arg(hide = true)]
    pub words: Vec<OsString>,
}

impl Arguments {
    /// Returns what is wrong with the actions: there must be one at most. Salt runs one and drops the others.
    pub fn contradiction(&self) -> Option<String> {
        let makes = self.making.gen_keys.as_deref().is_some_and(|name| !name.is_empty());
        let actions: Vec<&str> = self.actions.given().chain(makes.then_some("--gen-keys")).collect();
        let [first, second, ..] = actions[..] else { return None };
        Some(format!("{first} and {second} are different actions: run salt-key once for each"))
    }

    /// Returns what is wrong with words that belong to no option. Salt ignores them.
    pub fn superfluous(&self) -> Option<String> {
        let word = self.words.first()?.to_string_lossy();
        let actions = &self.actions;
        // Everybody writes `salt-key -F master` for the fingerprint of the master, which is among all of them.
        if actions.finger_all && word == "master" && self.words.len() == 1 {
            return None;
        }
        Some(if actions.delete_all {
            "Delete all takes no arguments. Use -d to delete specified keys".to_owned()
        } else if let Some((option, glob)) = actions.with_glob() {
            format!("unexpected argument '{word}': several minions are one argument, such as {option} '{glob},{word}'")
        } else {
            format!("unexpected argument '{word}': name an action, such as -a {word}")
        })
    }
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Actions (GLOB: one or several globs, separated by commas)")]
pub struct Actions {
    /// List the keys in one state: un or pre (pending), acc, rej, den, or all
    #[arg(short, long, value_name = "STATE")]
    list: Option<String>,
    /// List all keys (the default)
    #[arg(short = 'L', long)]
    list_all: bool,
    /// Accept pending keys
    #[arg(short, long, value_name = "GLOB")]
    accept: Option<String>,
    /// Accept all pending keys
    #[arg(short = 'A', long)]
    accept_all: bool,
    /// Reject pending keys
    #[arg(short, long, value_name = "GLOB")]
    reject: Option<String>,
    /// Reject all pending keys
    #[arg(short = 'R', long)]
    reject_all: bool,
    /// With -a also accept rejected keys, with -r also reject accepted ones (older form)
    #[arg(long)]
    include_all: bool,
    /// With -r, also reject accepted keys
    #[arg(long)]
    include_accepted: bool,
    /// With -a, also accept rejected keys
    #[arg(long)]
    include_rejected: bool,
    /// With -a or -r, include denied keys
    #[arg(long)]
    include_denied: bool,
    /// Show public keys
    #[arg(short, long, value_name = "GLOB")]
    print: Option<String>,
    /// Show all public keys
    #[arg(short = 'P', long)]
    print_all: bool,
    /// Delete keys in any state
    #[arg(short, long, value_name = "GLOB")]
    delete: Option<String>,
    /// Delete all keys
    #[arg(short = 'D', long)]
    pub delete_all: bool,
    /// Show fingerprints
    #[arg(short, long, value_name = "GLOB")]
    finger: Option<String>,
    /// Show all fingerprints, including the master's
    #[arg(short = 'F', long)]
    finger_all: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Creating keys")]
pub struct KeyGeneration {
    /// Create a key pair: NAME.pem and NAME.pub
    #[arg(long, value_name = "NAME")]
    pub gen_keys: Option<String>,
    /// The directory of the new key pair
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub gen_keys_dir: PathBuf,
    /// The length of the key in bits, from 2048 to 8192
    #[arg(long, value_name = "BITS", value_parser = usage::integer, default_value = "2048")]
    pub keysize: i64,
}

/// Returns the command line. As in Salt's tool, `-l` is `--list` and `-a` is `--accept`.
pub fn command() -> Command {
    Arguments::command().mut_arg("log_level", |arg| arg.short(None)).mut_arg("eauth", |arg| arg.short(None))
}

fn boolean(text: &str) -> Result<bool, String> {
    bool::from_value(&text.into()).ok_or_else(|| format!("invalid choice: '{text}' (choose from 'True', 'False')"))
}

/// An action and the pattern of its keys.
#[derive(Debug)]
pub enum Task {
    List(&'static [KeyState]),
    Print(String),
    Finger(String),
    Change(Act, String),
}

impl Actions {
    /// Returns the options of the given actions.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let named = |word: &Option<String>| word.as_deref().is_some_and(|word| !word.is_empty());
        let all = [
            ("-l", named(&self.list)),
            ("-L", self.list_all),
            ("-a", named(&self.accept)),
            ("-A", self.accept_all),
            ("-r", named(&self.reject)),
            ("-R", self.reject_all),
            ("-p", named(&self.print)),
            ("-P", self.print_all),
            ("-d", named(&self.delete)),
            ("-D", self.delete_all),
            ("-f", named(&self.finger)),
            ("-F", self.finger_all),
        ];
        all.into_iter().filter_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Returns the option of the action for some keys, and their glob.
    fn with_glob(&self) -> Option<(&'static str, &str)> {
        let all = [
            ("-a", &self.accept),
            ("-r", &self.reject),
            ("-d", &self.delete),
            ("-p", &self.print),
            ("-f", &self.finger),
        ];
        all.into_iter().find_map(|(option, glob)| Some((option, glob.as_deref()?)))
    }

    /// Returns the task to run.
    pub fn task(&self) -> Result<Task, String> {
        let pattern_of = |one: &Option<String>, all: bool| {
            one.clone().filter(|pattern| !pattern.is_empty()).or_else(|| all.then(|| "*".to_owned()))
        };
        if let Some(word) = self.list.as_deref().filter(|word| !word.is_empty()) {
            let states = KeyState::of_word(word);
            return states.map(Task::List).ok_or_else(|| format!("'{word}' is not a valid argument to '--list'"));
        }
        let change = |act, one, all| pattern_of(one, all).map(|pattern| Task::Change(act, pattern));
        Ok((!self.list_all)
            .then(|| {
                pattern_of(&self.print, self.print_all)
                    .map(Task::Print)
                    .or_else(|| change(Act::Accept, &self.accept, self.accept_all))
                    .or_else(|| change(Act::Reject, &self.reject, self.reject_all))
                    .or_else(|| change(Act::Delete, &self.delete, self.delete_all))
                    .or_else(|| pattern_of(&self.finger, self.finger_all).map(Task::Finger))
            })
            .flatten()
            .unwrap_or(Task::List(&KeyState::ALL)))
    }

    /// Returns the states of the keys that are accepted or rejected, in Salt's order.
    pub fn states(&self, act: Act) -> Vec<KeyState> {
        let accepted = act != Act::Accept && (self.include_accepted || (self.include_all && act == Act::Reject));
        let rejected = act != Act::Reject && (self.include_rejected || (self.include_all && act == Act::Accept));
        let choices = [
            (true, KeyState::Pending),
            (accepted, KeyState::Accepted),
            (rejected, KeyState::Rejected),
            (self.include_denied, KeyState::Denied),
        ];
        choices.into_iter().filter(|(is_included, _)| *is_included).map(|(_, state)| state).collect()
    }
}

#[cfg(test)]
mod tests;
