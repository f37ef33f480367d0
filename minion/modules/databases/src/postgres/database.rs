//! Databases and tablespaces.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::session::{ServerArgs, Session, by_name, column, done, identifier, literal, plain};

/// Execution functions of `postgres` about databases and tablespaces.
pub static FUNCTIONS: Functions<Context> = registry!(
    "postgres",
    [
        db_list,
        db_exists,
        db_create,
        db_alter,
        db_remove,
        tablespace_list,
        tablespace_exists,
        tablespace_create,
        tablespace_alter,
        tablespace_remove
    ]
);

/// Return the databases with their owner, encoding, locale, privileges and tablespace.
///
/// CLI Example:
///
///     salt '*' postgres.db_list
#[function]
pub fn db_list(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(databases(&server.session(context, runas)?)?.into())
}

/// Return whether a database exists.
///
/// CLI Example:
///
///     salt '*' postgres.db_exists 'dbname'
#[function]
pub fn db_exists(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(databases(&server.session(context, runas)?)?.contains_key(&*name).into())
}

/// Create a database.
///
/// CLI Example:
///
///     salt '*' postgres.db_create 'dbname'
///     salt '*' postgres.db_create 'dbname' template=template_postgis
#[function]
pub fn db_create(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Name of the tablespace.
    tablespace: Option<String>,
    /// Encoding of the database, such as `UTF8`.
    encoding: Option<String>,
    /// Order of strings in the database.
    lc_collate: Option<String>,
    /// Types of characters in the database.
    lc_ctype: Option<String>,
    /// Owner.
    owner: Option<String>,
    /// Template of the database.
    template: Option<String>,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let settings = Settings { tablespace, encoding, lc_collate, lc_ctype, owner, template };
    done(create(&server.session(context, runas)?, &name, &settings))
}

/// Change the owner or the tablespace of a database; with `owner_recurse`, also the owner of the objects in it.
///
/// CLI Example:
///
///     salt '*' postgres.db_alter dbname owner=otheruser
#[function]
pub fn db_alter(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Name of the tablespace.
    tablespace: Option<String>,
    /// Owner.
    owner: Option<String>,
    /// Whether the objects in the database change their owner, too.
    #[default(false)]
    owner_recurse: bool,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    done(alter(context, &server, runas, &name, tablespace.as_deref(), owner.as_deref(), owner_recurse))
}

/// Remove a database.
///
/// CLI Example:
///
///     salt '*' postgres.db_remove 'dbname'
#[function]
pub fn db_remove(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    done(server.session(context, runas)?.execute(&[format!("DROP DATABASE {}", identifier(&name))]))
}

/// Return the tablespaces with their owner, privileges, options and location.
///
/// CLI Example:
///
///     salt '*' postgres.tablespace_list
#[function]
pub fn tablespace_list(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(tablespaces(&server.session(context, runas)?)?.into())
}

/// Return whether a tablespace exists.
///
/// CLI Example:
///
///     salt '*' postgres.tablespace_exists 'dbname'
#[function]
pub fn tablespace_exists(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(tablespaces(&server.session(context, runas)?)?.contains_key(&*name).into())
}

/// Create a tablespace in an empty directory that belongs to the owner of the server.
///
/// CLI Example:
///
///     salt '*' postgres.tablespace_create tablespacename '/path/datadir'
#[function]
pub fn tablespace_create(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Directory of the tablespace.
    location: String,
    /// Options, as a mapping.
    options: Option<Map>,
    /// Owner.
    owner: Option<String>,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let session = server.session(context, runas)?;
    done(create_tablespace(&session, &name, &location, &options.unwrap_or_default(), owner.as_deref()))
}

/// Change the name, the owner or an option of a tablespace.
///
/// CLI Example:
///
///     salt '*' postgres.tablespace_alter tsname new_owner=otheruser
///     salt '*' postgres.tablespace_alter index_space new_name=fast_raid
///     salt '*' postgres.tablespace_alter tsname reset_option=seq_page_cost
#[function]
pub fn tablespace_alter(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// New name.
    new_name: Option<String>,
    /// New owner.
    new_owner: Option<String>,
    /// Options to set, as a mapping of names to values.
    set_option: Option<Map>,
    /// Name of an option that gets its default again.
    reset_option: Option<String>,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let mut changes = Vec::new();
    changes.extend(new_owner.map(|owner| format!("OWNER TO {}", identifier(&owner))));
    if let Some(options) = set_option.filter(|options| !options.is_empty()) {
        changes.push(format!("SET ({})", options_of(&options)?));
    }
    if let Some(option) = reset_option {
        changes.push(format!("RESET ({})", plain(&option, "")?));
    }
    // Renaming comes last, because the other statements use the old name.
    changes.extend(new_name.map(|name| format!("RENAME TO {}", identifier(&name))));
    done(alter_tablespace(&server.session(context, runas)?, &name, &changes))
}

/// Remove a tablespace.
///
/// CLI Example:
///
///     salt '*' postgres.tablespace_remove tsname
#[function]
pub fn tablespace_remove(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    done(server.session(context, runas)?.execute(&[format!("DROP TABLESPACE {}", identifier(&name))]))
}

/// Settings of a new database.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub tablespace: Option<String>,
    pub encoding: Option<String>,
    pub lc_collate: Option<String>,
    pub lc_ctype: Option<String>,
    pub owner: Option<String>,
    pub template: Option<String>,
}

