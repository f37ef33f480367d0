use super::*;

#[test]
fn the_distance_is_the_number_of_edits_until_the_pattern_matches() {
    for (tag, pattern, expected) in [
        ("salt/auth", "salt/auth", 0),
        ("salt/minion/web1/start", "salt/minion/*/start", 0),
        ("salt/minion/web1/strat", "salt/minion/*/start", 2),
        ("salt/minion/web1", "salt/minion/*/start", 6),
        ("deploy/web", "deploy/db", 2),
        ("deploy/web", "Deploy/web", 1),
        ("a1", "a[0-9]", 0),
        ("a1", "a?b", 1),
        ("a", "[", 1),
        ("", "abc", 3),
        ("anything", "*", 0),
    ] {
        assert_eq!(distance(tag, pattern), expected, "{tag} {pattern}");
    }
}

#[test]
fn dissimilar_patterns_are_not_suggested() {
    let patterns = ["salt/minion/*/start", "salt/minion/*/stop", "deploy/*", "salt/job/*/ret/*", "backup/done"];
    for (tag, expected) in [
        ("salt/minion/web1/star", &["salt/minion/*/start", "salt/minion/*/stop"][..]),
        ("deploi/web", &["deploy/*"]),
        ("backup/don", &["backup/done"]),
        ("salt/minion/web1", &["salt/minion/*/stop", "salt/minion/*/start"]),
        ("entirely/different", &[]),
    ] {
        assert_eq!(nearest(tag, patterns), expected, "{tag}");
    }
    // Of the same distance.
    assert_eq!(nearest("a/b/c", ["x/b/c", "a/b/x", "a/x/c"]), ["a/b/x", "a/x/c", "x/b/c"]);
    // Long tags cost no more than their first characters.
    assert_eq!(nearest(&"x".repeat(100_000), ["y"]), [""; 0]);
}
