//! `rabbitmq_user`: states of users, with their passwords, tags and permissions.

use std::collections::BTreeSet;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{FromValue, Map, Value, map};

use super::or_error;
use crate::rabbitmq::ctl::{Ctl, text};
use crate::rabbitmq::user::{add, delete, has_password, permissions, remove_password, set_password, set_tags, users};
use crate::rabbitmq::vhost::permit;

/// State functions of `rabbitmq_user`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_user", [present, absent]);

/// Ensure that a user exists, with this password, these tags and permissions.
///
/// SLS Example:
///
///     app:
///       rabbitmq_user.present:
///         - password: '{{ "secret" }}'
///         - tags:
///           - monitoring
///         - perms:
///           - /:
///             - '.*'
///             - '.*'
///             - '.*'
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the user.
    name: String,
    /// Password of the user.
    password: Option<String>,
    /// Whether the password is set without comparing it; without `password`, whether it is removed.
    #[default(false)]
    force: bool,
    /// The tags: a list, or words with spaces between them.
    #[default]
    tags: Value,
    /// A list of mappings from a virtual host to three regular expressions: what the user may configure, write and
    /// read. Permissions in other virtual hosts stay as they are.
    #[default]
    perms: Vec<Value>,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let mut changes = Map::new();
    let mut ensure = || {
        let (tags, permissions) = (words(&tags), Permission::all(&perms)?);
        let desired = Desired { name: &name, password: password.as_deref(), force, tags, permissions };
        desired.ensure(context, &ctl, &mut changes)
    };
    let report = ensure().unwrap_or_else(|error| StateReturn::failed(&name, format!("Error: {}", error.message())));
    Ok(report.with_changes(changes).into())
}

/// Ensure that a user does not exist.
///
/// SLS Example:
///
///     guest:
///       rabbitmq_user.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the user.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let ensure = || {
        if !users(&ctl)?.contains_key(name.as_str()) {
            return Ok(StateReturn::ok(&name, format!("The user '{name}' is not present.")));
        }
        let report = if context.test {
            StateReturn::predicted(&name, format!("The user '{name}' will be removed."))
        } else {
            delete(&ctl, &name)?;
            StateReturn::ok(&name, format!("The user '{name}' was removed."))
        };
        Ok(report.with_changes(map! {"name" => map! {"old" => &name, "new" => ""}}))
    };
    or_error(&name, ensure())
}

/// A user as it should be.
struct Desired<'a> {
    name: &'a str,
    password: Option<&'a str>,
    force: bool,
    tags: Option<Vec<String>>,
    permissions: Vec<Permission>,
}

/// The permissions of a user in a virtual host.
struct Permission {
    vhost: String,
    configure: String,
    write: String,
    read: String,
}

impl Permission {
    /// Parses the argument `perms`.
    fn all(perms: &[Value]) -> Result<Vec<Self>, CallError> {
        let mut all = Vec::new();
        for item in perms {
            let invalid = || CallError::Execution(format!("perms is invalid: expected a list of mappings, got {item}"));
            for (vhost, patterns) in item.as_map().ok_or_else(invalid)? {
                all.push(Self::parse(vhost, patterns)?);
            }
        }
        Ok(all)
    }

    fn parse(vhost: &Value, patterns: &Value) -> Result<Self, CallError> {
        let vhost = text(vhost);
        let items: Option<Vec<String>> =
            patterns.as_list().unwrap_or_default().iter().map(String::from_value).collect();
        match items.and_then(|items| <[String; 3]>::try_from(items).ok()) {
            Some([configure, write, read]) => Ok(Permission { vhost, configure, write, read }),
            None => Err(CallError::Execution(format!(
                "the permissions in virtual host '{vhost}' are invalid: expected three regular expressions, got {patterns}"
            ))),
        }
    }

    fn to_map(&self) -> Map {
        map! {"configure" => &self.configure, "write" => &self.write, "read" => &self.read}
    }
}

