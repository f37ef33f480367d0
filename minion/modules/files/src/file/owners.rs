//! Owners and modes of files.

use std::os::unix::fs::MetadataExt;

use brine_context::Context;
use brine_function::arguments::refuse;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_system::files::Links;
use brine_system::user_files;
use brine_value::{Map, Value, list, map};
use nix::unistd::{Gid, Group, Uid, User};

use super::{error_at, flags, group_name, is_test, mode_text, status, user_name};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "file",
    [
        get_mode,
        get_user,
        get_group,
        get_uid,
        get_gid,
        gid_to_group,
        group_to_gid,
        uid_to_user,
        user_to_uid,
        chown,
        lchown,
        chgrp,
        set_mode,
        check_perms,
        super::stats::stats,
        super::stats::lstat,
        super::stats::statvfs
    ]
);

/// Return the mode of a file as four octal digits.
///
/// CLI Example:
///
///     salt '*' file.get_mode /etc/passwd
#[function]
pub fn get_mode(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the target of a symbolic link is meant, not the link.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    Ok(mode_text(&status(&path, follow_symlinks)?).into())
}

/// Return the name of the user that owns a file.
///
/// CLI Example:
///
///     salt '*' file.get_user /etc/passwd
#[function]
pub fn get_user(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the target of a symbolic link is meant, not the link.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    Ok(user_name(status(&path, follow_symlinks)?.uid()).into())
}

/// Return the name of the group that owns a file.
///
/// CLI Example:
///
///     salt '*' file.get_group /etc/passwd
#[function]
pub fn get_group(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the target of a symbolic link is meant, not the link.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    Ok(group_name(status(&path, follow_symlinks)?.gid()).into())
}

/// Return the UID of the user that owns a file.
///
/// CLI Example:
///
///     salt '*' file.get_uid /etc/passwd
#[function]
pub fn get_uid(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the target of a symbolic link is meant, not the link.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    Ok(status(&path, follow_symlinks)?.uid().into())
}

/// Return the GID of the group that owns a file.
///
/// CLI Example:
///
///     salt '*' file.get_gid /etc/passwd
#[function]
pub fn get_gid(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Whether the target of a symbolic link is meant, not the link.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    Ok(status(&path, follow_symlinks)?.gid().into())
}

/// Return the name of a group, by its GID or name. The GID is returned if no group has it.
///
/// CLI Example:
///
///     salt '*' file.gid_to_group 0
#[function]
pub fn gid_to_group(
    _context: &Context,
    /// Group id.
    gid: Value,
) -> CallResult {
    let Some(number) = gid_of(&gid) else { return Ok("".into()) };
    Ok(Group::from_gid(Gid::from_raw(number)).ok().flatten().map_or(number.into(), |group| group.name.into()))
}

/// Return the GID of a group; an empty string if there is no such group.
///
/// CLI Example:
///
///     salt '*' file.group_to_gid root
#[function]
pub fn group_to_gid(
    _context: &Context,
    /// Name or id of the owning group.
    group: Value,
) -> CallResult {
    Ok(gid_of(&group).map_or("".into(), Value::from))
}

/// Return the name of a user by UID. The UID is returned if no user has it.
///
/// CLI Example:
///
///     salt '*' file.uid_to_user 0
#[function]
pub fn uid_to_user(
    _context: &Context,
    /// User id.
    uid: u32,
) -> CallResult {
    Ok(User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or(uid.into(), |user| user.name.into()))
}

/// Return the UID of a user, or of the user that runs the minion; an empty string if there is no such user.
///
/// CLI Example:
///
///     salt '*' file.user_to_uid root
#[function]
pub fn user_to_uid(
    _context: &Context,
    /// Name or id of the owner.
    #[default]
    user: Value,
) -> CallResult {
    let uid = if user.is_nil() { Some(Uid::effective().as_raw()) } else { uid_of(&user) };
    Ok(uid.map_or("".into(), Value::from))
}

