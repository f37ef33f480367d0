//! `shadow`: passwords of users and their ageing, in `/etc/shadow`.

use brine_context::programs::{run, succeeds};
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::passwords;
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

/// Hash of a user without a password.
pub const DEFAULT_HASH: &str = "!";

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `shadow`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "shadow",
    [
        default_hash,
        info,
        list_users,
        gen_password,
        set_password,
        del_password,
        lock_password,
        unlock_password,
        set_inactdays,
        set_maxdays,
        set_mindays,
        set_warndays,
        set_date,
        set_expire
    ]
);

/// Return the default hash of a user without a password.
///
/// CLI Example:
///
///     salt '*' shadow.default_hash
#[function]
pub fn default_hash(_context: &Context) -> CallResult {
    Ok(DEFAULT_HASH.into())
}

/// Return the password entry of a user; with empty fields if there is none.
///
/// CLI Example:
///
///     salt '*' shadow.info root
#[function]
pub fn info(
    _context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    Ok(Shadow::of(&name).map_or_else(Shadow::none, |shadow| shadow.describe()).into())
}

/// Return the names of all users with a password entry.
///
/// CLI Example:
///
///     salt '*' shadow.list_users
#[function]
pub fn list_users(_context: &Context) -> CallResult {
    let mut names: Vec<String> = entries().into_iter().map(|shadow| shadow.name).collect();
    names.sort();
    Ok(names.into())
}

/// Return the hash of a password.
///
/// CLI Example:
///
///     salt '*' shadow.gen_password 'I_am_password'
///     salt '*' shadow.gen_password 'I_am_password' crypt_salt='I_am_salt' algorithm=sha256
#[function]
pub fn gen_password(
    _context: &Context,
    /// Password in plain text.
    password: String,
    /// Salt of the hash; a random one by default.
    crypt_salt: Option<String>,
    /// Type of the hash: `sha512`, `sha256`, `md5` and others.
    #[default("sha512".into())]
    algorithm: String,
) -> CallResult {
    Ok(passwords::hash(&password, crypt_salt.as_deref(), &algorithm)?.into())
}

/// Set the password of a user, by its hash. `use_usermod` is without effect: `chpasswd` does not show the hash to others.
///
/// CLI Example:
///
///     salt '*' shadow.set_password root '$1$UYCIxa628.9qXjpQCjM4a..'
#[function]
pub fn set_password(
    context: &Context,
    /// Login name.
    name: String,
    /// Hash of the password.
    password: String,
    /// Without effect: `chpasswd` does not show the hash to others.
    #[default(false)]
    use_usermod: bool,
) -> CallResult {
    // chpasswd is used in any case: it does the same as usermod, without exposing the hash.
    _ = use_usermod;
    Ok(set(context, &name, &password)?.into())
}

/// Delete the password of a user, which allows a login without a password.
///
/// CLI Example:
///
///     salt '*' shadow.del_password username
#[function]
pub fn del_password(
    context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    run(context, &["passwd".into(), "-d".into(), argument(&name)?], &[])?;
    Ok(Shadow::of(&name).is_some_and(|shadow| shadow.passwd.is_empty()).into())
}

/// Lock the password of a user.
///
/// CLI Example:
///
///     salt '*' shadow.lock_password username
#[function]
pub fn lock_password(
    context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    Ok(lock(context, &name, true)?.into())
}

/// Unlock the password of a user.
///
/// CLI Example:
///
///     salt '*' shadow.unlock_password username
#[function]
pub fn unlock_password(
    context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    Ok(lock(context, &name, false)?.into())
}

/// Set the number of days for which an expired password can still be used.
///
/// CLI Example:
///
///     salt '*' shadow.set_inactdays username 7
#[function]
pub fn set_inactdays(
    context: &Context,
    /// Login name.
    name: String,
    /// Days between the expiry of the password and that of the account.
    inactdays: Value,
) -> CallResult {
    age(context, &name, "-I", &inactdays, |shadow| shadow.inact)
}

/// Set the number of days after which a password must be changed.
///
/// CLI Example:
///
///     salt '*' shadow.set_maxdays username 90
#[function]
pub fn set_maxdays(
    context: &Context,
    /// Login name.
    name: String,
    /// Days before the password must be changed.
    maxdays: Value,
) -> CallResult {
    age(context, &name, "-M", &maxdays, |shadow| shadow.max)
}

/// Set the minimum number of days between changes of a password.
///
/// CLI Example:
///
///     salt '*' shadow.set_mindays username 7
#[function]
pub fn set_mindays(
    context: &Context,
    /// Login name.
    name: String,
    /// Days before the password may be changed again.
    mindays: Value,
) -> CallResult {
    age(context, &name, "-m", &mindays, |shadow| shadow.min)
}

/// Set the number of days before the expiry of a password on which the user is warned.
///
/// CLI Example:
///
///     salt '*' shadow.set_warndays username 7
#[function]
pub fn set_warndays(
    context: &Context,
    /// Login name.
    name: String,
    /// Days of warning before the password expires.
    warndays: Value,
) -> CallResult {
    age(context, &name, "-W", &warndays, |shadow| shadow.warn)
}

