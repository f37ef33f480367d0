//! The order in which chunks run: by `order`, with requisites before their dependants.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use brine_text::nearest::nearest;
use brine_value::Value;
use indexmap::{IndexMap, IndexSet};

use super::low::{Chunk, Dependency, Low, RunStep, set_order};
use super::requisite::{ChunkIndex, Reference, RequisiteKind};

/// The base of `last` and negative orders: above the highest number in use.
const LAST: i64 = 1_000_000;

/// An `order` value. Integers are displayed as integers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i64),
    Broken(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Broken(n) => n,
        }
    }

    /// Parses an `order` argument. `cap` is above all integers in use.
    fn read(order: Option<&Value>, cap: i64) -> Self {
        match order {
            Some(Value::Int(n)) => Number::Whole(*n),
            Some(Value::Bool(b)) => Number::Whole(i64::from(*b)),
            Some(Value::Float(n)) => Number::Broken(*n),
            Some(Value::Str(word)) if word == "last" => Number::Whole(cap.saturating_add(LAST)),
            Some(Value::Str(word)) if word == "first" => Number::Whole(0),
            _ => Number::Whole(cap),
        }
    }

    fn plus(self, more: i64) -> Self {
        match self {
            Number::Whole(n) => Number::Whole(n.saturating_add(more)),
            Number::Broken(n) => Number::Broken(n + more as f64),
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Whole(n) => n.into(),
            Number::Broken(n) => n.into(),
        }
    }
}

/// Resolves all requisites and sorts the chunks.
///
/// # Errors
///
/// Missing and circular requisites, in Salt's wording.
pub(super) fn ordered(mut chunks: Vec<Chunk>, disabled: &[String]) -> Result<Low, Vec<String>> {
    let (mut errors, mut cap) = (Vec::new(), 1_i64);
    let mut graph = Graph::of(chunks.len());
    let by_name = ChunkIndex::of(&chunks);
    for index in 0..chunks.len() {
        let result = chunks[index].read_requisites(disabled).and_then(|()| graph.add(&mut chunks, &by_name, index));
        match (result, chunks[index].args.get("order")) {
            (Err(error), _) => errors.push(error),
            (Ok(()), Some(Value::Int(order))) if *order > cap - 1 && *order > 0 => cap = order.saturating_add(100),
            _ => {}
        }
    }
    match graph.sort(&mut chunks, cap) {
        Some(order) if errors.is_empty() => {
            let steps: Vec<RunStep> = order.into_iter().map(|node| graph.step(node)).collect();
            let listeners =
                steps.iter().filter(|step| !step.check).flat_map(|step| chunks[step.chunk].listeners()).collect();
            Ok(Low { chunks, steps, listeners })
        }
        Some(_) => Err(errors),
        None => {
            errors.push(format!("Recursive requisites were found: {}", graph.cycle(&chunks)));
            Err(errors)
        }
    }
}

/// Returns the line that follows the message about a requisite to nothing: the state that may be meant.
fn missing(reference: &Reference, chunks: &[Chunk]) -> String {
    let Reference { module, name } = reference;
    if reference.is_sls() {
        let near = nearest(name, chunks.iter().map(|chunk| chunk.sls.as_str())).filter(|_| name.len() > 2);
        let near = near.map_or_else(|| "include it".to_owned(), |near| format!("did you mean 'sls: {near}'?"));
        return format!("\n  hint: no state of this run is of the SLS '{name}': {near}");
    }
    let named = |chunk: &&Chunk| chunk.id == *name || chunk.name == *name;
    if let Some(other) = chunks.iter().find(named) {
        return format!("\n  hint: '{name}' is a state of {}: write '{}: {name}'", other.state, other.state);
    }
    let of_module = chunks.iter().filter(|chunk| chunk.state == *module || module == "id");
    let near = nearest(name, of_module.flat_map(|chunk| [chunk.id.as_str(), chunk.name.as_str()]));
    let near = near.filter(|_| name.len() > 2).map(|near| format!("did you mean '{module}: {near}'?"));
    let near = near.or_else(|| {
        let near = nearest(name, chunks.iter().map(|chunk| chunk.id.as_str())).filter(|_| name.len() > 2)?;
        let other = chunks.iter().find(|chunk| chunk.id == near)?;
        Some(format!("did you mean '{}: {near}'?", other.state))
    });
    let near = near.unwrap_or_else(|| "is its SLS included?".to_owned());
    format!("\n  hint: this run has no state of {module} with the id or name '{name}': {near}")
}

