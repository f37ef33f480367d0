use super::*;

fn jid(n: usize) -> String {
    format!("{:020}", 20_261_122_000_000_000_000_u128 + n as u128)
}

#[test]
fn ids_are_known_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let mut seen = SeenJobs::open(&path, 0);
    assert_eq!(seen.last(), None);
    assert_eq!((seen.insert(&jid(1)), seen.insert(&jid(2)), seen.insert(&jid(1))), (true, true, false));
    for n in [1, 2] {
        seen.begin(&jid(n));
    }
    let mut again = SeenJobs::open(&path, 0);
    assert_eq!(again.last(), Some(jid(2).as_str()));
    assert_eq!((again.insert(&jid(1)), again.insert(&jid(3))), (false, true));
}

#[test]
fn a_job_that_has_not_begun_is_new_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let mut seen = SeenJobs::open(&path, 0);
    for n in 1..=4 {
        assert!(seen.insert(&jid(n)));
    }
    assert_eq!(seen.last(), Some(jid(4).as_str()));
    // The minion is killed while the second one waits for a thread.
    for n in [1, 4, 3] {
        seen.begin(&jid(n));
    }
    seen.begin("of its own");
    let mut again = SeenJobs::open(&path, 0);
    assert_eq!(again.last(), Some(jid(1).as_str()));
    assert_eq!([1, 2, 3, 4].map(|n| again.insert(&jid(n))), [false, true, false, false]);
    again.begin(&jid(2));
    // All have begun: nothing was missed up to the last received job.
    assert_eq!(SeenJobs::open(&path, 0).last(), Some(jid(4).as_str()));
}

#[test]
fn a_truncated_line_does_not_damage_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    std::fs::write(&path, format!("{}\n2026", jid(1))).unwrap();
    let mut seen = SeenJobs::open(&path, 0);
    assert!(seen.insert(&jid(2)));
    seen.begin(&jid(2));
    let mut seen = SeenJobs::open(&path, 0);
    assert_eq!((seen.insert(&jid(1)), seen.insert(&jid(2))), (false, false));
}

#[test]
fn set_and_file_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let mut seen = SeenJobs::open(&path, 0);
    for n in 0..3 * MIN_RECORDED {
        assert!(seen.insert(&jid(n)));
        seen.begin(&jid(n));
    }
    assert_eq!((seen.order.len(), seen.jids.len()), (MIN_RECORDED, MIN_RECORDED));
    assert!(std::fs::read_to_string(&path).unwrap().lines().count() <= LINES_PER_ID * MIN_RECORDED);
    let mut again = SeenJobs::open(&path, 0);
    assert_eq!((again.insert(&jid(3 * MIN_RECORDED - 1)), again.insert(&jid(0))), (false, true));
}

#[test]
fn an_unusable_file_leaves_the_ids_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = SeenJobs::open(directory.path(), 0);
    assert_eq!((seen.insert(&jid(1)), seen.insert(&jid(1))), (true, false));
}

#[test]
fn a_first_job_that_has_not_begun_is_missed_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let mut seen = SeenJobs::open(&path, 0);
    assert!(seen.insert(&jid(5)));
    let again = SeenJobs::open(&path, 0);
    assert_eq!((again.last(), again.contains(&jid(5))), (Some(jid(4).as_str()), false));
}

#[test]
fn the_parts_of_a_job_are_recorded_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    let mut seen = SeenJobs::open(&path, 0);
    let [first, second] = ["00ff", "00fe"].map(|part| format!("{}/{part}", jid(7)));
    assert_eq!((seen.insert(&first), seen.insert(&second), seen.insert(&first)), (true, true, false));
    seen.begin(&first);
    for n in [6, 7, 8] {
        assert_eq!(seen.contains_job(&jid(n)), n == 7, "{n}");
    }
    // An id with a suffix is another job.
    assert!(seen.insert(&format!("{}_1", jid(9))));
    assert!(!seen.contains_job(&jid(9)) && seen.contains_job(&format!("{}_1", jid(9))));
    let mut again = SeenJobs::open(&path, 0);
    assert_eq!(again.last(), Some(jid(7).as_str()));
    assert_eq!((again.insert(&first), again.insert(&second)), (false, true));
}

#[test]
fn bytes_of_a_power_failure_do_not_hide_the_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("seen");
    std::fs::write(&path, [format!("{}\n", jid(1)).as_bytes(), &[0xff, 0, 0x80][..]].concat()).unwrap();
    let mut seen = SeenJobs::open(&path, 0);
    assert_eq!((seen.last().map(str::to_owned), seen.insert(&jid(1))), (Some(jid(1)), false));
}

#[test]
fn one_flush_contains_all_jobs_that_were_received_before() {
    let directory = tempfile::tempdir().unwrap();
    let seen = Mutex::new(SeenJobs::open(&directory.path().join("seen"), 0));
    let receive = |n: usize| {
        let mut seen = seen.lock();
        seen.insert(&jid(n)) && seen.needs_flush()
    };
    let needed: Vec<bool> = (0..100).map(receive).collect();
    assert_eq!(needed.iter().filter(|needed| **needed).count(), 1);
    assert_eq!(flush(&seen), 1);
    assert!(!receive(0), "it was received before");
    assert!(receive(100));
    seen.lock().abandon_flush();
    assert!(receive(101));
    assert_eq!(flush(&seen), 1);
    assert!(!SeenJobs::new(0).needs_flush());
}
