// The causes and effects of an event as a graph: event, entry or rule, reaction, job, returns, and states.

import { runner } from './api.js';
import { attempt, breakable, clip, count, empty, field, fill, h, natural, plural } from './dom.js';
import { drawGraph } from './graph.js';
import { Pane } from './list.js';
import { clock, when } from './time.js';
import { brief, isGood, isStates, returned, tree } from './value.js';

/** Nodes that are drawn; returns of one job, and failed states of one return. */
const NODES = 400;
const RETURNS = 8;
const STATES = 5;
const JID = /^\d{20}$/;
const OF_JOB = /^salt\/(?:job|run|wheel)\/(\d{20})\/(new|ret)/;

/** Turns the nodes of `reactor.graph` into those of the drawing: entries, returns and states get nodes of their own. */
function expand(graph, job) {
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
      const about = ['id', 'act', 'fun', 'tgt'].filter((name) => node[name]).map((name) => `${name}=${clip(node[name], 100)}`).join('  ');
      places.push(add({ kind: 'event', title: breakable(clip(node.tag, 300)), text: `${node.seq}  ${clock(node.time)}  ${about}`, time: node.time, seq: node.seq, isAsked: node.seq === graph.asked, word: 'event' }));
      link(parent, places.at(-1));
      if (job && OF_JOB.exec(node.tag)?.[1] === job.jid && OF_JOB.exec(node.tag)[2] === 'new') addReturns(places.at(-1), resultsOf(job), job.jid);
    } else if (node.kind === 'note') {
      // That nothing reacts to a job is no news beside its returns.
      if (job && drawn[parent]?.below.length && node.text.startsWith('no reaction')) {
        places.push(-1);
        continue;
      }
      places.push(add({ kind: 'note', title: clip(node.text, 600), word: 'note' }));
      link(parent, places.at(-1));
    } else {
      const key = `${node.parent} ${node.entry}`;
      if (!entries.has(key)) {
        entries.set(key, add({ kind: 'entry', time: graph.nodes[node.parent]?.time, title: breakable(clip(node.entry, 200)), text: breakable(clip(node.file ?? '', 200)), word: node.rule ? 'rule over time' : 'reactor entry' }));
        link(parent, entries.get(key));
      }
      const state = node.error || node.failed ? 'failed' : node.missing || !node.ended ? 'waiting' : 'done';
      const place = add({ kind: 'reaction', state, title: clip(node.reaction ?? node.file, 300), text: clip(node.outcome, 1000), time: node.started, word: node.error ? 'reaction that failed' : 'reaction',
        jid: node.jid, reaction: node, isAsked: node.seq === graph.asked });
      places.push(place);
      link(entries.get(key), place);
      const isOpened = job && node.jid === job.jid;
      if (isOpened) addReturns(place, resultsOf(job), node.jid);
      else if (node.returns) addReturns(place, node.returns.filter((one) => one.id !== ''), node.jid, node.failed_states, node.asked);
    }
  }

  /** Adds the returns of a job: failed and missing ones by minion, and equal ones that succeeded as one node. */
  function addReturns(place, returns, jid, failedStates, asked) {
    const words = { done: 'returned', failed: 'failed', missing: 'no return yet' };
    const bad = returns.filter((one) => one.state !== 'done');
    for (const one of bad.slice(0, RETURNS)) {
      const states = one.value && isStates(one.value) ? Object.entries(one.value).filter(([, state]) => state.result === false) : [];
      const at = add({ kind: 'return', state: one.state, title: clip(one.id, 200), text: one.text || words[one.state], word: 'return', jid, minion: one.id, value: one.value });
      link(place, at);
      for (const [key, state] of states.slice(0, STATES)) link(at, add({ kind: 'state', state: 'failed', title: clip(state.__id__ ?? key.split('_|-')[1], 200), text: clip(state.comment ?? '', 1000), word: `state ${key.split('_|-')[0]}.${key.split('_|-').at(-1)}`, jid, minion: one.id, value: { [key]: state } }));
      if (one === bad[0] && !states.length) for (const state of (failedStates ?? []).slice(0, STATES)) link(at, add({ kind: 'state', state: 'failed', title: clip(state.id ?? state, 1000), text: clip(state.state ?? '', 1000), word: 'failed state', jid, minion: one.id }));
    }
    if (bad.length > RETURNS) link(place, add({ kind: 'more', state: bad.some((one) => one.state === 'failed') ? 'failed' : 'missing', title: `${plural(bad.length - RETURNS, 'further minion')}`, text: 'failed or did not return', word: 'returns', jid }));
    const groups = new Map();
    for (const one of returns) if (one.state === 'done') groups.set(one.text ?? '', [...(groups.get(one.text ?? '') ?? []), one]);
    const unlisted = Math.max(0, (asked ?? 0) - returns.length);
    for (const [text, ones] of [...groups].sort(([, a], [, b]) => b.length - a.length).slice(0, RETURNS)) {
      const number = ones.length + (groups.size === 1 ? unlisted : 0);
      const ids = ones.map((one) => one.id).sort(natural);
      link(place, add({ kind: 'return', state: 'done', title: number === 1 ? clip(ids[0], 200) : `${plural(number, 'minion')}: ${text || 'done'}`, text: number === 1 ? text || 'returned' : clip(ids.join(', '), 160), word: number === 1 ? 'return' : 'returns', jid, minion: number === 1 ? ids[0] : undefined, value: ones[0].value }));
    }
  }
  return drawn;
}

