//! `defaults`: mappings put together, for those who write formulas.

use brine_core::sls::pillar::merge_deep;
use brine_core::{Map, Value, functions};

use crate::context::Context;

functions! {
    module "defaults", context Context;

    /// Merges a mapping deeply into another and gives the result; its values win. With `merge_lists`, lists grow by
    /// what they lack.
    ///
    /// CLI Example:
    ///
    ///     salt '*' defaults.merge '{a: b}' '{d: e}'
    fn merge(_context, dest: Map, src: Map, merge_lists: bool = false, in_place: bool = true, convert_none: bool = true) {
        _ = (in_place, convert_none);
        let mut dest = dest;
        merge_deep(&mut dest, &src, merge_lists);
        Ok(dest.into())
    }

    /// Gives a copy.
    ///
    /// CLI Example:
    ///
    ///     salt '*' defaults.deepcopy '{a: b}'
    fn deepcopy(_context, source: Value) {
        Ok(source)
    }

    /// Merges defaults under each mapping of a mapping of them, and gives the result.
    ///
    /// CLI Example:
    ///
    ///     salt '*' defaults.update '{web: {port: 8080}}' '{port: 80, host: localhost}'
    fn update(_context, dest: Map, defaults: Map, merge_lists: bool = true, in_place: bool = true, convert_none: bool = true) {
        _ = (in_place, convert_none);
        let updated = dest.into_iter().map(|(name, own)| {
            let mut all = defaults.clone();
            match own {
                Value::Map(own) => {
                    merge_deep(&mut all, &own, merge_lists);
                    (name, Value::Map(all))
                }
                Value::Nil => (name, Value::Map(all)),
                other => (name, other),
            }
        });
        Ok(updated.collect::<Map>().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use brine_core::function::Args;
    use brine_core::{list, map};

    #[test]
    fn what_comes_later_wins() {
        let call = |fun: &str, a: Map, b: Map| {
            let args = Args { positional: vec![a.into(), b.into()], ..Args::default() };
            testing::context(&[]).call(fun, args).unwrap()
        };
        assert_eq!(
            call(
                "defaults.merge",
                map! {"a" => map! {"b" => 1, "l" => list![1]}},
                map! {"a" => map! {"c" => 2, "l" => list![2]}}
            ),
            map! {"a" => map! {"b" => 1, "l" => list![2], "c" => 2}}.into()
        );
        assert_eq!(
            call("defaults.update", map! {"web" => map! {"port" => 8080}}, map! {"port" => 80, "host" => "h"}),
            map! {"web" => map! {"port" => 8080, "host" => "h"}}.into()
        );
    }
}
