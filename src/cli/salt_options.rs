//! The options of Salt's tools that Brine's tools do not implement: each is accepted because it changes nothing here, or
//! refused with a sentence that says why. None is ignored in silence that would have changed the result.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

/// The effect of an option that a tool does not implement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// What it asks for is so in any case.
    Nothing,
    /// The version is shown: there are no versions of dependencies to report.
    Version,
    /// The tool ends with this message.
    Refused(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy)]
struct SaltOption {
    short: Option<char>,
    /// Its long names, without their dashes.
    names: &'static [&'static str],
    takes_value: bool,
    effect: Effect,
}

const fn flag(short: Option<char>, names: &'static [&'static str], effect: Effect) -> SaltOption {
    SaltOption { short, names, takes_value: false, effect }
}

const fn value(short: Option<char>, names: &'static [&'static str], effect: Effect) -> SaltOption {
    SaltOption { short, names, takes_value: true, effect }
}

const EAUTH: Effect = Effect::Refused(
    "salt-key changes files of the master: run it as the user that the master runs as, or call wheel functions with rights of your own",
);
const RESOURCES: Effect = Effect::Refused("minions of Brine manage no resources");
const NO_PYTHON: Effect = Effect::Refused("Brine does not run Python modules");
const EXECUTORS: Effect =
    Effect::Refused("there are no executors here: functions are called directly (Salt's direct_call)");
const PROFILING: Effect = Effect::Refused("profiling is not available");
const SIGNATURE: Effect =
    Effect::Refused("the master makes the signature of its key by itself: set 'master_sign_pubkey: True'");
const NO_ROSTER: Effect = Effect::Refused("there is no salt-ssh here, and so no roster");

/// Options of every tool.
const COMMON: &[SaltOption] = &[
    value(None, &["saltfile"], Effect::Refused("Brine reads no Saltfile: give its options on the command line")),
    flag(None, &["hard-crash"], Effect::Nothing),
    flag(None, &["versions-report"], Effect::Version),
];

const SALT: &[SaltOption] = &[
    flag(Some('H'), &["hosts"], NO_ROSTER),
    flag(
        Some('R'),
        &["range"],
        Effect::Refused("targets by range need a range server, for which there is no client here"),
    ),
    // Not honoured by Salt either.
    flag(None, &["hide-timeout"], Effect::Nothing),
];

const SALT_CALL: &[SaltOption] = &[
    value(None, &["proxyid"], Effect::Refused("there are no proxy minions here")),
    value(None, &["module-executors"], EXECUTORS),
    value(None, &["executor-opts"], EXECUTORS),
    value(Some('m'), &["module-dirs"], NO_PYTHON),
    value(None, &["states-dir"], NO_PYTHON),
    // Grains are collected at each start, when they are first asked for.
    flag(None, &["skip-grains"], Effect::Nothing),
    flag(None, &["refresh-grains-cache"], Effect::Nothing),
    value(None, &["priv"], Effect::Refused("salt-call runs as the user who starts it: use sudo -u USER")),
    flag(Some('r'), &["resources"], RESOURCES),
    value(None, &["tgt"], RESOURCES),
    value(None, &["tgt-type"], RESOURCES),
    value(None, &["profiling-path"], Effect::Nothing),
    flag(None, &["enable-profiling"], PROFILING),
];

const SALT_RUN: &[SaltOption] = &[
    value(
        None,
        &["jid"],
        Effect::Refused("the master chooses the job id; an orchestration takes orchestration_jid=JID"),
    ),
    flag(None, &["skip-grains"], Effect::Nothing),
    value(None, &["profiling-path"], Effect::Nothing),
    flag(None, &["enable-profiling"], PROFILING),
];

const SALT_KEY: &[SaltOption] = &[
    value(Some('u'), &["user"], Effect::Refused("salt-key runs as the user who starts it: use sudo -u USER")),
    value(None, &["preserve-minions"], Effect::Refused("the data of a minion is removed with its key")),
    value(None, &["eauth", "auth", "external-auth"], EAUTH),
    flag(Some('T'), &["make-token"], EAUTH),
    value(None, &["username"], EAUTH),
    value(None, &["password"], EAUTH),
    flag(None, &["gen-signature"], SIGNATURE),
    value(None, &["priv"], SIGNATURE),
    value(None, &["pub"], SIGNATURE),
    value(None, &["signature-path"], SIGNATURE),
    flag(None, &["auto-create"], SIGNATURE),
];

// A daemon is restarted by the init system.
const DAEMON: &[SaltOption] = &[flag(None, &["disable-keepalive"], Effect::Nothing)];

/// The options of a tool that it does not implement itself.
fn of(tool: &str) -> impl Iterator<Item = &'static SaltOption> {
    let own: &[&[SaltOption]] = match tool {
        "salt" => &[COMMON, SALT],
        "salt-call" => &[COMMON, SALT_CALL],
        "salt-run" => &[COMMON, SALT_RUN],
        "salt-key" => &[COMMON, SALT_KEY],
        "salt-master" | "salt-minion" => &[COMMON, DAEMON],
        _ => &[],
    };
    own.iter().flat_map(|options| options.iter())
}

/// Adds the options of Salt's tool of this name that the command does not have itself; help does not list them.
pub fn add(command: Command, tool: &str) -> Command {
    of(tool).fold(command, |command, option| {
        let [name, aliases @ ..] = option.names else { return command };
        let has = |name: &str| {
            command.get_arguments().any(|arg| {
                arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            })
        };
        if has(name) {
            return command;
        }
        let action = if option.takes_value { ArgAction::Set } else { ArgAction::SetTrue };
        let mut arg = Arg::new(*name).long(*name).aliases(aliases.to_vec()).action(action).hide(true);
        if let Some(short) = option.short {
            arg = arg.short(short);
        }
        command.arg(arg)
    })
}

/// What a line asks for by an option that its tool does not implement.
pub enum Asked {
    /// The version.
    Version,
    /// Something that is refused: the long name of the option, and why.
    Refused(&'static str, &'static str),
}

/// Returns what the line asks for by options that its tool does not implement, if that ends the tool.
pub fn asked(matches: &ArgMatches, tool: &str) -> Option<Asked> {
    of(tool).find_map(|option| {
        let name = option.names.first()?;
        // An option that the command has itself is not in the matches by this name.
        let given = matches.try_contains_id(name).is_ok_and(|has| has)
            && matches.value_source(name) == Some(ValueSource::CommandLine);
        match option.effect {
            Effect::Version if given => Some(Asked::Version),
            Effect::Refused(why) if given => Some(Asked::Refused(name, why)),
            _ => None,
        }
    })
}
