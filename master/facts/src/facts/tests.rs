use brine_master_testing::Fixture;
use brine_value::{list, map};

use super::*;

fn facts_of(fixture: &Fixture) -> Facts {
    Facts::new(Arc::clone(&fixture.config), fixture.storage.clone(), Publisher::new())
}

#[tokio::test]
async fn targets_are_resolved_by_keys_and_grains() {
    let groups = map! {"web" => "L@web1,web2"};
    let fixture = Fixture::new(&["web1", "web2", "db1"], |config| config.nodegroups = groups);
    fixture.set_grains("web1", map! {"os" => "Debian"}).await;
    fixture.set_grains("db1", map! {"os" => "Fedora"}).await;
    let facts = facts_of(&fixture);
    for (tgt, tgt_type, minions, missing) in [
        (Value::from("web*"), "glob", &["web1", "web2"][..], &[][..]),
        (list!["db1", "gone"], "list", &["db1"], &["gone"]),
        // The grains of web2 are unknown.
        ("os:Debian".into(), "grain", &["web1"], &[]),
        ("G@os:Debian or I@a:b".into(), "compound", &["web1"], &[]),
        ("not G@os:Debian".into(), "compound", &["db1", "web2"], &[]),
        ("os:Solaris".into(), "grain", &[], &[]),
        ("web".into(), "nodegroup", &["web1", "web2"], &[]),
        ("nobody".into(), "glob", &[], &[]),
    ] {
        let request = PublishRequest { tgt, tgt_type: tgt_type.into(), ..PublishRequest::new("", "test.ping", "root") };
        let targets = facts.targets(&request).await.unwrap();
        assert_eq!(
            (&targets.minions[..], &targets.missing[..]),
            (&owned(minions)[..], &owned(missing)[..]),
            "{request:?}"
        );
    }
    // A permission must cover web2, too: it may match the target.
    let request = PublishRequest { tgt_type: "grain".into(), ..PublishRequest::new("os:Debian", "test.ping", "root") };
    assert_eq!(facts.possible_targets(&request).await.unwrap().minions, ["web1", "web2"]);
    assert_eq!((facts.group_size("web").await, facts.group_size("none").await), (Some(2), None));
    let request = PublishRequest { tgt_type: "wish".into(), ..PublishRequest::new("*", "test.ping", "root") };
    assert!(matches!(facts.targets(&request).await, Err(ResolveError::Target(_))));
}

#[tokio::test]
async fn without_the_data_cache_targets_by_grains_find_all_minions_and_permit_none() {
    let fixture = Fixture::new(&["web1"], |config| config.minion_data_cache = false);
    fixture.set_grains("web1", map! {"os" => "Debian"}).await;
    let facts = facts_of(&fixture);
    for (tgt, is_found, is_permitted) in
        [("G@os:Fedora", true, false), ("G@os:Debian", true, false), ("web*", true, true), ("db*", false, false)]
    {
        let target = facts.target(TargetKind::Compound, tgt.into(), ":").unwrap();
        let checked = fixture.storage.run(move |storage| {
            let web1 = "web1".parse().unwrap();
            storage.mines.add(&web1, map! {"a" => 1}, false).unwrap();
            assert_eq!((storage.minion_data.grains("web1"), storage.mines.get("web1").unwrap()), (None, map! {}));
            (!resolve(storage, &target).unwrap().minions.is_empty(), storage.minion_data.is_permitted(&target, "web1"))
        });
        assert_eq!(checked.await.unwrap(), (is_found, is_permitted), "{tgt}");
    }
}

#[tokio::test]
async fn minions_of_other_members_are_present() {
    let facts = facts_of(&Fixture::new(&[], |_| {}));
    let pack = |minions: Map| msgpack::pack_map(&minions);
    let minions = map! {"web1" => "10.0.0.1", "../x" => "10.0.0.2", "web2" => "nowhere"};
    facts.set_present_elsewhere(&[("m2".into(), pack(minions)), ("m3".into(), b"junk".to_vec())]);
    assert_eq!(facts.present_addresses(), BTreeMap::from([("web1".parse().unwrap(), [10, 0, 0, 1].into())]));
    assert_eq!(facts.packed_present(), pack(Map::new()), "only its own are announced");
    facts.set_present_elsewhere(&[]);
    assert!(facts.present().is_empty());
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}
