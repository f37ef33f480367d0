use super::*;
use crate::testing;

fn accounts() -> Accounts {
    Accounts::parse(
        "root:x:0:0:root:/root:/bin/bash\nfred:x:1000:1000:Fred,1:/tmp:/bin/sh\n",
        "root:x:0:\nfred:x:1000:\nadm:x:4:fred\nweb:x:5:\n",
    )
}

fn would(name: &str, desired: &Desired) -> String {
    let outcome = present_state(&testing::state_context(true, &[]), name, desired.clone(), &accounts()).unwrap();
    assert_eq!(outcome.changes, Map::new());
    format!("{}: {}", Value::from(outcome.result), outcome.comment)
}

fn full(name: &str) -> [Option<String>; 5] {
    [Some(name.into()), None, None, None, None]
}

fn list(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn results_of_users_match_salt() {
    let base = || Desired { remove_groups: true, createhome: true, enforce_password: true, ..Desired::default() };
    let mut report = String::new();
    for (name, desired) in [
        ("fred", base()),
        ("fred", Desired { groups: list(&["adm"]), gecos: full("Fred"), home: Some("/tmp".into()), ..base() }),
        ("fred", Desired { groups: list(&["web"]), ..base() }),
        ("fred", Desired { groups: list(&["web"]), remove_groups: false, ..base() }),
        ("fred", Desired { groups: list(&["adm"]), optional_groups: vec!["web".into()], ..base() }),
        (
            "fred",
            Desired { shell: Some("/bin/bash".into()), home: Some("/no/such".into()), gecos: full("F"), ..base() },
        ),
        ("fred", Desired { uid: 5.into(), ..base() }),
        (
            "fred",
            Desired { uid: 5.into(), gid: "adm".into(), allow_uid_change: true, allow_gid_change: true, ..base() },
        ),
        ("fred", Desired { gid: "nosuch".into(), ..base() }),
        ("fred", Desired { groups: list(&["nosuch"]), ..base() }),
        ("fred", Desired { password: Some("$6$secret".into()), ..base() }),
        ("ann", base()),
        ("ann", Desired { groups: list(&["adm", "nosuch"]), ..base() }),
    ] {
        report = format!("{report}{}\n", would(name, &desired));
    }
    insta::assert_snapshot!(report, @r#"
        True: User fred is present and up to date
        True: User fred is present and up to date
        None: The following user attributes are set to be changed:
        groups: ['web']

        None: The following user attributes are set to be changed:
        groups: ['adm', 'web']

        None: The following user attributes are set to be changed:
        groups: ['adm', 'web']

        None: The following user attributes are set to be changed:
        home: /no/such
        homeDoesNotExist: /no/such
        shell: /bin/bash
        fullname: F

        False: Encountered error checking for needed changes. Additional info follows:

        - Changing uid (1000 -> 5) not permitted, set allow_uid_change to True to force this change. Note that this will not change file ownership.
        None: The following user attributes are set to be changed:
        uid: 5
        gid: adm
        groups: ['fred']

        False: Encountered error checking for needed changes. Additional info follows:

        - Changing gid (1000 -> nosuch) not permitted, set allow_gid_change to True to force this change. Note that this will not change file ownership.
        None: The following user attributes are set to be changed:
        groups: []
        groups (pending creation): nosuch

        None: The following user attributes are set to be changed:
        passwd: XXX-REDACTED-XXX

        None: User ann set to be added
        None: User ann set to be added (pending groups: nosuch)
        "#);
}

#[test]
fn test_mode_changes_no_users() {
    let context = testing::state_context(true, &[]);
    for (name, comment) in [("root", "User root set for removal"), ("nobody_here", "User nobody_here is not present")] {
        let args = Args::keyword(map! {"name" => name});
        let outcome = context.call.minion.states.call(&context, "user.absent", args).unwrap();
        assert_eq!(outcome.get("comment"), Some(&comment.into()));
    }
}
