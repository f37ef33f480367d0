//! `brine schema`: JSON schemas of the files of master, minion, roster and rules, for editors.
//!
//! `options.rs` describes the options of master and minion as they are declared, `roster.rs` the fields of hosts, and
//! `rules.rs` the functions of rules over time.

mod options;
mod roster;
mod rules;

use std::ffi::OsString;
use std::process::ExitCode;

use brine_config::{MasterConfig, MinionConfig};
use brine_value::{Map, Value, json, map};
use clap::{CommandFactory, Parser};

use super::usage;
use crate::ui::print_plain;

/// The usage line.
pub const USAGE: &str = "brine schema master|minion|roster|rules";

/// The files that have a schema.
pub const FILES: [&str; 4] = ["master", "minion", "roster", "rules"];

/// Print the JSON schema of a file, for editors with a YAML server
#[derive(Parser, Debug)]
#[command(after_help = "Examples:\n  brine schema master > master.schema.json\n  brine schema roster")]
struct Arguments {
    /// The file: master, minion, roster or rules
    #[arg(value_name = "FILE", value_parser = FILES)]
    file: String,
}

/// Returns the options.
pub fn options() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Arguments = match usage::parse("brine schema", USAGE, Arguments::command(), words) {
        Ok(arguments) => arguments,
        Err(status) => return Ok(status),
    };
    print_plain(text(&arguments.file).unwrap_or_default().trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Returns the schema of a file as JSON; `None` if there is none.
pub fn text(file: &str) -> Option<String> {
    let (title, about, schema) = match file {
        "master" => (
            "Configuration of a master",
            "/etc/salt/master and master.d/*.conf",
            options::schema(MasterConfig::docs(), &MasterConfig::default().opts),
        ),
        "minion" => (
            "Configuration of a minion",
            "/etc/salt/minion and minion.d/*.conf",
            options::schema(MinionConfig::docs(), &MinionConfig::default().opts),
        ),
        "roster" => ("Roster of salt-ssh", "The hosts by id: the rendered file of the roster flat", roster::schema()),
        "rules" => ("Rules over time", "The rules by id: a rendered file of reactor_rules", rules::schema()),
        _ => return None,
    };
    let mut all = map! {
        "$schema" => "http://json-schema.org/draft-07/schema#",
        "title" => title,
        "description" => about,
    };
    all.extend(schema);
    Some(json::to_json_pretty(&all.into(), 1) + "\n")
}

/// Returns the schema of any of these.
fn any_of(schemas: impl IntoIterator<Item = Map>) -> Map {
    map! {"anyOf" => schemas.into_iter().map(Value::from).collect::<Value>()}
}

/// Returns the schema of values of these types.
fn typed(names: &[&str]) -> Map {
    match names {
        [one] => map! {"type" => *one},
        many => map! {"type" => many.iter().copied().collect::<Value>()},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_schema() {
        for file in FILES {
            let schema = json::from_json(&text(file).unwrap()).unwrap();
            assert!(schema.get("title").is_some(), "{file}");
        }
        assert_eq!(text("other"), None);
    }
}
