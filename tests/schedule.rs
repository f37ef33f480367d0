//! The schedules of a real minion and a real master: jobs run, are published, stored and reacted to.

use crate::support;

use crate::support::{System, text};
use brine_value::{Map, Value};

const MINION: &str = "schedule:
  often: {function: test.arg, seconds: 1, args: [1], kwargs: {a: 2}, metadata: {who: me}}
  quiet: {function: event.send, args: [ran/quiet], seconds: 1, return_job: False}
  unkept: {function: test.ping, minutes: 5, return_job: nocache}
  wrong: {function: test.ping, cron: 61 * * * *}
";

fn get<'a>(data: &'a Map, name: &str) -> &'a Value {
    data.get(name).unwrap_or_else(|| panic!("{name} is missing: {data:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_jobs_of_configuration_and_pillar_run_and_trigger_the_reactor() {
    let mut system = System::start("reactor:\n  - 'salt/job/*/ret/web1': [ROOT/ran.sls]\n").await;
    system.write(
        "ran.sls",
        "{% if data.schedule is defined %}ran:\n  runner.test.arg:\n    - args: [{{ data.schedule }}]\n{% endif %}\n",
    );
    system.write("srv/pillar/top.sls", "base: {'*': [jobs]}\n");
    system.write("srv/pillar/jobs.sls", "schedule:\n  of_pillar: {function: test.ping, minutes: 5}\n");
    system.configure_minion("web1", MINION);
    let mut events = system.events("").await;
    system.spawn_minion("web1");
    let (mut of_pillar, mut unkept, mut often, mut quiet, mut reacted) = (None, None, Vec::new(), false, false);
    while of_pillar.is_none() || unkept.is_none() || often.len() < 2 || !quiet || !reacted {
        let (tag, data) = events.next().await;
        match (tag.as_str(), text(&data, "schedule").as_str()) {
            ("ran/quiet", _) => quiet = true,
            (_, "of_pillar") => of_pillar = Some(data),
            (_, "unkept") => unkept = Some(data),
            (_, "often") => often.push(data),
            (_, "quiet" | "wrong") => panic!("this must not be reported: {data:?}"),
            _ => reacted |= tag.ends_with("/ret") && text(&data, "return").contains("often"),
        }
    }
    let of_pillar = of_pillar.unwrap();
    assert_eq!((get(&of_pillar, "return"), get(&of_pillar, "retcode")), (&true.into(), &0.into()));
    assert_eq!((text(&of_pillar, "tgt"), text(&of_pillar, "tgt_type")), ("web1".into(), "glob".into()));
    let one = &often[0];
    assert_eq!(text(one, "fun_args"), "[1, {'a': 2}]");
    assert_eq!(
        (get(one, "success"), get(get(one, "return").as_map().unwrap(), "args")),
        (&true.into(), &brine_value::list![1])
    );
    assert_eq!(text(get(one, "metadata").as_map().unwrap(), "who"), "me");
    // The job cache has the job, with its arguments.
    let job = |data: &Map| {
        let output = system.tool("salt-run", &["jobs.list_job", &text(data, "jid"), "--out=json"]);
        brine_value::json::from_json(&support::stdout(&output)).unwrap()
    };
    let details = job(one);
    assert_eq!((details.get("Function"), details.get("Target")), (Some(&"test.arg".into()), Some(&"web1".into())));
    assert!(details.get("Result").unwrap().get("web1").is_some(), "{details}");
    // The return of a job with `return_job: nocache` is published but not stored.
    let unkept = unkept.unwrap();
    assert_eq!(get(&unkept, "return"), &true.into());
    let details = job(&unkept);
    assert!(details.get("Result").is_none_or(|result| !result.is_truthy()), "{details}");
    let said = system.minion_log("web1");
    assert_eq!(said.matches("scheduled job 'wrong' is ignored: option 'cron'").count(), 1, "{said}");
}

const MASTER: &str = "schedule:
  often: {function: test.arg, seconds: 1, args: [1], kwargs: {a: 2}}
  quiet: {function: test.arg, seconds: 1, return_job: False}
  wrong: {function: no.such, seconds: 1}
reactor:
  - __schedule_return: [ROOT/ran.sls]
";

#[tokio::test(flavor = "multi_thread")]
async fn the_master_runs_scheduled_runner_functions_and_triggers_its_reactor() {
    let mut system = System::new(MASTER);
    let seen =
        "seen:\n  runner.event.send:\n    - args: [{tag: ran/{{ data.schedule }}}, {data: {fun: {{ data.fun }}}}]\n";
    system.write("ran.sls", seen);
    system.start_master().await;
    let mut events = system.events("").await;
    let (mut often, mut wrong, mut reacted) = (Vec::new(), None, false);
    while often.len() < 2 || wrong.is_none() || !reacted {
        let (tag, data) = events.next().await;
        match (tag.as_str(), text(&data, "schedule").as_str()) {
            ("__schedule_return", "often") => often.push(data),
            ("__schedule_return", "wrong") => wrong = Some(data),
            ("__schedule_return", _) => panic!("this must not be reported: {data:?}"),
            ("ran/often", _) => reacted = text(&data, "fun") == "test.arg",
            _ => {}
        }
    }
    let one = &often[0];
    assert_eq!(text(one, "return"), "{'args': [1], 'kwargs': {'a': 2}}");
    assert_eq!((text(one, "fun_args"), text(one, "jid")), ("[1, {'a': 2}]".into(), "req".into()));
    assert!(text(one, "id").ends_with("_master"), "{one:?}");
    let wrong = wrong.unwrap();
    assert_eq!((get(&wrong, "success"), get(&wrong, "retcode")), (&false.into(), &254.into()));
    assert!(text(&wrong, "return").contains("no.such"), "{wrong:?}");
}
