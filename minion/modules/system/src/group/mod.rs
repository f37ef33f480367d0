//! `group`: groups of this host, changed with the programs of Debian's passwd package.

pub(crate) mod state;

use brine_context::programs::succeeds;
use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_host::accounts::Accounts;
use brine_host::programs::argument;
use brine_value::{Map, Value};

use super::user::{describe_group, local_program};
use brine_function::arguments::names;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `group`.
pub static FUNCTIONS: Functions<Context> =
    registry!("group", [info, getent, add, delete, chgid, adduser, deluser, members]);

/// Return the entry of a group; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' group.info foo
#[function]
pub fn info(
    _context: &Context,
    /// Name of the group.
    name: String,
) -> CallResult {
    Ok(Accounts::read().group(&name).map(describe_group).unwrap_or_default().into())
}

/// Return the entries of all groups. `refresh` is without effect: they are not cached.
///
/// CLI Example:
///
///     salt '*' group.getent
#[function]
pub fn getent(
    _context: &Context,
    /// Without effect: groups are not cached.
    #[default(false)]
    refresh: bool,
) -> CallResult {
    // Groups are not cached.
    _ = refresh;
    Ok(Accounts::read().groups.iter().map(describe_group).collect())
}

/// Add a group.
///
/// CLI Example:
///
///     salt '*' group.add foo 3456
#[function]
pub fn add(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Group id; the next free one by default.
    #[default]
    gid: Value,
    /// Whether a new group gets an id in the range of system groups.
    #[default(false)]
    system: bool,
    /// Whether another group may have the same id.
    #[default(false)]
    non_unique: bool,
    /// Whether only local groups are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
) -> CallResult {
    let mut command = vec![if local { local_program("lgroupadd")? } else { "groupadd" }.to_owned()];
    if gid.is_truthy() {
        command.extend(["-g".to_owned(), argument(&gid.to_string())?]);
        command.extend((non_unique && !local).then(|| "-o".into()));
    }
    command.extend(system.then(|| "-r".into()));
    command.push(argument(&name)?);
    succeeds(context, &command)
}

/// Remove a group.
///
/// CLI Example:
///
///     salt '*' group.delete foo
#[function]
pub fn delete(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Whether only local groups are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
) -> CallResult {
    let program = if local { local_program("lgroupdel")? } else { "groupdel" };
    succeeds(context, &[program.into(), argument(&name)?])
}

/// Change the GID of a group.
///
/// CLI Example:
///
///     salt '*' group.chgid foo 4376
#[function]
pub fn chgid(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Group id; the next free one by default.
    gid: u32,
    /// Whether another group may have the same id.
    #[default(false)]
    non_unique: bool,
) -> CallResult {
    match Accounts::read().group(&name) {
        None => return Ok(false.into()),
        Some(group) if group.gid == gid => return Ok(true.into()),
        Some(_) => {}
    }
    let flags = if non_unique { "-og" } else { "-g" };
    succeeds(context, &["groupmod".into(), flags.into(), gid.to_string(), argument(&name)?])
}

/// Add a user to a group.
///
/// CLI Example:
///
///     salt '*' group.adduser foo bar
#[function]
pub fn adduser(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Name of the user.
    username: String,
) -> CallResult {
    succeeds(context, &["gpasswd".into(), "-a".into(), argument(&username)?, argument(&name)?])
}

/// Remove a user from a group.
///
/// CLI Example:
///
///     salt '*' group.deluser foo bar
#[function]
pub fn deluser(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Name of the user.
    username: String,
) -> CallResult {
    let is_member = Accounts::read().group(&name).is_some_and(|group| group.members.contains(&username));
    if !is_member {
        return Ok(true.into());
    }
    succeeds(context, &["gpasswd".into(), "-d".into(), argument(&username)?, argument(&name)?])
}

/// Set the exact members of a group.
///
/// CLI Example:
///
///     salt '*' group.members foo 'user1,user2,user3'
#[function]
pub fn members(
    context: &Context,
    /// Name of the group.
    name: String,
    /// Exact list of members, as a list or with commas.
    members_list: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let list = names(&members_list).join(",");
    succeeds(context, &["gpasswd".into(), "-M".into(), list, argument(&name)?])
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::{list, map};

    use super::*;
    use crate::testing;

    #[test]
    fn entries_of_groups_match_salt() {
        let context = testing::context(&[]);
        let expected = map! {"name" => "root", "passwd" => "x", "gid" => 0, "members" => list![]};
        assert_eq!(context.call("group.info", Args::positional(["root".into()])), Ok(expected.into()));
        assert_eq!(context.call("group.info", Args::positional(["nobody_here".into()])), Ok(Value::map()));
    }

    #[test]
    fn names_like_options_are_rejected() {
        let context = testing::context(&[]);
        for fun in ["group.add", "group.delete"] {
            let error = context.call(fun, Args::positional(["-x".into()])).unwrap_err();
            assert_eq!(error.to_string(), "ERROR: '-x' cannot be used: it starts with '-' or is empty");
        }
    }
}
