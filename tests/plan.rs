//! `salt ... --plan` and `salt --apply`, and plans that need an approval.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use brine_value::{Value, json};

use crate::support::{System, stderr, stdout};

const SLS: &str = "{% if grains.id == 'db1' %}
ROOT/db.txt:
  file.managed:
    - contents: {{ pillar.get('text', 'one') }}
{% endif %}
same:
  test.succeed_with_changes: []
";

async fn system(config: &str) -> System {
    let mut system = System::new(&format!("auto_accept: True\n{config}"));
    system.write("srv/salt/web.sls", SLS);
    system.write("users", "alice:one\nbob:two\n");
    system.start_master().await;
    for id in ["db1", "web1", "web2"] {
        system.start_minion(id).await;
    }
    system
}

async fn salt(system: &System, words: &[&str]) -> Output {
    system.tool_async("salt", words).await
}

fn file(system: &System) -> String {
    std::fs::read_to_string(system.path("db.txt")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_groups_minions_and_is_applied_exactly() {
    let system = system("").await;
    let path = system.path("plan.brine").display().to_string();
    let keep = format!("--plan={path}");
    let planned = salt(&system, &["*", "state.apply", "web", &keep]).await;
    let page = stdout(&planned);
    assert!(planned.status.success(), "{page}{}", stderr(&planned));
    let (odd, many) =
        (page.find("1 minion: 2 states: db1").unwrap(), page.find("2 minions: 1 state: web1, web2").unwrap());
    assert!(odd < many, "unusual groups are first: {page}");
    assert!(page.contains("Plan: 3 minions would change in 2 ways; 0 unchanged, 0 failed, 0 silent"), "{page}");
    assert!(file(&system).is_empty(), "a plan changes nothing");
    let text = stdout(&salt(&system, &["*", "state.apply", "web", "--plan", "--out=json", &keep]).await);
    let plan = json::from_json(&text).unwrap();
    assert_eq!(plan.get("groups").and_then(Value::as_list).map(<[Value]>::len), Some(2), "{plan}");

    // Somebody changes db1 after the plan: it runs nothing, and the others apply theirs.
    system.write("db.txt", "other\n");
    let applied = salt(&system, &["--apply", &path]).await;
    let text = stdout(&applied);
    assert!(!applied.status.success() && text.contains("the plan no longer holds, and nothing is run"), "{text}");
    assert_eq!(file(&system), "other\n");
    std::fs::remove_file(system.path("db.txt")).unwrap();

    // Other content in the master's file is another plan, although a new file has no diff.
    let changed = system.write("srv/salt/web.sls", &SLS.replace("'one'", "'two'"));
    assert!(!salt(&system, &["--apply", &path]).await.status.success());
    assert!(file(&system).is_empty());
    std::fs::write(&changed, SLS.replace("ROOT", system.path("").display().to_string().trim_end_matches('/'))).unwrap();

    // In batches, too.
    let applied = salt(&system, &["--apply", &path, "-b", "1", "--out=txt"]).await;
    assert_eq!(file(&system), "one\n", "{}{}", stdout(&applied), stderr(&applied));
    // A plan that was applied holds for no minion whose state it has changed.
    let again = stdout(&salt(&system, &["--apply", &path]).await);
    assert!(again.contains("the plan no longer holds"), "{again}");
    let planned = stdout(&salt(&system, &["*", "state.apply", "web", "--plan", &keep, "-b", "2"]).await);
    assert!(planned.contains("3 minions: 1 state: db1, web1, web2"), "{planned}");

    // A file that others can change is refused.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let refused = salt(&system, &["--apply", &path]).await;
    assert!(stderr(&refused).contains("other users can change it"), "{}", stderr(&refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_needs_the_approval_of_another_user() {
    let config = "plan_approval: True
external_auth:
  file:
    ^filename: ROOT/users
    alice: [{'*': [{state.apply: {kwargs: {test: 'True'}}}, state.apply_plan]}, '@plan', {events: '*'}]
    bob: ['@plan']
";
    let system = system(config).await;
    let path = system.path("plan.brine").display().to_string();
    let alice = ["-a", "file", "--username", "alice", "--password", "one"];
    let bob = ["-a", "file", "--username", "bob", "--password", "two"];
    let keep = format!("--plan={path}");
    let planned = salt(&system, &[&alice[..], &["*", "state.apply", "web", &keep]].concat()).await;
    let advice = stderr(&planned);
    assert!(planned.status.success(), "{}{advice}", stdout(&planned));
    let id = advice.split_whitespace().nth(1).unwrap().to_owned();
    assert!(advice.contains(&format!("plan {id} is kept")), "{advice}");

    let apply = async || salt(&system, &[&alice[..], &["--apply", &path]].concat()).await;
    let refused = apply().await;
    assert!(stderr(&refused).contains("is not approved"), "{}{}", stdout(&refused), stderr(&refused));
    let approve =
        async |who: &[&str]| stdout(&system.tool_async("salt-run", &[who, &["plan.approve", &id]].concat()).await);
    let own = approve(&alice).await;
    assert!(own.contains("was made by alice: another user has to approve it"), "{own}");
    let page = stdout(&system.tool_async("salt-run", &[&bob[..], &["plan.show", &id]].concat()).await);
    assert!(page.contains("2 minions: 1 state: web1, web2"), "{page}");
    let approved = approve(&bob).await;
    assert!(approved.contains("approved_by") && approved.contains("bob"), "{approved}");

    // A changed file is another plan.
    let original = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, original.replace("\"web\"", "\"other\"")).unwrap();
    let refused = apply().await;
    assert!(stderr(&refused).contains("its arguments differs"), "{}{}", stdout(&refused), stderr(&refused));
    // Another id, or none, is no way around it, nor is a function that calls another one.
    for words in [
        &["*", "state.apply_plan", "state.apply", "{digests: {}}", "web"][..],
        &["*", "state.apply_plan", "state.apply", "{digests: {}, id: '1'}", "web"],
        &["*", "test.cross_test", "state.apply_plan", "state.apply", "{digests: {}}", "web"],
    ] {
        let refused = salt(&system, words).await;
        let text = stderr(&refused);
        assert!(text.contains("there is no plan") || text.contains("plan_approval"), "{words:?} {text}");
    }
    assert!(file(&system).is_empty());
    std::fs::write(&path, original).unwrap();
    let applied = apply().await;
    assert_eq!(file(&system), "one\n", "{}{}", stdout(&applied), stderr(&applied));
    let replayed = apply().await;
    assert!(stderr(&replayed).contains("was applied by job"), "{}{}", stdout(&replayed), stderr(&replayed));
    // Her other permission is for dry runs alone.
    let direct = salt(&system, &[&alice[..], &["*", "state.apply", "web"]].concat()).await;
    assert!(!direct.status.success(), "{}", stdout(&direct));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_an_orchestration_is_applied_step_by_step() {
    let system = system("").await;
    system.write(
        "srv/salt/orch/deploy.sls",
        "databases:\n  salt.state: [{tgt: 'db*'}, {sls: web}]\nwebs:\n  salt.state: [{tgt: 'web*'}, {sls: web}, {require: [{salt: databases}]}]\n\
         test.echo:\n  salt.function: [{tgt: 'web*'}, {arg: [done]}, {require: [{salt: webs}]}]\n",
    );
    let path = system.path("plan.brine").display().to_string();
    let run = async |words: &[&str]| system.tool_async("salt-run", words).await;
    let planned = run(&[&format!("--plan={path}"), "state.orchestrate", "orch.deploy"]).await;
    let page = stdout(&planned);
    assert!(planned.status.success(), "{page}{}", stderr(&planned));
    for expected in [
        "state.orchestrate orch.deploy\n",
        "Step 1: databases\n    1 minion: 2 states: db1\n",
        "Step 2: webs\n    2 minions: 1 state: web1, web2\n",
        "Step 3: test.echo\n    Function test.echo would be executed on target web*\n",
        "Plan: 2 of 3 steps would change states of 3 minions",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(file(&system).is_empty(), "a plan changes nothing");
    let refused = salt(&system, &["--apply", &path]).await;
    assert!(
        stderr(&refused).contains("is the plan of an orchestration: apply it by `salt-run"),
        "{}",
        stderr(&refused)
    );

    // A minion that would change otherwise stops the orchestration before the next step.
    system.write("db.txt", "other\n");
    let applied = run(&["--apply", &path]).await;
    let text = stdout(&applied);
    assert!(!applied.status.success() && text.contains("the plan no longer holds"), "{text}{}", stderr(&applied));
    assert!(text.contains("One or more requisite failed"), "{text}");
    assert_eq!(file(&system), "other\n");
    std::fs::remove_file(system.path("db.txt")).unwrap();
    let applied = run(&["--apply", &path]).await;
    assert!(applied.status.success(), "{}{}", stdout(&applied), stderr(&applied));
    assert_eq!(file(&system), "one\n");
    let refused = run(&["--plan", "test.arg"]).await;
    assert!(stderr(&refused).contains("--plan plans orchestrations"), "{}", stderr(&refused));
}
