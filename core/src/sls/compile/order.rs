//! The order in which chunks run.

use std::cmp::Ordering;

use super::low::Chunk;
use super::requisite::RequisiteKind;
use crate::value::Value;

/// What `last` and negative numbers are counted from.
const LAST: f64 = 1_000_000.0;
/// Stands for `last` until the others are known.
const MARK_LAST: f64 = f64::INFINITY;

/// Reads an `order` argument.
pub(super) fn parse(order: &Value, default: f64) -> f64 {
    match order {
        Value::Str(word) if word == "last" => MARK_LAST,
        Value::Str(word) if word == "first" => 0.0,
        other => other.as_f64().unwrap_or(default),
    }
}

/// Gives `last` and negative orders their numbers: behind all others.
pub(super) fn resolve(chunks: &mut [Chunk]) {
    let mut cap = 1.0;
    for chunk in chunks.iter().filter(|chunk| chunk.order.is_finite()) {
        if chunk.order > cap - 1.0 && chunk.order > 0.0 {
            cap = chunk.order + 100.0;
        }
    }
    for chunk in chunks {
        if chunk.order == MARK_LAST {
            chunk.order = cap + LAST;
        } else if chunk.order < 0.0 {
            chunk.order += cap + LAST;
        }
    }
}

fn before(one: &Chunk, other: &Chunk) -> Ordering {
    one.order.total_cmp(&other.order).then_with(|| {
        let key = |chunk: &Chunk| format!("{}{}{}", chunk.state, chunk.name, chunk.fun);
        key(one).cmp(&key(other))
    })
}

/// Sorts by order, and brings what a chunk needs to just before it. Missing and circular requisites are
/// errors in Salt's words.
pub(super) fn sort(mut chunks: Vec<Chunk>) -> Result<Vec<Chunk>, Vec<String>> {
    chunks.sort_by(before);
    let (needs, errors) = needs(&chunks);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut walk = Walk { chunks: &chunks, needs: &needs, state: vec![Visit::New; chunks.len()], sorted: Vec::new() };
    for start in 0..chunks.len() {
        walk.visit(start).map_err(|error| vec![error])?;
    }
    let sorted = walk.sorted;
    let mut places: Vec<Option<Chunk>> = chunks.into_iter().map(Some).collect();
    Ok(sorted.into_iter().filter_map(|place| places[place].take()).collect())
}

/// For each chunk, which others must have run before it, and by which requisite.
type Needs = Vec<Vec<(usize, RequisiteKind)>>;

fn needs(chunks: &[Chunk]) -> (Needs, Vec<String>) {
    let (mut needs, mut errors) = (vec![Vec::new(); chunks.len()], Vec::new());
    for (place, chunk) in chunks.iter().enumerate() {
        for requisite in &chunk.requisites {
            let reference = &requisite.reference;
            let named = chunks.iter().enumerate().filter(|(_, other)| reference.names(other)).map(|(other, _)| other);
            let named: Vec<usize> = named.filter(|other| *other != place || !reference.is_sls()).collect();
            let pattern = crate::glob::is_pattern(&reference.name);
            if named.is_empty() && !(reference.is_sls() && pattern) && requisite.kind != RequisiteKind::Listen {
                errors.push(format!(
                    "Referenced state does not exist for requisite [{}: ({}: {})] in state [{}] in SLS [{}]",
                    requisite.kind.name(),
                    reference.module,
                    reference.name,
                    chunk.name,
                    chunk.sls
                ));
            }
            for other in named {
                match requisite.kind {
                    // Looked at when all have run.
                    RequisiteKind::Listen => {}
                    RequisiteKind::Prereq => needs[other].push((place, requisite.kind)),
                    kind => needs[place].push((other, kind)),
                }
            }
        }
    }
    (needs, errors)
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

struct Walk<'a> {
    chunks: &'a [Chunk],
    needs: &'a Needs,
    state: Vec<Visit>,
    sorted: Vec<usize>,
}

impl Walk<'_> {
    /// Not recursive: an SLS tree decides how deep this goes.
    fn visit(&mut self, start: usize) -> Result<(), String> {
        let mut stack = vec![(start, 0)];
        if self.state[start] != Visit::New {
            return Ok(());
        }
        self.state[start] = Visit::Open;
        while let Some((place, next)) = stack.pop() {
            let Some((needed, kind)) = self.needs[place].get(next).copied() else {
                self.state[place] = Visit::Done;
                self.sorted.push(place);
                continue;
            };
            stack.push((place, next + 1));
            match self.state[needed] {
                Visit::Done => {}
                Visit::New => {
                    self.state[needed] = Visit::Open;
                    stack.push((needed, 0));
                }
                Visit::Open => {
                    let mut circle: Vec<(usize, RequisiteKind, usize)> = Vec::new();
                    let mut on_stack: Vec<usize> = stack.iter().map(|(place, _)| *place).collect();
                    let from = on_stack.iter().position(|open| *open == needed).unwrap_or(0);
                    on_stack.drain(..from);
                    for pair in on_stack.windows(2) {
                        let kind = self.needs[pair[0]]
                            .iter()
                            .find(|(other, _)| *other == pair[1])
                            .map_or(kind, |(_, kind)| *kind);
                        circle.push((pair[0], kind, pair[1]));
                    }
                    circle.push((place, kind, needed));
                    let told = circle.iter().map(|(one, kind, other)| {
                        format!("({}, '{}', {})", self.tell(*one), kind.name(), self.tell(*other))
                    });
                    return Err(format!("Recursive requisites were found: {}", told.collect::<Vec<_>>().join(", ")));
                }
            }
        }
        Ok(())
    }

    fn tell(&self, place: usize) -> String {
        let chunk = &self.chunks[place];
        let name = if chunk.name == chunk.id { String::new() } else { format!(", 'NAME': '{}'", chunk.name) };
        format!("{{'SLS': '{}', 'ID': '{}'{name}}}", chunk.sls, chunk.id)
    }
}
