use super::*;

fn with_display<T>(words: &[&str], look: impl FnOnce(ReturnDisplay) -> T) -> T {
    let words = std::iter::once("salt").chain(words.iter().copied()).chain(["*", "test.ping"]);
    let mut command = <Arguments as clap::CommandFactory>::command().disable_version_flag(true).version("0");
    let matches = command.try_get_matches_from_mut(words).unwrap();
    let arguments: Arguments = clap::FromArgMatches::from_arg_matches(&matches).unwrap();
    let request = PublishRequest::new("*", "test.ping", "root");
    let printer = arguments.output.printer(&Map::new()).unwrap();
    look(ReturnDisplay::new(&arguments, &request, None, printer))
}

fn of(returned: &[&str], silent: &[&str], failed: &[&str], words: &[&str]) -> (String, String) {
    let all = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    with_display(words, |display| {
        let display =
            ReturnDisplay { targeted: 2, returned: all(returned), silent: all(silent), failed: all(failed), ..display };
        (display.summary(), format!("{:?}", display.status()))
    })
}

#[test]
fn the_summary_matches_salt() {
    insta::assert_snapshot!(of(&["a"], &["b"], &[], &[]).0.trim_start(), @r"
        -------------------------------------------
        Summary
        -------------------------------------------
        # of minions targeted: 2
        # of minions returned: 1
        # of minions that did not return: 1
        # of minions with errors: 0
        -------------------------------------------
        ");
    let named = of(&["a", "c"], &["b"], &["a", "c"], &["-v"]).0;
    assert!(named.contains("\nMinions not responding: b\nMinions with failures: a c\n---"), "{named}");
}

#[test]
fn the_status_comes_from_retcodes_and_missing_returns() {
    let is = |status: ExitCode| format!("{status:?}");
    assert_eq!(of(&["a", "b"], &[], &[], &[]).1, is(ExitCode::SUCCESS));
    assert_eq!(of(&["a"], &["b"], &[], &[]).1, is(ExitCode::FAILURE));
    assert_eq!(of(&["a", "b"], &[], &["a"], &[]).1, is(ExitCode::FAILURE));
    assert_eq!(of(&[], &["a", "b"], &[], &[]).1, is(ExitCode::FAILURE));
    assert_eq!(of(&[], &[], &[], &[]).1, is(ExitCode::from(2)));
}

#[test]
fn every_form_reports_failures_by_its_status() {
    for words in [&[][..], &["--static"], &["--progress"], &["--hide-timeout"]] {
        for (failed, silent) in [(&["a"][..], &[][..]), (&[], &["b"])] {
            let all = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
            let status = with_display(words, |display| {
                let gathered = map! {"a" => true};
                ReturnDisplay { returned: all(&["a"]), failed: all(failed), silent: all(silent), gathered, ..display }
                    .finish()
                    .unwrap()
            });
            assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::FAILURE), "{words:?} {failed:?} {silent:?}");
        }
    }
}
