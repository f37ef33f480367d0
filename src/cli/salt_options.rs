//! Options of Salt's tools that Brine does not implement. Each is accepted because it has no effect in Brine, or
//! refused with a message; none that would change the result is ignored silently.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

/// The effect of an option that a tool does not implement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Accepted: it describes what Brine does anyway.
    Nothing,
    /// Prints the version: there are no dependencies to report.
    Version,
    /// Refused with this message.
    Refused(&'static str),
}

/// An option of Salt.
#[derive(Debug, Clone, Copy)]
struct SaltOption {
    short: Option<char>,
    /// Its long names without dashes.
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

const RESOURCES: Effect = Effect::Refused("Brine's minions have no resources");
const PROFILING: Effect = Effect::Refused("profiling is not supported");
const SIGNATURE: Effect = Effect::Refused("the master signs its key by itself: set 'master_sign_pubkey: True'");
const NO_ROSTER: Effect = Effect::Refused("use salt-ssh -H, which lists the hosts of its roster");

/// Options of every tool.
const COMMON: &[SaltOption] = &[
    // Read before the command line is parsed.
    value(None, &["saltfile"], Effect::Nothing),
    flag(None, &["hard-crash"], Effect::Nothing),
    flag(None, &["versions-report"], Effect::Version),
];

const SALT: &[SaltOption] = &[
    flag(Some('H'), &["hosts"], NO_ROSTER),
    flag(Some('R'), &["range"], Effect::Refused("targets by range are not supported")),
];

const SALT_CALL: &[SaltOption] = &[
    value(None, &["proxyid"], Effect::Refused("proxy minions are not supported")),
    // Grains are collected at each start when they are first needed.
    flag(None, &["skip-grains"], Effect::Nothing),
    flag(None, &["refresh-grains-cache"], Effect::Nothing),
    value(None, &["priv"], Effect::Refused("salt-call runs as its caller: use sudo -u USER")),
    flag(Some('r'), &["resources"], RESOURCES),
    value(None, &["tgt"], RESOURCES),
    value(None, &["tgt-type"], RESOURCES),
    value(None, &["profiling-path"], Effect::Nothing),
    flag(None, &["enable-profiling"], PROFILING),
];

const SALT_RUN: &[SaltOption] = &[
    flag(None, &["skip-grains"], Effect::Nothing),
    value(None, &["profiling-path"], Effect::Nothing),
    flag(None, &["enable-profiling"], PROFILING),
];

const SALT_KEY: &[SaltOption] = &[
    value(Some('u'), &["user"], Effect::Refused("salt-key runs as its caller: use sudo -u USER")),
    value(None, &["preserve-minions"], Effect::Refused("the data of a minion is removed with its key")),
    flag(None, &["gen-signature"], SIGNATURE),
    value(None, &["priv"], SIGNATURE),
    value(None, &["pub"], SIGNATURE),
    value(None, &["signature-path"], SIGNATURE),
    flag(None, &["auto-create"], SIGNATURE),
];

const NO_PACKAGE: Effect =
    Effect::Refused("the program on a host is this one: it needs no Python and no modules of Salt");

const SALT_SSH: &[SaltOption] = &[
    value(None, &["min-extra-modules"], NO_PACKAGE),
    value(None, &["thin-extra-modules"], NO_PACKAGE),
    flag(None, &["thin-exclude-saltexts"], NO_PACKAGE),
    flag(None, &["relenv"], NO_PACKAGE),
    value(None, &["python2-bin"], NO_PACKAGE),
    value(None, &["python3-bin"], NO_PACKAGE),
];

// The init system restarts daemons.
const DAEMON: &[SaltOption] = &[flag(None, &["disable-keepalive"], Effect::Nothing)];

/// Returns the options of a Salt tool that Brine does not implement.
fn options_of(tool: &str) -> impl Iterator<Item = &'static SaltOption> {
    let own: &[&[SaltOption]] = match tool {
        "salt" | "salt-cp" => &[COMMON, SALT],
        "salt-call" => &[COMMON, SALT_CALL],
        "salt-run" => &[COMMON, SALT_RUN],
        "salt-key" => &[COMMON, SALT_KEY],
        "salt-ssh" => &[COMMON, SALT_SSH],
        "salt-master" | "salt-minion" | "salt-syndic" | "salt-api" => &[COMMON, DAEMON],
        _ => &[],
    };
    own.iter().flat_map(|options| options.iter())
}

/// Adds the options of a Salt tool that the command lacks, hidden in its help.
pub fn add(command: Command, tool: &str) -> Command {
    options_of(tool).fold(command, |command, option| {
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

/// The effect of an unimplemented option on the command line.
pub enum UnimplementedOption {
    /// The version is printed.
    Version,
    /// The option with this long name is refused with this message.
    Refused(&'static str, &'static str),
}

/// Returns the effect of the first unimplemented option that ends the tool.
pub fn unimplemented_option(matches: &ArgMatches, tool: &str) -> Option<UnimplementedOption> {
    options_of(tool).find_map(|option| {
        let name = option.names.first()?;
        // An option of the command itself is not in the matches under this name.
        let is_given = matches.try_contains_id(name).is_ok_and(|has| has)
            && matches.value_source(name) == Some(ValueSource::CommandLine);
        match option.effect {
            Effect::Version if is_given => Some(UnimplementedOption::Version),
            Effect::Refused(why) if is_given => Some(UnimplementedOption::Refused(name, why)),
            _ => None,
        }
    })
}
