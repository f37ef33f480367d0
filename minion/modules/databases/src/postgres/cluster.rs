//! Data directories, created with `initdb`.

use std::io::Write as _;
use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};

use brine_host::accounts::Accounts;

use super::session::{Bin, done, owner, run};

/// Execution functions of `postgres` about data directories.
pub static FUNCTIONS: Functions<Context> = registry!("postgres", [datadir_init, datadir_exists]);

/// Settings of a new data directory.
#[derive(Args, Debug, Clone)]
pub struct InitArgs {
    /// Authentication method for local connections.
    #[default("password".into())]
    pub auth: String,
    /// Role of the administrator; default: the owner of the server.
    pub user: Option<String>,
    /// Password of the administrator.
    pub password: Option<String>,
    /// Encoding of new databases.
    #[default("UTF8".into())]
    pub encoding: String,
    /// Locale of new databases.
    pub locale: Option<String>,
    /// Directory of the write-ahead log, if it is outside of the data directory.
    pub waldir: Option<String>,
    /// Whether pages have checksums.
    #[default(false)]
    pub checksums: bool,
    /// Account that runs `initdb`; default: the owner of the server.
    pub runas: Option<String>,
}

/// Create a data directory; false if it exists.
///
/// CLI Example:
///
///     salt '*' postgres.datadir_init '/var/lib/pgsql/data'
#[function]
pub fn datadir_init(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] args: InitArgs,
) -> CallResult {
    if is_data_directory(&name) {
        return Ok(false.into());
    }
    done(create(context, &name, &args))
}

/// Return whether a directory is a data directory.
///
/// CLI Example:
///
///     salt '*' postgres.datadir_exists '/var/lib/pgsql/data'
#[function]
pub fn datadir_exists(
    _context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
) -> CallResult {
    Ok(is_data_directory(&name).into())
}

pub(super) fn is_data_directory(path: &str) -> bool {
    ["PG_VERSION", "postgresql.conf"].iter().all(|name| Path::new(path).join(name).is_file())
}

pub(super) fn create(context: &Context, path: &str, args: &InitArgs) -> Result<(), CallError> {
    let runas = args.runas.clone().unwrap_or_else(|| owner(context));
    let mut words = vec![
        Bin::Initdb.path(context)?,
        format!("--pgdata={path}"),
        format!("--username={}", args.user.as_ref().unwrap_or(&runas)),
        format!("--auth={}", args.auth),
        format!("--encoding={}", args.encoding),
    ];
    words.extend(args.locale.as_ref().map(|locale| format!("--locale={locale}")));
    // The short option is used because the long one was renamed.
    words.extend(args.waldir.iter().flat_map(|directory| ["-X".to_owned(), directory.clone()]));
    words.extend(args.checksums.then(|| "--data-checksums".to_owned()));
    // The file is removed at the end of this function. `initdb` reads it as its own account, to which the file belongs.
    let file = args.password.as_deref().map(|password| password_file(password, &runas)).transpose()?;
    words.extend(file.as_ref().map(|file| format!("--pwfile={}", file.path().display())));
    let output = run(context, &words, Some(runas), None, None)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("initdb failed: {}", output.stderr.trim())));
    }
    Ok(())
}

/// Writes a password to a file that only an account can read.
fn password_file(password: &str, account: &str) -> Result<tempfile::NamedTempFile, CallError> {
    let mut file = tempfile::NamedTempFile::new().map_err(CallError::execution)?;
    writeln!(file, "{password}").map_err(CallError::execution)?;
    let accounts = Accounts::read();
    let user =
        accounts.user(account).ok_or_else(|| CallError::Execution(format!("User '{account}' is not available")))?;
    std::os::unix::fs::fchown(file.as_file(), Some(user.uid), None).map_err(CallError::execution)?;
    Ok(file)
}