impl Desired<'_> {
    /// Makes the user as it should be, or only reports that in test mode. Changes before a failure are recorded, too.
    fn ensure(&self, context: &StateContext, ctl: &Ctl, changes: &mut Map) -> Result<StateReturn, CallError> {
        let name = self.name;
        let users = users(ctl)?;
        let current_tags = users.get(name).map(words).map(Option::unwrap_or_default);
        if current_tags.is_none() {
            if context.test {
                changes.insert("user".into(), map! {"old" => "", "new" => name}.into());
                return Ok(StateReturn::predicted(name, format!("User '{name}' is set to be created.")));
            }
            add(ctl, name, self.password)?;
            changes.insert("user".into(), map! {"old" => "", "new" => name}.into());
        } else {
            let is_wrong = match self.password {
                Some(password) => self.force || !has_password(ctl, name, password)?,
                None => self.force,
            };
            let is_complete = self.permissions.is_empty() && self.tags.as_ref().is_none_or(Vec::is_empty);
            if !is_wrong && is_complete {
                return Ok(StateReturn::ok(name, format!("User '{name}' is already present.")));
            }
            if is_wrong {
                let change = self.set_password(context, ctl)?;
                changes.insert("password".into(), change.into());
            }
        }
        self.set_tags(context, ctl, current_tags.unwrap_or_default(), changes)?;
        self.set_permissions(context, ctl, changes)?;
        Ok(if changes.is_empty() {
            StateReturn::ok(name, format!("'{name}' is already in the desired state."))
        } else if context.test {
            StateReturn::predicted(name, format!("Configuration for '{name}' will change."))
        } else {
            StateReturn::ok(name, format!("'{name}' was configured."))
        })
    }

    fn set_password(&self, context: &StateContext, ctl: &Ctl) -> Result<Map, CallError> {
        if !context.test {
            match self.password {
                Some(password) => set_password(ctl, self.name, password)?,
                None => remove_password(ctl, self.name)?,
            };
        }
        Ok(if self.password.is_some() {
            map! {"old" => "", "new" => "Set password."}
        } else {
            map! {"old" => "Removed password.", "new" => ""}
        })
    }

    fn set_tags(
        &self,
        context: &StateContext,
        ctl: &Ctl,
        current: Vec<String>,
        changes: &mut Map,
    ) -> Result<(), CallError> {
        let Some(tags) = &self.tags else { return Ok(()) };
        if tags.iter().collect::<BTreeSet<_>>() == current.iter().collect() {
            return Ok(());
        }
        if !context.test {
            set_tags(ctl, self.name, tags)?;
        }
        changes.insert("tags".into(), map! {"old" => current, "new" => tags.clone()}.into());
        Ok(())
    }

    fn set_permissions(&self, context: &StateContext, ctl: &Ctl, changes: &mut Map) -> Result<(), CallError> {
        if self.permissions.is_empty() {
            return Ok(());
        }
        let existing = permissions(ctl, self.name)?;
        let (mut old, mut new) = (Map::new(), Map::new());
        for permission in &self.permissions {
            let Permission { vhost, configure, write, read } = permission;
            let current = existing.get(vhost.as_str()).and_then(Value::as_map);
            if current == Some(&permission.to_map()) {
                continue;
            }
            if !context.test {
                permit(ctl, vhost, self.name, [configure, write, read])?;
            }
            // As in Salt, the former permissions are not below the name of their virtual host.
            old.extend(current.cloned().unwrap_or_default());
            new.insert(vhost.into(), permission.to_map().into());
            let mut change = map! {"new" => new.clone()};
            if !old.is_empty() {
                change.shift_insert(0, "old".into(), old.clone().into());
            }
            changes.insert("perms".into(), change.into());
        }
        Ok(())
    }
}

/// Returns the items of a list, or the words of a string; `None` for nothing.
fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Nil => None,
        Value::List(items) => Some(items.iter().map(text).collect()),
        value => Some(text(value).split_whitespace().map(str::to_owned).collect()),
    }
}
