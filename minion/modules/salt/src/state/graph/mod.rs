//! `state.graph` and `state.graph_highstate`: the requisites of a run as a graph in DOT, the language of Graphviz.

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{CallResult, Functions, function, registry};
use brine_sls::compile::{Chunk, Low, RequisiteKind};
use brine_value::{Map, Value};

use super::show::{low_of_top, shown};
use super::{in_environment, with};

/// Execution functions of `state` that draw graphs.
pub static FUNCTIONS: Functions<Context> = registry!("state", [graph, graph_highstate]);

/// Return the requisites of SLS files as a graph in DOT.
///
/// CLI Example:
///
///     salt '*' state.graph core,edit.vim saltenv=dev
///     salt '*' state.graph core --out=txt | dot -Tpng -o state_graph.png
#[function]
pub fn graph(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, in_environment(context, with(kwargs, [("test", test)])), |run| {
        let low = run.compile_to_show(run.sls(names(&mods))?, Vec::new())?;
        Ok(dot(&low).into())
    })
}

/// Return the requisites of the highstate as a graph in DOT.
///
/// CLI Example:
///
///     salt '*' state.graph_highstate
///     salt '*' state.graph_highstate --out=txt | dot -Tpng -o highstate.png
#[function]
pub fn graph_highstate(
    context: &Context,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, kwargs, |run| Ok(dot(&low_of_top(run)?).into()))
}

/// Draws the states as nodes, and their requisites as arrows from the required state. The dry run of a `prereq` is a
/// separate node.
fn dot(low: &Low) -> String {
    let mut nodes = low.in_order().map(|chunk| node(chunk, false)).collect::<Vec<_>>();
    let checked = low.steps.iter().filter(|step| step.check).map(|step| node(&low.chunks[step.chunk], true));
    nodes.extend(checked);
    let mut lines = vec!["digraph G {".to_owned()];
    lines.extend(nodes.iter().map(|(id, label)| format!("  \"{id}\" [label=\"{label}\"];")));
    let mut edges = Vec::new();
    for step in &low.steps {
        let (target, _) = node(&low.chunks[step.chunk], step.check);
        for need in &step.needs {
            let (source, _) = node(&low.chunks[need.chunk], need.kind == RequisiteKind::Prereq);
            let kind = match need.kind {
                // The state that a `prereq` names runs after the state that declares it.
                RequisiteKind::Prerequired => RequisiteKind::Require,
                kind => kind,
            };
            edges.push((source, target.clone(), kind.name()));
        }
    }
    for (id, _) in &nodes {
        let from = edges.iter().filter(|(source, ..)| source == id);
        lines.extend(from.map(|(source, target, kind)| format!("  \"{source}\" -> \"{target}\" [label=\"{kind}\"];")));
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

/// Returns the id and the label of a node.
fn node(chunk: &Chunk, check: bool) -> (String, String) {
    let mut label = format!("{}.{}\\n{}", chunk.state, chunk.fun, escaped(&chunk.id));
    if chunk.name != chunk.id {
        label += &format!("\\n({})", escaped(&chunk.name));
    }
    let suffix = if check { "_|-__prereq_test__" } else { "" };
    (escaped(&chunk.tag()) + suffix, label)
}

/// Escapes text within quotation marks of DOT.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
