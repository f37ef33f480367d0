//! The events that start reactions, their order, and restarts.

use super::*;

#[tokio::test]
async fn a_changed_file_is_reloaded_and_order_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", "a: {runner.one.a: []}\nb: {runner.one.b: []}\n");
    let mut running = start(directory.path(), &map! {"go/*" => file}.into());
    running.bus.fire("go/1", &Map::new()).await.unwrap();
    assert_eq!(next(&mut running).await.0.name(), "runner.one.a");
    assert_eq!(next(&mut running).await.0.name(), "runner.one.b");
    write(directory.path(), "x.sls", "a: {runner.three.n: [{n: {{ data.n }}}]}\n");
    for n in 0..100 {
        running.bus.fire("go/1", &map! {"n" => n}).await.unwrap();
    }
    for n in 0..100 {
        let (reaction, _) = next(&mut running).await;
        assert_eq!(reaction, Reaction::Runner { fun: "three.n".into(), args: Args::keyword(map! {"n" => n}) });
    }
}

#[tokio::test]
async fn events_published_during_a_restart_have_their_reactions() {
    let directory = tempfile::tempdir().unwrap();
    let reactor = map! {"go" => write(directory.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.n }}}]}")}.into();
    let mut running = start(directory.path(), &reactor);
    running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    next(&mut running).await;
    running.shutdown.cancel();
    running.task.await.unwrap();
    running.bus.fire("go", &map! {"n" => 2}).await.unwrap();
    running.bus.close().await;
    drop((running.bus, running.store, running.reactor));
    while running.reactions.recv().await.is_some() {}
    let mut running = start(directory.path(), &reactor);
    loop {
        // Delivery is at least once: the first reaction may be repeated, the second must follow.
        let (reaction, _) = next(&mut running).await;
        if reaction == (Reaction::Runner { fun: "test.arg".into(), args: Args::keyword(map! {"n" => 2}) }) {
            break;
        }
    }
}

#[tokio::test]
async fn the_reactors_own_calls_start_no_reactions() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", NUMBER);
    let mut running = start(directory.path(), &map! {"*" => file}.into());
    for (tag, user) in [
        ("salt/run/20261120235852025555/ret", "Reactor"),
        ("salt/wheel/20261120235852025555/new", "Reactor"),
        ("salt/run/20261120235852025555/ret", "root"),
        ("salt/job/20261120235852025555/ret/web1", "Reactor"),
    ] {
        let n = i32::from(user == "root" || tag.contains("job"));
        running.bus.fire(tag, &map! {"n" => n, "user" => user}).await.unwrap();
    }
    assert_eq!(numbers(&mut running, 2).await, [1, 1]);
}

#[tokio::test]
async fn events_of_one_id_keep_their_order_and_one_burst_has_one_reaction() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", NUMBER);
    let limits = map! {"reactor_debounce" => map! {"burst" => 0.2}};
    let mut running = start_limited(directory.path(), &map! {"go" => file.clone(), "burst" => file}.into(), limits);
    for n in 0..200 {
        running.bus.fire("go", &map! {"n" => n, "id" => format!("m{}", n % 7)}).await.unwrap();
    }
    let all = numbers(&mut running, 200).await;
    for id in 0..7 {
        let of_id: Vec<_> = all.iter().filter(|n| *n % 7 == id).collect();
        assert!(of_id.is_sorted(), "{of_id:?}");
    }
    for n in 0..50 {
        running.bus.fire("burst", &map! {"n" => n, "id" => format!("m{}", n % 2)}).await.unwrap();
    }
    let mut last = numbers(&mut running, 2).await;
    last.sort_unstable();
    assert_eq!(last, [48, 49]);
    assert!(running.reactions.try_recv().is_err());
}

#[tokio::test]
async fn prior_dispatches_are_recovered_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file =
        write(directory.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.n }}}]}\nb: {local.test.ping: [{tgt: x}]}");
    let reactor: Value = map! {"go" => file}.into();
    let (jid, job) = ("20261120235852025555", "20261120235852025556");
    let mut running = start(directory.path(), &reactor);
    // As if the first two reactions had been carried out, and the process had died before the cursor was committed.
    running.reactor.set_leader(false);
    running.shutdown.cancel();
    running.task.await.unwrap();
    let seq = running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    let cause = |reaction: &str, file: &str| {
        Cause {
            seq,
            tag: "go".into(),
            depth: 1,
            entry: "go".into(),
            file: file.into(),
            reaction: reaction.into(),
            prior: None,
            jid: None,
        }
        .fields()
    };
    let path = directory.path().join("x.sls").display().to_string();
    running.bus.fire(&format!("salt/run/{jid}/new"), &cause("a: runner.test.arg", &path)).await.unwrap();
    running.bus.fire(&format!("salt/run/{jid}/ret"), &map! {"success" => true}).await.unwrap();
    running.bus.fire(&format!("salt/job/{job}/new"), &cause("b: local.test.ping", &path)).await.unwrap();
    running.bus.fire("go", &map! {"n" => 2}).await.unwrap();
    running.bus.close().await;
    drop((running.bus, running.store, running.reactor));
    while running.reactions.recv().await.is_some() {}
    let mut running = start(directory.path(), &reactor);
    let mut priors = HashMap::new();
    for _ in 0..4 {
        let (reaction, cause) = next(&mut running).await;
        priors.insert((cause.seq, reaction.name()), cause.prior.map(|prior| (prior.jid.to_string(), prior.ended)));
    }
    assert_eq!(priors[&(seq, "runner.test.arg".to_owned())], Some((jid.to_owned(), true)));
    assert_eq!(priors[&(seq, "local.test.ping".to_owned())], Some((job.to_owned(), false)));
    assert_eq!(priors.values().filter(|prior| prior.is_none()).count(), 2);
}
