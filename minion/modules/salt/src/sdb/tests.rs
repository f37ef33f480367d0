use std::sync::Arc;

use brine_value::list;

use super::*;
use crate::testing;

fn context(profiles: Map) -> Context {
    let mut context = testing::context(&[]);
    context.run_opts = Some(Arc::new(profiles));
    context.run_pillar = Some(Arc::new(map! {"of_pillar" => map! {"driver" => "env"}}));
    context
}

#[test]
fn values_come_from_the_driver_of_the_profile() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).unwrap();
        directory.path().join(name)
    };
    let files = list![
        write("a.yaml", "db: {user: me, hosts: [a]}\n"),
        write("b.yaml", "db: {password: xyzzy, hosts: [b]}\n"),
        directory.path().join("none.yaml")
    ];
    let context = context(map! {
        "osenv" => map! {"driver" => "env"},
        "files" => map! {"driver" => "yaml", "files" => files.clone()},
        "lists" => map! {"driver" => "yaml", "files" => files, "merge" => map! {"merge_lists" => true}},
        "broken" => map! {"driver" => "yaml", "files" => list![write("c.yaml", "- a\n")]},
        "vault" => map! {"driver" => "vault"},
    });
    let call = |fun: &str, args: &[&str]| {
        let args = Args::positional(args.iter().map(|arg| Value::from(*arg)));
        context.call(&format!("sdb.{fun}"), args).map_err(|error| error.to_string())
    };
    let path = Value::from(std::env::var("PATH").unwrap());
    for (uri, expected) in [
        ("sdb://osenv/PATH", Ok(path.clone())),
        ("sdb://of_pillar/PATH", Ok(path.clone())),
        ("sdb://osenv/BRINE_NOT_THERE", Ok(Value::Nil)),
        ("sdb://files/db:user", Ok("me".into())),
        ("sdb://files/db:password", Ok("xyzzy".into())),
        ("sdb://files/db:hosts", Ok(list!["b"])),
        ("sdb://lists/db:hosts", Ok(list!["a", "b"])),
        ("sdb://files/none", Ok(Value::Nil)),
        ("sdb://none/x", Ok("sdb://none/x".into())),
        ("sdb://osenv", Ok("sdb://osenv".into())),
        ("https://x", Ok("https://x".into())),
    ] {
        assert_eq!(call("get", &[uri]), expected, "{uri}");
    }
    for (uri, part) in [("sdb://vault/x", "the SDB driver 'vault'"), ("sdb://broken/x", "expected a mapping, got list")]
    {
        assert!(call("get", &[uri]).unwrap_err().contains(part), "{uri}");
    }
    for (uri, part) in [
        ("https://x", "must start with"),
        ("sdb://osenv", "must have a profile name"),
        ("sdb://none/x", "\"none\" wasnt found"),
    ] {
        let error = context.call("sdb.get", Args { positional: vec![uri.into()], keyword: map! {"strict" => true} });
        assert!(error.unwrap_err().to_string().contains(part), "{uri}");
    }
    assert_eq!(call("set", &["sdb://osenv/PATH", "x"]), Ok(path));
    assert_eq!(call("set", &["sdb://osenv/BRINE_SDB_SET", "x"]), Ok("x".into()));
    assert_eq!(call("get", &["sdb://osenv/BRINE_SDB_SET"]), Ok("x".into()));
    assert_eq!(call("set", &["x", "x"]), Ok(false.into()));
    assert!(call("set", &["sdb://files/x", "x"]).is_err());
    let made = call("get_or_set_hash", &["sdb://osenv/BRINE_SDB_HASH"]).unwrap();
    assert_eq!(made.to_string().chars().count(), 8);
    assert_eq!(call("get_or_set_hash", &["sdb://osenv/BRINE_SDB_HASH"]), Ok(made));
}
