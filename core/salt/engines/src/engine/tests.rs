use std::sync::atomic::{AtomicUsize, Ordering};

use brine_value::{list, map};

use super::*;

#[test]
fn every_form_of_the_option_is_parsed() {
    let engine = |name: &str, module: &str, kwargs: Map| Engine { name: name.into(), module: module.into(), kwargs };
    for (option, engines, errors) in [
        (Value::Nil, vec![], 0),
        (list!["a"], vec![engine("a", "a", map! {})], 0),
        (
            list![map! {"a" => map! {"port" => 1}}, map! {"b" => map! {"engine_module" => "a"}}],
            vec![engine("a", "a", map! {"port" => 1}), engine("b", "a", map! {})],
            0,
        ),
        (map! {"a" => Value::Nil, "b" => 5}.into(), vec![engine("a", "a", map! {})], 1),
        (list![1, list!["a"]], vec![], 2),
    ] {
        let (engines_read, errors_read) = Engine::read(&option);
        assert_eq!((engines_read, errors_read.len()), (engines, errors), "{option}");
    }
}

#[test]
fn mistakes_in_the_option_are_found() {
    for (option, expected) in [
        (
            list![
                "own",
                map! {"script" => map! {"cmd" => "true"}},
                map! {"hooks" => map! {"engine_module" => "webhook"}}
            ],
            "",
        ),
        (list!["other"], "'other': there is no engine 'other': add a module of this name in '_engines'"),
        (list!["reactor", map! {"reactor" => map! {"refresh_interval" => 60, "worker_threads" => 10}}], ""),
        (
            list![map! {"thorium" => map! {}}],
            "'thorium': rules over time take the place of thorium: write `reactor_rules`",
        ),
        (list!["script"], "'script': the argument 'cmd' is missing: name the command"),
        (
            list![map! {"hooks" => map! {"engine_module" => "webhook", "port" => 70_000}}],
            "'hooks': the argument 'port' is invalid: expected a number up to 65535, got 70000",
        ),
        (list![1], "an entry is invalid: expected a name, got int"),
    ] {
        assert_eq!(Engine::check(&option, false, |name| name == "own").join(" "), expected, "{option}");
    }
    // The package `salt` may have the engine, or arguments that the built-in one lacks.
    assert_eq!(Engine::check(&list!["other", "script"], true, |_| false), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_ended_engine_is_restarted() {
    let (starts, stopping) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let (counted, stop) = (Arc::clone(&starts), stopping.clone());
    let start = move |_, _| -> BoxFuture<'static, Result<(), EngineError>> {
        if counted.fetch_add(1, Ordering::Relaxed) == 3 {
            stop.cancel();
        }
        Box::pin(async { Err(EngineError::Custom("killed".to_owned())) })
    };
    Engine::new("a", Map::new()).run(start, stopping).await;
    assert_eq!(starts.load(Ordering::Relaxed), 4);
}
