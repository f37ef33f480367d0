//! Grants: privileges of users.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::account::{Account, AccountArgs};
use super::connection::ConnectionArgs;
use super::privileges::{ALL, Grant, Object, Privilege};
use super::quote::{account, literal};
use super::server::Version;
use super::session::{Session, SqlError, done};

/// Execution functions of `mysql` about grants.
pub static FUNCTIONS: Functions<Context> =
    registry!("mysql", [user_grants, tokenize_grant, grant_exists, grant_add, grant_revoke]);

/// The arguments that name a grant.
#[derive(Args, Debug, Clone)]
pub struct GrantArgs {
    /// Privileges, separated by commas, such as `SELECT,INSERT (column)`, or `ALL PRIVILEGES`.
    pub grant: String,
    /// Object: `*.*`, `database.*` or `database.table`.
    pub database: String,
    /// Name of the user.
    pub user: String,
    /// Host of the user.
    #[default("localhost".into())]
    pub host: String,
    /// Whether the user may grant the privileges to others.
    #[default(false)]
    pub grant_option: bool,
    /// Whether `_` and `%` in the name of the database are plain characters.
    #[default(true)]
    pub escape: bool,
}

/// Return the grants of a user as statements; false if the user does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.user_grants 'frank' 'localhost'
#[function]
pub fn user_grants(context: &Context, #[args] of: AccountArgs, #[args] connection: ConnectionArgs) -> CallResult {
    let grants = statements(&connection.session(context)?, of.account())?;
    Ok(grants.map_or(false.into(), |grants| grants.into_iter().map(Value::from).collect::<Vec<_>>().into()))
}

/// Return the parts of a `GRANT` statement: `user`, `host`, `grant` and `database`.
///
/// CLI Example:
///
///     salt '*' mysql.tokenize_grant "GRANT SELECT, INSERT ON testdb.* TO 'testuser'@'localhost'"
#[function]
pub fn tokenize_grant(
    _context: &Context,
    /// Privileges as in a statement.
    grant: String,
) -> CallResult {
    let Some(parsed) = Grant::parse(&grant) else {
        return Err(CallError::Execution(format!("grant is invalid: expected GRANT ... ON ... TO ..., got '{grant}'")));
    };
    let mut privileges: Vec<Value> = Vec::new();
    for privilege in parsed.privileges {
        privileges.push(privilege.name.as_str().into());
        privileges.extend(privilege.columns.iter().map(|column| format!("{}.{column}", privilege.name).into()));
    }
    Ok(map! {
        "user" => parsed.user, "host" => parsed.host, "grant" => privileges, "database" => parsed.object_text,
    }
    .into())
}

/// Return whether a user has privileges on an object.
///
/// CLI Example:
///
///     salt '*' mysql.grant_exists 'SELECT,INSERT,UPDATE' 'database.*' 'frank' 'localhost'
#[function]
pub fn grant_exists(context: &Context, #[args] args: GrantArgs, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(Request::new(&args)?.is_granted(&connection.session(context)?)?.into())
}

/// Grant privileges on an object to a user. `ssl_option` is a list of requirements for logins of the user, such as
/// `[{SSL: true}, {ISSUER: '/CN=ca'}]`.
///
/// CLI Example:
///
///     salt '*' mysql.grant_add 'SELECT,INSERT,UPDATE' 'database.*' 'frank' 'localhost'
#[function]
pub fn grant_add(
    context: &Context,
    #[args] args: GrantArgs,
    /// Requirements for logins of the user, as a list of mappings.
    #[default]
    ssl_option: Value,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let request = Request::new(&args)?;
    done(request.grant(&connection.session(context)?, &ssl_option))
}