/// The dependency graph. A node is a chunk, or the dry run of a chunk that is the target of a `prereq`.
struct Graph {
    /// The chunk of each node; the first nodes are the chunks themselves.
    chunk_of: Vec<usize>,
    /// The dry-run node of a chunk.
    dry_run_of: HashMap<usize, usize>,
    /// The dependants of each node, with the requisite kinds.
    out: Vec<IndexMap<usize, IndexSet<RequisiteKind>>>,
    /// The dependencies of each node, with the requisite kinds.
    into: Vec<IndexMap<usize, IndexSet<RequisiteKind>>>,
}

impl Graph {
    fn of(chunks: usize) -> Self {
        Graph {
            chunk_of: (0..chunks).collect(),
            dry_run_of: HashMap::new(),
            out: vec![IndexMap::new(); chunks],
            into: vec![IndexMap::new(); chunks],
        }
    }

    fn edge(&mut self, from: usize, to: usize, kind: RequisiteKind) {
        self.out[from].entry(to).or_default().insert(kind);
        self.into[to].entry(from).or_default().insert(kind);
    }

    /// Adds the requisites of one chunk.
    fn add(&mut self, chunks: &mut [Chunk], by_name: &ChunkIndex, index: usize) -> Result<(), String> {
        for (number, requisite) in chunks[index].requisites.clone().into_iter().enumerate() {
            let Reference { module, name } = &requisite.reference;
            let named = requisite.reference.find(chunks, by_name);
            if named.is_empty() && !(requisite.reference.is_sls() && requisite.reference.is_pattern()) {
                return Err(format!(
                    "Referenced state does not exist for requisite [{}: ({module}: {name})] in state [{}] in SLS [{}]{}",
                    requisite.kind.name(),
                    chunks[index].name,
                    chunks[index].shown_sls(),
                    missing(&requisite.reference, chunks)
                ));
            }
            chunks[index].requisites[number].chunks.clone_from(&named);
            for other in named {
                if requisite.kind == RequisiteKind::Prereq {
                    chunks[index].prerequiring = true;
                    chunks[other].prereq = true;
                    self.prereq(index, other);
                    continue;
                }
                // The dry run has the same dependencies as its state.
                if let Some(dry_run) = self.dry_run_of.get(&index).copied() {
                    self.edge(other, dry_run, requisite.kind);
                }
                self.edge(other, index, requisite.kind);
            }
        }
        Ok(())
    }

    /// Adds the dry run of a chunk, with the dependencies of the chunk.
    fn add_dry_run(&mut self, target: usize) -> usize {
        let dry_run = self.chunk_of.len();
        self.chunk_of.push(target);
        self.out.push(IndexMap::new());
        self.into.push(IndexMap::new());
        self.dry_run_of.insert(target, dry_run);
        for (needed, kinds) in self.into[target].clone() {
            for kind in kinds {
                if kind != RequisiteKind::Prereq {
                    self.edge(needed, dry_run, kind);
                }
            }
        }
        dry_run
    }

    /// Adds a prereq: chunk `index` runs before `target`, and after the dry run of `target`.
    fn prereq(&mut self, index: usize, target: usize) {
        let dry_run = self.dry_run_of.get(&target).copied().unwrap_or_else(|| self.add_dry_run(target));
        self.edge(dry_run, index, RequisiteKind::Prereq);
        self.edge(index, target, RequisiteKind::Require);
        // In a chain of prereqs, the dry run of the last target comes first.
        if let Some(own_dry_run) = self.dry_run_of.get(&index).copied() {
            self.edge(dry_run, own_dry_run, RequisiteKind::Prereq);
        }
    }

    /// Sorts topologically: takes the ready node with the smallest key until all are taken. Returns `None` if there is
    /// a cycle.
    fn sort(&self, chunks: &mut [Chunk], cap: i64) -> Option<Vec<usize>> {
        let mut waits: Vec<usize> = self.into.iter().map(|from| from.values().map(IndexSet::len).sum()).collect();
        let mut ready = BinaryHeap::new();
        for node in (0..waits.len()).filter(|node| waits[*node] == 0) {
            ready.push(Reverse(self.key(chunks, node, cap)));
        }
        let mut order = Vec::with_capacity(waits.len());
        while let Some(Reverse(Key { node, .. })) = ready.pop() {
            order.push(node);
            for (next, kinds) in &self.out[node] {
                waits[*next] -= kinds.len();
                if waits[*next] == 0 {
                    ready.push(Reverse(self.key(chunks, *next, cap)));
                }
            }
        }
        (order.len() == waits.len()).then_some(order)
    }

