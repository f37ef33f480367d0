//! `user`: users of this host, changed with the programs of Debian's passwd package.

mod change;
pub(crate) mod state;

use brine_context::programs::{run, succeeds};
use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::accounts::{Account, Accounts, GroupEntry};
use brine_host::programs::{argument, which};
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `user`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "user",
    [
        info,
        getent,
        list_users,
        list_groups,
        primary_group,
        add,
        delete,
        rename,
        change::chuid,
        change::chgid,
        change::chshell,
        change::chhome,
        change::chgroups,
        change::chfullname,
        change::chroomnumber,
        change::chworkphone,
        change::chhomephone,
        change::chother
    ]
);

/// Return the account of a user; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' user.info root
#[function]
pub fn info(
    _context: &Context,
    /// Login name.
    name: Value,
) -> CallResult {
    // Anything but a string is not a user name.
    let name = name.as_str().unwrap_or_default().to_owned();
    let accounts = Accounts::read();
    Ok(accounts.user(&name).map(|user| describe(user, &accounts)).unwrap_or_default().into())
}

/// Return the accounts of all users. `refresh` is without effect: they are not cached.
///
/// CLI Example:
///
///     salt '*' user.getent
#[function]
pub fn getent(
    _context: &Context,
    /// Without effect: users are not cached.
    #[default(false)]
    refresh: bool,
) -> CallResult {
    // Accounts are not cached.
    _ = refresh;
    let accounts = Accounts::read();
    Ok(accounts.users.iter().map(|user| describe(user, &accounts)).collect())
}

/// Return the names of all users.
///
/// CLI Example:
///
///     salt '*' user.list_users
#[function]
pub fn list_users(_context: &Context) -> CallResult {
    let mut names: Vec<String> = Accounts::read().users.into_iter().map(|user| user.name).collect();
    names.sort();
    Ok(names.into())
}

/// Return the names of the groups of a user.
///
/// CLI Example:
///
///     salt '*' user.list_groups foo
#[function]
pub fn list_groups(
    _context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    Ok(Accounts::read().groups_of(&name).into())
}

/// Return the name of a user's primary group.
///
/// CLI Example:
///
///     salt '*' user.primary_group saltadmin
#[function]
pub fn primary_group(
    _context: &Context,
    /// Login name.
    name: String,
) -> CallResult {
    let accounts = Accounts::read();
    let gid = accounts.user(&name).map(|user| user.gid);
    Ok(gid.and_then(|gid| accounts.groups.iter().find(|group| group.gid == gid)).map_or("", |group| &group.name).into())
}

/// The arguments for the shell of a user, and for the choice of the user id.
#[derive(Args)]
pub struct AccountArgs {
    /// Login shell.
    pub(super) shell: Option<String>,
    /// Whether no other user may have the user id.
    #[default(true)]
    pub(super) unique: bool,
    /// Whether a new account gets a user id in the range of system accounts.
    #[default(false)]
    pub(super) system: bool,
}

/// The name and the ids of a user.
#[derive(Args)]
pub struct IdArgs {
    /// Login name.
    pub(super) name: String,
    /// User id; the next free one by default.
    #[default]
    pub(super) uid: Value,
    /// Name or id of the primary group.
    #[default]
    pub(super) gid: Value,
}

/// The arguments of `user.add`.
#[derive(Args)]
pub struct AddArgs {
    #[args]
    ids: IdArgs,
    /// Supplementary groups.
    #[default]
    groups: Value,
    /// Path of the home directory.
    home: Option<String>,
    #[args]
    account: AccountArgs,
    /// Full name.
    #[default]
    fullname: String,
    /// Room number.
    #[default]
    roomnumber: String,
    /// Telephone number at work.
    #[default]
    workphone: String,
    /// Telephone number at home.
    #[default]
    homephone: String,
    /// Further text of the GECOS field.
    #[default]
    other: String,
    /// Whether the home directory is created.
    #[default(true)]
    createhome: bool,
    /// Without effect: for BSD.
    #[default]
    loginclass: Value,
    /// Whether a new account is left out of lastlog and faillog.
    #[default(false)]
    nologinit: bool,
    /// Whether a group with the user's name is created; the system decides by default.
    usergroup: Option<bool>,
    /// Whether only local accounts are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
}

