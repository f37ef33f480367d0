//! Skipped reactions: `explain` and `history` show the cause of each.

use super::*;

/// Starts a reactor with an entry for each cause, and a rule over time.
fn running(directory: &Path) -> Running {
    let file = |name: &str, text: &str| Value::from(write(directory, name, text));
    let reactor = list![
        map! {"go/*" => file("go.sls", NUMBER)},
        map! {"cool" => file("cool.sls", NUMBER)},
        map! {"rate" => file("rate.sls", NUMBER)},
        map! {"burst" => file("burst.sls", NUMBER)},
        map! {"empty" => file("empty.sls", "{% if data.n == 7 %}\na: {runner.test.arg: []}\n{% endif %}\n")},
        map! {"nobody" => file("nobody.sls", "a: {local.test.ping: [{tgt: nobody}]}")},
        map! {"salt/run/*" => file("own.sls", NUMBER)},
    ];
    let opts = map! {
        "reactor" => reactor,
        "reactor_cooldown" => map! {"cool" => 60},
        "reactor_rate_limit" => map! {"rate" => "1/1h"},
        "reactor_debounce" => map! {"burst" => 0.2},
    };
    let running = start_with(directory, &opts, |_| ());
    let rule = "logins: {rule.count: [{tag: login}, {where: {ok: false}}, {count: 3}, {within: 60}, {react: /x.sls}]}";
    assert_eq!(running.reactor.set_rules(&[write(directory, "rules.sls", rule)]).unwrap(), [""; 0]);
    running
}

impl Running {
    async fn fire(&self, tag: &str, n: i64) -> u64 {
        self.bus.fire(tag, &map! {"n" => n, "id" => "web1"}).await.unwrap()
    }

    /// Waits until the reactor has handled an event, and returns the lines below it in `explain`.
    async fn explain(&self, seq: u64) -> Vec<String> {
        while self.bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap().position() <= seq {
            tokio::task::yield_now().await;
        }
        let explained = self.reactor.explain(&thread(), &self.bus, &seq.to_string()).unwrap();
        explained.lines().skip(1).map(|line| line.trim_start_matches(['├', '└', '─', ' ']).to_owned()).collect()
    }

    fn history(&self, tag: Option<&str>) -> Vec<(u64, Vec<String>)> {
        let filter = HistoryFilter { tag: tag.map(str::to_owned), id: None, limit: 20 };
        let history = self.reactor.history(&thread(), &self.bus, &filter).unwrap();
        let outcome = |reaction: &Value| reaction.get("outcome").unwrap().to_string();
        let event = |event: &Value| {
            let seq = event.get("seq").unwrap().as_i64().unwrap().cast_unsigned();
            (seq, event.get("reactions").unwrap().as_list().unwrap().iter().map(outcome).collect())
        };
        history.as_list().unwrap().iter().map(event).collect()
    }
}

#[tokio::test]
async fn each_skipped_reaction_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = running(directory.path());
    // The first event of each limit has its reaction.
    for tag in ["cool", "rate"] {
        running.fire(tag, 0).await;
        next(&mut running).await;
    }
    let first_of_burst = running.fire("burst", 1).await;
    let second_of_burst = running.fire("burst", 2).await;
    next(&mut running).await;
    let mut expected = vec![(
        first_of_burst,
        format!(
            "no reaction of 'burst': reactor_debounce: event {second_of_burst} of the same burst has the reaction in its place"
        ),
    )];
    for (tag, cause) in [
        ("goo/1", "no reaction: no pattern matches the tag; the nearest: 'go/*'"),
        (
            "entirely/different",
            "no reaction: no pattern matches the tag, and none is similar: see `salt-run reactor.list`",
        ),
        ("logn", "no reaction: no pattern matches the tag; the nearest: 'login' (rule 'logins')"),
        ("cool", "no reaction of 'cool': reactor_cooldown leaves events of 'web1' out until 20"),
        ("rate", "no reaction of 'rate': reactor_rate_limit leaves events of 'web1' out until 20"),
        ("empty", "empty.sls ('empty'): the file renders to no reaction for this event: its conditions do not hold"),
        (
            "nobody",
            "nobody.sls ('nobody'): a: local.test.ping: the job was published to nobody, as target 'nobody' (glob)",
        ),
        ("login", "no reaction of 'logins': a condition does not hold: 'ok' is missing, expected False"),
    ] {
        expected.push((running.fire(tag, 3).await, cause.to_owned()));
    }
    let own = running.bus.fire("salt/run/20261120235852025555/new", &map! {"user" => "Reactor"}).await.unwrap();
    expected
        .push((own, "no reaction: the events of the reactor's own runner and wheel calls start no reactions".into()));
    for (seq, cause) in &expected {
        let lines = running.explain(*seq).await;
        assert!(lines.len() == 1 && lines[0].contains(cause.as_str()), "{cause}: {lines:?}");
    }
    // The recorder publishes no events of dispatched reactions.
    let lines = running.explain(second_of_burst).await;
    assert!(lines.len() == 1 && lines[0].contains("matches, but no result is recorded"), "{lines:?}");
    // Events that no entry matches are only in the history of their tag.
    let all = running.history(None);
    let of = |seq: u64| all.iter().find(|(other, _)| *other == seq).map(|(_, outcomes)| outcomes.clone());
    for (seq, cause) in &expected {
        let (about, cause) = cause.split_once(": ").unwrap();
        match of(*seq) {
            Some(outcomes) => assert!(outcomes.len() == 1 && outcomes[0].contains(cause), "{cause}: {outcomes:?}"),
            None => assert!(about == "no reaction" || about.contains("'logins'"), "{about}: {cause}"),
        }
    }
    let unmatched = running.history(Some("goo/*"));
    assert_eq!(unmatched.len(), 1);
    assert_eq!(unmatched[0].1, ["no reaction: no pattern matches the tag; the nearest: 'go/*'"]);
}

#[tokio::test]
async fn a_reactor_that_is_off_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let running = running(directory.path());
    running.reactor.set_leader(false);
    let passed_over = running.fire("go/1", 1).await;
    let lines = running.explain(passed_over).await;
    assert_eq!(lines, ["no reaction: the reactor was off: `salt-run reactor.set_leader True` switches it on"]);
    assert_eq!(running.history(None).len(), 1);
}

#[tokio::test]
async fn the_error_of_a_removed_event_names_the_range_of_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let running = running(directory.path());
    let seq = running.fire("go/1", 1).await;
    let error = running.reactor.explain(&thread(), &running.bus, "99").unwrap_err().to_string();
    assert_eq!(
        error,
        format!("the journal has no event 99: it holds {seq} to {seq} (event_journal_hours, event_journal_size)")
    );
}

#[tokio::test]
async fn a_dry_run_names_the_nearest_patterns() {
    let directory = tempfile::tempdir().unwrap();
    let running = running(directory.path());
    let dry_run = running.reactor.dry_run("goo/1", Map::new());
    assert_eq!(dry_run.get("note"), Some(&"no pattern matches the tag; the nearest: 'go/*'".into()));
    assert_eq!(running.reactor.dry_run("go/1", map! {"n" => 1}).get("note"), None);
}
