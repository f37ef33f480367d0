//! `postgres_user` and `postgres_group`: roles.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::{AbsentArgs, StateServerArgs, outcome, removed};
use crate::postgres::password::Storage;
use crate::postgres::role::{
    AttributeArgs, CreationArgs, Kind, Role, UserArgs, create, groups_of, remove, timestamp, update,
};
use crate::postgres::session::{Session, column, literal};

/// State functions of `postgres_user`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_user", [user::present, user::absent]);
/// State functions of `postgres_group`.
pub static GROUP_FUNCTIONS: Functions<StateContext> = registry!("postgres_group", [group::present, group::absent]);

/// Settings of both kinds of roles.
#[derive(Args, Debug, Clone)]
pub struct RoleArgs {
    #[args]
    creates: CreationArgs,
    /// Stored form of the password: `md5` (the default), `scram-sha-256`, or `false` for plain text.
    #[default]
    encrypted: Value,
    #[args]
    attributes: AttributeArgs,
    /// Whether the role has the privileges of its groups.
    inherit: Option<bool>,
    /// Whether the role may log in.
    login: Option<bool>,
    /// Password of the role, or its stored form.
    password: Option<String>,
    /// Whether the password is set each time, for servers that do not show its stored form.
    refresh_password: Option<bool>,
    /// Groups of the role, as a list or separated by commas.
    #[default]
    groups: Value,
}

/// States of users.
pub(super) mod user {
    use super::{CallResult, Desired, Kind, Map, RoleArgs, StateContext, StateServerArgs, ensure_absent, function};

    /// Ensure that a role that may log in exists, with these settings.
    ///
    /// SLS Example:
    ///
    ///     app:
    ///       postgres_user.present:
    ///         - password: SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy
    ///         - createdb: False
    ///         - groups: readers
    ///         - valid_until: '2027-12-31'
    #[function]
    pub fn present(
        context: &StateContext,
        /// Name of the role.
        name: String,
        #[args] role: RoleArgs,
        /// Password of a new role, if `password` is unset.
        default_password: Option<String>,
        /// Time until which the password is valid, such as `2027-12-31`.
        valid_until: Option<String>,
        #[args] at: StateServerArgs,
        #[keywords(crate::postgres::state::further)] _kwargs: Map,
    ) -> CallResult {
        let desired = Desired { kind: Kind::User, role, default_password, valid_until };
        Ok(desired.ensure(context, &name, &at)?.into())
    }

    /// Ensure that a role does not exist.
    ///
    /// SLS Example:
    ///
    ///     olduser:
    ///       postgres_user.absent: []
    #[function]
    pub fn absent(context: &StateContext, #[args] args: super::AbsentArgs) -> CallResult {
        ensure_absent(context, Kind::User, &args.name, &args.at)
    }
}

/// States of groups.
pub(super) mod group {
    use super::{CallResult, Desired, Kind, Map, RoleArgs, StateContext, StateServerArgs, ensure_absent, function};

    /// Ensure that a role that may not log in exists, with these settings.
    ///
    /// SLS Example:
    ///
    ///     readers:
    ///       postgres_group.present:
    ///         - inherit: True
    #[function]
    pub fn present(
        context: &StateContext,
        /// Name of the role.
        name: String,
        #[args] role: RoleArgs,
        #[args] at: StateServerArgs,
        #[keywords(crate::postgres::state::further)] _kwargs: Map,
    ) -> CallResult {
        let desired = Desired { kind: Kind::Group, role, default_password: None, valid_until: None };
        Ok(desired.ensure(context, &name, &at)?.into())
    }

    /// Ensure that a role does not exist.
    ///
    /// SLS Example:
    ///
    ///     oldgroup:
    ///       postgres_group.absent: []
    #[function]
    pub fn absent(context: &StateContext, #[args] args: super::AbsentArgs) -> CallResult {
        ensure_absent(context, Kind::Group, &args.name, &args.at)
    }
}

fn ensure_absent(context: &StateContext, kind: Kind, name: &str, at: &StateServerArgs) -> CallResult {
    let session = at.session(context)?;
    let exists = Role::find(&session, name, false)?.is_some();
    removed(context, name, &format!("{} {name}", title(kind)), exists, || remove(&session, name))
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "User",
        Kind::Group => "Group",
    }
}

