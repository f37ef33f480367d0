//! `user`: the users of this host, changed by the programs of Debian's passwd package.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use super::accounts::{Account, Accounts, GroupEntry};
use super::programs::{argument, succeeds};
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
        uid: Option<u32> = None,
        gid: Value = Value::Nil,
        groups: Value = Value::Nil,
        home: Option<String> = None,
        shell: Option<String> = None,
        unique: bool = true,
        system: bool = false,
        fullname: String = String::new(),
        createhome: bool = true,
        **_kwargs
    ) {
        let new = NewUser { uid, gid, groups: names(&groups), home, shell, unique, system, fullname, createhome };
        succeeds(context, &new.command(&name)?)
    }

    /// Removes a user; `remove` takes the home folder too, `force` does so while the user is logged in.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.delete name remove=True force=True
    fn delete(context, name: String, remove: bool = false, force: bool = false) {
        let mut command = vec!["userdel".to_owned()];
        command.extend(remove.then(|| "-r".into()));
        command.extend(force.then(|| "-f".into()));
        command.push(argument(&name)?);
        succeeds(context, &command)
    }

    /// Gives a user another number.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chuid foo 4376
    fn chuid(context, name: String, uid: u32) {
        change(context, &name, &["-u", &uid.to_string()])
    }

    /// Gives a user another own group.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chgid foo 4376
    fn chgid(context, name: String, gid: Value) {
        change(context, &name, &["-g", &argument(&gid.to_string())?])
    }

    /// Gives a user another shell.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chshell foo /bin/zsh
    fn chshell(context, name: String, shell: String) {
        change(context, &name, &["-s", &argument(&shell)?])
    }

    /// Gives a user another home folder; `persist` moves what is in it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chhome foo /home/users/foo True
    fn chhome(context, name: String, home: String, persist: bool = false) {
        let home = argument(&home)?;
        let with: &[&str] = if persist { &["-d", &home, "-m"] } else { &["-d", &home] };
        change(context, &name, with)
    }

    /// Puts a user in groups: in these alone, or with `append` in these too.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chgroups foo wheel,root
    fn chgroups(context, name: String, groups: Value, append: bool = false) {
        let list = names(&groups).join(",");
        let with: &[&str] = if append { &["-a", "-G", &list] } else { &["-G", &list] };
        change(context, &name, with)
    }

    /// Gives a user another full name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.chfullname foo "Foo Bar"
    fn chfullname(context, name: String, fullname: String) {
        let accounts = Accounts::read();
        let Some(user) = accounts.user(&name) else {
            return Err(CallError::Execution(format!("User '{name}' does not exist")));
        };
        if fullname.contains([':', ',', '\n']) {
            return Err(CallError::Execution(format!("the full name '{fullname}' has a ':', a ',' or a line end in it")));
        }
        let mut fields: Vec<&str> = user.gecos.split(',').collect();
        fields[0] = &fullname;
        change(context, &name, &["-c", &fields.join(",")])
    }
}

/// What a user is made with.
pub struct NewUser {
    /// The number.
    pub uid: Option<u32>,
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
    /// The full name.
    pub fullname: String,
    /// Whether the home folder is made.
    pub createhome: bool,
}

impl NewUser {
    /// The words of the `useradd` call.
    pub fn command(&self, name: &str) -> Result<Vec<String>, CallError> {
        let mut command = vec!["useradd".to_owned()];
        let mut option = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                command.extend([flag.to_owned(), value]);
            }
        };
        option("-s", self.shell.as_deref().map(argument).transpose()?);
        option("-u", self.uid.map(|uid| uid.to_string()));
        option("-g", self.gid.is_truthy().then(|| argument(&self.gid.to_string())).transpose()?);
        option("-G", (!self.groups.is_empty()).then(|| argument(&self.groups.join(","))).transpose()?);
        option("-d", self.home.as_deref().map(argument).transpose()?);
        option("-c", (!self.fullname.is_empty()).then(|| self.fullname.clone()));
        command.extend((!self.unique).then(|| "-o".into()));
        command.extend(self.system.then(|| "-r".into()));
        command.push(if self.createhome { "-m" } else { "-M" }.into());
        command.push(argument(name)?);
        Ok(command)
    }
}

/// Gives a user a password, by its hash. The hash goes in by a pipe: everybody sees a program's words.
pub fn set_password(context: &Context, name: &str, hash: &str) -> Result<bool, CallError> {
    if name.contains([':', '\n']) || hash.contains([':', '\n']) {
        return Err(CallError::Execution(format!(
            "the name '{name}' or its password's hash has a ':' or a line end in it"
        )));
    }
    let stdin = Some(format!("{}:{hash}\n", argument(name)?));
    let program = crate::process::Program { command: "chpasswd -e".into(), stdin, ..Default::default() };
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    Ok(output.retcode == 0)
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
    use brine_core::function::Args;

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
            uid: None,
            gid: Value::Nil,
            groups: vec![],
            home: None,
            shell: None,
            unique: true,
            system: false,
            fullname: String::new(),
            createhome: true,
        };
        assert_eq!(plain().command("fred").unwrap().join(" "), "useradd -m fred");
        let full = NewUser {
            uid: Some(5),
            gid: "staff".into(),
            groups: vec!["a".into(), "b".into()],
            home: Some("/h".into()),
            shell: Some("/bin/sh".into()),
            unique: false,
            system: true,
            fullname: "Fred F".into(),
            createhome: false,
        };
        insta::assert_snapshot!(full.command("fred").unwrap().join(" "), @"useradd -s /bin/sh -u 5 -g staff -G a,b -d /h -c Fred F -o -r -M fred");
        assert!(plain().command("-rf").is_err());
    }

    #[test]
    fn names_come_as_lists_or_with_commas() {
        assert_eq!(names(&"a, b,".into()), ["a", "b"]);
        assert_eq!(names(&brine_core::list!["a", 5]), ["a", "5"]);
        assert_eq!(names(&Value::Nil), Vec::<String>::new());
    }
}
