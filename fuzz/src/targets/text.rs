//! The languages: YAML, Jinja, targets.

use brine_jinja::{Context, Host, Limits, Template};
use brine_target::{Target, TargetFacts, TargetKind};
use brine_value::{Map, list, map};
use brine_yaml::{Style, dump, load};

use super::text_of;
use crate::fingerprint;

/// Any text loads as YAML or is refused; a loaded value survives dumping and loading.
pub fn yaml(bytes: &[u8]) -> u64 {
    let read = load(text_of(bytes));
    if let Ok(value) = &read {
        for style in [Style::BLOCK, Style::FLOW, Style::LEAVES] {
            assert_eq!(load(&dump(value, style)).as_ref(), Ok(value));
        }
    }
    fingerprint(0, read)
}

/// Any template, rewritten and compiled, renders or is refused.
pub fn jinja(bytes: &[u8]) -> u64 {
    let template = match Template::compile("fuzz", text_of(bytes)) {
        Ok(template) => template,
        Err(error) => return fingerprint(0, Err::<(), _>(error)),
    };
    let host = Host::new();
    let mut context = Context::new("base");
    // Lower than the defaults: in an unoptimized build a template within the default limits would count as a hang.
    context.set_limits(Limits { memory: 8 << 20, fuel: 20_000_000, ..Limits::default() });
    context.set("grains", &map! {"os" => "Debian", "ip" => map! {"lo" => "127.0.0.1"}}.into());
    fingerprint(1, template.render(&context, &host))
}

struct Minion(Map);

impl TargetFacts for Minion {
    fn id(&self) -> &'static str {
        "web1.example.org"
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.0)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(&self.0)
    }
}

/// Any target of any type matches or is refused. The first byte selects the type.
pub fn target(bytes: &[u8]) -> u64 {
    let (kind, text) = bytes.split_first().map_or((0, ""), |(kind, text)| (*kind, text_of(text)));
    let minion = Minion(map! {"os" => "Debian", "roles" => list!["web", 7]});
    let parsed = Target::parse(TargetKind::ALL[usize::from(kind) % TargetKind::ALL.len()], text, ":", &Map::new());
    if let Ok(target) = &parsed {
        _ = target.matches(&minion);
    }
    fingerprint(kind, parsed)
}
