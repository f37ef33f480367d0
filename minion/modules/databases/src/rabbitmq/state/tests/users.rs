//! The states `rabbitmq_user`.

use super::*;

#[test]
fn users_are_created_changed_and_deleted() {
    let perms = |pattern: &str| list![map! {"shop" => list!["", "", pattern]}];
    check(vec![
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "password" => "s3cret"},
            "",
            (Some(true), "User 'joe' is already present.", ""),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "password" => "s3cret", "tags" => "monitoring", "perms" => perms(".*")},
            "",
            (Some(true), "'joe' is already in the desired state.", ""),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "new", "password" => "s3cret", "tags" => list!["a"]},
            "",
            (None, "User 'new' is set to be created.", r#"{"user": {"old": "", "new": "new"}}"#),
        ),
        case(
            "rabbitmq_user.present",
            map! {
                "name" => "new",
                "password" => "s3cret",
                "tags" => "a b",
                "perms" => list![map! {"/" => list!["^x$", "", ".*"]}, map! {"shop" => list!["", "", ""]}],
            },
            "$ rabbitmqctl add_user new\n$ rabbitmqctl set_user_tags new a b\n\
             $ rabbitmqctl set_permissions -p / new '^x$' '' '.*'\n$ rabbitmqctl set_permissions -p shop new '' '' ''\n",
            (
                Some(true),
                "'new' was configured.",
                r#"{"user": {"old": "", "new": "new"}, "tags": {"old": [], "new": ["a", "b"]}, "perms": {"new": {"/": {"configure": "^x$", "write": "", "read": ".*"}, "shop": {"configure": "", "write": "", "read": ""}}}}"#,
            ),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "new"},
            "$ rabbitmqctl add_user new\n$ rabbitmqctl clear_password new\n",
            (Some(true), "'new' was configured.", r#"{"user": {"old": "", "new": "new"}}"#),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "password" => "s3cret", "force" => true, "tags" => list!["x"], "perms" => perms("a")},
            "",
            (
                None,
                "Configuration for 'joe' will change.",
                r#"{"password": {"old": "", "new": "Set password."}, "tags": {"old": ["monitoring"], "new": ["x"]}, "perms": {"old": {"configure": "", "write": "", "read": ".*"}, "new": {"shop": {"configure": "", "write": "", "read": "a"}}}}"#,
            ),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "guest", "password" => "s3cret"},
            "$ rabbitmqctl authenticate_user guest\n! user 'guest' - invalid credentials\n= 65\n\
             $ rabbitmqctl change_password guest\n",
            (Some(true), "'guest' was configured.", r#"{"password": {"old": "", "new": "Set password."}}"#),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "force" => true},
            "$ rabbitmqctl clear_password joe\n",
            (Some(true), "'joe' was configured.", r#"{"password": {"old": "Removed password.", "new": ""}}"#),
        ),
        // A failure shows the changes that were made before it.
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "tags" => list!["x"], "perms" => list![map! {"none" => list!["", "", ""]}]},
            "$ rabbitmqctl set_user_tags joe x\n$ rabbitmqctl set_permissions -p none joe '' '' ''\n\
             ! Virtual host 'none' does not exist\n= 65\n",
            (
                Some(false),
                "Error: RabbitMQ command failed: Virtual host 'none' does not exist",
                r#"{"tags": {"old": ["monitoring"], "new": ["x"]}}"#,
            ),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "joe", "perms" => list![map! {"shop" => list!["", ""]}]},
            "",
            (
                Some(false),
                "Error: the permissions in virtual host 'shop' are invalid: expected three regular expressions, got ['', '']",
                "",
            ),
        ),
        case(
            "rabbitmq_user.present",
            map! {"name" => "--node=x", "password" => "s3cret"},
            "",
            (Some(false), "Error: '--node=x' cannot be used: it starts with '-' or is empty", ""),
        ),
        case("rabbitmq_user.absent", map! {"name" => "none"}, "", (Some(true), "The user 'none' is not present.", "")),
        case(
            "rabbitmq_user.absent",
            map! {"name" => "joe"},
            "",
            (None, "The user 'joe' will be removed.", r#"{"name": {"old": "joe", "new": ""}}"#),
        ),
        case(
            "rabbitmq_user.absent",
            map! {"name" => "joe"},
            "$ rabbitmqctl delete_user joe\n| Deleting user \"joe\" ...\n",
            (Some(true), "The user 'joe' was removed.", r#"{"name": {"old": "joe", "new": ""}}"#),
        ),
    ]);
}
