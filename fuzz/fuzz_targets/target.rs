//! Any target of any kind means somebody, nobody, or is refused.
#![no_main]

use brine_core::Map;
use brine_core::target::{Facts, Target, TargetKind};
use libfuzzer_sys::fuzz_target;

struct Minion(Map);

impl Facts for Minion {
    fn id(&self) -> &str {
        "web1.example.org"
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.0)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(&self.0)
    }
}

fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    let minion = Minion(brine_core::map! {"os" => "Debian", "roles" => brine_core::list!["web", 7]});
    if let Ok(target) =
        Target::parse(TargetKind::ALL[usize::from(kind) % TargetKind::ALL.len()], text, ":", &Map::new())
    {
        target.matches(&minion);
    }
});
