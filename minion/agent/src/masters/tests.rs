use super::*;

fn masters(count: usize) -> Masters {
    let master = (0..count).map(|number| format!("m{number}")).collect();
    Masters::read(&MinionConfig { master, ..MinionConfig::default() }, "m1", |_| ()).unwrap()
}

/// Simulates a sequence of events: `+` for a connection, `-` for a failure or a loss, `<` for the return to the
/// first. Returns the current master after each step, in brackets where the minion pauses.
fn play(masters: &mut Masters, story: &str) -> String {
    let step = |letter: char| {
        let next = match letter {
            '+' => {
                masters.connected();
                Next::Try
            }
            '-' => masters.failed(),
            _ => {
                masters.fail_back();
                Next::Try
            }
        };
        let number = masters.current().host.trim_start_matches('m').to_owned();
        if next == Next::Pause { format!("({number})") } else { number }
    };
    story.chars().map(step).collect()
}

#[test]
fn lost_masters_are_tried_in_a_ring() {
    for (count, story, expected) in [
        // The loss of the first and of the second master are handled alike.
        (2, "+-+-+", "01100"),
        // Three masters in their order, from wherever the minion was.
        (3, "+-+-+-+", "0112200"),
        (3, "+--+", "0122"),
        // All are down at the start: each is tried, then the minion pauses, again and again.
        (3, "---------+", "12(0)12(0)12(0)0"),
        // All are lost after a connection: a whole round before the pause.
        (3, "+---", "012(0)"),
        // The only master fails again and again: a pause after each attempt.
        (1, "--+-", "(0)(0)0(0)"),
        // Back to the first, which fails: the second is tried at once.
        (2, "+-+<-+", "011011"),
    ] {
        assert_eq!(play(&mut masters(count), story), expected, "{count} {story}");
    }
}

#[test]
fn the_first_is_preferred_and_the_order_may_be_random() {
    let mut three = masters(3);
    assert_eq!(three.preferred(), None);
    three.failed();
    assert_eq!(three.preferred().map(|first| first.host.as_str()), Some("m0"));
    three.fail_back();
    assert_eq!((three.preferred(), three.current().host.as_str()), (None, "m0"));
    let order = |config: &MinionConfig, id: &str| -> String {
        let all = Masters::read(config, id, <[Address]>::reverse).unwrap().all;
        all.iter().map(|master| master.host.as_str()).collect()
    };
    for (random_master, master_shuffle, master_failback, expected) in [
        (false, false, false, "abc"),
        (true, false, false, "cba"),
        (false, true, false, "cba"),
        (true, false, true, "acb"),
    ] {
        let master = ["a", "b", "c"].map(str::to_owned).to_vec();
        let config = MinionConfig { master, random_master, master_shuffle, master_failback, ..MinionConfig::default() };
        assert_eq!(order(&config, "m1"), expected);
    }
    for (id, expected) in [("m1", "abc"), ("m3", "bac"), ("m4", "cab")] {
        let (master, kind) = (["a", "b", "c"].map(str::to_owned).to_vec(), "distributed".to_owned());
        let config = MinionConfig { master, master_type: kind, ..MinionConfig::default() };
        assert_eq!(order(&config, id), expected, "{id}");
    }
    assert!(Masters::read(&MinionConfig { master: Vec::new(), ..MinionConfig::default() }, "m1", |_| ()).is_none());
}
