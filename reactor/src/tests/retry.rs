//! Retries of dead letters after the file was changed.

use super::*;

const FILE: &str = "a: {runner.good.one: []}\nb: {runner.bad.one: []}\n";

/// Fails the reaction `bad.one` of [`FILE`] once, replaces the file, and retries. Returns the functions that ran, the
/// result, and the labels of the remaining dead letters.
async fn retried(text: Option<&str>) -> (Vec<String>, Result<(), String>, Vec<Option<String>>) {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", FILE);
    let mut running = start(directory.path(), &map! {"go" => file.clone()}.into());
    running.failing.lock().insert("bad.one", (1, DispatchError::permanent("it is broken")));
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let seq = running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    errors.recv().await.unwrap();
    for _ in 0..2 {
        next(&mut running).await;
    }
    match text {
        Some(text) => _ = write(directory.path(), "x.sls", text),
        None => std::fs::remove_file(&file).unwrap(),
    }
    let retried = running.reactor.retry(&running.bus, Some(seq)).await;
    let [retried] = &retried[..] else { panic!("{retried:?}") };
    let mut ran = Vec::new();
    while let Ok((reaction, _)) = running.reactions.try_recv() {
        ran.push(reaction.fun().to_owned());
    }
    let left = dead_letters(&running.reactor).into_iter().map(|letter| letter.label).collect();
    (ran, retried.result.clone(), left)
}

#[tokio::test]
async fn a_retry_runs_the_corrected_reaction_or_keeps_the_dead_letter() {
    for (change, text, expected) in [
        ("nothing", Some(FILE), Ok("bad.one")),
        ("the id", Some("a: {runner.good.one: []}\nc: {runner.bad.one: []}"), Ok("bad.one")),
        ("the function", Some("a: {runner.good.one: []}\nb: {runner.good.two: []}"), Ok("good.two")),
        ("the id and the function", Some("a: {runner.good.one: []}\nc: {runner.good.two: []}"), Ok("good.two")),
        ("the function, without the other reaction", Some("b: {runner.good.two: []}"), Ok("good.two")),
        ("another reaction added", Some("b: {runner.bad.one: []}\nd: {runner.good.two: []}"), Ok("bad.one")),
        (
            "the function, another one added",
            Some("d: {runner.good.two: []}\nb: {runner.good.three: []}"),
            Ok("good.three"),
        ),
        (
            "the function to that of the other reaction",
            Some("a: {runner.good.one: []}\nb: {runner.good.one: []}"),
            Ok("good.one"),
        ),
        (
            "the reaction removed",
            Some("a: {runner.good.one: []}"),
            Err("has no reaction 'b: runner.bad.one' any more, and no new one"),
        ),
        (
            "two in its place",
            Some("a: {runner.good.one: []}\nc: {runner.good.two: []}\nd: {runner.good.three: []}"),
            Err("it cannot be told which of 'c: runner.good.two', 'd: runner.good.three'"),
        ),
        ("all names", Some("x: {runner.good.two: []}\ny: {runner.good.three: []}"), Err("it cannot be told which of")),
        ("one new in the place of both", Some("x: {runner.good.two: []}"), Err("it cannot be told which of")),
        ("the file emptied", Some(""), Err("and no new one")),
        ("the file removed", None, Err("No such file or directory")),
        ("a mistake", Some("b: [runner.good.two"), Err("x.sls")),
        ("a mistake beside it", Some("a: {local.test.ping: []}\nb: {runner.good.two: []}"), Ok("good.two")),
    ] {
        let (ran, result, left) = retried(text).await;
        match expected {
            Ok(function) => {
                assert_eq!((&ran[..], &result, &left[..]), (&[function.to_owned()][..], &Ok(()), &[][..]), "{change}");
            }
            Err(message) => {
                let error = result.unwrap_err();
                assert!(error.contains(message), "{change}: {error}");
                assert_eq!((ran, left), (vec![], vec![Some("b: runner.bad.one".to_owned())]), "{change}");
            }
        }
    }
}

#[tokio::test]
async fn reactions_beside_an_invalid_one_run_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", "a: {local.test.ping: []}\nb: {runner.good.one: []}\n");
    let mut running = start(directory.path(), &map! {"go" => file}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    running.bus.fire("go", &Map::new()).await.unwrap();
    errors.recv().await.unwrap();
    assert_eq!(next(&mut running).await.0.fun(), "good.one");
    for (text, ran, left) in [
        ("a: {local.test.ping: []}\nb: {runner.good.one: []}", &[][..], 1),
        ("a: {local.test.ping: []}\nb: {runner.good.one: []}\nc: {runner.good.two: []}", &["good.two"], 1),
        ("a: {runner.good.three: []}\nb: {runner.good.one: []}\nc: {runner.good.two: []}", &["good.three"], 0),
    ] {
        write(directory.path(), "x.sls", text);
        running.reactor.retry(&running.bus, None).await;
        let mut functions = Vec::new();
        while let Ok((reaction, _)) = running.reactions.try_recv() {
            functions.push(reaction.fun().to_owned());
        }
        assert_eq!(
            (&functions[..], dead_letters(&running.reactor).len()),
            (&ran.iter().map(ToString::to_string).collect::<Vec<_>>()[..], left),
            "{text}"
        );
    }
}

#[tokio::test]
async fn dead_letters_are_dropped_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(directory.path(), &map! {"go" => "/nonexistent.sls"}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let mut seqs = Vec::new();
    for n in 0..3 {
        seqs.push(running.bus.fire("go", &map! {"n" => n}).await.unwrap());
        errors.recv().await.unwrap();
    }
    let dropped = running.reactor.drop_dead_letters(Some(seqs[1])).await;
    assert_eq!(dropped.iter().map(|id| id.seq).collect::<Vec<_>>(), [seqs[1]]);
    assert_eq!(running.reactor.drop_dead_letters(None).await.len(), 2);
    assert!(dead_letters(&running.reactor).is_empty());
}