/** Returns the returns of a job of the job cache. */
function resultsOf(job) {
  const results = Object.entries(job.Result ?? {}).map(([id, one]) => ({ id, state: isGood(one) ? 'done' : 'failed', text: brief(one.return), value: one.return }));
  const missing = (job.Minions ?? []).filter((id) => !Object.hasOwn(job.Result ?? {}, id)).map((id) => ({ id, state: 'missing' }));
  return [...results, ...missing];
}

export async function show(box, { path, signal }) {
  const input = h('input', { value: path[0] ?? '', inputmode: 'numeric', required: true, spellcheck: 'false', placeholder: '120', size: 24 });
  const output = h('div');
  let undo = () => {};
  signal.addEventListener('abort', () => undo());
  fill(box, h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    const to = `#/causality/${encodeURIComponent(input.value.trim())}`;
    if (location.hash === to) attempt(load);
    else location.hash = to;
  } }, field('Sequence number of an event, or job id', input), h('button', { type: 'submit' }, 'Show')), output);
  if (path[0]) await load();
  else {
    fill(output, empty('Choose an event or a job.', 'Enter the sequence number of an event or a job id, or choose “Causes” at an event, a job or a dead letter.'));
    await recent();
  }

  async function recent() {
    const found = await runner('reactor.history', { limit: 30 }, signal);
    if (!found.length) return;
    const item = (event) => {
      const bad = (event.reactions ?? []).find((one) => one.failed_states || / failed|failed:|\.sls:\d+:/.test(one.outcome ?? ''));
      const shown = bad ?? event.reactions?.[0];
      return h('li', null, h('a', { href: `#/causality/${event.seq}` }, h('span', { class: `name dot ${bad ? 'failed' : 'done'}` }, breakable(clip(event.tag, 200))), when(event.time),
        h('span', { class: 'note' }, `${event.seq}  ${clip(shown?.reaction ?? shown?.entry ?? '', 150)}: ${clip(shown?.outcome ?? '', 400)}`)));
    };
    output.append(h('section', { class: 'panel' }, h('h2', null, 'Newest events with reactions'), h('ul', { class: 'items' }, found.map(item))));
  }

  async function load() {
    fill(output, h('p', null, 'Loading…'));
    try {
      const [graph, job] = await Promise.all([runner('reactor.graph', { what: path[0] }, signal),
        JID.test(path[0]) ? runner('jobs.list_job', { jid: path[0] }, signal).catch(() => null) : null]);
      const nodes = expand(graph, job && !job.Error ? job : null);
      const isCut = graph.cut || nodes.length >= NODES;
      const area = h('div', { class: 'graph-inner' });
      const details = new Pane('The selected part', { element: area });
      const holder = h('div', { class: 'graph', role: 'region', tabIndex: 0, 'aria-label': 'Graph of causes, from left to right' }, area);
      fill(output, isCut && h('p', { class: 'bad' }, 'The graph is too large: a part is left out. Choose an event further to the right.'),
        h('div', { class: 'split' }, holder, details.element));
      undo();
      undo = drawGraph(area, nodes, (node) => open(node, details));
      output.querySelector('.asked')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    } catch (error) {
      if (error.name === 'AbortError') return;
      fill(output, h('p', { class: 'bad', role: 'alert' }, error.message));
    }
  }

  /** Shows an event with its data, a reaction with its outcome, or a return. */
  function open(node, details) {
    const body = h('div');
    const jid = node.jid ?? OF_JOB.exec(node.title?.textContent ?? '')?.[1];
    const job = node.jid && h('a', { class: 'button', href: `#/jobs/${node.jid}${node.minion ? `?minion=${encodeURIComponent(node.minion)}` : ''}` }, node.minion ? 'Its return' : 'Job');
    details.show([job, node.seq && String(node.seq) !== path[0] && h('a', { class: 'button', href: `#/causality/${node.seq}` }, 'Causes'), node.seq && h('a', { class: 'button', href: `#/bus?seq=${node.seq}` }, 'In the events'),
      node.kind === 'entry' && h('a', { class: 'button', href: '#/reactor' }, 'Reactor'), node.kind === 'return' && jid && !node.minion && h('a', { class: 'button', href: `#/causality/${jid}` }, 'Open its returns')],
    h('p', { class: 'dim' }, node.word), h('h2', null, typeof node.title === 'string' ? node.title : node.title.map((part) => (typeof part === 'string' ? part : part.cloneNode()))), body);
    if (node.kind === 'event') readEvent(node.seq, body);
    else if (node.value !== undefined) fill(body, returned(node.value));
    else if (node.reaction) fill(body, h('p', { class: node.state === 'failed' ? 'bad' : '' }, clip(node.reaction.outcome, 5000)), tree(node.reaction));
    else fill(body, h('p', null, Array.isArray(node.text) ? node.text.map((part) => (typeof part === 'string' ? part : part.cloneNode())) : node.text ?? ''));
  }

  async function readEvent(seq, body) {
    fill(body, h('p', null, 'Loading…'));
    try {
      const found = await runner('event_bus.since', { since: seq, limit: 1 }, signal);
      if (found?.[0]?.seq !== seq) throw new Error(`the journal has no event ${seq} any more`);
      fill(body, tree(found[0].data));
    } catch (error) {
      if (error.name !== 'AbortError') fill(body, h('p', { class: 'bad' }, error.message));
    }
  }
}
