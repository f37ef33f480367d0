//! `brine docs` shows the documentation without a network and without a terminal.

use crate::support::{BRINE, stderr, stdout, within_limit};

#[test]
fn a_name_is_shown_as_plain_text() {
    for (words, status, parts) in [
        (&["docs"][..], 0, &["Tutorials", "`how-to/no-answer`"][..]),
        (&["docs", "file.managed"], 0, &["file.managed (state function)", "makedirs"]),
        (&["docs", "worker_threads"], 0, &["worker_threads (Options of the master)"]),
        (&["docs", "salt/job/1/ret/web1"], 0, &["a minion returns a job"]),
        (&["docs", "troubleshooting#pillar-is-empty"], 0, &["saltutil.refresh_pillar"]),
        (&["docs", "text", "full", "disk"], 0, &["Places with 'full disk'", "`how-to/react-to-a-full-disk`"]),
        (&["docs", "file.managd"], 1, &["nothing is found for 'file.managd': did you mean 'file.managed'?"]),
    ] {
        let output = within_limit(BRINE).args(words).output().unwrap();
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?} without {part}: {said}");
        }
        assert!(!said.contains('\u{1b}'), "{words:?}: {said}");
    }
}
