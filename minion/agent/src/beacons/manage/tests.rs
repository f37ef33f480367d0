use std::sync::Arc;

use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn events_query_and_change_the_configuration() {
    let minion = testing::minion(&[]);
    *minion.pillar.write() = Arc::new(map! {"beacons" => map! {"load" => list![]}});
    let percent = || list![map! {"percent" => 5}];
    let disabled = || list![map! {"percent" => 5}, map! {"enabled" => false}];
    let listed = |beacons: Map| map! {"complete" => true, "beacons" => beacons};
    let answered = |complete: bool, comment: &str, beacons: Map| map! {"complete" => complete, "comment" => comment, "beacons" => beacons};
    let mem = |config: Value| map! {"memusage" => config};
    for (question, tag, fields) in [
        (map! {"func" => "list"}, "beacons_list", listed(map! {"load" => list![]})),
        (map! {"func" => "list", "include_pillar" => false}, "beacons_list", listed(map! {})),
        (
            map! {"func" => "validate_beacon", "name" => "memusage", "beacon_data" => list![]},
            "beacon_validation",
            map! {"complete" => true, "vcomment" => "option 'percent' is missing", "valid" => false},
        ),
        (
            map! {"func" => "add", "name" => "memusage", "beacon_data" => percent()},
            "beacon_add",
            answered(true, "Added new beacon item: memusage", mem(percent())),
        ),
        (
            map! {"func" => "disable_beacon", "name" => "memusage"},
            "beacon_disabled",
            answered(true, "Disabling beacon item memusage", mem(disabled())),
        ),
        (
            map! {"func" => "delete", "name" => "load"},
            "beacon_delete",
            answered(false, "Cannot delete beacon item load, it is configured in pillar.", mem(disabled())),
        ),
        (
            map! {"func" => "modify", "name" => "memusage", "beacon_data" => percent()},
            "beacon_modify",
            answered(true, "Updating settings for beacon item: memusage", mem(percent())),
        ),
        (
            map! {"func" => "delete", "name" => "memusage"},
            "beacon_delete",
            answered(true, "Deleting beacon item: memusage", map! {}),
        ),
        (map! {"func" => "disable"}, "beacons_disabled", listed(map! {"enabled" => false})),
        (map! {"func" => "reset"}, "beacon_reset", answered(true, "Beacons have been reset", map! {})),
    ] {
        let expected = Some((format!("/salt/minion/minion_{tag}_complete"), fields));
        assert_eq!(answer(&minion, &question), expected, "{question:?}");
    }
    assert_eq!(answer(&minion, &map! {"func" => "dance"}), None);
}
