//! Changing single properties of users.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::accounts::{Account, Accounts};
use brine_host::programs::argument;
use brine_value::Value;

use super::{change, gecos, names, there};

/// Gives a user another number.
///
/// CLI Example:
///
///     salt '*' user.chuid foo 4376
#[function]
pub fn chuid(context: &Context, name: String, uid: Value) -> CallResult {
    change_field(context, &name, &["-u"], &uid, |user| user.uid.into())
}

/// Gives a user another own group.
///
/// CLI Example:
///
///     salt '*' user.chgid foo 4376
#[function]
pub fn chgid(context: &Context, name: String, gid: Value) -> CallResult {
    change_field(context, &name, &["-g"], &gid, |user| user.gid.into())
}

/// Gives a user another shell.
///
/// CLI Example:
///
///     salt '*' user.chshell foo /bin/zsh
#[function]
pub fn chshell(context: &Context, name: String, shell: String) -> CallResult {
    change_field(context, &name, &["-s"], &shell.into(), |user| (&user.shell).into())
}

/// Gives a user another home folder; `persist` moves what is in it.
///
/// CLI Example:
///
///     salt '*' user.chhome foo /home/users/foo True
#[function]
pub fn chhome(context: &Context, name: String, home: String, #[default(false)] persist: bool) -> CallResult {
    let flags: &[&str] = if persist { &["-m", "-d"] } else { &["-d"] };
    change_field(context, &name, flags, &home.into(), |user| (&user.home).into())
}

/// Puts a user in groups: in these alone, or with `append` in these too.
///
/// CLI Example:
///
///     salt '*' user.chgroups foo wheel,root
#[function]
pub fn chgroups(context: &Context, name: String, groups: Value, #[default(false)] append: bool) -> CallResult {
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

/// Gives a user another full name.
///
/// CLI Example:
///
///     salt '*' user.chfullname foo "Foo Bar"
#[function]
pub fn chfullname(context: &Context, name: String, fullname: String) -> CallResult {
    change_gecos(context, &name, 0, &fullname)
}

/// Gives a user another room number.
///
/// CLI Example:
///
///     salt '*' user.chroomnumber foo 123
#[function]
pub fn chroomnumber(context: &Context, name: String, roomnumber: String) -> CallResult {
    change_gecos(context, &name, 1, &roomnumber)
}

/// Gives a user another telephone number at work.
///
/// CLI Example:
///
///     salt '*' user.chworkphone foo 7735550123
#[function]
pub fn chworkphone(context: &Context, name: String, workphone: String) -> CallResult {
    change_gecos(context, &name, 2, &workphone)
}

/// Gives a user another telephone number at home.
///
/// CLI Example:
///
///     salt '*' user.chhomephone foo 7735551234
#[function]
pub fn chhomephone(context: &Context, name: String, homephone: String) -> CallResult {
    change_gecos(context, &name, 3, &homephone)
}

/// Changes what else is said of a user.
///
/// CLI Example:
///
///     salt '*' user.chother foobar
#[function]
pub fn chother(context: &Context, name: String, other: String) -> CallResult {
    change_gecos(context, &name, 4, &other)
}

/// Changes a field of a user, and says whether it is that then.
fn change_field(
    context: &Context,
    name: &str,
    flags: &[&str],
    value: &Value,
    of: fn(&Account) -> Value,
) -> Result<Value, CallError> {
    if of(&there(name)?) == *value {
        return Ok(true.into());
    }
    let text = argument(&value.to_string())?;
    change(context, name, &[flags, &[&text]].concat())?;
    Ok((of(&there(name)?) == *value).into())
}

fn change_gecos(context: &Context, name: &str, place: usize, text: &str) -> Result<Value, CallError> {
    let user = there(name)?;
    let mut fields: Vec<&str> = user.gecos.splitn(5, ',').collect();
    fields.resize(5, "");
    fields[place] = text;
    if gecos(&fields) == user.gecos {
        return Ok(true.into());
    }
    change(context, name, &["-c", &gecos(&fields)])
}
