//! State functions of `ipset`.

use super::*;

fn check_states(cases: Vec<Case<'_>>) {
    for (function, keyword, test, transcript, result, comment) in cases {
        let label = format!("{function} {keyword:?} {test}");
        let Applied { result: got, comment: text, changes, ran } =
            applied(&format!("ipset.{function}"), keyword, test, &transcript);
        assert_eq!((got, text.as_str()), (result, comment), "{label}");
        let is_changed = ran.lines().any(|line| !line.starts_with("ipset list "));
        assert!(!test || !is_changed, "{label}: {ran}");
        assert_eq!(changes.is_truthy(), is_changed && result == Some(true), "{label}: {ran}");
    }
}

#[test]
fn sets_are_present_absent_or_flushed() {
    let with = |base: &str, more: &str| format!("{base}{more}");
    let web = map! {"name" => "web", "set_type" => "hash:ip", "timeout" => 0, "comment" => true};
    let name = map! {"name" => "web"};
    let create = "$ ipset create web hash:ip timeout 0 family inet comment\n";
    let reason = "ipset v7.17: Kernel error received: Operation not permitted";
    check_states(vec![
        ("set_present", web.clone(), false, WEB.into(), Some(true), "ipset set web already exists for ipv4"),
        ("set_present", web.clone(), true, NONE.into(), None, "ipset set web would be added for ipv4"),
        (
            "set_present",
            web.clone(),
            false,
            with(NONE, create),
            Some(true),
            "ipset set web created successfully for ipv4",
        ),
        (
            "set_present",
            web,
            false,
            with(NONE, &format!("{create}{REFUSED}")),
            Some(false),
            &format!("Failed to create set web for ipv4: {reason}"),
        ),
        (
            "set_present",
            map! {"name" => "web", "set_type" => "hash"},
            false,
            NONE.into(),
            Some(false),
            "Failed to create set web for ipv4: Error: Set Type is invalid",
        ),
        ("set_absent", name.clone(), false, NONE.into(), Some(true), "ipset set web for ipv4 is already absent"),
        ("set_absent", name.clone(), true, WEB.into(), None, "ipset set web for ipv4 would be removed"),
        (
            "set_absent",
            name.clone(),
            false,
            with(WEB, "$ ipset flush web\n$ ipset destroy web\n"),
            Some(true),
            "ipset set web deleted successfully for family ipv4",
        ),
        (
            "set_absent",
            name.clone(),
            false,
            with(
                WEB,
                "$ ipset flush web\n$ ipset destroy web\n! ipset v7.17: Set cannot be destroyed: it is in use by a kernel component\n= 1\n",
            ),
            Some(false),
            "Failed to delete set web for ipv4: ipset v7.17: Set cannot be destroyed: it is in use by a kernel component",
        ),
        (
            "set_absent",
            name.clone(),
            false,
            with(WEB, &format!("$ ipset flush web\n{REFUSED}")),
            Some(false),
            &format!("Failed to flush set web for ipv4: {reason}"),
        ),
        ("flush", name.clone(), false, NONE.into(), Some(false), "ipset set web does not exist for ipv4"),
        ("flush", name.clone(), true, WEB.into(), None, "ipset entries in set web for ipv4 would be flushed"),
        (
            "flush",
            name.clone(),
            false,
            with(WEB, "$ ipset flush web\n"),
            Some(true),
            "Flushed ipset entries from set web for ipv4",
        ),
        (
            "flush",
            name,
            false,
            with(WEB, &format!("$ ipset flush web\n{REFUSED}")),
            Some(false),
            "Failed to flush ipset entries from set web for ipv4",
        ),
    ]);
}

