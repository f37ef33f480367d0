use brine_function::Args;

use super::*;
use crate::testing;

#[test]
fn entries_of_users_match_salt() {
    let context = testing::context(&[]);
    let info = context.call("user.info", Args::positional(["root".into()])).unwrap();
    assert_eq!((info.get("uid"), info.get("home")), (Some(&0.into()), Some(&"/root".into())));
    assert_eq!(context.call("user.info", Args::positional(["nobody_here".into()])), Ok(Value::map()));
    assert_eq!(context.call("user.primary_group", Args::positional(["root".into()])), Ok("root".into()));
}

#[test]
fn useradd_has_the_requested_options() {
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
