use super::*;

const TEXT: &str = "# of others\n\n# Lines below here are managed by Salt, do not edit\nA=b c\n\
    # why\n# so SALT_CRON_IDENTIFIER:x\n#DISABLED#1 2 3 4 5 run a=b\n0 * * * * plain\n# SALT_CRON_IDENTIFIER:d\n@daily two  words\n";

fn desired<'w>(when: &str, command: &'w str, identifier: Option<&'w str>) -> Desired<'w> {
    let fields: Vec<String> = when.split(' ').map(str::to_owned).collect();
    let when = <[String; 5]>::try_from(fields).map_or_else(|_| CronTime::Special(when.to_owned()), CronTime::Times);
    Desired { when, command, identifier, comment: None, commented: false }
}

#[test]
fn crontab_round_trips() {
    let tab = Tab::parse(TEXT);
    assert_eq!(tab.render(), TEXT.replace("two  words", "two words"));
    assert_eq!(tab.jobs[0].comment.as_deref(), Some("why\nso"));
    assert_eq!(Tab::default().render(), format!("{MARK}\n"));
    assert_eq!(Tab::parse(&format!("{MARK}\n@daily\nnone\n=x\n")), Tab::default());
}

#[test]
fn a_newline_at_the_end_of_a_comment_changes_nothing() {
    let mut tab = Tab::parse(TEXT);
    let job = Desired { comment: Some("why\nnot\n"), ..desired("0 * * * *", "plain", None) };
    assert_eq!(tab.set(&job), Some(true));
    let mut again = Tab::parse(&tab.render());
    assert_eq!(again.set(&job), None);
}

#[test]
fn jobs_are_found_by_identifier_and_by_command() {
    for (desired, expected) in [
        (desired("0 * * * *", "plain", None), None),
        (desired("random * * * *", "plain", None), None),
        (desired("@daily", "two words", Some("d")), None),
        (desired("0 * * * *", "plain", Some("mine")), Some(true)),
        (desired("@weekly", "two words", Some("d")), Some(true)),
        (desired("0 1 * * *", "two words", Some("d")), Some(true)),
        (desired("1 2 3 4 5", "other", Some("x")), Some(true)),
        (desired("1 2 3 4 5", "run a=b", Some("y")), Some(false)),
        (desired("1 2 3 4 5", "run a=b", None), Some(false)),
    ] {
        let mut tab = Tab::parse(TEXT);
        assert_eq!(tab.set(&desired), expected, "{desired:?}");
        assert_eq!(tab.set(&desired), None, "{desired:?} twice");
    }
}

#[test]
fn unset_fields_are_kept_and_random_fields_resolved() {
    let mut tab = Tab::parse(TEXT);
    tab.set(&desired("random random random 2 9:8", "other", Some("x")));
    let Some(Job { when: CronTime::Times(times), comment, .. }) = tab.jobs.last() else { panic!("no job") };
    assert_eq!(comment.as_deref(), Some("why\nso"));
    assert_eq!(times[..4], ["1", "2", "3", "2"]);
    assert!(["8", "9"].contains(&times[4].as_str()), "{times:?}");
}

#[test]
fn variables_are_set_once() {
    let mut tab = Tab::parse(TEXT);
    let sets = [("A", "b c"), ("A", "d"), ("B", ""), ("B", "")];
    assert_eq!(sets.map(|(name, value)| tab.set_variable(name, value)), [None, Some(true), Some(false), None]);
    assert_eq!(Tab::parse(&tab.render()).set_variable("B", ""), None);
    assert!(tab.remove_variable("B") && !tab.remove_variable("B"));
}
