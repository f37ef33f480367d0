//! Changes of single properties of users.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::accounts::{Account, Accounts};
use brine_host::programs::argument;
use brine_value::Value;

use super::{account, change, gecos, names};

/// Change the UID of a user.
///
/// CLI Example:
///
///     salt '*' user.chuid foo 4376
#[function]
pub fn chuid(
    context: &Context,
    /// Login name.
    name: String,
    /// New user id.
    uid: Value,
) -> CallResult {
    change_field(context, &name, &["-u"], &uid, |user| user.uid.into())
}

/// Change the primary group of a user.
///
/// CLI Example:
///
///     salt '*' user.chgid foo 4376
#[function]
pub fn chgid(
    context: &Context,
    /// Login name.
    name: String,
    /// Name or id of the new primary group.
    gid: Value,
) -> CallResult {
    change_field(context, &name, &["-g"], &gid, |user| user.gid.into())
}

/// Change the login shell of a user.
///
/// CLI Example:
///
///     salt '*' user.chshell foo /bin/zsh
#[function]
pub fn chshell(
    context: &Context,
    /// Login name.
    name: String,
    /// New login shell.
    shell: String,
) -> CallResult {
    change_field(context, &name, &["-s"], &shell.into(), |user| (&user.shell).into())
}

/// Change the home directory of a user; `persist` moves its content.
///
/// CLI Example:
///
///     salt '*' user.chhome foo /home/users/foo True
#[function]
pub fn chhome(
    context: &Context,
    /// Login name.
    name: String,
    /// Path of the new home directory.
    home: String,
    /// Whether the files are moved to the new home directory.
    #[default(false)]
    persist: bool,
) -> CallResult {
    let flags: &[&str] = if persist { &["-m", "-d"] } else { &["-d"] };
    change_field(context, &name, flags, &home.into(), |user| (&user.home).into())
}

/// Set the supplementary groups of a user, or with `append` add to them.
///
/// CLI Example:
///
///     salt '*' user.chgroups foo wheel,root
#[function]
pub fn chgroups(
    context: &Context,
    /// Login name.
    name: String,
    /// Supplementary groups, as a list or with commas.
    groups: Value,
    /// Whether the user stays in other groups.
    #[default(false)]
    append: bool,
) -> CallResult {
    let mut groups = names(&groups);
    groups.sort();
    groups.dedup();
    if Accounts::read().groups_of(&name) == groups {
        return Ok(true.into());
    }
    let list = groups.join(",");
    let with: &[&str] = if append { &["-a", "-G", &list] } else { &["-G", &list] };
    change(context, &name, with)
}

/// Change the full name of a user.
///
/// CLI Example:
///
///     salt '*' user.chfullname foo "Foo Bar"
#[function]
pub fn chfullname(
    context: &Context,
    /// Login name.
    name: String,
    /// New full name.
    fullname: String,
) -> CallResult {
    change_gecos(context, &name, 0, &fullname)
}

/// Change the room number of a user.
///
/// CLI Example:
///
///     salt '*' user.chroomnumber foo 123
#[function]
pub fn chroomnumber(
    context: &Context,
    /// Login name.
    name: String,
    /// New room number.
    roomnumber: String,
) -> CallResult {
    change_gecos(context, &name, 1, &roomnumber)
}

/// Change the telephone number of a user at work.
///
/// CLI Example:
///
///     salt '*' user.chworkphone foo 7735550123
#[function]
pub fn chworkphone(
    context: &Context,
    /// Login name.
    name: String,
    /// New telephone number at work.
    workphone: String,
) -> CallResult {
    change_gecos(context, &name, 2, &workphone)
}

/// Change the telephone number of a user at home.
///
/// CLI Example:
///
///     salt '*' user.chhomephone foo 7735551234
#[function]
pub fn chhomephone(
    context: &Context,
    /// Login name.
    name: String,
    /// New telephone number at home.
    homephone: String,
) -> CallResult {
    change_gecos(context, &name, 3, &homephone)
}

/// Change the other GECOS field of a user.
///
/// CLI Example:
///
///     salt '*' user.chother foobar
#[function]
pub fn chother(
    context: &Context,
    /// Login name.
    name: String,
    /// New further text of the GECOS field.
    other: String,
) -> CallResult {
    change_gecos(context, &name, 4, &other)
}

/// Changes a field of a user, and returns whether it has the value afterwards.
fn change_field(
    context: &Context,
    name: &str,
    flags: &[&str],
    value: &Value,
    of: fn(&Account) -> Value,
) -> Result<Value, CallError> {
    if of(&account(name)?) == *value {
        return Ok(true.into());
    }
    let text = argument(&value.to_string())?;
    change(context, name, &[flags, &[&text]].concat())?;
    Ok((of(&account(name)?) == *value).into())
}

fn change_gecos(context: &Context, name: &str, index: usize, text: &str) -> Result<Value, CallError> {
    let user = account(name)?;
    let mut fields: Vec<&str> = user.gecos.splitn(5, ',').collect();
    fields.resize(5, "");
    fields[index] = text;
    if gecos(&fields) == user.gecos {
        return Ok(true.into());
    }
    change(context, name, &["-c", &gecos(&fields)])
}
