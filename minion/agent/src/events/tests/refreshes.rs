//! The events after refreshes.

use std::sync::Arc;

use brine_bus::{Bus, BusLimits, Filter, Start};
use brine_context::MasterEvent;
use brine_context::local_bus::{MODULES_REFRESHED, PILLAR_REFRESHED, QUESTION};
use brine_value::{Map, Value, map};
use tokio_util::sync::CancellationToken;

use crate::events::{Kind, MasterSession, follow};

/// A session whose grains never change, with a master that has a pillar or not.
struct Session {
    has_pillar: bool,
}

impl MasterSession for Session {
    fn was_ready(&self) -> bool {
        true
    }

    fn queue_event(&self, _event: &MasterEvent) {}

    fn queue_beacon_events(&self, _events: Value) {}

    fn queue_return(self: &Arc<Self>, _load: Map) {}

    fn refresh_modules(&self) {}

    async fn refresh_grains(&self) -> bool {
        false
    }

    async fn refresh_pillar(&self) -> Result<(), String> {
        if self.has_pillar { Ok(()) } else { Err("no pillar".into()) }
    }
}

#[tokio::test]
async fn an_event_tells_that_a_refresh_is_complete() {
    for (has_pillar, tag, data, completed) in [
        (true, "pillar_refresh", map! {}, Some(PILLAR_REFRESHED)),
        (false, "pillar_refresh", map! {}, None),
        (true, "grains_refresh", map! {}, Some(PILLAR_REFRESHED)),
        (true, "grains_refresh", map! {"force_refresh" => false}, None),
        (true, "module_refresh", map! {}, None),
        (true, "module_refresh", map! {"notify" => true}, Some(MODULES_REFRESHED)),
    ] {
        let bus = Bus::in_memory(BusLimits::default());
        let mut events = bus.subscribe(Filter::prefix("/salt/"), Start::Now).unwrap();
        let shutdown = CancellationToken::new();
        let session = Arc::new(Session { has_pillar });
        let followed = tokio::spawn(follow(Kind::Refresh, session, bus.clone(), shutdown.clone()));
        // The subscription of `follow` must be there before the event.
        tokio::task::yield_now().await;
        let mut asked = data.clone();
        asked.insert(QUESTION.into(), "q".into());
        bus.fire(tag, &asked).await.unwrap();
        // Events are handled one after the other: whatever this one causes comes before that of the next.
        bus.fire("module_refresh", &map! {"notify" => true, QUESTION => "end"}).await.unwrap();
        let mut tags = Vec::new();
        loop {
            let event = events.recv().await.unwrap();
            let question = event.data().get(QUESTION).cloned();
            if question == Some("end".into()) {
                break;
            }
            assert_eq!(question, Some("q".into()), "{tag}");
            assert_eq!(event.data().get("complete"), Some(&true.into()), "{tag}");
            tags.push(event.tag().to_owned());
        }
        assert_eq!(tags, completed.into_iter().collect::<Vec<_>>(), "{tag} {data:?}");
        shutdown.cancel();
        followed.await.unwrap();
    }
}
