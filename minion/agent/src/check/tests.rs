use brine_value::{Map, list, map};

use super::*;

fn failures(options: Map) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let mut settings = map! {"root_dir" => &root, "id" => "m1"};
    settings.extend(options);
    let config = MinionConfig::load(directory.path(), &settings).unwrap().config;
    let findings = check(&config).into_iter();
    findings.filter(Finding::is_failure).map(|finding| finding.message.replace(&root, "ROOT")).collect()
}

#[test]
fn invalid_configurations_are_reported() {
    for (options, expected) in [
        (map! {}, None),
        (map! {"id" => "a/b"}, Some("option 'id': ")),
        (map! {"master" => list![]}, Some("option 'master': ")),
        (map! {"beacons" => map! {"lod" => list![]}}, Some("option 'beacons': 'lod': unknown beacon 'lod'")),
        (
            map! {"beacons" => map! {"load" => list![map! {"averages" => map! {"1m" => list![0, 1]}}, map! {"emitatstart" => true}]}},
            Some("option 'beacons': 'load': unknown option 'emitatstart'"),
        ),
        (map! {"beacons" => map! {"load" => list![]}}, Some("option 'beacons': 'load': option 'averages' is missing")),
        (map! {"beacons" => map! {"diskusage" => list![map! {"/" => "90%"}]}}, None),
        (
            map! {"schedule" => map! {"a" => map! {"function" => "test.pingg", "seconds" => 5}}},
            Some("option 'schedule': job 'a': there is no function 'test.pingg'"),
        ),
        (map! {"renderer" => "nope"}, Some("option 'renderer': ")),
        (map! {"ciphers" => list!["rot13"]}, Some("option 'ciphers': ")),
        (map! {"signing_algorithm" => "none"}, Some("option 'signing_algorithm': ")),
        (map! {"startup_states" => "highstat"}, Some("option 'startup_states' is invalid")),
        (map! {"master_type" => "hot"}, Some("option 'master_type' is invalid")),
        (map! {"file_client" => "lokal"}, Some("option 'file_client' is invalid")),
        (map! {"engines" => list!["script"]}, Some("option 'engines': 'script': the argument 'cmd' is missing")),
        (map! {"engines" => list!["nope"]}, Some("option 'engines': 'nope': there is no engine 'nope'")),
        (map! {"reactor" => 5}, Some("'reactor' is invalid: expected a list")),
        (map! {"cachedir" => "/file"}, Some("option 'cachedir': ROOT/file is invalid")),
        (
            map! {"file_client" => "local", "ext_pillar" => list![map! {"reclass" => map! {}}]},
            Some("option 'ext_pillar': 'reclass' is not there"),
        ),
    ] {
        let lines = failures(options.clone());
        match expected {
            None => assert_eq!(lines, Vec::<String>::new(), "{options:?}"),
            Some(part) => {
                assert!(lines.iter().any(|line| line.contains(part)), "{options:?}: {part} is not in {lines:?}");
            }
        }
    }
}
