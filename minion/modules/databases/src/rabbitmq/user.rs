//! Users of a RabbitMQ server: their passwords, tags and permissions.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use super::ctl::{Ctl, checked, field, text};

/// Execution functions of `rabbitmq` for users.
pub static FUNCTIONS: Functions<Context> = registry!(
    "rabbitmq",
    [
        list_users,
        user_exists,
        add_user,
        delete_user,
        change_password,
        clear_password,
        check_password,
        list_user_permissions,
        set_user_tags
    ]
);

/// The exit status of `authenticate_user` for a wrong password or an unknown user.
const REFUSED: i64 = 65;

/// Return the users, each with its tags.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_users
#[function]
pub fn list_users(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(users(&Ctl::new(context, runas))?.into())
}

/// Return whether a user exists.
///
/// CLI Example:
///
///     salt '*' rabbitmq.user_exists rabbit_user
#[function]
pub fn user_exists(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(users(&Ctl::new(context, runas))?.contains_key(name.as_str()).into())
}

/// Add a user. Without a password, the user cannot log in with one.
///
/// CLI Example:
///
///     salt '*' rabbitmq.add_user rabbit_user password
#[function]
pub fn add_user(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// Password of the user.
    password: Option<String>,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Added" => add(&Ctl::new(context, runas), &name, password.as_deref())?}.into())
}

/// Delete a user.
///
/// CLI Example:
///
///     salt '*' rabbitmq.delete_user rabbit_user
#[function]
pub fn delete_user(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Deleted" => delete(&Ctl::new(context, runas), &name)?}.into())
}

/// Change the password of a user.
///
/// CLI Example:
///
///     salt '*' rabbitmq.change_password rabbit_user password
#[function]
pub fn change_password(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// Password of the user.
    password: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Password Changed" => set_password(&Ctl::new(context, runas), &name, &password)?}.into())
}

/// Remove the password of a user, who then cannot log in with one.
///
/// CLI Example:
///
///     salt '*' rabbitmq.clear_password rabbit_user
#[function]
pub fn clear_password(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Password Cleared" => remove_password(&Ctl::new(context, runas), &name)?}.into())
}

/// Return whether the password of a user is this one.
///
/// CLI Example:
///
///     salt '*' rabbitmq.check_password rabbit_user password
#[function]
pub fn check_password(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// Password of the user.
    password: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(has_password(&Ctl::new(context, runas), &name, &password)?.into())
}

/// Return the permissions of a user by virtual host: the regular expressions `configure`, `write` and `read`.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_user_permissions user
#[function]
pub fn list_user_permissions(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(permissions(&Ctl::new(context, runas), &name)?.into())
}

/// Replace the tags of a user by a tag, or by a list of tags.
///
/// CLI Example:
///
///     salt '*' rabbitmq.set_user_tags myadmin administrator
#[function]
pub fn set_user_tags(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// The tags: a list, or words with spaces between them.
    tags: Value,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let tags: Vec<String> = match &tags {
        Value::List(tags) => tags.iter().map(text).collect(),
        tag => vec![text(tag)],
    };
    Ok(map! {"Tag(s) set" => set_tags(&Ctl::new(context, runas), &name, &tags)?}.into())
}

/// Returns the users, each with the list of its tags.
pub(super) fn users(ctl: &Ctl) -> Result<Map, CallError> {
    let user = |mut row: Map| Ok((field(&row, "user")?.into(), row.shift_remove("tags").unwrap_or_default()));
    ctl.list("list_users", &[])?.into_iter().map(user).collect()
}

/// Adds a user and returns the messages of the server.
pub(super) fn add(ctl: &Ctl, name: &str, password: Option<&str>) -> Result<String, CallError> {
    let temporary = || format!("{:032x}", rand::random::<u128>());
    // The server adds no user without a password.
    let initial = password.map_or_else(temporary, str::to_owned);
    let messages = checked(ctl.run_with_password("add_user", name, &initial)?)?;
    if password.is_none()
        && let Err(error) = remove_password(ctl, name)
    {
        delete(ctl, name)?;
        return Err(error);
    }
    Ok(messages)
}

/// Deletes a user and returns the messages of the server.
pub(super) fn delete(ctl: &Ctl, name: &str) -> Result<String, CallError> {
    ctl.run(&["delete_user", &argument(name)?])
}

/// Changes the password of a user and returns the messages of the server.
pub(super) fn set_password(ctl: &Ctl, name: &str, password: &str) -> Result<String, CallError> {
    checked(ctl.run_with_password("change_password", name, password)?)
}

/// Removes the password of a user and returns the messages of the server.
pub(super) fn remove_password(ctl: &Ctl, name: &str) -> Result<String, CallError> {
    ctl.run(&["clear_password", &argument(name)?])
}

/// Returns whether the server accepts the password of a user.
pub(super) fn has_password(ctl: &Ctl, name: &str, password: &str) -> Result<bool, CallError> {
    let output = ctl.run_with_password("authenticate_user", name, password)?;
    if output.retcode == REFUSED {
        return Ok(false);
    }
    checked(output).map(|_| true)
}

/// Returns the permissions of a user by virtual host.
pub(super) fn permissions(ctl: &Ctl, name: &str) -> Result<Map, CallError> {
    rows_by("vhost", ctl.list("list_user_permissions", &[&argument(name)?])?)
}

/// Replaces the tags of a user and returns the messages of the server.
pub(super) fn set_tags(ctl: &Ctl, name: &str, tags: &[String]) -> Result<String, CallError> {
    let name = argument(name)?;
    let tags = tags.iter().map(|tag| argument(tag)).collect::<Result<Vec<_>, _>>()?;
    let words = ["set_user_tags", &name].into_iter().chain(tags.iter().map(String::as_str));
    ctl.run(&words.collect::<Vec<_>>())
}

/// Returns listed objects by one of their fields.
pub(super) fn rows_by(name: &str, rows: Vec<Map>) -> Result<Map, CallError> {
    let entry = |mut row: Map| {
        let key = field(&row, name)?;
        row.shift_remove(name);
        Ok((key.into(), row.into()))
    };
    rows.into_iter().map(entry).collect()
}
