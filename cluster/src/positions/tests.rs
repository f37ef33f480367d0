use super::*;

#[test]
fn the_last_events_up_to_a_number_are_known_by_member() {
    let mut positions = Positions::default();
    for (member, seq, number) in [("m2", 5, 100), ("m3", 70, 101), ("m2", 6, 103)] {
        positions.note_incarnation(member, "i", false);
        positions.received(member, seq, number);
    }
    let mut positions = positions.up_to("m1", 102);
    positions.sort();
    assert_eq!(positions, [("m1".into(), 102), ("m2".into(), 5), ("m3".into(), 70)]);
}

#[test]
fn events_are_received_once() {
    let mut positions = Positions::default();
    assert_eq!(positions.note_incarnation("m2", "a", false), Incarnation::Current);
    assert!(positions.is_new("m2", 5));
    positions.received("m2", 5, 100);
    assert!(!positions.is_new("m2", 5) && !positions.is_new("m2", 4) && positions.is_new("m2", 6));
    assert_eq!(positions.note_incarnation("m2", "a", true), Incarnation::Current);
    // The member has a new store: its sequence numbers start anew.
    positions.handled_elsewhere(&[("m2".into(), 5)]);
    assert_eq!(positions.note_incarnation("m2", "b", false), Incarnation::New);
    assert!(positions.is_new("m2", 1) && !positions.is_handled("m2", 1));
}

#[test]
fn the_own_reactor_handles_events_of_all_members() {
    let mut positions = Positions::default();
    for (member, seq, number) in [("m2", 7, 11), ("m3", 1, 12), ("m2", 8, 14)] {
        positions.note_incarnation(member, "a", false);
        positions.received(member, seq, number);
    }
    positions.handled_here("m1", 12);
    assert_eq!(positions.handled(), [("m1".into(), 12), ("m2".into(), 7), ("m3".into(), 1)]);
    positions.handled_here("m1", 14);
    assert!(positions.is_handled("m2", 8) && !positions.is_handled("m2", 9) && positions.is_handled("m1", 14));
    // Reports never move a position back.
    positions.handled_elsewhere(&[("m2".into(), 3)]);
    assert!(positions.is_handled("m2", 8));
    let restored = Positions::restore(positions.stored());
    assert!(restored.is_handled("m2", 8) && !restored.is_new("m2", 8));
}

#[test]
fn sequence_numbers_are_local() {
    let mut positions = Positions::default();
    positions.note_incarnation("m2", "a", false);
    positions.received("m2", 7, 11);
    assert_eq!((positions.position("m1", 11), positions.position("m1", 12)), (("m2".into(), 7), ("m1".into(), 12)));
    assert_eq!(positions.number("m1", &("m2".into(), 7)), Some(11));
    assert_eq!(positions.number("m1", &("m1".into(), 3)), Some(3));
    assert_eq!(positions.number("m1", &("m2".into(), 8)), None);
    for number in 0..MAX_REMEMBERED as u64 {
        positions.received("m2", 100 + number, 100 + number);
    }
    assert_eq!((positions.by_number.len(), positions.by_position.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
}

#[test]
fn messages_of_former_incarnations_and_old_ones_of_unknown_members_are_refused() {
    let mut positions = Positions::default();
    // (incarnation, late, expected)
    for (incarnation, is_late, expected) in [
        ("a", true, Incarnation::Refused),
        ("a", false, Incarnation::Current),
        ("a", true, Incarnation::Current),
        ("b", true, Incarnation::Refused),
        ("b", false, Incarnation::New),
        ("a", false, Incarnation::Refused),
        ("c", false, Incarnation::New),
        ("b", false, Incarnation::Refused),
        ("a", false, Incarnation::Refused),
        ("c", false, Incarnation::Current),
    ] {
        assert_eq!(positions.note_incarnation("m2", incarnation, is_late), expected, "{incarnation}");
    }
    positions.received("m2", 9, 1);
    let mut restored = Positions::restore(positions.stored());
    assert_eq!(restored.stored(), positions.stored());
    assert_eq!(restored.note_incarnation("m2", "a", false), Incarnation::Refused);
    assert!(!restored.is_new("m2", 9));
    for number in 0..=MAX_FORMER {
        positions.note_incarnation("m2", &format!("new {number}"), false);
    }
    assert_eq!(positions.stored().former.len(), MAX_FORMER);
}
