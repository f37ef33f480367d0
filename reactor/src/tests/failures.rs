//! Failed reactions: errors, retries, dead letters and loops.

use super::*;

#[tokio::test]
async fn errors_are_published_and_other_reactions_run() {
    let directory = tempfile::tempdir().unwrap();
    let broken = write(directory.path(), "broken.sls", "x:\n  runner.test.arg:\n    - {{ nothing }}\n");
    let mixed = write(
        directory.path(),
        "mixed.sls",
        "a:\n  runner.no.such: []\nb:\n  local.test.ping: []\nc:\n  runner.test.arg: []\n",
    );
    let reactor = list![
        map! {"go" => list!["/nonexistent.sls", broken.clone(), mixed.clone()]},
        map! {"salt/*" => mixed.clone()}
    ];
    let mut running = start(directory.path(), &reactor);
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let seq = running.bus.fire("go", &Map::new()).await.unwrap();
    let (reaction, _) = next(&mut running).await;
    assert_eq!(reaction.name(), "runner.test.arg");
    for (file, message) in [
        ("/nonexistent.sls", "/nonexistent.sls: No such file or directory (os error 2)".to_owned()),
        (&broken, format!("{broken}:3: Jinja variable 'nothing' is undefined")),
        (&mixed, format!("{mixed}:4: 'local.test.ping' needs a target: add `- tgt: '*'` or another one")),
        (&mixed, format!("{mixed}:2: runner.no.such: 'no.such' is not available.")),
    ] {
        let data = errors.recv().await.unwrap().data();
        assert_eq!(data.get("message"), Some(&message.into()));
        assert_eq!(
            (data.get("file"), data.get("tag"), data.get("_cause")),
            (Some(&file.into()), Some(&"go".into()), Some(&seq.into()))
        );
    }
}

#[tokio::test]
async fn transient_failures_are_retried_and_permanent_ones_become_dead_letters() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(
        directory.path(),
        "x.sls",
        "a: {runner.now.then: []}\nb: {runner.never.works: []}\nc: {runner.last.one: []}",
    );
    let mut running = start(directory.path(), &map! {"go" => file.clone()}.into());
    let transient = DispatchError::transient("no worker is free");
    running.failing.lock().insert("now.then", (2, transient.clone()));
    running.failing.lock().insert("never.works", (1, DispatchError::permanent("it is broken")));
    running.failing.lock().insert("last.one", (4, transient));
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let seq = running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    let mut funs = Vec::new();
    for _ in 0..8 {
        funs.push(next(&mut running).await.0.fun().to_owned());
    }
    assert_eq!(
        funs,
        ["now.then", "now.then", "now.then", "never.works", "last.one", "last.one", "last.one", "last.one"]
    );
    for message in ["2: runner.never.works: it is broken", "3: runner.last.one: no worker is free"] {
        let error = errors.recv().await.unwrap().data();
        assert_eq!(error.get("message"), Some(&format!("{file}:{message}").into()));
    }
    let dead_letters = |running: &Running| -> Vec<_> {
        dead_letters(&running.reactor).into_iter().map(|letter| (letter.event.seq(), letter.label.unwrap())).collect()
    };
    assert_eq!(dead_letters(&running), [(seq, "b: runner.never.works".into()), (seq, "c: runner.last.one".to_owned())]);
    running.failing.lock().insert("never.works", (1, DispatchError::permanent("still broken")));
    let retried = running.reactor.retry(&running.bus, Some(seq)).await;
    let results: Vec<_> = retried.into_iter().map(|retried| retried.result).collect();
    assert_eq!(results, [Err(format!("{file}:2: runner.never.works: still broken")), Ok(())]);
    assert_eq!(dead_letters(&running), [(seq, "b: runner.never.works".into())]);
    assert!(running.reactor.retry(&running.bus, Some(seq + 1)).await.is_empty());
    running.reactor.retry(&running.bus, None).await;
    assert!(dead_letters(&running).is_empty());
}

#[tokio::test]
async fn a_corrected_file_is_retried_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.m }}}]}");
    let mut running = start(directory.path(), &map! {"go" => file}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    running.bus.fire("go", &map! {"n" => 4}).await.unwrap();
    errors.recv().await.unwrap();
    write(directory.path(), "x.sls", NUMBER);
    let retried = running.reactor.retry(&running.bus, None).await;
    assert!(retried[0].result.is_ok(), "{retried:?}");
    assert_eq!(numbers(&mut running, 1).await, [4]);
    assert!(dead_letters(&running.reactor).is_empty());
}

#[tokio::test]
async fn a_loop_is_stopped_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", NUMBER);
    let mut running = start(directory.path(), &map! {"go" => file}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    running.bus.fire("go", &map! {"n" => 0}).await.unwrap();
    let mut depth = 0;
    let message = loop {
        tokio::select! {
            // Each reaction leads to the same event again.
            reaction = running.reactions.recv() => {
                let (_, cause) = reaction.unwrap();
                depth += 1;
                assert_eq!(cause.depth, depth);
                let mut body = map! {"n" => depth};
                body.extend(cause.short_fields());
                running.bus.fire("go", &body).await.unwrap();
            }
            error = errors.recv() => break error.unwrap().data().get("message").unwrap().to_string(),
        }
    };
    assert_eq!(depth, 4);
    assert!(message.starts_with("4 reactions lead from one to the next up to this event"), "{message}");
    // Other events are still processed.
    running.bus.fire("go", &map! {"n" => 99}).await.unwrap();
    assert_eq!(numbers(&mut running, 1).await, [99]);
}
