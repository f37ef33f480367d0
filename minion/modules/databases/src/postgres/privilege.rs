//! Privileges on objects, and membership in groups.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::session::{LoginArgs, Session, column, done, identifier, literal, plain};

/// Execution functions of `postgres` about privileges.
pub static FUNCTIONS: Functions<Context> =
    registry!("postgres", [privileges_list, has_privileges, privileges_grant, privileges_revoke]);

/// The arguments for the schema of an object, and for its server.
#[derive(Args, Debug, Clone)]
pub struct LocationArgs {
    /// Schema of a table, sequence or function.
    #[default("public".into())]
    pub prepend: String,
    /// Database of the session; default: `postgres`.
    pub maintenance_db: Option<String>,
    #[args]
    pub login: LoginArgs,
}

impl LocationArgs {
    pub(super) fn session<'a>(&self, context: &'a Context) -> Result<Session<'a>, CallError> {
        self.login.session(context, self.maintenance_db.clone())
    }
}

/// A grant of privileges to a role.
#[derive(Args, Debug, Clone)]
pub struct GrantArgs {
    /// Name of the role.
    pub name: String,
    /// Name of the object; `ALL` for all tables, sequences or functions of the schema.
    pub object_name: String,
    /// Kind of the object: `table`, `sequence`, `function`, `schema`, `tablespace`, `language`, `database` or `group`.
    pub object_type: String,
    /// Privileges, separated by commas.
    pub privileges: Option<String>,
    /// Whether the role may grant the privileges to others.
    pub grant_option: Option<bool>,
    #[args]
    pub at: LocationArgs,
}

impl GrantArgs {
    /// Returns the object, the privileges, and whether the role may grant them to others.
    fn parse(&self) -> Result<(Object<'_>, Vec<String>, bool), CallError> {
        let object = Object::new(&self.object_type, &self.object_name, &self.at.prepend)?;
        let privileges = object.parse_privileges(self.privileges.as_deref())?;
        Ok((object, privileges, self.grant_option.unwrap_or(false)))
    }
}

/// Return the privileges on an object by role, each with whether the role may grant it to others; for a group, the
/// members, each with whether it may add others.
///
/// CLI Example:
///
///     salt '*' postgres.privileges_list table_name table maintenance_db=db_name
#[function]
pub fn privileges_list(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Kind of the object: `table`, `sequence`, `function`, `schema`, `tablespace`, `language`, `database` or `group`.
    object_type: String,
    #[args] at: LocationArgs,
) -> CallResult {
    let object = Object::new(&object_type, &name, &at.prepend)?;
    Ok(object.privileges(&at.session(context)?)?.into())
}

/// Return whether a role has privileges on an object, or owns it, or is a member of a group.
///
/// CLI Example:
///
///     salt '*' postgres.has_privileges user_name table_name table SELECT,INSERT maintenance_db=db_name
#[function]
pub fn has_privileges(context: &Context, #[args] grant: GrantArgs) -> CallResult {
    let (object, privileges, may_grant) = grant.parse()?;
    Ok(object.are_granted(&grant.at.session(context)?, &grant.name, &privileges, may_grant)?.into())
}

/// Grant privileges on an object, or membership in a group; false if the role has them.
///
/// CLI Example:
///
///     salt '*' postgres.privileges_grant user_name table_name table SELECT,UPDATE maintenance_db=db_name
#[function]
pub fn privileges_grant(context: &Context, #[args] grant: GrantArgs) -> CallResult {
    let (object, privileges, may_grant) = grant.parse()?;
    let session = grant.at.session(context)?;
    if object.are_granted(&session, &grant.name, &privileges, may_grant)? {
        return Ok(false.into());
    }
    done(object.grant(&session, &grant.name, &privileges, may_grant))
}

/// Revoke privileges on an object, or membership in a group; false if the role does not have them.
///
/// CLI Example:
///
///     salt '*' postgres.privileges_revoke user_name table_name table SELECT,UPDATE maintenance_db=db_name
#[function]
pub fn privileges_revoke(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Name of the object; `ALL` for all tables, sequences or functions of the schema.
    object_name: String,
    /// Kind of the object: `table`, `sequence`, `function`, `schema`, `tablespace`, `language`, `database` or `group`.
    object_type: String,
    /// Privileges, as a list.
    privileges: Option<String>,
    #[args] at: LocationArgs,
) -> CallResult {
    let object = Object::new(&object_type, &object_name, &at.prepend)?;
    let privileges = object.parse_privileges(privileges.as_deref())?;
    let session = at.session(context)?;
    if !object.are_granted(&session, &name, &privileges, false)? {
        return Ok(false.into());
    }
    done(object.revoke(&session, &name, &privileges))
}

