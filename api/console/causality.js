// The causes and effects of an event as a graph: event, entry or rule, reaction, job, and returns.

import { runner } from './api.js';
import { attempt, clip, clock, empty, field, fill, h, plural, s } from './dom.js';

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [236, 44, 56, 12];
/** Nodes that are drawn, and returns of one job. */
const NODES = 400;
const RETURNS = 12;

/** Turns the nodes of `reactor.graph` into those of the drawing: entries and returns get nodes of their own. */
function expand(graph) {
  const drawn = [];
  const add = (node) => (drawn.length < NODES ? drawn.push({ ...node, below: [] }) - 1 : -1);
  const places = [];
  const entries = new Map();
  const link = (parent, child) => {
    if (parent >= 0 && child >= 0) drawn[parent].below.push(child);
  };
  for (const node of graph.nodes) {
    const parent = node.parent === null || node.parent === undefined ? -1 : places[node.parent] ?? -1;
    if (node.kind === 'event') {
      const about = ['id', 'act', 'fun', 'tgt'].filter((name) => node[name]).map((name) => `${name}=${node[name]}`).join(' ');
      places.push(add({ kind: 'event', title: node.tag, text: `${node.seq}  ${clock(node.time)}  ${about}`, href: `#/causality/${node.seq}`, isAsked: node.seq === graph.asked, word: 'event' }));
      link(parent, places.at(-1));
    } else if (node.kind === 'note') {
      places.push(add({ kind: 'note', title: node.text, text: '', word: 'note' }));
      link(parent, places.at(-1));
    } else {
      const key = `${node.parent} ${node.entry}`;
      if (!entries.has(key)) {
        entries.set(key, add({ kind: 'entry', title: node.entry, text: node.rule ? 'rule over time' : 'reactor entry', word: node.rule ? 'rule' : 'entry', href: '#/reactor' }));
        link(parent, entries.get(key));
      }
      const state = node.error || node.failed ? 'failed' : node.missing || !node.ended ? 'waiting' : 'done';
      const place = add({ kind: `reaction ${state}`, title: node.error ? node.outcome : node.reaction, text: node.error ? node.file : node.outcome,
        word: 'reaction', href: node.jid ? `#/jobs/${node.jid}` : undefined, isAsked: node.seq === graph.asked });
      places.push(place);
      link(entries.get(key), place);
      const returns = (node.returns ?? []).filter((one) => one.id !== '');
      for (const one of returns.slice(0, RETURNS)) {
        const words = { done: 'returned', failed: 'failed', missing: 'no return yet' };
        link(place, add({ kind: `return ${one.state}`, title: one.id, text: words[one.state] ?? one.state, word: 'return', href: `#/jobs/${node.jid}` }));
      }
      const rest = (node.asked ?? 0) - Math.min(returns.length, RETURNS);
      if (returns.length && rest > 0) link(place, add({ kind: 'more', title: `${plural(rest, 'further minion')}`, text: 'all returns are in the job', word: 'returns', href: `#/jobs/${node.jid}` }));
    }
  }
  return drawn;
}

/** Places nodes from left to right by depth; parents stand beside the middle of what is below them. */
function arrange(nodes) {
  let row = 0;
  // Children come after their parents, so the way back needs no recursion.
  nodes.forEach((node, i) => {
    node.depth ??= 0;
    for (const child of node.below) nodes[child].depth = nodes[i].depth + 1;
  });
  const order = [];
  const open = [0];
  while (open.length) {
    const at = open.pop();
    order.push(at);
    open.push(...nodes[at].below.toReversed());
  }
  for (const at of order) if (!nodes[at].below.length) nodes[at].row = row++;
  for (const at of order.toReversed()) {
    const { below } = nodes[at];
    if (below.length) nodes[at].row = (nodes[below[0]].row + nodes[below.at(-1)].row) / 2;
  }
  for (const node of nodes) Object.assign(node, { x: node.depth * (WIDTH + GAP_X) + 8, y: (node.row ?? 0) * (HEIGHT + GAP_Y) + 8 });
  return { order, rows: row, depth: Math.max(...nodes.map((node) => node.depth)) + 1 };
}

