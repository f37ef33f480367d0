//! Merge strategies for pillar.

use brine_config::opts::shared;
use brine_value::{Map, merge_deep};

/// `pillar_source_merging_strategy`, with `pillar_merge_lists`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merging {
    strategy: Strategy,
    lists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Mappings at every depth: `smart` and `recurse`.
    Deep,
    /// Only the top level: `overwrite`, and `aggregate` without markers.
    Top,
    /// One environment only, whose SLS files are merged at every depth: `none`.
    None,
}

impl Merging {
    /// Reads the options.
    pub fn of(opts: &Map) -> Self {
        let lists = shared::pillar_merge_lists(opts);
        // As in Salt, lists are joined by the strategies alone that say so.
        let renderer = shared::renderer(opts);
        let aggregates = renderer.rsplit('|').next() == Some("yamlex") || renderer.starts_with("yamlex_");
        let (strategy, lists) = match shared::pillar_source_merging_strategy(opts).as_str() {
            "smart" if !aggregates => (Strategy::Deep, lists),
            "recurse" => (Strategy::Deep, lists),
            "overwrite" => (Strategy::Top, lists),
            "smart" | "aggregate" => {
                tracing::warn!(
                    "pillar files are merged by 'aggregate': values that are marked !aggregate are joined within a file \
                     only, of several files the last one wins; join them with 'recurse' and pillar_merge_lists"
                );
                (Strategy::Top, lists)
            }
            "none" => (Strategy::None, false),
            other => {
                tracing::warn!(
                    "pillar_source_merging_strategy '{other}' is unknown: expected smart, recurse, overwrite, \
                     aggregate or none; using recurse"
                );
                (Strategy::Deep, false)
            }
        };
        Merging { strategy, lists }
    }

    /// Whether environments are not merged.
    pub fn keeps_environments_apart(self) -> bool {
        self.strategy == Strategy::None
    }

    /// Merges `from` into `into` by the strategy.
    pub fn merge(self, into: &mut Map, from: Map) {
        match self.strategy {
            Strategy::Top => into.extend(from),
            Strategy::Deep | Strategy::None => merge_deep(into, &from, self.lists),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn strategies_have_different_depths() {
        let under = map! {"a" => map! {"x" => 1, "y" => 2}, "l" => list![1, 2], "s" => "old"};
        let over = map! {"a" => map! {"y" => 3, "z" => 4}, "l" => list![2, 3], "s" => map! {"n" => 1}};
        let deep = map! {"x" => 1, "y" => 3, "z" => 4};
        for (strategy, lists, a, l) in [
            ("smart", false, deep.clone(), list![2, 3]),
            ("recurse", true, deep.clone(), list![1, 2, 3]),
            ("none", false, deep.clone(), list![2, 3]),
            ("none", true, deep.clone(), list![2, 3]),
            ("nonsense", true, deep, list![2, 3]),
            ("overwrite", true, map! {"y" => 3, "z" => 4}, list![2, 3]),
            ("aggregate", true, map! {"y" => 3, "z" => 4}, list![2, 3]),
        ] {
            let opts = map! {"pillar_source_merging_strategy" => strategy, "pillar_merge_lists" => lists};
            let mut merged = under.clone();
            Merging::of(&opts).merge(&mut merged, over.clone());
            assert_eq!(merged, map! {"a" => a, "l" => l, "s" => map! {"n" => 1}}, "{strategy}");
        }
        for (renderer, keeps) in [("jinja|yaml", true), ("jinja|yamlex", false), ("yamlex_jinja", false)] {
            let mut merged = under.clone();
            Merging::of(&map! {"renderer" => renderer}).merge(&mut merged, over.clone());
            assert_eq!(merged.get("a").is_some_and(|a| a.get("x").is_some()), keeps, "smart with {renderer}");
        }
    }
}