/// Add a user.
///
/// CLI Example:
///
///     salt '*' user.add name <uid> <gid> <groups> <home> <shell>
#[function]
pub fn add(context: &Context, #[args] args: AddArgs) -> CallResult {
    // Login classes are for BSD.
    _ = args.loginclass;
    let gecos = gecos(&[&args.fullname, &args.roomnumber, &args.workphone, &args.homephone, &args.other]);
    let new = NewUser {
        uid: args.ids.uid,
        gid: args.ids.gid,
        groups: names(&args.groups),
        home: args.home,
        shell: args.account.shell,
        unique: args.account.unique,
        system: args.account.system,
        gecos,
        createhome: args.createhome,
        nologinit: args.nologinit,
        usergroup: args.usergroup,
        local: args.local,
    };
    new.check()?;
    succeeds(context, &new.command(&args.ids.name)?)
}

/// Remove a user; `remove` also deletes the home directory, `force` removes a user who is logged in.
///
/// CLI Example:
///
///     salt '*' user.delete name remove=True force=True
#[function]
pub fn delete(
    context: &Context,
    /// Login name.
    name: String,
    /// Whether the home directory and its content are deleted, too.
    #[default(false)]
    remove: bool,
    /// Whether the account is removed even if the user is logged in.
    #[default(false)]
    force: bool,
    /// Whether only local accounts are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
) -> CallResult {
    let program = if local { local_program("luserdel")? } else { "userdel" };
    let mut command = vec![program.to_owned()];
    command.extend(remove.then(|| "-r".into()));
    command.extend((force && !local).then(|| "-f".into()));
    command.push(argument(&name)?);
    let output = run(context, &command, &[])?;
    // Debian's userdel fails if the mailbox does not exist.
    let no_mailbox =
        output.retcode == 12 && ["var/mail", "var/spool/mail"].iter().any(|place| output.stderr.contains(place));
    if output.retcode != 0 && !no_mailbox {
        context.set_retcode(output.retcode);
        tracing::error!(jid = context.job.jid, program, retcode = output.retcode, "{}", output.stderr);
    }
    Ok((output.retcode == 0 || no_mailbox).into())
}

/// Rename a user.
///
/// CLI Example:
///
///     salt '*' user.rename name new_name
#[function]
pub fn rename(
    context: &Context,
    /// Login name.
    name: String,
    /// New login name.
    new_name: String,
) -> CallResult {
    if Accounts::read().user(&new_name).is_some() {
        return Err(CallError::Execution(format!("User '{new_name}' already exists")));
    }
    account(&name)?;
    change(context, &name, &["-l", &argument(&new_name)?])?;
    Ok(Accounts::read().user(&new_name).is_some().into())
}

/// Properties of a new user.
pub struct NewUser {
    /// UID.
    pub uid: Value,
    /// Primary group, by name or GID.
    pub gid: Value,
    /// Supplementary groups.
    pub groups: Vec<String>,
    /// Home directory.
    pub home: Option<String>,
    /// Login shell.
    pub shell: Option<String>,
    /// Whether the UID must be unused.
    pub unique: bool,
    /// Whether the UID is chosen from the range of system accounts.
    pub system: bool,
    /// GECOS field: full name and more, separated by commas.
    pub gecos: String,
    /// Whether the home directory is created.
    pub createhome: bool,
    /// Whether the user is left out of lastlog and faillog.
    pub nologinit: bool,
    /// Whether a group with the user's name is created.
    pub usergroup: Option<bool>,
    /// Whether libuser's programs are used, which only change local files.
    pub local: bool,
}

