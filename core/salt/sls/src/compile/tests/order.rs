//! The order of states with requisites, against recorded runs of Salt and against a naive search.

use proptest::prelude::*;

use super::*;

/// Compiles the states `s0` to `s11`. An edge is a requisite: the number of its state, its kind, and the number of the
/// required state.
fn with_edges(edges: &[(usize, &str, usize)]) -> Result<Low, Vec<String>> {
    let mut text = String::new();
    for id in 0..12 {
        text += &format!("s{id}:\n  test.nop:\n  - order: {}\n", (id * 7) % 5 + 1);
        for kind in ["require", "watch", "onchanges", "onfail", "prereq"] {
            let needs: Vec<_> = edges.iter().filter(|(from, of, _)| *from == id && *of == kind).collect();
            if !needs.is_empty() {
                let needs: Vec<_> = needs.iter().map(|(_, _, to)| format!("{{test: s{to}}}")).collect();
                text += &format!("  - {kind}: [{}]\n", needs.join(", "));
            }
        }
    }
    let (high, errors) = HighData::from_data(&brine_yaml::load(&text).unwrap(), "t", "base");
    assert_eq!(errors, [""; 0]);
    compile(high, &everything_acts_on_watch())
}

/// Returns the result of `with_edges` without prereqs by a naive search: repeatedly the smallest ready state. `None` if
/// there is a cycle.
fn slowly_ordered(edges: &[(usize, &str, usize)]) -> Option<Vec<String>> {
    let own = |id: usize| (id * 7) % 5 + 1;
    let strength = |kind: &str| ["onfail", "require", "onchanges", "watch"].iter().position(|other| *other == kind);
    let read = |kind: &str| ["require", "watch", "onfail", "onchanges"].iter().position(|other| *other == kind);
    let pulled = |id: usize| {
        // As in Salt, a dependant counts unless an earlier one has a stronger requisite.
        let mut waiting: Vec<_> = edges.iter().filter(|(_, _, to)| *to == id).collect();
        waiting.sort_by_key(|(from, kind, _)| (*from, read(kind)));
        let (mut strongest, mut smallest) = (None, own(id));
        for (from, kind, _) in waiting {
            if strongest <= strength(kind) {
                (strongest, smallest) = (strength(kind), smallest.min(own(*from)));
            }
        }
        smallest
    };
    let mut left: Vec<usize> = (0..12).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_ready = |id: &&usize| !edges.iter().any(|(from, _, to)| from == *id && left.contains(to));
        let next = *left.iter().filter(is_ready).min_by_key(|id| (pulled(**id), own(**id), format!("s{id}nop")))?;
        left.retain(|id| *id != next);
        order.push(format!("s{next}"));
    }
    Some(order)
}

fn kinds() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["require", "watch", "onchanges", "onfail", "prereq"])
}

/// Compares with the runs of Salt that `orders/record` has recorded.
#[test]
fn states_run_in_salts_order() {
    type Recorded = (Vec<(usize, String, usize)>, Option<Vec<usize>>);
    let recorded: Vec<Recorded> = serde_json::from_str(include_str!("../orders/orders.json")).unwrap();
    assert!(recorded.len() > 500);
    for (edges, expected) in recorded {
        let edges: Vec<_> = edges.iter().map(|(from, kind, to)| (*from, &**kind, *to)).collect();
        let order = with_edges(&edges).ok().map(|low| {
            low.steps.iter().map(|step| low.chunks[step.chunk].id[1..].parse().unwrap()).collect::<Vec<usize>>()
        });
        assert_eq!(order, expected, "{edges:?}");
    }
}

proptest! {
    #[test]
    fn requisites_run_first_without_cycles(edges in prop::collection::vec((0usize..12, kinds(), 0usize..12), 0..25)) {
        // Edges to smaller numbers only cannot form a cycle. A prereq reverses the direction.
        let edges: Vec<_> = edges
            .into_iter()
            .filter(|(from, _, to)| from != to)
            .map(|(from, kind, to)| {
                let (small, large) = (from.min(to), from.max(to));
                if kind == "prereq" { (small, kind, large) } else { (large, kind, small) }
            })
            .collect();
        let low = with_edges(&edges);
        // A dry run has the dependencies of its state, so that a prereq can still close a cycle.
        if edges.iter().all(|(_, kind, _)| *kind != "prereq") {
            prop_assert!(low.is_ok(), "{:?}", low);
        }
        if let Ok(low) = low {
            let index = |id: usize| low.in_order().position(|chunk| chunk.id == format!("s{id}")).unwrap();
            prop_assert_eq!(low.in_order().count(), 12);
            for (from, kind, to) in edges {
                let (first, then) = if kind == "prereq" { (from, to) } else { (to, from) };
                prop_assert!(index(first) < index(then));
            }
        }
    }

    #[test]
    fn the_order_is_that_of_a_slow_search(edges in prop::collection::vec((0usize..12, kinds(), 0usize..12), 0..25), falling: bool) {
        // Half of them without cycles.
        let edges = edges.into_iter().filter(|(_, kind, _)| *kind != "prereq").filter(|(from, _, to)| !falling || from > to);
        let edges: Vec<_> = edges.collect();
        let order = with_edges(&edges).ok().map(|low| low.in_order().map(|chunk| chunk.id.clone()).collect());
        prop_assert_eq!(order, slowly_ordered(&edges));
    }

    #[test]
    fn a_cycle_is_reported_only_where_there_is_one(edges in prop::collection::vec((0usize..12, 0usize..12), 0..30)) {
        let named: Vec<_> = edges.iter().map(|(from, to)| (*from, "require", *to)).collect();
        // A node on a cycle can reach itself.
        let mut reach = [[false; 12]; 12];
        for (from, to) in &edges { reach[*from][*to] = true; }
        for k in 0..12 { for i in 0..12 { for j in 0..12 { reach[i][j] |= reach[i][k] && reach[k][j]; } } }
        let circle = (0..12).any(|id| reach[id][id]);
        match with_edges(&named) {
            Ok(_) => prop_assert!(!circle),
            Err(errors) => {
                prop_assert!(circle);
                prop_assert!(errors[0].starts_with("Recursive requisites were found: ("), "{}", errors[0]);
            }
        }
    }

    #[test]
    fn arbitrary_data_does_not_panic(text in "[a-z:\\-\\[\\]{} \n,.0-9]{0,80}") {
        if let Ok(data) = brine_yaml::load(&text) {
            let (high, errors) = HighData::from_data(&data, "t", "base");
            if errors.is_empty() {
                let _ = compile(high, &everything_acts_on_watch());
            }
        }
    }
}