/// The kind of an object with privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Sequence,
    Function,
    Schema,
    Tablespace,
    Language,
    Database,
    Group,
}

/// A kind of objects: its name, its privileges, and its catalog with the columns for the name, the privileges and the
/// owner.
type KindInfo = (&'static str, Kind, &'static [&'static str], [&'static str; 4]);

const KINDS: &[KindInfo] = &[
    // MAINTAIN exists since PostgreSQL 17; only there it is part of ALL.
    (
        "table",
        Kind::Table,
        &["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"],
        ["pg_class", "relname", "relacl", "relowner"],
    ),
    ("sequence", Kind::Sequence, &["SELECT", "UPDATE", "USAGE"], ["pg_class", "relname", "relacl", "relowner"]),
    ("function", Kind::Function, &["EXECUTE"], ["pg_proc", "oid::regprocedure::text", "proacl", "proowner"]),
    ("schema", Kind::Schema, &["USAGE", "CREATE"], ["pg_namespace", "nspname", "nspacl", "nspowner"]),
    ("tablespace", Kind::Tablespace, &["CREATE"], ["pg_tablespace", "spcname", "spcacl", "spcowner"]),
    ("language", Kind::Language, &["USAGE"], ["pg_language", "lanname", "lanacl", "lanowner"]),
    ("database", Kind::Database, &["CREATE", "TEMPORARY", "CONNECT"], ["pg_database", "datname", "datacl", "datdba"]),
    ("group", Kind::Group, &[], ["", "", "", ""]),
];

/// An object with privileges.
#[derive(Debug)]
pub(super) struct Object<'a> {
    info: &'static KindInfo,
    name: &'a str,
    schema: &'a str,
}

impl<'a> Object<'a> {
    /// # Errors
    /// The kind of objects is unknown.
    pub fn new(kind: &str, name: &'a str, schema: &'a str) -> Result<Self, CallError> {
        let info = KINDS.iter().find(|(keyword, ..)| kind.eq_ignore_ascii_case(keyword));
        let info = info.ok_or_else(|| CallError::Execution(format!("Invalid object_type: {kind} provided")))?;
        Ok(Object { info, name, schema })
    }

    pub fn is_group(&self) -> bool {
        self.kind() == Kind::Group
    }

    fn kind(&self) -> Kind {
        self.info.1
    }

    /// Parses privileges that are separated by commas.
    ///
    /// # Errors
    /// The kind of objects has no such privilege; a group has none at all.
    pub fn parse_privileges(&self, privileges: Option<&str>) -> Result<Vec<String>, CallError> {
        let text = privileges.unwrap_or_default();
        if self.is_group() {
            let error = "The privileges option should not be set for object_type group";
            return if text.is_empty() { Ok(Vec::new()) } else { Err(CallError::Execution(error.into())) };
        }
        let names: Vec<String> = text.split(',').map(|privilege| privilege.trim().to_uppercase()).collect();
        if !names.iter().all(|one| one == "ALL" || self.info.2.contains(&one.as_str())) {
            let kind = self.info.0;
            return Err(CallError::Execution(format!("Invalid privilege(s): {text} provided for object {kind}")));
        }
        Ok(names)
    }

    /// Returns the `FROM` and `WHERE` clauses that select the object.
    fn source(&self) -> String {
        let [catalog, name, ..] = self.info.3;
        let (schema, text) = (literal(self.schema), literal(self.name));
        let inside = |column: &str, more: &str| {
            format!(
                "FROM {catalog} o JOIN pg_namespace n ON n.oid = o.{column} \
                 WHERE n.nspname = {schema} AND o.{name} = {text}{more}"
            )
        };
        match self.kind() {
            Kind::Table => inside("relnamespace", " AND o.relkind IN ('r', 'p', 'v', 'm', 'f')"),
            Kind::Sequence => inside("relnamespace", " AND o.relkind = 'S'"),
            Kind::Function => inside("pronamespace", ""),
            _ => format!("FROM {catalog} o WHERE o.{name} = {text}"),
        }
    }

