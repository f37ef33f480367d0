//! Extensions of a database.

use std::cmp::Ordering;

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, list};

use super::session::{ServerArgs, Session, column, done, identifier, literal};

/// Execution functions of `postgres` about extensions.
pub static FUNCTIONS: Functions<Context> = registry!(
    "postgres",
    [
        available_extensions,
        installed_extensions,
        get_available_extension,
        get_installed_extension,
        is_available_extension,
        is_installed_extension,
        create_metadata,
        create_extension,
        drop_extension
    ]
);

/// Return the extensions that can be installed.
///
/// CLI Example:
///
///     salt '*' postgres.available_extensions
#[function]
pub fn available_extensions(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(available(&server.session(context, runas)?)?.into())
}

/// Return the extensions that are installed.
///
/// CLI Example:
///
///     salt '*' postgres.installed_extensions
#[function]
pub fn installed_extensions(
    context: &Context,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(installed(&server.session(context, runas)?)?.into())
}

/// Return an extension that can be installed; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' postgres.get_available_extension plpgsql
#[function]
pub fn get_available_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(available(&server.session(context, runas)?)?.get(&*name).cloned().unwrap_or_default())
}

/// Return an installed extension; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' postgres.get_installed_extension plpgsql
#[function]
pub fn get_installed_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(installed(&server.session(context, runas)?)?.get(&*name).cloned().unwrap_or_default())
}

/// Return whether an extension can be installed.
///
/// CLI Example:
///
///     salt '*' postgres.is_available_extension plpgsql
#[function]
pub fn is_available_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let all = available(&server.session(context, runas)?)?;
    Ok(all.keys().any(|one| one.to_string().eq_ignore_ascii_case(&name)).into())
}

/// Return whether an extension is installed.
///
/// CLI Example:
///
///     salt '*' postgres.is_installed_extension plpgsql
#[function]
pub fn is_installed_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    Ok(installed(&server.session(context, runas)?)?.contains_key(&*name).into())
}

/// Return whether an extension is installed, and whether it is older than a version or in another schema.
///
/// CLI Example:
///
///     salt '*' postgres.create_metadata adminpack
#[function]
pub fn create_metadata(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Version of the extension.
    ext_version: Option<String>,
    /// Schema of the objects of the extension.
    schema: Option<String>,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let status = Status::read(&server.session(context, runas)?, &name, ext_version.as_deref(), schema.as_deref())?;
    Ok(status.into_value())
}

/// Install an extension, update it to a version or move it to a schema.
///
/// CLI Example:
///
///     salt '*' postgres.create_extension plpgsql
#[function]
pub fn create_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Whether an extension that exists is no error.
    if_not_exists: Option<bool>,
    /// Schema of the objects of the extension.
    schema: Option<String>,
    /// Version of the extension.
    ext_version: Option<String>,
    /// Version of the objects that a new extension takes over.
    from_version: Option<String>,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let desired = Desired { if_not_exists: if_not_exists.unwrap_or(true), schema, ext_version, from_version };
    done(create(&server.session(context, runas)?, &name, &desired))
}

/// Remove an extension.
///
/// CLI Example:
///
///     salt '*' postgres.drop_extension 'adminpack'
#[function]
pub fn drop_extension(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Whether a missing item is no error.
    if_exists: Option<bool>,
    /// Whether the extension stays if others depend on it.
    restrict: Option<bool>,
    /// Whether dependent objects are removed, too.
    cascade: Option<bool>,
    #[args] server: ServerArgs,
    /// Account that runs `psql`; that of the server by default.
    runas: Option<String>,
) -> CallResult {
    let session = server.session(context, runas)?;
    if !installed(&session)?.contains_key(&*name) {
        return Ok(true.into());
    }
    done(remove(&session, &name, if_exists.unwrap_or(false), restrict.unwrap_or(false), cascade.unwrap_or(true)))
}

/// The desired state of an extension.
#[derive(Debug, Default)]
pub(super) struct Desired {
    pub if_not_exists: bool,
    pub schema: Option<String>,
    pub ext_version: Option<String>,
    pub from_version: Option<String>,
}

/// The current state of an extension, compared with the desired one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub is_installed: bool,
    pub is_older: bool,
    pub is_elsewhere: bool,
}