    /// Returns the sort key of a node: its own order, or the smaller order of a dependant with a strong requisite.
    /// Converts `last` and negative orders of its chunk to numbers on the way.
    fn key(&self, chunks: &mut [Chunk], node: usize, cap: i64) -> Key {
        let chunk = &mut chunks[self.chunk_of[node]];
        let mut own = Number::read(chunk.args.get("order"), cap);
        let position = std::mem::take(&mut chunk.name_order);
        if position > 0 {
            own = Number::Broken(own.as_f64() + position as f64 / 10_000.0);
        }
        if own.as_f64() < 0.0 {
            own = own.plus(cap.saturating_add(LAST));
        }
        set_order(chunk, own);
        let label = [chunk.state.as_str(), &chunk.name, &chunk.fun].concat();
        let tag = chunk.tag();
        let (mut strongest, mut pulled) = (None, f64::INFINITY);
        for (next, kinds) in &self.out[node] {
            for kind in kinds {
                if strongest <= Some(*kind) {
                    strongest = Some(*kind);
                    let waiting = &chunks[self.chunk_of[*next]];
                    pulled = pulled.min(Number::read(waiting.args.get("order"), cap).as_f64());
                }
            }
        }
        let is_dry_run = node >= chunks.len();
        Key { pulled: own.as_f64().min(pulled), own: own.as_f64(), label, tag, is_dry_run, node }
    }

    fn step(&self, node: usize) -> RunStep {
        let needs = self.into[node].iter().flat_map(|(from, kinds)| {
            let chunk = self.chunk_of[*from];
            kinds.iter().map(move |kind| Dependency { kind: *kind, chunk })
        });
        let chunk = self.chunk_of[node];
        RunStep { chunk, check: node != chunk, needs: needs.collect() }
    }

    /// Describes a cycle: each state with the state that it depends on.
    fn cycle(&self, chunks: &[Chunk]) -> String {
        let report = self.find_cycle().into_iter().map(|(needed, kind, waiting)| {
            let (needed, waiting) = (&chunks[self.chunk_of[needed]], &chunks[self.chunk_of[waiting]]);
            // The requirement that a prereq implies is shown as it was written.
            let kind = if kind == RequisiteKind::Require && !waiting.args.contains_key("require") {
                RequisiteKind::Prereq
            } else {
                kind
            };
            format!("({}, '{}', {})", describe(waiting), kind.name(), describe(needed))
        });
        report.collect::<Vec<_>>().join(", ")
    }

    /// Returns the edges of the first cycle that a depth-first search finds. Not recursive: the depth depends on user
    /// input.
    fn find_cycle(&self) -> Vec<(usize, RequisiteKind, usize)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            New,
            Open,
            Done,
        }
        let edges: Vec<Vec<(usize, RequisiteKind)>> = self
            .out
            .iter()
            .map(|out| out.iter().flat_map(|(next, kinds)| kinds.iter().map(move |kind| (*next, *kind))).collect())
            .collect();
        let mut visits = vec![Visit::New; edges.len()];
        for start in 0..edges.len() {
            if visits[start] != Visit::New {
                continue;
            }
            visits[start] = Visit::Open;
            // Each entry is a node and the number of its visited edges.
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                let Some((to, _)) = edges[*node].get(*next).copied() else {
                    visits[*node] = Visit::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match visits[to] {
                    Visit::Done => {}
                    Visit::New => {
                        visits[to] = Visit::Open;
                        path.push((to, 0));
                    }
                    Visit::Open => {
                        let from = path.iter().position(|(node, _)| *node == to).unwrap_or(0);
                        // The last visited edge of each node on the path leads to the next node.
                        let on_path = path[from..].iter().map(|(node, next)| {
                            let (to, kind) = edges[*node][*next - 1];
                            (*node, kind, to)
                        });
                        return on_path.collect();
                    }
                }
            }
        }
        Vec::new()
    }
}

fn describe(chunk: &Chunk) -> String {
    let mut map = brine_value::map! {"SLS" => &chunk.sls, "ID" => &chunk.id};
    if chunk.name != chunk.id {
        map.insert("NAME".into(), (&chunk.name).into());
    }
    Value::from(map).to_string()
}

/// The sort key of a ready node.
#[derive(Debug, PartialEq)]
struct Key {
    pulled: f64,
    own: f64,
    label: String,
    tag: String,
    is_dry_run: bool,
    node: usize,
}

impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = self.pulled.total_cmp(&other.pulled).then(self.own.total_cmp(&other.own));
        numbers
            .then_with(|| self.label.cmp(&other.label))
            .then_with(|| self.tag.cmp(&other.tag))
            .then(self.is_dry_run.cmp(&other.is_dry_run))
            .then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
