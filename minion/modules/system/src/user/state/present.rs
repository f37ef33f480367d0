//! `user.present`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_host::accounts::Accounts;
use brine_host::passwords;
use brine_value::Value;

use super::desired::Desired;
use super::present_state;
use crate::shadow::Shadow;
use crate::user::{AccountArgs, IdArgs};
use brine_function::arguments::names;

/// The arguments of `user.present`.
#[derive(Args)]
pub struct PresentArgs {
    #[args]
    ids: IdArgs,
    /// Whether a group with the user's name is created; the system decides by default.
    usergroup: Option<bool>,
    /// Supplementary groups; an empty list removes the user from all.
    groups: Option<Value>,
    /// Supplementary groups that are used if they exist.
    #[default]
    optional_groups: Value,
    /// Whether the user is removed from supplementary groups that are not listed.
    #[default(true)]
    remove_groups: bool,
    /// Path of the home directory.
    home: Option<String>,
    /// Whether the home directory is created.
    #[default(true)]
    createhome: bool,
    /// Whether files are left where they are if the home directory changes.
    #[default(false)]
    persist_home: bool,
    /// Hash of the password.
    password: Option<String>,
    /// Whether `password` is plain text that is hashed first.
    #[default(false)]
    hash_password: bool,
    /// Whether a different password is replaced.
    #[default(true)]
    enforce_password: bool,
    /// Whether the user logs in without a password.
    #[default(false)]
    empty_password: bool,
    #[args]
    account: AccountArgs,
    /// Full name.
    fullname: Option<String>,
    /// Room number.
    roomnumber: Option<String>,
    /// Telephone number at work.
    workphone: Option<String>,
    /// Telephone number at home.
    homephone: Option<String>,
    /// Further text of the GECOS field.
    other: Option<String>,
    /// Without effect: for BSD.
    #[default]
    loginclass: Value,
    /// Date of the last change of the password, in days since 1970.
    #[default]
    date: Value,
    /// Days before the password may be changed again.
    #[default]
    mindays: Value,
    /// Days before the password must be changed.
    #[default]
    maxdays: Value,
    /// Days between the expiry of the password and that of the account.
    #[default]
    inactdays: Value,
    /// Days of warning before the password expires.
    #[default]
    warndays: Value,
    /// Date on which the account expires, in days since 1970.
    #[default]
    expire: Value,
    /// Without effect: for Windows.
    #[default]
    win_homedrive: Value,
    /// Without effect: for Windows.
    #[default]
    win_profile: Value,
    /// Without effect: for Windows.
    #[default]
    win_logonscript: Value,
    /// Without effect: for Windows.
    #[default]
    win_description: Value,
    /// Whether a new account is left out of lastlog and faillog.
    #[default(false)]
    nologinit: bool,
    /// Whether the user id of an existing account may change.
    #[default(false)]
    allow_uid_change: bool,
    /// Whether the primary group of an existing account may change.
    #[default(false)]
    allow_gid_change: bool,
    /// Whether the password is locked, or with false unlocked.
    password_lock: Option<bool>,
    /// Whether only local accounts are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
}

/// Ensure that a user exists with these properties; unset ones are left unchanged.
///
/// `password` is a hash, as `openssl passwd -6` prints it; keep it in pillar.
///
/// SLS Example:
///
///     deploy:
///       user.present:
///         - uid: 2001
///         - gid: deploy
///         - home: /home/deploy
///         - shell: /bin/bash
///         - fullname: Deployment
///         - groups:
///           - adm
///           - docker
///         - remove_groups: False
///         - require:
///           - group: deploy
///
///     deploy_group:
///       group.present:
///         - name: deploy
///         - gid: 2001
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    // These arguments are for BSD and Windows.
    _ = (args.loginclass, args.win_homedrive, args.win_profile, args.win_logonscript, args.win_description);
    let gecos = [args.fullname, args.roomnumber, args.workphone, args.homephone, args.other];
    if let Some(field) = gecos[..3].iter().flatten().find(|field| field.contains(',')) {
        return Ok(StateReturn::failed(&args.ids.name, format!("Unsupported char ',' in {field}")).into());
    }
    let accounts = Accounts::read();
    let mut optional_groups = names(&args.optional_groups);
    optional_groups.retain(|group| accounts.group(group).is_some());
    let mut desired = Desired {
        uid: args.ids.uid,
        gid: args.ids.gid,
        usergroup: args.usergroup,
        groups: args.groups.map(|groups| if groups.is_truthy() { names(&groups) } else { Vec::new() }),
        optional_groups,
        remove_groups: args.remove_groups,
        home: args.home,
        createhome: args.createhome,
        persist_home: args.persist_home,
        password: args.password,
        enforce_password: args.enforce_password,
        empty_password: args.empty_password,
        password_lock: args.password_lock,
        shell: args.account.shell,
        unique: args.account.unique,
        system: args.account.system,
        gecos,
        date: args.date,
        mindays: args.mindays,
        maxdays: args.maxdays,
        inactdays: args.inactdays,
        warndays: args.warndays,
        expire: args.expire,
        nologinit: args.nologinit,
        allow_uid_change: args.allow_uid_change,
        allow_gid_change: args.allow_gid_change,
        local: args.local,
    };
    if args.hash_password
        && let Some(password) = desired.password.take_if(|password| !password.is_empty())
    {
        desired.password = Some(hashed(&args.ids.name, &password)?);
    }
    match present_state(context, &args.ids.name, desired, &accounts) {
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(&args.ids.name, message).into()),
        result => result.map(Into::into),
    }
}

/// Returns the hash of a password, with the salt of the user's current one, so that the same password yields the
/// same hash.
fn hashed(name: &str, password: &str) -> Result<String, CallError> {
    let have = Shadow::of(name).map(|shadow| shadow.passwd).unwrap_or_default();
    let fields: Vec<&str> = have.split('$').collect();
    match fields[..] {
        ["", "6", salt, _] => passwords::hash(password, Some(salt), "sha512"),
        ["", "6", rounds, salt, _] => passwords::hash(password, Some(&format!("{rounds}${salt}")), "sha512"),
        ["", "5", salt, _] => passwords::hash(password, Some(salt), "sha256"),
        ["", "5", rounds, salt, _] => passwords::hash(password, Some(&format!("{rounds}${salt}")), "sha256"),
        _ => passwords::hash(password, None, "sha512"),
    }
}