impl Status {
    pub fn read(session: &Session, name: &str, version: Option<&str>, schema: Option<&str>) -> Result<Self, CallError> {
        let all = installed(session)?;
        let Some(extension) = all.get(name).and_then(Value::as_map) else {
            return Ok(Status { is_installed: false, is_older: false, is_elsewhere: false });
        };
        let is_movable = column(extension, "extrelocatable") == "t";
        Ok(Status {
            is_installed: true,
            is_older: version.is_some_and(|target_version| {
                compare(column(extension, "extversion"), unquoted(target_version)) == Ordering::Less
            }),
            is_elsewhere: is_movable && schema.is_some_and(|schema| column(extension, "schema_name") != schema),
        })
    }

    fn into_value(self) -> Value {
        if !self.is_installed {
            return list!["EXTENSION NOT INSTALLED"];
        }
        let flags = [
            (true, "EXTENSION INSTALLED"),
            (self.is_older, "EXTENSION TO UPGRADE"),
            (self.is_elsewhere, "EXTENSION TO MOVE"),
        ];
        flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, text)| Value::from(text)).collect::<Vec<_>>().into()
    }
}

fn available(session: &Session) -> Result<Map, CallError> {
    Ok(keyed(session.query("SELECT * FROM pg_available_extensions() ORDER BY name")?, "name"))
}

pub(super) fn installed(session: &Session) -> Result<Map, CallError> {
    let query = "SELECT e.*, n.nspname AS schema_name FROM pg_extension e JOIN pg_namespace n \
                 ON n.oid = e.extnamespace ORDER BY e.oid";
    Ok(keyed(session.query(query)?, "extname"))
}

/// Returns rows by a column, which also remains in the rows.
fn keyed(rows: Vec<Map>, name: &str) -> Map {
    rows.into_iter().filter_map(|row| Some((row.get(name)?.clone(), Value::from(row)))).collect()
}

pub(super) fn create(session: &Session, name: &str, desired: &Desired) -> Result<(), CallError> {
    let (version, schema) = (desired.ext_version.as_deref(), desired.schema.as_deref());
    let status = Status::read(session, name, version, schema)?;
    let quoted = |version: &str| literal(unquoted(version));
    let mut statements = Vec::new();
    if status.is_installed {
        let change = |what: String| format!("ALTER EXTENSION {} {what}", identifier(name));
        statements.extend(
            schema.filter(|_| status.is_elsewhere).map(|schema| change(format!("SET SCHEMA {}", identifier(schema)))),
        );
        statements.extend(
            version.filter(|_| status.is_older).map(|version| change(format!("UPDATE TO {}", quoted(version)))),
        );
    } else {
        let condition = if desired.if_not_exists { "IF NOT EXISTS " } else { "" };
        let mut statement = format!("CREATE EXTENSION {condition}{}", identifier(name));
        let parts = [
            schema.map(|schema| format!(" SCHEMA {}", identifier(schema))),
            version.map(|version| format!(" VERSION {}", quoted(version))),
            desired.from_version.as_deref().map(|version| format!(" FROM {}", quoted(version))),
        ];
        statement.extend(parts.into_iter().flatten());
        statements.push(statement);
    }
    if statements.is_empty() { Ok(()) } else { session.execute(&statements) }
}

pub(super) fn remove(
    session: &Session,
    name: &str,
    if_exists: bool,
    restrict: bool,
    cascade: bool,
) -> Result<(), CallError> {
    let condition = if if_exists { "IF EXISTS " } else { "" };
    // The server accepts only one of the two keywords.
    let end = match (restrict, cascade) {
        (true, _) => " RESTRICT",
        (false, true) => " CASCADE",
        (false, false) => "",
    };
    session.execute(&[format!("DROP EXTENSION {condition}{}{end}", identifier(name))])
}

/// Returns a version without single quotes. Salt requires them around versions that are neither identifiers nor
/// numbers.
fn unquoted(version: &str) -> &str {
    version.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(version)
}

/// Compares versions part by part: numbers numerically, other parts as strings.
fn compare(left: &str, right: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(Option<u64>, String)> {
        text.split(['.', '-', '_']).map(|part| (part.parse().ok(), part.to_owned())).collect()
    };
    parts(left).cmp(&parts(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared() {
        for (left, right, order) in
            [("1.9", "1.10", Ordering::Less), ("1.1", "1.1", Ordering::Equal), ("2.0", "1.10", Ordering::Greater)]
        {
            assert_eq!(compare(left, unquoted(right)), order, "{left} {right}");
        }
        assert_eq!(unquoted("'1.1'"), "1.1");
    }
}