/// Set the date of the last change of a password, as a day number or a date; `0` forces a change at the next login.
///
/// CLI Example:
///
///     salt '*' shadow.set_date username 0
#[function]
pub fn set_date(
    context: &Context,
    /// Login name.
    name: String,
    /// Date of the last change of the password, in days since 1970.
    date: Value,
) -> CallResult {
    Ok(chage(context, &name, "-d", &date, |shadow| shadow.lstchg)?.into())
}

/// Set the date on which the account expires, as a day number or a date; `-1` for never.
///
/// CLI Example:
///
///     salt '*' shadow.set_expire username -1
#[function]
pub fn set_expire(
    context: &Context,
    /// Login name.
    name: String,
    /// Date on which the account expires, in days since 1970.
    expire: Value,
) -> CallResult {
    Ok(chage(context, &name, "-E", &expire, |shadow| shadow.expire)?.into())
}

/// A line of `/etc/shadow`. Integers are days; unset ones are -1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// User name.
    pub name: String,
    /// Hash.
    pub passwd: String,
    /// Day of the last change.
    pub lstchg: i64,
    /// Minimum age for a change.
    pub min: i64,
    /// Maximum age.
    pub max: i64,
    /// Days of warning before the maximum age.
    pub warn: i64,
    /// Days after the maximum age until the password is disabled.
    pub inact: i64,
    /// Day on which the account expires.
    pub expire: i64,
}

impl Shadow {
    /// Returns the current entry of a user.
    pub fn of(name: &str) -> Option<Self> {
        entries().into_iter().find(|shadow| shadow.name == name)
    }

    /// Parses a line; `None` if it is invalid.
    pub fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, passwd, days @ ..] = &fields[..] else { return None };
        let day = |index: usize| days.get(index).and_then(|text| text.parse().ok()).unwrap_or(-1);
        Some(Shadow {
            name: (*name).to_owned(),
            passwd: (*passwd).to_owned(),
            lstchg: day(0),
            min: day(1),
            max: day(2),
            warn: day(3),
            inact: day(4),
            expire: day(5),
        })
    }

    /// Returns the entry in Salt's form.
    pub fn describe(&self) -> Map {
        map! {
            "name" => &self.name, "passwd" => &self.passwd, "lstchg" => self.lstchg, "min" => self.min, "max" => self.max,
            "warn" => self.warn, "inact" => self.inact, "expire" => self.expire,
        }
    }

    /// Returns the entry that Salt reports for a missing user.
    pub fn none() -> Map {
        ["name", "passwd", "lstchg", "min", "max", "warn", "inact", "expire"]
            .map(|key| (key.into(), "".into()))
            .into_iter()
            .collect()
    }

    /// Whether the password is locked.
    pub fn is_locked(&self) -> bool {
        self.passwd.starts_with('!')
    }
}

fn entries() -> Vec<Shadow> {
    let text = std::fs::read("/etc/shadow").unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(Shadow::parse).collect()
}

/// Sets the password of a user, by its hash. The hash is passed on standard input, because arguments of programs are
/// visible to all users.
pub fn set(context: &Context, name: &str, hash: &str) -> Result<bool, CallError> {
    if name.contains([':', '\n']) || hash.contains([':', '\n']) {
        return Err(CallError::Execution(format!(
            "the name '{name}' or its password's hash has a ':' or a line end in it"
        )));
    }
    let stdin = Some(format!("{}:{hash}\n", argument(name)?));
    let program = brine_host::process::Program { command: "chpasswd -e".into(), stdin, ..Default::default() };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    Ok(output.retcode == 0)
}

fn lock(context: &Context, name: &str, locked: bool) -> Result<bool, CallError> {
    let Some(before) = Shadow::of(name) else { return Ok(false) };
    if before.is_locked() != locked {
        succeeds(context, &["passwd".into(), if locked { "-l" } else { "-u" }.into(), argument(name)?])?;
    }
    Ok(Shadow::of(name).is_some_and(|shadow| shadow.is_locked() == locked))
}

/// Sets a number of days, and returns whether the entry has it afterwards.
fn age(context: &Context, name: &str, flag: &str, days: &Value, of: fn(&Shadow) -> i64) -> Result<Value, CallError> {
    chage(context, name, flag, days, of)?;
    Ok(Shadow::of(name).is_some_and(|shadow| Value::from(of(&shadow)) == *days).into())
}

fn chage(context: &Context, name: &str, flag: &str, days: &Value, of: fn(&Shadow) -> i64) -> Result<bool, CallError> {
    let Some(shadow) = Shadow::of(name) else { return Ok(false) };
    if Value::from(of(&shadow)) == *days {
        return Ok(true);
    }
    let words = ["chage".to_owned(), flag.to_owned(), days.to_string(), argument(name)?];
    Ok(succeeds(context, &words)?.is_truthy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_fields_are_minus_one() {
        let shadow = Shadow::parse("fred:!$6$a$b:19000:0:99999:7:::").unwrap();
        assert_eq!((shadow.lstchg, shadow.max, shadow.inact, shadow.expire), (19000, 99999, -1, -1));
        assert!(shadow.is_locked());
        assert_eq!(Shadow::parse("nothing"), None);
    }
}
