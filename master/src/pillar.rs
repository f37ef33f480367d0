//! Pillar requests: rendered for the minion that asks, and kept for targeting.

use std::sync::Arc;

use brine_core::sls::pillar::merge;
use brine_core::{Map, MinionId, Value, map};

use crate::Shared;

impl Shared {
    /// Renders a minion's pillar, keeps its grains and pillar, and says so by an event.
    pub(crate) async fn pillar(
        self: &Arc<Self>,
        id: &MinionId,
        grains: Map,
        saltenv: Option<String>,
        pillarenv: Option<String>,
        pillar_override: Map,
    ) -> Value {
        let (shared, minion) = (Arc::clone(self), id.clone());
        let environment = pillarenv.or(saltenv).unwrap_or_else(|| "base".to_owned());
        let rendered = tokio::task::spawn_blocking(move || {
            let mut pillar = shared.pillar_source.render(&minion, &Arc::new(grains.clone()), &environment);
            merge(&mut pillar, &pillar_override);
            let ticket = shared.minion_data.put(&minion, grains, pillar.clone());
            (pillar, ticket)
        });
        let Ok((pillar, ticket)) = rendered.await else { return Value::map() };
        if let Err(error) = ticket.durable().await {
            tracing::error!(minion = %id, %error, "a minion's data could not be kept");
        }
        if self.config.minion_data_cache_events {
            self.fire(&format!("minion/refresh/{id}"), &map! {"Minion data cache refresh" => id}).await;
        }
        pillar.into()
    }
}
