use brine_master_testing::Fixture;
use brine_target::TargetFacts;

use super::*;

#[test]
fn pillars_are_cached_by_minion_and_environment() {
    let (cache, hour) = (PillarCache::default(), Duration::from_secs(3600));
    let (one, other): (MinionId, MinionId) = ("one".parse().unwrap(), "other".parse().unwrap());
    cache.put(&one, None, &map! {"a" => 1}, hour);
    cache.put(&one, Some("dev"), &map! {"a" => 2}, hour);
    assert_eq!(cache.get(&one, None, hour), Some(map! {"a" => 1}));
    assert_eq!(cache.get(&one, Some("dev"), hour), Some(map! {"a" => 2}));
    assert_eq!(cache.get(&one, Some("qa"), hour), None);
    assert_eq!(cache.get(&other, None, hour), None);
    assert_eq!(cache.get(&one, None, Duration::ZERO), None);
    cache.remove(&one);
    assert_eq!(cache.get(&one, Some("dev"), hour), None);
}

fn query(grains: Map) -> PillarQuery {
    let id: MinionId = "web1".parse().unwrap();
    let pillar_override = Map::new();
    PillarQuery {
        id,
        grains,
        saltenv: None,
        pillarenv: None,
        pillar_override,
        ext: None,
        extra_minion_data: Map::new(),
        clean_cache: false,
    }
}

#[tokio::test]
async fn a_pillar_is_rendered_stored_and_published() {
    let fixture = Fixture::new(&["web1"], |config| {
        config.opts.insert("pillar_roots".into(), map! {"base" => brine_value::list!["/nonexistent"]}.into());
        config.opts.insert("on_demand_ext_pillar".into(), brine_value::list!["nodegroups"]);
        config.minion_data_cache_events = true;
    });
    let mut events = fixture.subscribe();
    let pillars = Arc::new(Pillars::new(
        Arc::clone(&fixture.config),
        fixture.storage.clone(),
        fixture.executors.render.clone(),
        fixture.events.clone(),
        None,
    ));
    let asked = query(map! {"os" => "Debian"});
    let changed = PillarQuery { pillar_override: map! {"a" => 1}, ..query(map! {"os" => "Ubuntu"}) };
    let groups = PillarQuery { ext: Some(map! {"nodegroups" => ""}), ..asked.clone() };
    for (asked, expected, os) in [
        (asked, Map::new(), "Debian"),
        (changed, map! {"a" => 1}, "Ubuntu"),
        (groups, map! {"nodegroups" => brine_value::list![]}, "Debian"),
    ] {
        let pillar = pillars.pillar(asked, Arc::new(|_: &MayBlock| Host::new())).await;
        assert_eq!(pillar, expected.into());
        let id = "web1";
        let stored = fixture.storage.run(move |storage| {
            let facts = storage.minion_data.facts(id);
            (facts.grains().cloned(), facts.pillar().cloned())
        });
        // Additions of the request are not part of the stored pillar, which targets match.
        assert_eq!(stored.await.unwrap(), (Some(map! {"os" => os}), Some(Map::new())));
        assert_eq!(events.recv().await.unwrap().tag(), "minion/refresh/web1");
    }
}

#[test]
fn without_a_host_pillar_files_call_only_master_functions() {
    let functions = pillar_host(None, &Host::new(), &Arc::default());
    for (name, has) in [("saltutil.runner", true), ("saltutil.wheel", true), ("test.ping", false)] {
        assert_eq!(functions.has(name), has, "{name}");
    }
    assert!(matches!(functions.call("test.ping", Args::default()), Err(CallError::NotAvailable(_))));
}
