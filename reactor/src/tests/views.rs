//! The graph of causes and dry runs of single files.

use super::*;

fn texts(nodes: &Value, field: &str) -> Vec<String> {
    let text = |node: &Value| node.get(field).map(ToString::to_string).unwrap_or_default();
    nodes.as_list().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn a_graph_leads_from_the_first_cause_to_each_return() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(directory.path(), &list![map! {"never" => write(directory.path(), "a.sls", NUMBER)}]);
    let fire = |tag: &'static str, data: Map| {
        let bus = running.bus.clone();
        async move { bus.fire(tag, &data).await.unwrap() }
    };
    let jid = "20261122160000000001";
    let first = fire("go/1", map! {"id" => "web1"}).await;
    let job = map! {
        "_cause" => first, "_entry" => "go/*", "_sls" => "/srv/a.sls", "_reaction" => "a: local.test.ping", "jid" => jid,
        "minions" => list!["web1", "web2", "web3"],
    };
    let new = fire("salt/job/20261122160000000001/new", job).await;
    let good = map! {"_cause" => new, "id" => "web1", "retcode" => 0, "success" => true, "return" => true};
    let ret = fire("salt/job/20261122160000000001/ret/web1", good).await;
    let bad = map! {"_cause" => new, "id" => "web2", "retcode" => 1, "success" => false, "return" => "no"};
    fire("salt/job/20261122160000000001/ret/web2", bad).await;

    // The same graph from an event, from its job, and from a return.
    for asked in [first.to_string(), jid.to_owned(), ret.to_string()] {
        let graph = running.reactor.graph(&thread(), &running.bus, &asked).unwrap();
        let nodes = graph.get("nodes").unwrap();
        assert_eq!(texts(nodes, "kind")[..2], ["event", "reaction"], "{nodes}");
        assert_eq!(nodes.as_list().unwrap()[1].get("parent"), Some(&0.into()), "{nodes}");
        let reaction = &nodes.as_list().unwrap()[1];
        assert_eq!(texts(reaction.get("returns").unwrap(), "id"), ["web2", "web3", "web1"]);
        assert_eq!(texts(reaction.get("returns").unwrap(), "state"), ["failed", "missing", "done"]);
        assert_eq!(reaction.get("rule"), Some(&false.into()));
        assert_eq!(graph.get("cut"), Some(&false.into()));
    }
    let error = running.reactor.graph(&thread(), &running.bus, "nonsense").unwrap_err().to_string();
    assert_eq!(error, "'nonsense' is neither an event's sequence number nor a job id");
}

#[tokio::test]
async fn a_dry_run_of_a_file_is_limited_to_served_and_bound_files() {
    let directory = tempfile::tempdir().unwrap();
    let bound = write(directory.path(), "bound.sls", NUMBER);
    let other = write(directory.path(), "other.sls", NUMBER);
    write(&directory.path().join("base"), "new.sls", NUMBER);
    let mut running = start(directory.path(), &list![map! {"go/*" => bound.clone()}]);
    let dry_run = |file: &str, n: i64| running.reactor.dry_run_file(file, "entirely/different", map! {"n" => n});
    for file in [bound.as_str(), "salt://new.sls"] {
        let report = dry_run(file, 5).unwrap();
        assert_eq!(texts(report.get("reactions").unwrap(), "reaction"), ["a: runner.test.arg"], "{report}");
        assert_eq!(report.get("errors"), None);
    }
    for file in [other.as_str(), "/etc/shadow", "../base/new.sls", ""] {
        assert_eq!(dry_run(file, 5), Err(DryRunError::File(file.to_owned())));
    }
    assert!(dry_run("salt://missing.sls", 5).unwrap().get("errors").is_some());
    assert!(running.reactions.try_recv().is_err());
}