/// Revoke privileges on an object from a user; with `grant_option` also the right to grant them to others.
///
/// CLI Example:
///
///     salt '*' mysql.grant_revoke 'SELECT,INSERT,UPDATE' 'database.*' 'frank' 'localhost'
#[function]
pub fn grant_revoke(context: &Context, #[args] args: GrantArgs, #[args] connection: ConnectionArgs) -> CallResult {
    let request = Request::new(&args)?;
    done(request.revoke(&connection.session(context)?))
}

/// Returns the `GRANT` statements of a user, without password hashes; `None` if the user does not exist.
fn statements(session: &Session, account: Account) -> Result<Option<Vec<String>>, SqlError> {
    if account.plugin(session)?.is_none() {
        return Ok(None);
    }
    let grants = session.query(&format!("SHOW GRANTS FOR {}", quoted(account)))?.first_column();
    let without_hash = |statement: String| {
        let Some((grant, _)) = statement.split_once(" IDENTIFIED BY") else { return statement };
        let option = " WITH GRANT OPTION";
        format!("{grant}{}", if statement.ends_with(option) { option } else { "" })
    };
    Ok(Some(grants.into_iter().map(without_hash).collect()))
}

fn quoted(user: Account) -> String {
    account(user.user, user.host)
}

/// The privileges on an object to check, grant or revoke for a user.
pub(super) struct Request<'a> {
    privileges: Vec<Privilege>,
    object: Object,
    account: Account<'a>,
    grant_option: bool,
}

impl<'a> Request<'a> {
    /// Validates the arguments.
    ///
    /// # Errors
    /// The privileges or the object are invalid.
    pub fn new(args: &'a GrantArgs) -> Result<Self, CallError> {
        Ok(Request {
            privileges: Privilege::parse(&args.grant)?,
            object: Object::parse(&args.database, args.escape)?,
            account: Account { user: &args.user, host: &args.host },
            grant_option: args.grant_option,
        })
    }

    /// Returns the user's grants on the object; `None` if the user does not exist.
    fn grants(&self, session: &Session) -> Result<Option<Vec<Grant>>, SqlError> {
        let Some(statements) = statements(session, self.account)? else { return Ok(None) };
        let grants = statements.iter().filter_map(|statement| Grant::parse(statement));
        Ok(Some(grants.filter(|grant| grant.object.is_same(&self.object)).collect()))
    }

    /// Returns whether the user has the privileges, and with `grant_option` may grant them to others.
    pub fn is_granted(&self, session: &Session) -> Result<bool, SqlError> {
        let Some(grants) = self.grants(session)? else { return Ok(false) };
        if self.grant_option && !grants.iter().any(|grant| grant.may_grant) {
            return Ok(false);
        }
        let held: Vec<&Privilege> = grants.iter().flat_map(|grant| &grant.privileges).collect();
        let is_held = |privilege: &Privilege| includes(&held, privilege);
        if self.privileges.iter().all(is_held) {
            return Ok(true);
        }
        // MySQL 8.0 lists the privileges on `*.*` one by one instead of `ALL PRIVILEGES`.
        if self.object.is_everything() && self.privileges.iter().any(|privilege| privilege.name == ALL) {
            let version = Version::of(session)?;
            return Ok(!version.is_mariadb && version.is_at_least([8, 0, 0]) && {
                let all = session.query("SHOW PRIVILEGES")?.first_column();
                let names = all.iter().map(|name| name.to_uppercase());
                let mut grantable = names.filter(|name| !["USAGE", "GRANT OPTION", "PROXY"].contains(&&**name));
                grantable.all(|name| Privilege::parse(&name).is_ok_and(|privileges| privileges.iter().all(is_held)))
            });
        }
        Ok(false)
    }

    /// Returns whether the user has exactly these privileges on the object.
    pub fn is_exact(&self, session: &Session) -> Result<bool, SqlError> {
        if !self.is_granted(session)? {
            return Ok(false);
        }
        let grants = self.grants(session)?.unwrap_or_default();
        let desired: Vec<&Privilege> = self.privileges.iter().collect();
        let mut held = grants.iter().flat_map(|grant| &grant.privileges);
        Ok(held.all(|privilege| includes(&desired, privilege))
            && grants.iter().all(|grant| grant.may_grant <= self.grant_option))
    }