/// The desired settings of a role.
struct Desired {
    kind: Kind,
    role: RoleArgs,
    /// Password of a new role, if `password` is unset.
    default_password: Option<String>,
    valid_until: Option<String>,
}

impl Desired {
    fn ensure(&self, context: &StateContext, name: &str, at: &StateServerArgs) -> Result<StateReturn, CallError> {
        let session = at.session(context)?;
        let shows_password = self.role.password.is_some() && !self.role.refresh_password.unwrap_or(false);
        let current = Role::find(&session, name, shows_password)?;
        let (kind, title) = (self.kind.name(), title(self.kind));
        let Some(current) = current else {
            if context.test {
                return Ok(StateReturn::predicted(name, format!("{title} {name} is set to be created")));
            }
            let args = self.settings(self.role.password.as_ref().or(self.default_password.as_ref()));
            let result = create(&session, self.kind, name, &args);
            let success = format!("The {kind} {name} has been created");
            return Ok(outcome(name, result, success, "Present", &format!("Failed to create {kind} {name}")));
        };
        let password = self.new_password(&current)?;
        let changes = self.changes(&session, &current, password.is_some())?;
        if changes.is_empty() {
            return Ok(StateReturn::ok(name, format!("{title} {name} is already present")));
        }
        if context.test {
            let report = StateReturn::predicted(name, format!("{title} {name} is set to be updated"));
            return Ok(report.with_changes([(name.into(), changes.into())].into_iter().collect()));
        }
        let result = update(&session, &current, &self.settings(password));
        let success = format!("The {kind} {name} has been updated");
        Ok(outcome(name, result, success, changes, &format!("Failed to update {kind} {name}")))
    }

    /// Returns the desired password, unless the server has it stored already.
    fn new_password(&self, current: &Role) -> Result<Option<&String>, CallError> {
        let storage = Storage::read(&self.role.encrypted)?;
        let is_stored = |password: &&String| match &current.password {
            Some(stored) => storage.matches(&current.name, password, stored),
            None => false,
        };
        Ok(self.role.password.as_ref().filter(|password| !is_stored(password)))
    }

    fn changes(&self, session: &Session, current: &Role, has_password: bool) -> Result<Map, CallError> {
        let desired = &self.role;
        let flags = [
            ("createdb", desired.creates.createdb, current.createdb),
            ("inherit", desired.inherit, current.inherit),
            ("login", desired.login, current.login),
            ("createroles", desired.creates.createroles, current.createroles),
            ("replication", desired.attributes.replication, current.replication),
            ("superuser", desired.attributes.superuser, current.superuser),
        ];
        let differs = |(name, desired, is): (&str, Option<bool>, bool)| {
            desired.filter(|desired| *desired != is).map(|desired| (Value::from(name), Value::from(desired)))
        };
        let mut changes: Map = flags.into_iter().filter_map(differs).collect();
        changes.extend(has_password.then(|| (Value::from("password"), Value::from(true))));
        if let Some(until) = &self.valid_until {
            let rows = session.query(&format!("SELECT {}::timestamp(0) AS time", literal(until)))?;
            let desired = rows.first().and_then(|row| timestamp(column(row, "time")));
            changes
                .extend((desired != current.expiry).then(|| (Value::from("valid_until"), Value::from(until.as_str()))));
        }
        let missing: Vec<Value> = groups_of(&desired.groups)
            .into_iter()
            .filter(|group| !current.groups.contains(group))
            .map(Value::from)
            .collect();
        if !missing.is_empty() {
            changes.insert("groups".into(), missing.into());
        }
        Ok(changes)
    }

    fn settings(&self, password: Option<&String>) -> UserArgs {
        let RoleArgs { creates, encrypted, attributes, inherit, login, groups, .. } = self.role.clone();
        UserArgs {
            creates,
            inherit,
            login,
            connlimit: None,
            encrypted,
            attributes,
            rolepassword: password.map(|password| password.as_str().into()).unwrap_or_default(),
            valid_until: self.valid_until.clone(),
            groups,
        }
    }
}
