//! `user`: the users of this host, changed by the programs of Debian's passwd package.

use brine_function::{CallError, functions};
use brine_value::{Map, Value, map};

use super::accounts::{Account, Accounts, GroupEntry};
use super::programs::{argument, run, succeeds, which};
use crate::context::Context;

functions! {
    module "user", context Context;

    /// What is known of a user; nothing if there is none.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.info root
    fn info(_context, name: Value) {
        // A user that has no name is no user.
        let name = name.as_str().unwrap_or_default().to_owned();
        let accounts = Accounts::read();
        Ok(accounts.user(&name).map(|user| describe(user, &accounts)).unwrap_or_default().into())
    }

    /// What is known of all users.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.getent
    fn getent(_context, refresh: bool = false) {
        // Nothing is kept between calls.
        _ = refresh;
        let accounts = Accounts::read();
        Ok(accounts.users.iter().map(|user| describe(user, &accounts)).collect())
    }

    /// The names of all users.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.list_users
    fn list_users(_context) {
        let mut names: Vec<String> = Accounts::read().users.into_iter().map(|user| user.name).collect();
        names.sort();
        Ok(names.into())
    }

    /// The names of the groups that a user is in.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.list_groups foo
    fn list_groups(_context, name: String) {
        Ok(Accounts::read().groups_of(&name).into())
    }

    /// The name of a user's own group.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.primary_group saltadmin
    fn primary_group(_context, name: String) {
        let accounts = Accounts::read();
        let gid = accounts.user(&name).map(|user| user.gid);
        Ok(gid.and_then(|gid| accounts.groups.iter().find(|group| group.gid == gid)).map_or("", |group| &group.name).into())
    }

    /// Adds a user.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.add name <uid> <gid> <groups> <home> <shell>
    fn add(
        context,
        name: String,
        uid: Value = Value::Nil,
        gid: Value = Value::Nil,
        groups: Value = Value::Nil,
        home: Option<String> = None,
        shell: Option<String> = None,
        unique: bool = true,
        system: bool = false,
        fullname: String = String::new(),
        roomnumber: String = String::new(),
        workphone: String = String::new(),
        homephone: String = String::new(),
        other: String = String::new(),
        createhome: bool = true,
        loginclass: Value = Value::Nil,
        nologinit: bool = false,
        usergroup: Option<bool> = None,
        local: bool = false
    ) {
        // Login classes are BSD's.
        _ = loginclass;
        let gecos = gecos(&[&fullname, &roomnumber, &workphone, &homephone, &other]);
        let new = NewUser { uid, gid, groups: names(&groups), home, shell, unique, system, gecos, createhome, nologinit, usergroup, local };
        new.check()?;
        succeeds(context, &new.command(&name)?)
    }

    /// Removes a user; `remove` takes the home folder too, `force` does so while the user is logged in.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.delete name remove=True force=True
    fn delete(context, name: String, remove: bool = false, force: bool = false, local: bool = false) {
        let program = if local { local_program("luserdel")? } else { "userdel" };
        let mut command = vec![program.to_owned()];
        command.extend(remove.then(|| "-r".into()));
        command.extend((force && !local).then(|| "-f".into()));
        command.push(argument(&name)?);
        let output = run(context, &command, &[])?;
        // Debian's userdel takes a mailbox that is not there for a failure.
        let no_mailbox = output.retcode == 12 && ["var/mail", "var/spool/mail"].iter().any(|place| output.stderr.contains(place));
        if output.retcode != 0 && !no_mailbox {
            tracing::error!(jid = context.job.jid, program, retcode = output.retcode, "{}", output.stderr);
        }
        Ok((output.retcode == 0 || no_mailbox).into())
    }

    /// Gives a user another name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.rename name new_name
    fn rename(context, name: String, new_name: String) {
        if Accounts::read().user(&new_name).is_some() {
            return Err(CallError::Execution(format!("User '{new_name}' already exists")));
        }
        there(&name)?;
        change(context, &name, &["-l", &argument(&new_name)?])?;
        Ok(Accounts::read().user(&new_name).is_some().into())
    }

    /// Gives a user another number.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chuid foo 4376
    fn chuid(context, name: String, uid: Value) {
        change_field(context, &name, &["-u"], &uid, |user| user.uid.into())
    }

    /// Gives a user another own group.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chgid foo 4376
    fn chgid(context, name: String, gid: Value) {
        change_field(context, &name, &["-g"], &gid, |user| user.gid.into())
    }

    /// Gives a user another shell.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chshell foo /bin/zsh
    fn chshell(context, name: String, shell: String) {
        change_field(context, &name, &["-s"], &shell.into(), |user| (&user.shell).into())
    }

    /// Gives a user another home folder; `persist` moves what is in it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chhome foo /home/users/foo True
    fn chhome(context, name: String, home: String, persist: bool = false) {
        let flags: &[&str] = if persist { &["-m", "-d"] } else { &["-d"] };
        change_field(context, &name, flags, &home.into(), |user| (&user.home).into())
    }

    /// Puts a user in groups: in these alone, or with `append` in these too.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chgroups foo wheel,root
    fn chgroups(context, name: String, groups: Value, append: bool = false) {
        let mut groups = names(&groups);
        groups.sort();
        groups.dedup();
        if Accounts::read().groups_of(&name) == groups {
            return Ok(true.into());
        }
        let list = groups.join(",");
        let with: &[&str] = if append { &["-a", "-G", &list] } else { &["-G", &list] };
        change(context, &name, with)
    }

    /// Gives a user another full name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chfullname foo "Foo Bar"
    fn chfullname(context, name: String, fullname: String) {
        change_gecos(context, &name, 0, &fullname)
    }

    /// Gives a user another room number.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chroomnumber foo 123
    fn chroomnumber(context, name: String, roomnumber: String) {
        change_gecos(context, &name, 1, &roomnumber)
    }

    /// Gives a user another telephone number at work.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chworkphone foo 7735550123
    fn chworkphone(context, name: String, workphone: String) {
        change_gecos(context, &name, 2, &workphone)
    }

    /// Gives a user another telephone number at home.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chhomephone foo 7735551234
    fn chhomephone(context, name: String, homephone: String) {
        change_gecos(context, &name, 3, &homephone)
    }

    /// Changes what else is said of a user.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chother foobar
    fn chother(context, name: String, other: String) {
        change_gecos(context, &name, 4, &other)
    }
}