#[test]
fn entries_are_present_or_absent() {
    let with = |more: &str| format!("{WEB}{more}");
    let entry = |entry: Value| map! {"name" => "x", "set_name" => "web", "entry" => entry};
    let comment =
        |entry: &str, comment: &str| map! {"name" => "x", "set_name" => "web", "entry" => entry, "comment" => comment};
    let both: Value = list!["192.168.0.3", "10.0.0.1"];
    let net = "$ ipset add -exist web 192.168.1.0/29\n";
    let ten = "$ ipset add -exist web 10.0.0.1\n";
    let reason = "Error: ipset v7.17: Kernel error received: Operation not permitted";
    check_states(vec![
        (
            "present",
            entry("192.168.0.3".into()),
            false,
            WEB.into(),
            Some(true),
            "entry for 192.168.0.3 already in set web for ipv4\n",
        ),
        (
            "present",
            comment("192.168.0.3", "a b"),
            false,
            WEB.into(),
            Some(true),
            "entry for 192.168.0.3 already in set web for ipv4\n",
        ),
        (
            "present",
            entry("192.168.1.0/30".into()),
            false,
            WEB.into(),
            Some(true),
            "entry for 192.168.1.0/30 already in set web for ipv4\n",
        ),
        // Not all of its addresses are in the set.
        (
            "present",
            entry("192.168.1.0/29".into()),
            false,
            with(net),
            Some(true),
            "entry 192.168.1.0/29 added to set web for family ipv4\n",
        ),
        (
            "present",
            entry(both.clone()),
            true,
            WEB.into(),
            None,
            "entry for 192.168.0.3 already in set web for ipv4\nentry 10.0.0.1 would be added to set web for family ipv4\n",
        ),
        (
            "present",
            entry(both.clone()),
            false,
            with(ten),
            Some(true),
            "entry for 192.168.0.3 already in set web for ipv4\nentry 10.0.0.1 added to set web for family ipv4\n",
        ),
        (
            "present",
            comment("192.168.0.3", "new"),
            false,
            with("$ ipset add -exist web 192.168.0.3 comment new\n"),
            Some(true),
            "entry 192.168.0.3 comment new added to set web for family ipv4\n",
        ),
        (
            "present",
            comment("10.0.0.1 timeout 5", "a c"),
            false,
            with("$ ipset add -exist web 10.0.0.1 timeout 5 comment 'a c'\n"),
            Some(true),
            "entry 10.0.0.1 timeout 5 comment \"a c\" added to set web for family ipv4\n",
        ),
        (
            "present",
            entry("10.0.0.1".into()),
            false,
            with(&format!("{ten}{REFUSED}")),
            Some(false),
            &format!("Failed to add to entry 10.0.0.1 to set web for family ipv4.\n{reason}"),
        ),
        (
            "present",
            entry("10.0.0.1".into()),
            true,
            NONE.into(),
            None,
            "entry 10.0.0.1 would be added to set web for family ipv4\n",
        ),
        (
            "present",
            entry("10.0.0.1".into()),
            false,
            NONE.into(),
            Some(false),
            "Failed to add to entry 10.0.0.1 to set web for family ipv4.\nError: Set web does not exist",
        ),
        ("present", entry(Value::Nil), false, WEB.into(), Some(false), "ipset entry must be specified"),
        (
            "absent",
            entry("10.0.0.1".into()),
            false,
            WEB.into(),
            Some(true),
            "ipset entry for 10.0.0.1 not present in set web for ipv4\n",
        ),
        (
            "absent",
            entry("10.0.0.1".into()),
            false,
            NONE.into(),
            Some(true),
            "ipset entry for 10.0.0.1 not present in set web for ipv4\n",
        ),
        (
            "absent",
            entry(both),
            true,
            WEB.into(),
            None,
            "ipset entry 192.168.0.3 would be removed from set web for ipv4\nipset entry for 10.0.0.1 not present in set web for ipv4\n",
        ),
        (
            "absent",
            comment("192.168.0.3", "a b"),
            false,
            with("$ ipset del -exist web 192.168.0.3\n"),
            Some(true),
            "ipset entry 192.168.0.3 comment \"a b\" removed from set web for ipv4\n",
        ),
        (
            "absent",
            entry("192.168.1.0/29".into()),
            false,
            with("$ ipset del -exist web 192.168.1.0/29\n"),
            Some(true),
            "ipset entry 192.168.1.0/29 removed from set web for ipv4\n",
        ),
        (
            "absent",
            entry("192.168.0.3".into()),
            false,
            with(&format!("$ ipset del -exist web 192.168.0.3\n{REFUSED}")),
            Some(false),
            &format!(
                "Failed to delete ipset entry from set web for ipv4. Attempted entry was 192.168.0.3.\n{reason}\n"
            ),
        ),
        ("absent", entry(list![]), false, WEB.into(), Some(false), "ipset entry must be specified"),
    ]);
}