/// Set the owner and group of a file. Returns nothing on success.
///
/// CLI Example:
///
///     salt '*' file.chown /etc/passwd root root
#[function]
pub fn chown(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Name or id of the owner.
    user: Value,
    /// Name or id of the owning group.
    group: Value,
) -> CallResult {
    let file = expand(&path);
    let exists = file.exists();
    match owner(&user, &group) {
        // A dangling link can have an owner, too.
        Ok((uid, gid)) if !exists => {
            Ok(user_files::set_owner(file, uid, gid, Links::Keep).map_or("File not found".into(), Value::from))
        }
        Ok((uid, gid)) => {
            user_files::set_owner(file, uid, gid, Links::Follow).map_err(|error| error_at(&path, &error))?;
            Ok(Value::Nil)
        }
        Err(reported) if exists => Ok(reported.into()),
        Err(reported) => Ok(format!("{reported}File not found").into()),
    }
}

/// Set the owner and group of a link itself, as `chown`.
///
/// CLI Example:
///
///     salt '*' file.lchown /path/to/link root root
#[function]
pub fn lchown(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Name or id of the owner.
    user: Value,
    /// Name or id of the owning group.
    group: Value,
) -> CallResult {
    match owner(&user, &group) {
        Ok((uid, gid)) => {
            user_files::set_owner(expand(&path), uid, gid, Links::Keep).map_err(|error| error_at(&path, &error))?;
            Ok(Value::Nil)
        }
        Err(reported) => Ok(reported.into()),
    }
}

/// Set the group of a file.
///
/// CLI Example:
///
///     salt '*' file.chgrp /etc/passwd root
#[function]
pub fn chgrp(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Name or id of the owning group.
    group: Value,
) -> CallResult {
    chown(context, path, Value::Nil, group)
}

/// Set the mode of a file, and return the mode.
///
/// CLI Example:
///
///     salt '*' file.set_mode /etc/passwd 0644
#[function]
pub fn set_mode(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Mode in octal digits, such as `0644`.
    mode: Value,
) -> CallResult {
    let file = expand(&path);
    if !file.exists() {
        return Err(CallError::Execution(format!("{path}: File not found")));
    }
    let text = mode.to_string();
    let text = text.trim_start_matches(['0', 'o', 'O']);
    let Some(bits) = bits(text) else { return Ok(format!("Invalid Mode {text}").into()) };
    user_files::set_mode(&file, bits, Links::Follow).map_err(|error| error_at(&path, &error))?;
    Ok(mode_text(&status(&path, true)?).into())
}

