use super::*;
use crate::state::Release;

fn state(phase: Phase) -> State {
    State {
        phase,
        jid: "1".into(),
        program: "/usr/local/bin/brine".into(),
        from: Release::default(),
        to: Release::default(),
        trial: None,
        reason: String::new(),
        is_settled: false,
        is_reported: false,
    }
}

fn put(store: &Store, new: State) {
    let changed = store.update(|state| {
        *state = Some(new);
        Ok(())
    });
    changed.unwrap();
}

#[test]
fn each_interrupted_phase_is_completed_or_rolled_back() {
    for (phase, is_new_left, outcome) in [
        (Phase::Fetching, false, Phase::RolledBack),
        (Phase::Staged, true, Phase::RolledBack),
        (Phase::Trial, true, Phase::RolledBack),
        (Phase::Committing, true, Phase::RolledBack),
        (Phase::Committing, false, Phase::Done),
        (Phase::Done, false, Phase::Done),
        (Phase::RolledBack, true, Phase::RolledBack),
    ] {
        let mut state = state(phase);
        settle(&mut state, is_new_left);
        assert_eq!((state.phase, state.is_settled), (outcome, true), "{phase:?}");
    }
}

#[test]
fn a_start_rolls_back_what_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::at(directory.path().join("brine"));
    std::fs::write(program.path(), "old").unwrap();
    std::fs::write(program.new_path(), "new").unwrap();
    let store = Store::below(directory.path());
    let staged = State { program: program.path().to_owned(), trial: Identity::own(), ..state(Phase::Staged) };
    put(&store, staged.clone());
    assert_eq!(begin(&store).unwrap(), None);
    assert_eq!(store.load().unwrap().unwrap().phase, Phase::RolledBack);
    assert!(!program.new_path().exists());
    // The process that tries the new program is another one.
    std::fs::write(program.new_path(), "new").unwrap();
    let mut other = Identity::own().unwrap();
    other.start += 1;
    let trial = State { trial: Some(other), ..State { phase: Phase::Trial, ..staged.clone() } };
    put(&store, trial);
    assert_eq!(begin(&store).unwrap(), None);
    assert_eq!(store.load().unwrap().unwrap().phase, Phase::RolledBack);
    // This one is on trial.
    let trial = State { phase: Phase::Trial, ..staged };
    put(&store, trial);
    assert_eq!(begin(&store).unwrap(), Some(program));
}
