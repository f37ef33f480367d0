//! Roles: users, which may log in, and groups, which may not.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::json::from_json;
use brine_value::{Map, Value, map};

use super::password::Storage;
use super::session::{ServerArgs, Session, column, done, identifier, literal};

/// Execution functions of `postgres` about roles.
pub static FUNCTIONS: Functions<Context> = registry!(
    "postgres",
    [user_list, role_get, user_exists, user_create, user_update, user_remove, group_create, group_update, group_remove]
);

/// The arguments for the rights of a role to create objects.
#[derive(Args, Debug, Clone)]
pub struct CreationArgs {
    /// Whether the role may create databases.
    pub createdb: Option<bool>,
    /// Whether the role may create roles.
    pub createroles: Option<bool>,
}

/// The arguments for the rights of a role on the whole server.
#[derive(Args, Debug, Clone)]
pub struct AttributeArgs {
    /// Whether the role is a superuser.
    pub superuser: Option<bool>,
    /// Whether the role may replicate.
    pub replication: Option<bool>,
}

/// Settings of users.
#[derive(Args, Debug, Clone)]
pub struct UserArgs {
    #[args]
    pub creates: CreationArgs,
    /// Whether the role has the privileges of its groups.
    pub inherit: Option<bool>,
    /// Whether the role may log in.
    pub login: Option<bool>,
    /// Maximum number of connections; -1 for no limit.
    pub connlimit: Option<i64>,
    /// Stored form of the password: `md5` (the default), `scram-sha-256`, or `false` for plain text.
    #[default]
    pub encrypted: Value,
    #[args]
    pub attributes: AttributeArgs,
    /// Password of the role, or its stored form; `false` removes the password.
    #[default]
    pub rolepassword: Value,
    /// Time at which the password expires.
    pub valid_until: Option<String>,
    /// Groups of the role, as a list or separated by commas.
    #[default]
    pub groups: Value,
}

/// Settings of groups.
#[derive(Args, Debug, Clone)]
pub struct GroupArgs {
    #[args]
    pub creates: CreationArgs,
    /// Stored form of the password: `md5` (the default), `scram-sha-256`, or `false` for plain text.
    #[default]
    pub encrypted: Value,
    /// Whether the role may log in.
    pub login: Option<bool>,
    /// Whether the role has the privileges of its groups.
    pub inherit: Option<bool>,
    #[args]
    pub attributes: AttributeArgs,
    /// Password of the role, or its stored form; `false` removes the password.
    #[default]
    pub rolepassword: Value,
    /// Groups of the role, as a list or separated by commas.
    #[default]
    pub groups: Value,
}

impl From<GroupArgs> for UserArgs {
    fn from(group: GroupArgs) -> Self {
        let GroupArgs { creates, encrypted, login, inherit, attributes, rolepassword, groups } = group;
        let (connlimit, valid_until) = (None, None);
        UserArgs { creates, inherit, login, connlimit, encrypted, attributes, rolepassword, valid_until, groups }
    }
}

/// The arguments of `postgres.user_create` and `postgres.user_update`.
#[derive(Args, Debug)]
pub struct NamedUserArgs {
    /// Name of the role.
    pub username: String,
    #[args]
    pub server: ServerArgs,
    #[args]
    pub role: UserArgs,
    /// Account that runs `psql`.
    pub runas: Option<String>,
}

/// The arguments of `postgres.group_create` and `postgres.group_update`.
#[derive(Args, Debug)]
pub struct NamedGroupArgs {
    /// Name of the role.
    pub groupname: String,
    #[args]
    pub server: ServerArgs,
    #[args]
    pub role: GroupArgs,
    /// Account that runs `psql`.
    pub runas: Option<String>,
}

impl From<NamedGroupArgs> for NamedUserArgs {
    fn from(group: NamedGroupArgs) -> Self {
        let NamedGroupArgs { groupname, server, role, runas } = group;
        NamedUserArgs { username: groupname, server, role: role.into(), runas }
    }
}

impl NamedUserArgs {
    fn create(self, context: &Context, kind: Kind) -> CallResult {
        let session = self.server.session(context, self.runas)?;
        if Role::find(&session, &self.username, false)?.is_some() {
            return Ok(false.into());
        }
        done(create(&session, kind, &self.username, &self.role))
    }

    fn update(self, context: &Context) -> CallResult {
        let session = self.server.session(context, self.runas)?;
        let Some(current) = Role::find(&session, &self.username, false)? else { return Ok(false.into()) };
        done(update(&session, &current, &self.role))
    }
}

/// Return the roles with their attributes; `return_password` adds the stored forms of their passwords.
///
/// CLI Example:
///
///     salt '*' postgres.user_list
#[function]
pub fn user_list(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
    /// Whether the stored form of the password is returned.
    #[default(false)]
    return_password: bool,
) -> CallResult {
    let all = Role::all(&server.session(context, runas)?, return_password)?;
    Ok(all.into_iter().map(|role| (Value::from(role.name.clone()), role.into_value())).collect::<Map>().into())
}