function draw(nodes) {
  const { order, rows, depth } = arrange(nodes);
  const [width, height] = [depth * (WIDTH + GAP_X) - GAP_X + 16, rows * (HEIGHT + GAP_Y) + 16];
  const edges = order.flatMap((at) => nodes[at].below.map((child) => {
    const [from, to] = [nodes[at], nodes[child]];
    const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
    return s('path', { class: 'edge', d: `M${x1} ${y1}C${x1 + GAP_X / 2} ${y1} ${x2 - GAP_X / 2} ${y2} ${x2} ${y2}` });
  }));
  const boxes = order.map((at) => {
    const node = nodes[at];
    const inner = [s('title', null, clip(`${node.word}: ${node.title} ${node.text}`, 600)), s('rect', { width: WIDTH, height: HEIGHT, rx: 6 }),
      s('text', { x: 10, y: 18, class: 'node-title' }, clip(node.title, 30)), s('text', { x: 10, y: 35, class: 'node-text' }, clip(node.text, 36))];
    const props = { class: `node ${node.kind}${node.isAsked ? ' asked' : ''}`, transform: `translate(${node.x} ${node.y})` };
    return node.href ? s('a', { ...props, href: node.href, 'aria-label': clip(`${node.word}: ${node.title}, ${node.text}`, 300) }, inner) : s('g', props, inner);
  });
  return s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Causes and effects, from left to right' }, edges, boxes);
}

export async function show(box, { path, signal }) {
  const input = h('input', { value: path[0] ?? '', inputmode: 'numeric', required: true, spellcheck: 'false', placeholder: '120', size: 24 });
  const output = h('div');
  fill(box, h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    const to = `#/causality/${encodeURIComponent(input.value.trim())}`;
    if (location.hash === to) attempt(load);
    else location.hash = to;
  } }, field('Event number or job id', input), h('button', { type: 'submit' }, 'Show')), output);
  if (path[0]) await load();
  else {
    fill(output, empty('Choose an event or a job.', 'Enter the number of an event or a job id, or choose “Causes” at an event, a job or a dead letter.'));
    await recent();
  }

  async function recent() {
    const found = await runner('reactor.history', { limit: 20 }, signal);
    if (!found.length) return;
    output.append(h('h2', null, 'Newest events with reactions'), h('ul', { class: 'plain' }, found.map((event) => h('li', null,
      h('a', { href: `#/causality/${event.seq}` }, `${event.seq}`), ` ${clock(event.time)} ${clip(event.tag, 200)} `, h('span', { class: 'dim' }, clip(event.reactions?.[0]?.outcome ?? '', 100))))));
  }

  async function load() {
    fill(output, h('p', null, 'Loading…'));
    try {
      const graph = await runner('reactor.graph', { what: path[0] }, signal);
      const nodes = expand(graph);
      const isCut = graph.cut || nodes.length >= NODES;
      const states = graph.nodes.flatMap((node) => (node.failed_states ?? []).map((one) => h('li', null, h('strong', null, clip(one.id, 100)), ` ${clip(one.state, 500)}`)));
      fill(output, isCut && h('p', { class: 'bad' }, 'The graph is too large: a part is left out. Choose an event further to the right.'),
        h('div', { class: 'graph', tabIndex: 0, role: 'region', 'aria-label': 'Graph of causes' }, draw(nodes)),
        states.length > 0 && [h('h2', null, 'Failed states'), h('ul', null, states.slice(0, 50))]);
      output.querySelector('.asked')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    } catch (error) {
      if (error.name === 'AbortError') return;
      fill(output, h('p', { class: 'bad', role: 'alert' }, error.message));
    }
  }
}
