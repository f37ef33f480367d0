use brine_value::list;

use super::*;

fn plans() -> (tempfile::TempDir, tokio::runtime::Runtime, Plans, BlockingStore) {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = {
        let _runtime = runtime.enter();
        let (store, _) = brine_bus::store::Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        store.blocking(&brine_runtime::executors::MayBlock::on_dedicated_thread(runtime.handle().clone()))
    };
    let plans = Plans::new(store.clone());
    (directory, runtime, plans, store)
}

fn plan(user: &str) -> Plan {
    let groups = list![map! {"digest" => "a".repeat(64), "minions" => list!["db", "web"], "states" => list![]}];
    let job = map! {"fun" => "state.apply", "arg" => list!["web"], "jid" => "1", "user" => user};
    Plan::new(job, map! {"groups" => groups}).unwrap()
}

fn job(plan: &Plan, jid: &str) -> Application {
    Application {
        id: "1".into(),
        fun: "state.apply".into(),
        arg: vec!["web".into()],
        digests: plan.digests(),
        minions: vec!["web".into()],
        jid: jid.into(),
    }
}

#[test]
fn only_an_approved_and_unchanged_plan_is_applied_and_only_once() {
    let (_directory, _runtime, plans, _) = plans();
    let plan = plan("alice");
    let record = plans.add("1", plan.clone()).unwrap();
    assert!(matches!(plans.apply(&job(&plan, "2")), Err(PlanError::Unapproved(_))));
    for user in ["alice", "sudo_alice"] {
        assert!(matches!(plans.approve("1", user, None), Err(PlanError::Maker { .. })), "{user}");
    }
    assert!(matches!(plans.approve("1", "bob", Some("other")), Err(PlanError::Digest { .. })));
    assert!(matches!(plans.approve("9", "bob", None), Err(PlanError::Unknown(_))));
    plans.approve("1", "bob", Some(&record.digest)).unwrap();
    let good = job(&plan, "2");
    for other in [
        Application { fun: "state.sls".into(), ..good.clone() },
        Application { arg: vec!["db".into()], ..good.clone() },
        Application { digests: map! {"b".repeat(64) => list!["web"]}, ..good.clone() },
        Application { minions: vec!["web".into(), "other".into()], ..good.clone() },
    ] {
        assert!(matches!(plans.apply(&other), Err(PlanError::Other { .. })), "{other:?}");
    }
    plans.apply(&good).unwrap();
    // The next part of the same batch, and then a replay.
    plans.apply(&Application { minions: vec!["db".into()], ..good.clone() }).unwrap();
    assert!(matches!(plans.apply(&job(&plan, "3")), Err(PlanError::Applied { .. })));
    assert!(matches!(plans.approve("1", "bob", None), Err(PlanError::Applied { .. })));
    // Making it again does not replace it.
    assert_eq!(plans.add("1", plan).unwrap().applied.as_deref(), Some("2"));
    plans.delete("1").unwrap();
    assert!(matches!(plans.delete("1"), Err(PlanError::Unknown(_))));
}

#[test]
fn a_plan_that_was_changed_in_the_store_is_refused() {
    let (_directory, _runtime, plans, store) = plans();
    let mut record = plans.add("1", plan("alice")).unwrap();
    plans.approve("1", "bob", None).unwrap();
    record.plan.insert("arg", list!["other"]);
    record.approved_by = Some("bob".into());
    let mut batch = Batch::new();
    batch.put(TABLE, "1", record.pack());
    store.write(batch).durable_blocking().unwrap();
    assert!(matches!(plans.get("1"), Err(PlanError::Changed(_))));
    assert!(matches!(plans.apply(&job(&record.plan, "2")), Err(PlanError::Changed(_))));
    assert!(plans.list(|_, plan| plan.is_err()).unwrap()[0]);
}

#[test]
fn root_and_those_who_use_sudo_may_be_the_same_person() {
    for (one, other, same) in [
        ("alice", "bob", false),
        ("alice", "alice", true),
        ("sudo_alice", "alice", true),
        ("sudo_alice", "sudo_bob", false),
        ("root", "sudo_alice", true),
        ("sudo_alice", "root", true),
        ("root", "alice", false),
    ] {
        assert_eq!(is_same_person(one, other), same, "{one} {other}");
    }
}