/// What a user is made with.
pub struct NewUser {
    /// The number.
    pub uid: Value,
    /// The own group, by name or number.
    pub gid: Value,
    /// Further groups.
    pub groups: Vec<String>,
    /// The home folder.
    pub home: Option<String>,
    /// The shell.
    pub shell: Option<String>,
    /// Whether the number must be free.
    pub unique: bool,
    /// Whether this is a user of the system.
    pub system: bool,
    /// Full name and more, separated by commas.
    pub gecos: String,
    /// Whether the home folder is made.
    pub createhome: bool,
    /// Whether the logs of logins are left alone.
    pub nologinit: bool,
    /// Whether there is to be a group of the user's name.
    pub usergroup: Option<bool>,
    /// Whether libuser's programs are used, which change this host's files alone.
    pub local: bool,
}

impl NewUser {
    /// Whether the program is there.
    pub fn check(&self) -> Result<(), CallError> {
        if self.local { local_program("luseradd").map(drop) } else { Ok(()) }
    }

    /// The words of the `useradd` call.
    pub fn command(&self, name: &str) -> Result<Vec<String>, CallError> {
        let mut command = vec![if self.local { "luseradd" } else { "useradd" }.to_owned()];
        let mut option = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                command.extend([flag.to_owned(), value]);
            }
        };
        let said =
            |value: &Value| (!value.is_nil() && value.as_str() != Some("")).then(|| argument(&value.to_string()));
        option("-s", self.shell.as_deref().map(argument).transpose()?);
        option("-u", said(&self.uid).transpose()?);
        // A group of the user's name that is there already cannot be made with the user.
        let own = self.groups.iter().any(|group| group == name).then(|| argument(name));
        let own = if self.usergroup == Some(true) { None } else { own };
        let own = said(&self.gid).or(own).transpose()?;
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

/// Fields of what is said of a user, as one text.
fn gecos(fields: &[&str]) -> String {
    fields.join(",").trim_end_matches(',').to_owned()
}

/// A program of libuser, if it is there.
pub(super) fn local_program(name: &str) -> Result<&str, CallError> {
    which(name).map(|_| name).ok_or_else(|| CallError::Execution(format!("Command '{name}' cannot be found")))
}

