//! The users and groups of this host, from `/etc/passwd` and `/etc/group`.

use brine_value::{FromValue, Value};

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name.
    pub name: String,
    /// `x`, as the hash is in the shadow file.
    pub passwd: String,
    /// The user id.
    pub uid: u32,
    /// The primary group id.
    pub gid: u32,
    /// Full name and further fields, separated by commas.
    pub gecos: String,
    /// The home directory.
    pub home: String,
    /// The shell.
    pub shell: String,
}

/// A line of `/etc/group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEntry {
    /// The name.
    pub name: String,
    /// `x`, as the hash is in the shadow file.
    pub passwd: String,
    /// The group id.
    pub gid: u32,
    /// The users with this supplementary group.
    pub members: Vec<String>,
}

/// All users and groups.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    /// The users, in the order of the file.
    pub users: Vec<Account>,
    /// The groups, in the order of the file.
    pub groups: Vec<GroupEntry>,
}

impl Accounts {
    /// Reads the current users and groups.
    pub fn read() -> Self {
        let text = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        Self::parse(&text("/etc/passwd"), &text("/etc/group"))
    }

    /// Parses the contents of the two files. Invalid lines are skipped.
    pub fn parse(passwd: &str, group: &str) -> Self {
        let users = passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, passwd, uid, gid, gecos, home, shell] = fields[..] else { return None };
            let [name, passwd, gecos, home, shell] = [name, passwd, gecos, home, shell].map(str::to_owned);
            Some(Account { name, passwd, uid: uid.parse().ok()?, gid: gid.parse().ok()?, gecos, home, shell })
        });
        let groups = group.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, passwd, gid, members] = fields[..] else { return None };
            let members = members.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            Some(GroupEntry { name: name.to_owned(), passwd: passwd.to_owned(), gid: gid.parse().ok()?, members })
        });
        Accounts { users: users.collect(), groups: groups.collect() }
    }

    /// Returns the user with this name.
    pub fn user(&self, name: &str) -> Option<&Account> {
        self.users.iter().find(|user| user.name == name)
    }

    /// Returns the group with this name.
    pub fn group(&self, name: &str) -> Option<&GroupEntry> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Returns the first group with this id.
    pub fn group_numbered(&self, gid: u32) -> Option<&GroupEntry> {
        self.groups.iter().find(|group| group.gid == gid)
    }

    /// Returns the id of a group, given by its id or its name.
    pub fn number_of(&self, group: &Value) -> Option<u32> {
        u32::from_value(group).or_else(|| self.group(group.as_str()?).map(|group| group.gid))
    }

    /// Returns the names of a user's groups, sorted.
    pub fn groups_of(&self, name: &str) -> Vec<String> {
        let own = self.user(name).map(|user| user.gid);
        let is_in = |group: &&GroupEntry| Some(group.gid) == own || group.members.iter().any(|member| member == name);
        let mut names: Vec<String> = self.groups.iter().filter(is_in).map(|group| group.name.clone()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lines_are_skipped() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n+::::::\nfred:x:1000:1000:Fred F,1,2:/home/fred:/bin/sh\nbad\n";
        let accounts = Accounts::parse(passwd, "root:x:0:\nfred:x:1000:\nadm:x:4:root,fred\nweb:x:5:fred\n\n");
        assert_eq!(accounts.users.len(), 2);
        assert_eq!(accounts.user("fred").unwrap().gecos, "Fred F,1,2");
        assert_eq!(accounts.groups_of("fred"), ["adm", "fred", "web"]);
        assert_eq!(accounts.groups_of("nobody"), Vec::<String>::new());
        assert_eq!(accounts.group("adm").unwrap().members, ["root", "fred"]);
    }
}