/// Return the attributes of a role; nothing if it does not exist.
///
/// CLI Example:
///
///     salt '*' postgres.role_get postgres
#[function]
pub fn role_get(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
    /// Whether the stored form of the password is returned.
    #[default(false)]
    return_password: bool,
) -> CallResult {
    let role = Role::find(&server.session(context, runas)?, &name, return_password)?;
    Ok(role.map(Role::into_value).unwrap_or_default())
}

/// Return whether a role exists.
///
/// CLI Example:
///
///     salt '*' postgres.user_exists 'username'
#[function]
pub fn user_exists(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(Role::find(&server.session(context, runas)?, &name, false)?.is_some().into())
}

/// Create a role that may log in; false if it exists.
///
/// CLI Example:
///
///     salt '*' postgres.user_create 'username' user='user' host='hostname' port='port' password='password'
///         rolepassword='rolepassword' valid_until='valid_until'
#[function]
pub fn user_create(context: &Context, #[args] args: NamedUserArgs) -> CallResult {
    args.create(context, Kind::User)
}

/// Change a role; false if it does not exist.
///
/// CLI Example:
///
///     salt '*' postgres.user_update 'username' user='user' host='hostname' port='port' password='password'
///         rolepassword='rolepassword' valid_until='valid_until'
#[function]
pub fn user_update(context: &Context, #[args] args: NamedUserArgs) -> CallResult {
    args.update(context)
}

/// Remove a role; false if it does not exist, or owns objects.
///
/// CLI Example:
///
///     salt '*' postgres.user_remove 'username'
#[function]
pub fn user_remove(
    context: &Context,
    /// Name of the user.
    username: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let session = server.session(context, runas)?;
    if Role::find(&session, &username, false)?.is_none() {
        return Ok(false.into());
    }
    done(remove(&session, &username))
}

/// Create a role that may not log in; false if it exists.
///
/// CLI Example:
///
///     salt '*' postgres.group_create 'groupname' user='user' host='hostname' port='port' password='password'
///         rolepassword='rolepassword'
#[function]
pub fn group_create(context: &Context, #[args] args: NamedGroupArgs) -> CallResult {
    NamedUserArgs::from(args).create(context, Kind::Group)
}

/// Change a group; false if it does not exist.
///
/// CLI Example:
///
///     salt '*' postgres.group_update 'username' user='user' host='hostname' port='port' password='password'
///         rolepassword='rolepassword'
#[function]
pub fn group_update(context: &Context, #[args] args: NamedGroupArgs) -> CallResult {
    NamedUserArgs::from(args).update(context)
}

/// Remove a group; false if it does not exist, or owns objects.
///
/// CLI Example:
///
///     salt '*' postgres.group_remove 'groupname'
#[function]
pub fn group_remove(
    context: &Context,
    /// Name of the group.
    groupname: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    user_remove(context, groupname, server, runas)
}

/// The kind of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Group,
}

impl Kind {
    /// Returns the name of the kind for comments.
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Group => "group",
        }
    }
}

/// A role of a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Role {
    pub name: String,
    pub superuser: bool,
    pub inherit: bool,
    pub createroles: bool,
    pub createdb: bool,
    pub login: bool,
    pub replication: bool,
    pub connections: i64,
    pub groups: Vec<String>,
    /// Time at which the password expires, without a time zone; `None` if it does not.
    pub expiry: Option<String>,
    pub variables: String,
    /// Stored form of the password; `None` unless it was queried.
    pub password: Option<String>,
}

const COLUMNS: &str = "SELECT r.rolname AS name, r.rolsuper AS superuser, r.rolinherit AS inherit, \
                       r.rolcreaterole AS createroles, r.rolcreatedb AS createdb, r.rolcanlogin AS login, \
                       r.rolreplication AS replication, r.rolconnlimit AS connections, \
                       (SELECT coalesce(json_agg(g.rolname ORDER BY g.rolname), '[]') FROM pg_auth_members m \
                       JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid) AS groups, \
                       r.rolvaliduntil::timestamp(0) AS expiry, r.rolconfig AS variables";

impl Role {
    /// Queries all roles. Only superusers may query the stored forms of passwords.
    pub fn all(session: &Session, with_passwords: bool) -> Result<Vec<Role>, CallError> {
        let (password, from) = if with_passwords {
            (", a.rolpassword AS password", "pg_roles r LEFT JOIN pg_authid a ON a.oid = r.oid")
        } else {
            ("", "pg_roles r")
        };
        let rows = session.query(&format!("{COLUMNS}{password} FROM {from} ORDER BY r.oid"))?;
        Ok(rows.iter().map(|row| Role::read(row, with_passwords)).collect())
    }

    /// Queries the role with this name.
    pub fn find(session: &Session, name: &str, with_passwords: bool) -> Result<Option<Role>, CallError> {
        Ok(Role::all(session, with_passwords)?.into_iter().find(|role| role.name == name))
    }