fn there(name: &str) -> Result<Account, CallError> {
    let user = Accounts::read().user(name).cloned();
    user.ok_or_else(|| CallError::Execution(format!("User '{name}' does not exist")))
}

/// Changes a field of a user, and says whether it is that then.
fn change_field(
    context: &Context,
    name: &str,
    flags: &[&str],
    value: &Value,
    of: fn(&Account) -> Value,
) -> Result<Value, CallError> {
    if of(&there(name)?) == *value {
        return Ok(true.into());
    }
    let text = argument(&value.to_string())?;
    change(context, name, &[flags, &[&text]].concat())?;
    Ok((of(&there(name)?) == *value).into())
}

fn change_gecos(context: &Context, name: &str, place: usize, text: &str) -> Result<Value, CallError> {
    let user = there(name)?;
    let mut fields: Vec<&str> = user.gecos.splitn(5, ',').collect();
    fields.resize(5, "");
    fields[place] = text;
    if gecos(&fields) == user.gecos {
        return Ok(true.into());
    }
    change(context, name, &["-c", &gecos(&fields)])
}

/// A list, or names separated by commas.
pub fn names(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(ToString::to_string).collect(),
        Value::Nil => Vec::new(),
        text => text.to_string().split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}

fn change(context: &Context, name: &str, with: &[&str]) -> Result<Value, CallError> {
    let mut command = vec!["usermod".to_owned()];
    command.extend(with.iter().map(|word| (*word).to_owned()));
    command.push(argument(name)?);
    succeeds(context, &command)
}

/// A user as Salt tells of it.
pub fn describe(user: &Account, accounts: &Accounts) -> Map {
    let gecos: Vec<&str> = user.gecos.splitn(5, ',').collect();
    let field = |place: usize| gecos.get(place).copied().unwrap_or_default();
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

/// A group as Salt tells of it.
pub fn describe_group(group: &GroupEntry) -> Map {
    map! {"name" => &group.name, "passwd" => &group.passwd, "gid" => group.gid, "members" => group.members.clone()}
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use super::*;
    use crate::testing;

    #[test]
    fn users_are_described_as_salt_does() {
        let context = testing::context(&[]);
        let info = context.call("user.info", Args::positional(["root".into()])).unwrap();
        assert_eq!((info.get("uid"), info.get("home")), (Some(&0.into()), Some(&"/root".into())));
        assert_eq!(context.call("user.info", Args::positional(["nobody_here".into()])), Ok(Value::map()));
        assert_eq!(context.call("user.primary_group", Args::positional(["root".into()])), Ok("root".into()));
    }

    #[test]
    fn a_user_is_made_with_what_is_said() {
        let plain = || NewUser {
            uid: Value::Nil,
            gid: Value::Nil,
            groups: vec![],
            home: None,
            shell: None,
            unique: true,
            system: false,
            gecos: String::new(),
            createhome: true,
            nologinit: false,
            usergroup: None,
            local: false,
        };
        assert_eq!(plain().command("fred").unwrap().join(" "), "useradd -m fred");
        let full = NewUser {
            uid: 5.into(),
            gid: "staff".into(),
            groups: vec!["a".into(), "b".into()],
            home: Some("/h".into()),
            shell: Some("/bin/sh".into()),
            unique: false,
            system: true,
            gecos: "Fred F".into(),
            createhome: false,
            nologinit: true,
            usergroup: Some(false),
            local: false,
        };
        insta::assert_snapshot!(full.command("fred").unwrap().join(" "), @"useradd -s /bin/sh -u 5 -g staff -G a,b -d /h -c Fred F -N -o -r -l -M fred");
        let group = NewUser { usergroup: Some(true), ..plain() };
        assert_eq!(group.command("fred").unwrap().join(" "), "useradd -U -m fred");
        let own = NewUser { groups: vec!["fred".into()], ..plain() };
        assert_eq!(own.command("fred").unwrap().join(" "), "useradd -g fred -m fred");
        let local = NewUser { local: true, ..plain() };
        assert_eq!(local.command("fred").unwrap().join(" "), "luseradd fred");
        assert!(plain().command("-rf").is_err());
    }

    #[test]
    fn names_come_as_lists_or_with_commas() {
        assert_eq!(names(&"a, b,".into()), ["a", "b"]);
        assert_eq!(names(&brine_value::list!["a", 5]), ["a", "5"]);
        assert_eq!(names(&Value::Nil), Vec::<String>::new());
    }
}
