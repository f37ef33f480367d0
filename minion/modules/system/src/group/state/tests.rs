use super::*;
use crate::testing;

#[test]
fn results_of_groups_match_salt() {
    let accounts = Accounts::parse("", "adm:x:4:fred,ann\nweb:x:5:\n");
    let context = testing::state_context(true, &[]);
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let some = |names: &[&str]| Some(list(names));
    let mut report = String::new();
    for (name, desired) in [
        ("adm", Desired::default()),
        ("adm", Desired { gid: 4.into(), members: Some(list(&["ann", "fred"])), ..Desired::default() }),
        ("adm", Desired { gid: 7.into(), ..Desired::default() }),
        ("adm", Desired { members: Some(list(&["ann"])), ..Desired::default() }),
        ("adm", Desired { add: some(&["ann", "joe"]), remove: some(&["fred", "sue"]), ..Desired::default() }),
        ("adm", Desired { add: some(&["ann"]), members: Some(list(&["ann"])), ..Desired::default() }),
        ("adm", Desired { add: some(&["ann"]), remove: some(&["ann"]), ..Desired::default() }),
        ("new", Desired::default()),
    ] {
        let outcome = present_state(&context, name, &desired, &accounts).unwrap();
        report = format!("{report}{}: {}\n", Value::from(outcome.result), outcome.comment);
    }
    insta::assert_snapshot!(report, @r#"
        True: Group adm is present and up to date
        True: Group adm is present and up to date
        None: The following group attributes are set to be changed:
        gid: 7

        None: The following group attributes are set to be changed:
        members: ['ann']

        None: The following group attributes are set to be changed:
        addusers: ['joe']
        delusers: ['fred']

        None: Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. 
        None: Error. Same user(s) can not be added and deleted simultaneously
        None: Group new set to be added
        "#);
    let taken = Desired { gid: 4.into(), ..Desired::default() };
    let outcome = present_state(&testing::state_context(false, &[]), "new", &taken, &accounts).unwrap();
    assert_eq!(outcome.comment, "Group new is not present but gid 4 is already taken by group adm");
}

#[test]
fn test_mode_changes_no_groups() {
    let context = testing::state_context(true, &[]);
    for (name, comment) in [("root", "Group root is set for removal"), ("nobody_here", "Group not present")] {
        let args = Args::keyword(map! {"name" => name});
        let outcome = context.call.minion.states.call(&context, "group.absent", args).unwrap();
        assert_eq!(outcome.get("comment"), Some(&comment.into()));
    }
}
