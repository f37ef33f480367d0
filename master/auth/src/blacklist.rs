//! `publisher_acl_blacklist`: users who may not publish, and blocked functions.

use brine_target::matches_expression;
use brine_value::{Map, Value};

use crate::names::names_folded;

/// The entries of the option.
#[derive(Debug, Default)]
pub struct Blacklist {
    users: Vec<String>,
    modules: Vec<String>,
}

impl Blacklist {
    /// Parses the option.
    pub fn new(option: Option<&Value>) -> Self {
        let map = option.and_then(Value::as_map);
        let list = |name: &str| -> Vec<String> {
            let listed = map.and_then(|map: &Map| map.get(name)).and_then(Value::as_list).unwrap_or_default();
            listed.iter().map(ToString::to_string).collect()
        };
        Blacklist { users: list("users"), modules: list("modules") }
    }

    /// Whether a user is blocked, in any spelling of the name. Names are globs or regular expressions.
    pub fn has_user(&self, user: &str) -> bool {
        self.users.iter().any(|expression| names_folded(expression, user))
    }

    /// Whether one of the functions is blocked. Entries are module names, or globs or regular expressions for the full
    /// function name. (Salt matches entries against the full name only, so that `cmd` does not block `cmd.run`.)
    pub fn has_function<'a>(&self, functions: impl IntoIterator<Item = &'a str>) -> bool {
        functions.into_iter().any(|function| {
            let module = function.split('.').next().unwrap_or_default();
            self.modules.iter().any(|expression| expression == module || matches_expression(expression, function))
        })
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn users_and_modules_are_blocked() {
        let option = map! {"users" => list!["root", "^(?!sudo_).*$"], "modules" => list!["cmd", "file.*", "test.echo"]};
        let list = Blacklist::new(Some(&option.into()));
        for (user, out) in [("root", true), ("ROOT", true), ("ｒoot", true), ("fred", true), ("sudo_fred", false)] {
            assert_eq!(list.has_user(user), out, "{user}");
        }
        for (function, out) in
            [("cmd.run", true), ("cmdmod.run", false), ("file.remove", true), ("test.echo", true), ("test.ping", false)]
        {
            assert_eq!(list.has_function([function]), out, "{function}");
        }
        assert!(list.has_function(["test.ping", "cmd.run"]));
        let none = Blacklist::new(None);
        assert!(!none.has_user("root") && !none.has_function(["cmd.run"]));
    }
}