    /// Grants the privileges.
    ///
    /// # Errors
    /// The server refuses it, or does not show the grant afterwards.
    pub fn grant(&self, session: &Session, ssl_option: &Value) -> Result<(), CallError> {
        let option = if self.grant_option { " WITH GRANT OPTION" } else { "" };
        let statement = format!(
            "GRANT {} ON {} TO {}{}{option}",
            self.privileges_sql(),
            self.object.sql(),
            quoted(self.account),
            requirements(ssl_option)?
        );
        session.execute(&[statement])?;
        if self.is_granted(session)? {
            return Ok(());
        }
        Err(CallError::Execution("the server does not show the grant".into()))
    }

    /// Revokes the privileges.
    ///
    /// # Errors
    /// The server refuses it, or still shows the grant afterwards.
    pub fn revoke(&self, session: &Session) -> Result<(), CallError> {
        let revoke =
            |privileges: &str| format!("REVOKE {privileges} ON {} FROM {}", self.object.sql(), quoted(self.account));
        let mut statements = vec![revoke(&self.privileges_sql())];
        statements.extend(self.grant_option.then(|| revoke("GRANT OPTION")));
        session.execute(&statements)?;
        if self.is_granted(session)? {
            return Err(CallError::Execution("the server still shows the grant".into()));
        }
        Ok(())
    }

    /// Revokes all privileges of the user on the object, if there are any.
    pub fn revoke_all(&self, session: &Session) -> Result<(), CallError> {
        if self.grants(session)?.unwrap_or_default().iter().all(|grant| grant.privileges.is_empty()) {
            return Ok(());
        }
        let all = Request {
            privileges: vec![Privilege { name: ALL.into(), columns: Vec::new() }],
            object: self.object.clone(),
            account: self.account,
            grant_option: true,
        };
        all.revoke(session)
    }

    fn privileges_sql(&self) -> String {
        self.privileges.iter().map(Privilege::sql).collect::<Vec<_>>().join(", ")
    }
}

/// Returns whether the held privileges include another one: by the privilege itself, by its columns one by one, or by
/// `ALL PRIVILEGES`.
fn includes(held: &[&Privilege], required: &Privilege) -> bool {
    let has = |column: Option<&String>| {
        held.iter().any(|privilege| {
            privilege.name == required.name
                && (privilege.columns.is_empty() || column.is_some_and(|column| privilege.columns.contains(column)))
        })
    };
    let has_all = held.iter().any(|privilege| privilege.name == ALL && privilege.columns.is_empty());
    // Every user has `USAGE`. `GRANT OPTION` is not part of `ALL PRIVILEGES`, and is checked separately.
    required.name == "USAGE"
        || (has_all && required.name != "GRANT OPTION")
        || if required.columns.is_empty() { has(None) } else { required.columns.iter().all(|column| has(Some(column))) }
}

/// Returns the requirements for logins as a `REQUIRE` clause.
fn requirements(options: &Value) -> Result<String, CallError> {
    let Some(options) = options.as_list().filter(|options| !options.is_empty()) else { return Ok(String::new()) };
    let mut clauses = Vec::new();
    for (name, value) in options.iter().filter_map(Value::as_map).flatten() {
        let key = name.to_string().trim().to_uppercase();
        match &*key {
            "CIPHER" | "ISSUER" | "SUBJECT" => clauses.push(format!("{key} {}", literal(&value.to_string()))),
            "SSL" | "X509" => clauses.extend(value.is_truthy().then_some(key)),
            _ => return Err(CallError::Execution(format!("Invalid SSL option : '{name}'"))),
        }
    }
    Ok(if clauses.is_empty() { String::new() } else { format!(" REQUIRE {}", clauses.join(" AND ")) })
}