/// Returns the databases by name, with Salt's keys, such as `Owner` and `Encoding`.
pub(super) fn databases(session: &Session) -> Result<Map, CallError> {
    let query = "SELECT d.datname AS \"Name\", r.rolname AS \"Owner\", pg_encoding_to_char(d.encoding) AS \"Encoding\", \
                 d.datcollate AS \"Collate\", d.datctype AS \"Ctype\", d.datacl AS \"Access privileges\", \
                 t.spcname AS \"Tablespace\" FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba \
                 JOIN pg_tablespace t ON t.oid = d.dattablespace ORDER BY d.oid";
    Ok(by_name(session.query(query)?, "Name"))
}

pub(super) fn create(session: &Session, name: &str, settings: &Settings) -> Result<(), CallError> {
    let quoted = |word: &str, value: &Option<String>, quote: fn(&str) -> String| {
        value.as_deref().map(|value| format!("{word} = {}", quote(value)))
    };
    let with: Vec<String> = [
        quoted("TABLESPACE", &settings.tablespace, identifier),
        quoted("OWNER", &settings.owner, identifier),
        quoted("TEMPLATE", &settings.template, identifier),
        quoted("ENCODING", &settings.encoding, literal),
        quoted("LC_COLLATE", &settings.lc_collate, literal),
        quoted("LC_CTYPE", &settings.lc_ctype, literal),
    ]
    .into_iter()
    .flatten()
    .collect();
    let with = if with.is_empty() { String::new() } else { format!(" WITH {}", with.join(" ")) };
    session.execute(&[format!("CREATE DATABASE {}{with}", identifier(name))])
}

pub(super) fn alter(
    context: &Context,
    server: &ServerArgs,
    runas: Option<String>,
    name: &str,
    tablespace: Option<&str>,
    owner: Option<&str>,
    is_recursive: bool,
) -> Result<(), CallError> {
    let session = server.session(context, runas.clone())?;
    if let Some(owner) = owner.filter(|_| is_recursive) {
        let inside = ServerArgs { maintenance_db: Some(name.to_owned()), ..server.clone() };
        change_owner_of_all(&inside.session(context, runas)?, name, owner)?;
    } else if let Some(owner) = owner {
        session.execute(&[format!("ALTER DATABASE {} OWNER TO {}", identifier(name), identifier(owner))])?;
    }
    match tablespace {
        Some(space) => {
            session.execute(&[format!("ALTER DATABASE {} SET TABLESPACE {}", identifier(name), identifier(space))])
        }
        None => Ok(()),
    }
}

/// Makes a role the owner of the session's database and of all user-created objects in it, in one transaction.
pub(super) fn change_owner_of_all(session: &Session, database: &str, owner: &str) -> Result<(), CallError> {
    let owner_text = literal(owner);
    // The sequences of columns follow their tables; objects of extensions are left unchanged.
    let query = format!(
        "SELECT format('ALTER SCHEMA %I OWNER TO %I', n.nspname, {owner_text}) AS statement FROM pg_namespace n \
         WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
         AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_namespace'::regclass AND d.objid = n.oid \
         AND d.deptype = 'e') \
         UNION ALL SELECT format('ALTER %s %I.%I OWNER TO %I', CASE c.relkind WHEN 'v' THEN 'VIEW' \
         WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, \
         n.nspname, c.relname, {owner_text}) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND n.nspname !~ '^pg_' \
         AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT 1 FROM pg_depend d \
         WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND (d.deptype = 'e' \
         OR c.relkind = 'S' AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass)) \
         UNION ALL SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, {owner_text}) FROM pg_proc p \
         JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname !~ '^pg_' \
         AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT 1 FROM pg_depend d \
         WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')"
    );
    let mut statements = vec![format!("ALTER DATABASE {} OWNER TO {}", identifier(database), identifier(owner))];
    statements.extend(session.query(&query)?.iter().map(|row| column(row, "statement").to_owned()));
    session.execute(&statements)
}

/// Returns the tablespaces by name.
pub(super) fn tablespaces(session: &Session) -> Result<Map, CallError> {
    let query = "SELECT t.spcname AS \"Name\", r.rolname AS \"Owner\", t.spcacl AS \"ACL\", t.spcoptions AS \"Opts\", \
                 pg_tablespace_location(t.oid) AS \"Location\" FROM pg_tablespace t JOIN pg_roles r \
                 ON r.oid = t.spcowner ORDER BY t.oid";
    Ok(by_name(session.query(query)?, "Name"))
}

pub(super) fn create_tablespace(
    session: &Session,
    name: &str,
    location: &str,
    options: &Map,
    owner: Option<&str>,
) -> Result<(), CallError> {
    let owner = owner.map(|owner| format!(" OWNER {}", identifier(owner))).unwrap_or_default();
    let options = if options.is_empty() { String::new() } else { format!(" WITH ({})", options_of(options)?) };
    let location = literal(location);
    session.execute(&[format!("CREATE TABLESPACE {}{owner} LOCATION {location}{options}", identifier(name))])
}

pub(super) fn alter_tablespace(session: &Session, name: &str, changes: &[String]) -> Result<(), CallError> {
    let statements: Vec<String> =
        changes.iter().map(|change| format!("ALTER TABLESPACE {} {change}", identifier(name))).collect();
    if statements.is_empty() { Ok(()) } else { session.execute(&statements) }
}

/// Returns the options of a tablespace as SQL, such as `seq_page_cost = 1.1`.
pub(super) fn options_of(options: &Map) -> Result<String, CallError> {
    let option = |(name, value): (&Value, &Value)| {
        let (name, value) = (name.to_string(), value.to_string());
        Ok(format!("{} = {}", plain(&name, "")?, plain(&value, ".+-")?))
    };
    Ok(options.iter().map(option).collect::<Result<Vec<_>, CallError>>()?.join(", "))
}
