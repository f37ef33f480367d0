use brine_value::Map;

use super::*;
use crate::testing::applied;

const DF: &str = "
        $ df ...
        | Filesystem     1024-blocks    Used Available Capacity Mounted on
        | /dev/vda         100000      70000     30000      70% /srv
    ";

/// The comments and results are those of Salt 3008.5 with these sizes.
#[test]
fn usage_is_checked_against_its_limits() {
    let nothing = Map::new();
    for (limits, result, comment) in [
        (nothing, true, "Disk used space in acceptable range"),
        (map! {"maximum" => "80%"}, true, "Disk used space in acceptable range"),
        (map! {"maximum" => 60}, false, "Disk used space is above maximum of 60 % at 70 %"),
        (map! {"minimum" => "80 %"}, false, "Disk used space is below minimum of 80 % at 70 %"),
        (map! {"minimum" => 40, "free" => true}, false, "Disk available space is below minimum of 40 % at 30 %"),
        (map! {"maximum" => 20, "free" => true}, false, "Disk available space is above maximum of 20 % at 30 %"),
        (
            map! {"maximum" => "60000 KB", "absolute" => true},
            false,
            "Disk used space is above maximum of 60000 KB at 70000 KB",
        ),
        (map! {"minimum" => 1000, "absolute" => true, "free" => true}, true, "Disk used space in acceptable range"),
        (map! {"maximum" => "much"}, false, "maximum must be an integer "),
        (map! {"maximum" => 101}, false, "maximum must be in the range [0, 100] "),
        (map! {"maximum" => 10, "minimum" => 20}, false, "minimum must be less than maximum "),
    ] {
        let mut keyword = map! {"name" => "/srv"};
        keyword.extend(limits.clone());
        let state = applied("disk.status", keyword, true, DF);
        assert_eq!((state.result, state.comment.as_str()), (Some(result), comment), "{limits:?}");
        assert_eq!(state.changes, Value::map());
    }
}

#[test]
fn directories_are_checked_by_their_file_system() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_string_lossy().into_owned();
    let of = |limits: Map| {
        let mut keyword = map! {"name" => name.as_str()};
        keyword.extend(limits);
        applied("disk.status", keyword, false, DF)
    };
    assert_eq!(of(Map::new()).result, Some(true));
    assert_eq!(of(map! {"minimum" => 0, "maximum" => 100}).result, Some(true));
    let missing = applied("disk.status", map! {"name" => "/nowhere"}, false, DF);
    let expected = "Disk mount /nowhere not present. Directory /nowhere does not exist or is not a directory";
    assert_eq!((missing.result, missing.comment.as_str()), (Some(false), expected));
}