impl NewUser {
    /// Checks that the program is installed.
    pub fn check(&self) -> Result<(), CallError> {
        if self.local { local_program("luseradd").map(drop) } else { Ok(()) }
    }

    /// Returns the arguments of the `useradd` call.
    pub fn command(&self, name: &str) -> Result<Vec<String>, CallError> {
        let mut command = vec![if self.local { "luseradd" } else { "useradd" }.to_owned()];
        let mut option = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                command.extend([flag.to_owned(), value]);
            }
        };
        let value =
            |value: &Value| (!value.is_nil() && value.as_str() != Some("")).then(|| argument(&value.to_string()));
        option("-s", self.shell.as_deref().map(argument).transpose()?);
        option("-u", value(&self.uid).transpose()?);
        // useradd cannot create a group that exists.
        let own = self.groups.iter().any(|group| group == name).then(|| argument(name));
        let own = if self.usergroup == Some(true) { None } else { own };
        let own = value(&self.gid).or(own).transpose()?;
        option("-g", own.clone());
        let is_more = self.groups.iter().any(|group| Some(group) != own.as_ref());
        option("-G", is_more.then(|| argument(&self.groups.join(","))).transpose()?);
        option("-d", self.home.as_deref().map(argument).transpose()?);
        option("-c", (!self.gecos.is_empty()).then(|| self.gecos.clone()));
        command.extend((self.gid.is_nil() && self.usergroup == Some(true) && !self.local).then(|| "-U".into()));
        command.extend((self.usergroup == Some(false)).then(|| if self.local { "-n" } else { "-N" }.into()));
        command.extend((!self.unique).then(|| "-o".into()));
        command.extend(self.system.then(|| "-r".into()));
        command.extend(self.nologinit.then(|| "-l".into()));
        match (self.createhome, self.local) {
            (true, true) => {}
            (true, false) => command.push("-m".into()),
            (false, _) => command.push("-M".into()),
        }
        command.push(argument(name)?);
        Ok(command)
    }
}

/// Joins the subfields of the GECOS field with commas.
fn gecos(fields: &[&str]) -> String {
    fields.join(",").trim_end_matches(',').to_owned()
}

/// Returns a program of libuser; an error if it is not installed.
pub(super) fn local_program(name: &str) -> Result<&str, CallError> {
    which(name).map(|_| name).ok_or_else(|| CallError::Execution(format!("Command '{name}' cannot be found")))
}

fn account(name: &str) -> Result<Account, CallError> {
    let user = Accounts::read().user(name).cloned();
    user.ok_or_else(|| CallError::Execution(format!("User '{name}' does not exist")))
}

fn change(context: &Context, name: &str, with: &[&str]) -> Result<Value, CallError> {
    let mut command = vec!["usermod".to_owned()];
    command.extend(with.iter().map(|word| (*word).to_owned()));
    command.push(argument(name)?);
    succeeds(context, &command)
}

/// Returns a user in Salt's form.
pub fn describe(user: &Account, accounts: &Accounts) -> Map {
    let gecos: Vec<&str> = user.gecos.splitn(5, ',').collect();
    let field = |index: usize| gecos.get(index).copied().unwrap_or_default();
    map! {
        "gid" => user.gid,
        "groups" => accounts.groups_of(&user.name),
        "home" => &user.home,
        "name" => &user.name,
        "passwd" => &user.passwd,
        "shell" => &user.shell,
        "uid" => user.uid,
        "fullname" => field(0),
        "roomnumber" => field(1),
        "workphone" => field(2),
        "homephone" => field(3),
        "other" => field(4),
    }
}

/// Returns a group in Salt's form.
pub fn describe_group(group: &GroupEntry) -> Map {
    map! {"name" => &group.name, "passwd" => &group.passwd, "gid" => group.gid, "members" => group.members.clone()}
}

#[cfg(test)]
mod tests;