    fn read(row: &Map, has_password: bool) -> Role {
        let is = |name: &str| column(row, name) == "t";
        let groups = from_json(column(row, "groups")).ok();
        let groups = groups.as_ref().and_then(Value::as_list).unwrap_or_default();
        Role {
            name: column(row, "name").to_owned(),
            superuser: is("superuser"),
            inherit: is("inherit"),
            createroles: is("createroles"),
            createdb: is("createdb"),
            login: is("login"),
            replication: is("replication"),
            connections: column(row, "connections").parse().unwrap_or(-1),
            groups: groups.iter().map(ToString::to_string).collect(),
            expiry: timestamp(column(row, "expiry")),
            variables: column(row, "variables").to_owned(),
            password: has_password.then(|| column(row, "password").to_owned()),
        }
    }

    /// Returns the role as a mapping with Salt's names of the fields.
    fn into_value(self) -> Value {
        let mut fields = map! {
            "superuser" => self.superuser,
            "inherits privileges" => self.inherit,
            "can create roles" => self.createroles,
            "can create databases" => self.createdb,
            "can update system catalogs" => Value::Nil,
            "can login" => self.login,
            "replication" => self.replication,
            "connections" => self.connections,
            "expiry time" => self.expiry.map(Value::from).unwrap_or_default(),
            "defaults variables" => self.variables,
        };
        fields.extend(self.password.map(|password| (Value::from("password"), Value::from(password))));
        fields.insert("groups".into(), self.groups.into_iter().map(Value::from).collect::<Vec<_>>().into());
        fields.into()
    }
}

/// Returns a time from the server; `None` for NULL and `infinity`.
pub(super) fn timestamp(text: &str) -> Option<String> {
    text.starts_with(|letter: char| letter.is_ascii_digit()).then(|| text.to_owned())
}

/// Parses groups: a list, or a string separated by commas.
pub(super) fn groups_of(value: &Value) -> Vec<String> {
    match value.as_list() {
        Some(list) => list.iter().map(ToString::to_string).collect(),
        None if value.is_truthy() => value.to_string().split(',').map(|group| group.trim().to_owned()).collect(),
        None => Vec::new(),
    }
}

pub(super) fn create(session: &Session, kind: Kind, name: &str, args: &UserArgs) -> Result<(), CallError> {
    let args = UserArgs {
        inherit: args.inherit.or(Some(true)),
        login: args.login.or(Some(kind == Kind::User)),
        ..args.clone()
    };
    session.execute(&statements("CREATE", name, &args, None)?)
}

pub(super) fn update(session: &Session, role: &Role, args: &UserArgs) -> Result<(), CallError> {
    session.execute(&statements("ALTER", &role.name, args, Some(role))?)
}

pub(super) fn remove(session: &Session, name: &str) -> Result<(), CallError> {
    session.execute(&[format!("DROP ROLE {}", identifier(name))])
}

/// Returns the statements that create or change a role.
fn statements(verb: &str, name: &str, args: &UserArgs, existing: Option<&Role>) -> Result<Vec<String>, CallError> {
    // Only superusers may set this flag, even to its current value, so it is set only if it changes.
    let superuser = args.attributes.superuser.filter(|desired| existing.is_none_or(|role| role.superuser != *desired));
    let flags = [
        ("INHERIT", args.inherit),
        ("CREATEDB", args.creates.createdb),
        ("CREATEROLE", args.creates.createroles),
        ("SUPERUSER", superuser),
        ("REPLICATION", args.attributes.replication),
        ("LOGIN", args.login),
    ];
    let flag = |(flag, value): (&str, Option<bool>)| Some(format!("{}{flag}", if value? { "" } else { "NO" }));
    let mut words: Vec<String> = flags.into_iter().filter_map(flag).collect();
    words.extend(args.connlimit.map(|limit| format!("CONNECTION LIMIT {limit}")));
    match (args.rolepassword.as_bool(), args.rolepassword.is_nil()) {
        (Some(false), _) => words.push("PASSWORD NULL".into()),
        (Some(true), _) => {
            return Err(CallError::Execution(
                "rolepassword is invalid: expected a string, or false to remove the password, got true".into(),
            ));
        }
        (None, false) if args.rolepassword.is_truthy() => {
            let stored = Storage::read(&args.encrypted)?.store(name, &args.rolepassword.to_string())?;
            words.push(format!("PASSWORD {}", literal(&stored)));
        }
        (None, _) => {}
    }
    words.extend(args.valid_until.as_ref().map(|time| format!("VALID UNTIL {}", literal(time))));
    let role = identifier(name);
    let with = if words.is_empty() { String::new() } else { format!(" WITH {}", words.join(" ")) };
    let mut all = Vec::new();
    if existing.is_none() || !words.is_empty() {
        all.push(format!("{verb} ROLE {role}{with}"));
    }
    all.extend(groups_of(&args.groups).iter().map(|group| format!("GRANT {} TO {role}", identifier(group))));
    Ok(all)
}
