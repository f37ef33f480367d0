//! Mappings that print as OrderedDict, as in a pillar compiled without a master.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Map, Value, list, map};

use super::{Behaviour, Context, Functions, Host, Origin, Template, Tree};

/// A host whose function merges its argument and reads the tree.
struct Merging(Tree);

impl Functions for Merging {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let tree = self.0.now();
        Ok(match function {
            "pillar.items" => (*tree).clone().into(),
            "defaults.merge" => {
                let maps = args.positional.iter().filter_map(Value::as_map);
                maps.flatten().map(|(key, value)| (key.clone(), value.clone())).collect::<Map>().into()
            }
            _ => args.positional.into_iter().next().unwrap_or_default(),
        })
    }

    fn has(&self, _: &str) -> bool {
        true
    }

    fn has_module(&self, _module: &str) -> bool {
        true
    }

    fn tree(&self, function: &str) -> Option<&Tree> {
        (function == "pillar.get").then_some(&self.0)
    }

    fn pillar(&self) -> Option<&Tree> {
        Some(&self.0)
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        let origins: &[Origin] = match function {
            "pillar.items" => &[Origin::Pillar],
            "defaults.merge" => &[Origin::Argument(0, "dest"), Origin::Argument(1, "upd")],
            "test.echo" => &[Origin::Argument(0, "")],
            _ => &[],
        };
        let is_ordered = function == "slsutil.renderer";
        Behaviour { origins, is_ordered, changes_first: function == "defaults.merge", ..Behaviour::default() }
    }
}

#[test]
fn mappings_of_an_ordered_tree_print_as_ordered_dict() {
    let map = map! {"a" => map! {"b" => map! {"c" => 1}, "l" => list![map! {"x" => "y\n"}]}};
    let tree = Tree::ordered(Arc::new(map));
    let mut context = Context::new("base");
    context.set_tree("pillar", &tree);
    let host = Host::new().with_functions(Merging(tree));
    for (source, expected) in [
        ("{{ pillar.a.b }} {{ [pillar.a.l] }}", r#"{'c': 1} [[{'x': "y\n"}]]"#),
        ("{{ pillar.a.b | string }} {{ '%s' % pillar.a.l }}", r"OrderedDict([('c', 1)]) [OrderedDict([('x', 'y\n')])]"),
        ("{{ pillar.a.b ~ '' }} {{ pillar | string | length }}", "OrderedDict([('c', 1)]) 90"),
        ("{{ pillar.a.b.items() }} {{ {}.keys() }}", "odict_items([('c', 1)]) dict_keys([])"),
        ("{{ {'q': pillar.a.b} | string }} {{ odict() | string }}", "{'q': OrderedDict([('c', 1)])} OrderedDict()"),
        ("{{ pillar.a.b.copy() | string }} {{ dict(pillar.a.b) | string }}", "OrderedDict([('c', 1)]) {'c': 1}"),
        ("{{ salt['test.echo'](pillar.a.b) | string }}", "OrderedDict([('c', 1)])"),
        ("{{ salt['defaults.merge']({'q': {}}, pillar.a)['b'] | string }}", "OrderedDict([('c', 1)])"),
        ("{{ salt['defaults.merge']({'q': {}}, pillar.a)['q'] | string }}", "{}"),
        ("{{ salt['slsutil.renderer']({'a': 1}) | string }}", "OrderedDict([('a', 1)])"),
        ("{{ salt['pillar.items']()['a']['b'] | string }}", "OrderedDict([('c', 1)])"),
        ("{{ pillar.a.b == {'c': 1} }} {{ pillar.a.b is mapping }}", "True True"),
    ] {
        let rendered = Template::compile("t", source).unwrap().render(&context, &host);
        assert_eq!(rendered.unwrap(), expected, "{source}");
    }
    for (source, expected) in [
        ("{{ pillar.a.z.y }}", "Jinja variable 'collections.OrderedDict object' has no attribute 'z'"),
        ("{{ salt['pillar.get']('a:b').z.y }}", "Jinja variable 'collections.OrderedDict object' has no attribute 'z'"),
        ("{{ pillar.a.iteritems() }}", "Jinja variable 'collections.OrderedDict object' has no attribute 'iteritems'"),
        ("{{ dict(pillar.a).z.y }}", "Jinja variable 'dict object' has no attribute 'z'"),
        ("{{ pillar.a + 1 }}", "Jinja error: unsupported operand type(s) for +: 'collections.OrderedDict' and 'int'"),
        ("{{ {pillar.a: 1} }}", "Jinja error: unhashable type: 'collections.OrderedDict'"),
    ] {
        let refused = Template::compile("t", source).unwrap().render(&context, &host);
        assert_eq!(refused.unwrap_err().message, expected, "{source}");
    }
}
