use brine_value::Map;

use super::*;
use crate::testing::applied;

#[test]
fn devices_are_mapped_now_and_at_boot() {
    let active = "$ dmsetup ls --target crypt\n| data\t(254, 0)\n";
    let open = "$ cryptsetup open --key-file /key /dev/x new\n";
    let arguments = |name: &str, more: Map| {
        map! {"name" => name, "device" => "/dev/x", "keyfile" => "/key"}.into_iter().chain(more).collect::<Map>()
    };
    let now = || map! {"immediate" => true, "persist" => false};
    let gone = |name: &str, more: Map| map! {"name" => name}.into_iter().chain(more).collect::<Map>();
    for (function, keyword, test, more, result, comment, changes) in [
        (
            "cryptdev.mapped",
            arguments("new", map! {}),
            false,
            "",
            Some(true),
            "",
            map! {"crypttab" => "Entry added in FILE"},
        ),
        ("cryptdev.mapped", arguments("new", map! {}), true, "", None, "Entry will be added in FILE", map! {}),
        ("cryptdev.mapped", arguments("old", map! {}), false, "", Some(true), "", map! {}),
        (
            "cryptdev.mapped",
            arguments("old", map! {"opts" => "luks"}),
            false,
            "",
            Some(true),
            "",
            map! {"crypttab" => "Existing entry in FILE changed"},
        ),
        ("cryptdev.mapped", arguments("data", now()), false, "", Some(true), "", map! {}),
        ("cryptdev.mapped", arguments("new", now()), true, "", None, "Device would be mapped immediately", map! {}),
        (
            "cryptdev.mapped",
            arguments("new", now()),
            false,
            open,
            Some(true),
            "",
            map! {"cryptsetup" => "Device mapped using cryptsetup"},
        ),
        (
            "cryptdev.mapped",
            arguments("new", now()),
            false,
            &format!("{open}= 1\n"),
            Some(false),
            "",
            map! {"cryptsetup" => "Device failed to map using cryptsetup"},
        ),
        (
            "cryptdev.mapped",
            arguments("new", map! {"immediate" => true, "persist" => false, "keyfile" => "none"}),
            false,
            "",
            Some(false),
            "",
            map! {"cryptsetup" => "Device cannot be mapped immediately without a keyfile"},
        ),
        (
            "cryptdev.mapped",
            arguments("new", map! {"persist" => false}),
            false,
            "",
            Some(false),
            "Either persist or immediate must be set, otherwise this state does nothing",
            map! {},
        ),
        (
            "cryptdev.unmapped",
            gone("old", map! {}),
            false,
            "",
            Some(true),
            "",
            map! {"crypttab" => "Entry removed from FILE"},
        ),
        ("cryptdev.unmapped", gone("old", map! {}), true, "", None, "Entry will be removed from FILE", map! {}),
        ("cryptdev.unmapped", gone("none", map! {}), false, "", Some(true), "", map! {}),
        (
            "cryptdev.unmapped",
            gone("data", now()),
            false,
            "$ cryptsetup close data\n",
            Some(true),
            "",
            map! {"cryptsetup" => "Device unmapped using cryptsetup"},
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        std::fs::write(&path, "old /dev/x /key\n").unwrap();
        let mut keyword = keyword;
        keyword.insert("config".into(), path.as_str().into());
        let report = applied(function, keyword, test, &format!("{active}{more}"));
        assert_eq!((report.result, report.comment.replace(&path, "FILE")), (result, comment.into()), "{function}");
        assert_eq!(report.changes.to_string().replace(&path, "FILE"), Value::from(changes).to_string(), "{function}");
        let is_changed = std::fs::read_to_string(&path).unwrap() != "old /dev/x /key\n";
        assert_eq!(is_changed, report.changes.get("crypttab").is_some(), "{function}");
    }
}