    /// Returns the privileges by role, each with whether the role may grant it to others.
    pub fn privileges(&self, session: &Session) -> Result<Map, CallError> {
        if self.is_group() {
            let name = literal(self.name);
            let query = format!(
                "SELECT r.rolname AS role, m.admin_option AS option FROM pg_auth_members m \
                 JOIN pg_roles r ON r.oid = m.member JOIN pg_roles g ON g.oid = m.roleid \
                 WHERE g.rolname = {name} ORDER BY r.rolname"
            );
            let member = |row: &Map| (Value::from(column(row, "role")), Value::from(column(row, "option") == "t"));
            return Ok(session.query(&query)?.iter().map(member).collect());
        }
        let [.., acl, _] = self.info.3;
        let query = format!(
            "SELECT coalesce(r.rolname, 'public') AS role, a.privilege_type AS privilege, a.is_grantable AS option \
             FROM (SELECT o.{acl} AS acl {}) x, LATERAL aclexplode(x.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee",
            self.source()
        );
        let mut roles = Map::new();
        for row in session.query(&query)? {
            let role = roles.entry(column(&row, "role").into()).or_insert_with(Value::map);
            if let Some(role) = role.as_map_mut() {
                role.insert(column(&row, "privilege").into(), (column(&row, "option") == "t").into());
            }
        }
        Ok(roles)
    }

    /// Returns the role that owns the object.
    fn owner(&self, session: &Session) -> Result<Option<String>, CallError> {
        let [.., owner] = self.info.3;
        let query = format!("SELECT pg_get_userbyid(o.{owner}) AS role {}", self.source());
        Ok(session.query(&query)?.first().map(|row| column(row, "role").to_owned()))
    }

    /// Returns whether a role has privileges, by grants to the role itself or as the owner. Privileges of its groups do
    /// not count.
    pub fn are_granted(
        &self,
        session: &Session,
        role: &str,
        names: &[String],
        may_grant: bool,
    ) -> Result<bool, CallError> {
        if !self.is_group() && !self.is_all_of_schema() && self.owner(session)?.as_deref() == Some(role) {
            return Ok(true);
        }
        let privileges = self.privileges(session)?;
        let Some(granted) = privileges.get(role) else { return Ok(false) };
        if self.is_group() {
            return Ok(!may_grant || granted.as_bool() == Some(true));
        }
        let all = || self.info.2.iter().filter(|one| **one != "MAINTAIN").map(|one| (*one).to_owned()).collect();
        let privileges: Vec<String> = if names.iter().any(|one| one == "ALL") { all() } else { names.to_vec() };
        Ok(privileges
            .iter()
            .all(|one| granted.get(one).is_some_and(|option| !may_grant || option.as_bool() == Some(true))))
    }

    /// Returns whether the name is `ALL`: all tables, sequences or functions of the schema.
    fn is_all_of_schema(&self) -> bool {
        matches!(self.kind(), Kind::Table | Kind::Sequence | Kind::Function) && self.name.eq_ignore_ascii_case("all")
    }

    /// Returns the SQL for the object, after `ON`.
    fn target(&self) -> Result<String, CallError> {
        let kind = self.info.0.to_uppercase();
        if self.is_all_of_schema() {
            return Ok(format!("ALL {kind}S IN SCHEMA {}", identifier(self.schema)));
        }
        let name = match (self.kind(), self.name.split_once('(')) {
            (Kind::Function, Some((name, types))) => {
                let schema_and_name = name.rsplit('.').next().unwrap_or(name).trim_matches('"');
                format!("{}({}", identifier(schema_and_name), plain(types, " ,.[]()\"")?)
            }
            _ => identifier(self.name),
        };
        Ok(match self.kind() {
            Kind::Table | Kind::Sequence | Kind::Function => format!("{kind} {}.{name}", identifier(self.schema)),
            _ => format!("{kind} {name}"),
        })
    }

    pub fn grant(
        &self,
        session: &Session,
        role: &str,
        privileges: &[String],
        may_grant: bool,
    ) -> Result<(), CallError> {
        let role = identifier(role);
        session.execute(&[if self.is_group() {
            let option = if may_grant { " WITH ADMIN OPTION" } else { "" };
            format!("GRANT {} TO {role}{option}", identifier(self.name))
        } else {
            let option = if may_grant { " WITH GRANT OPTION" } else { "" };
            format!("GRANT {} ON {} TO {role}{option}", privileges.join(", "), self.target()?)
        }])
    }

    pub fn revoke(&self, session: &Session, role: &str, privileges: &[String]) -> Result<(), CallError> {
        let role = identifier(role);
        session.execute(&[if self.is_group() {
            format!("REVOKE {} FROM {role}", identifier(self.name))
        } else {
            format!("REVOKE {} ON {} FROM {role}", privileges.join(", "), self.target()?)
        }])
    }
}