/// Set the owner and mode of a file, and return the changes and the previous values. `attrs` are its attributes as
/// in `chattr`.
///
/// CLI Example:
///
///     salt '*' file.check_perms /etc/sudoers '{}' root root 400
#[function]
pub fn check_perms(
    context: &Context,
    /// Path of the file.
    name: String,
    /// Return of a state that the changes are added to; None for a new one.
    ret: Value,
    /// Name or id of the owner; None leaves it.
    user: Value,
    /// Name or id of the group; None leaves it.
    group: Value,
    /// Mode, such as `0644`; None leaves it.
    mode: Value,
    /// Attributes of `chattr`.
    attrs: Option<String>,
    /// Whether the file that a symbolic link leads to is changed.
    #[default(false)]
    follow_symlinks: bool,
    /// `seuser`, `serole`, `setype` and `serange` are refused: `file.set_selinux_context` sets them.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let instead = "file.set_selinux_context sets it";
    let refused = ["seuser", "serole", "setype", "serange"].map(|name| (name, instead));
    refuse("file.check_perms", &kwargs, &refused)?;
    let file = expand(&name);
    let before = status(&name, follow_symlinks)?;
    let test = is_test(context);
    let is_link = file.is_symlink() && !follow_symlinks;
    let links = if follow_symlinks { Links::Follow } else { Links::Keep };
    let had = map! {
        "luser" => if user.as_i64().is_some() { Value::from(before.uid()) } else { user_name(before.uid()).into() },
        "lgroup" => if group.as_i64().is_some() { Value::from(before.gid()) } else { group_name(before.gid()).into() },
        "lmode" => mode_text(&before),
    };
    let mut result = ret.as_map().cloned().unwrap_or_default();
    let comment_before = result.get("comment").map(ToString::to_string);
    if result.is_empty() {
        result =
            map! {"name" => file.display().to_string(), "changes" => Map::new(), "comment" => "", "result" => true};
    }
    let (mut changes, mut report, mut had) = (Map::new(), Vec::<String>::new(), had);
    let new_user = user.is_truthy() && uid_of(&user) != Some(before.uid());
    let new_group = group.is_truthy() && gid_of(&group) != Some(before.gid());
    let differing: Vec<_> = [(new_user, "user", &user), (new_group, "group", &group)]
        .into_iter()
        .filter(|(differs, ..)| *differs)
        .collect();
    for (_, key, value) in &differing {
        had.insert(format!("c{key}").into(), (*value).clone());
    }
    let mode_result = if test || differing.is_empty() {
        Ok(())
    } else {
        owner(&user, &group)
            .and_then(|(uid, gid)| user_files::set_owner(&file, uid, gid, links).map_err(|error| super::errno(&error)))
    };
    for (_, key, value) in differing {
        match &mode_result {
            Ok(()) => _ = changes.insert(key.into(), value.clone()),
            Err(_) => report.push(format!("Failed to change {key} to {value}")),
        }
    }
    report.splice(0..0, mode_result.err());
    if !mode.is_nil() && !is_link {
        let digits = format!("{:0>4}", mode.to_string().trim_start_matches("0o"));
        if digits != mode_text(&before) {
            let result = bits(&digits).map(|bits| user_files::set_mode(&file, bits, links));
            if test || matches!(result, Some(Ok(()))) {
                if !test {
                    had.insert("cmode".into(), digits.clone().into());
                }
                changes.insert("mode".into(), digits.into());
            } else {
                report.push(format!("Failed to change mode to {digits}"));
            }
        }
    }
    if let Some(change) =
        attrs.filter(|_| !is_link).map(|attrs| flags::change(context, &file, &attrs)).transpose()?.flatten()
    {
        if !test {
            change.make(context, &file)?;
        }
        changes.insert("attrs".into(), change.to_map().into());
    }
    if !report.is_empty() {
        result.insert("result".into(), false.into());
    } else if test && !changes.is_empty() {
        result.insert("result".into(), Value::Nil);
    }
    let report: Vec<String> = comment_before.into_iter().filter(|text| !text.is_empty()).chain(report).collect();
    result.insert("comment".into(), report.join("; ").into());
    let mut all = result.get("changes").and_then(Value::as_map).cloned().unwrap_or_default();
    all.extend(changes);
    result.insert("changes".into(), all.into());
    Ok(list![result, had])
}

/// Parses octal digits as the bits of a mode.
fn bits(digits: &str) -> Option<u32> {
    u32::from_str_radix(if digits.is_empty() { "0" } else { digits }, 8).ok().filter(|bits| *bits <= 0o7777)
}

fn uid_of(user: &Value) -> Option<u32> {
    match user.as_i64() {
        Some(number) => u32::try_from(number).ok(),
        None => User::from_name(&user.to_string()).ok().flatten().map(|user| user.uid.as_raw()),
    }
}

fn gid_of(group: &Value) -> Option<u32> {
    match group.as_i64() {
        Some(number) => u32::try_from(number).ok(),
        None => Group::from_name(&group.to_string()).ok().flatten().map(|group| group.gid.as_raw()),
    }
}

/// Returns the UID and GID of an owner; unset ones are left unchanged. The error names the missing user or group.
fn owner(user: &Value, group: &Value) -> Result<(Option<u32>, Option<u32>), String> {
    let is_given = |value: &Value| value.is_truthy() || value.as_i64().is_some();
    let (uid, gid) = (uid_of(user).filter(|_| is_given(user)), gid_of(group).filter(|_| is_given(group)));
    let mut missing = String::new();
    if uid.is_none() && is_given(user) {
        missing.push_str("User does not exist\n");
    }
    if gid.is_none() && is_given(group) {
        missing.push_str("Group does not exist\n");
    }
    if missing.is_empty() { Ok((uid, gid)) } else { Err(missing) }
}
