// Returns and other data: as a tree that is built as it is opened, as states with their changes, and as diffs.

import { block, clip, count, h, plural } from './dom.js';

const STEP = 100;
const STATE = /^[^|]+_\|-[^]*_\|-[^]*_\|-[^|]+$/;

const isMap = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

function scalar(value) {
  if (typeof value === 'string') {
    if (value.length > 200 || value.includes('\n')) return block(value, 5000);
    return h('span', { class: 'text' }, value === '' ? '""' : value);
  }
  return h('span', { class: 'literal' }, python(value));
}

function entry(key, value, options) {
  const name = h('span', { class: 'key' }, clip(key, 200));
  const path = [...(options?.path ?? []), key];
  if (value === null || typeof value !== 'object') {
    const isShort = options && String(value).length <= 200 && !key.startsWith('_');
    return h('div', { class: 'leaf' }, name, ' ', scalar(value), isShort && h('button', { type: 'button', class: 'filter', title: 'Show the events with this value', 'aria-label': `Filter by ${clip(key, 60)} ${clip(python(value), 60)}`,
      onclick: () => options.onfilter(path, value) }, 'filter'));
  }
  const size = Array.isArray(value) ? value.length : Object.keys(value).length;
  if (size === 0) return h('div', { class: 'leaf' }, name, ' ', h('span', { class: 'literal' }, Array.isArray(value) ? '[]' : '{}'));
  // The inner entries are created when they are opened, so depth costs nothing.
  const details = h('details', { ontoggle: () => {
    if (details.open && details.children.length === 1) details.append(tree(value, options && { ...options, path }));
  } }, h('summary', null, name, ' ', h('span', { class: 'dim' }, Array.isArray(value) ? plural(size, 'item') : plural(size, 'key'))));
  return details;
}

/**
 * Creates a tree of data. Long lists are shown step by step. With `onfilter`, values have a button that calls it with
 * the path and the value.
 */
export function tree(value, options) {
  if (value === null || typeof value !== 'object') return scalar(value);
  const entries = Array.isArray(value) ? value.map((one, i) => [String(i), one]) : Object.entries(value);
  const box = h('div', { class: 'tree' });
  let shownEntries = 0;
  const more = h('button', { type: 'button', class: 'more', onclick: () => show() });
  const show = () => {
    const next = entries.slice(shownEntries, shownEntries + STEP);
    shownEntries += next.length;
    more.before(...next.map(([key, one]) => entry(key, one, options)));
    more.hidden = shownEntries >= entries.length;
    more.replaceChildren(`Show more of ${count(entries.length - shownEntries)}`);
  };
  box.append(more);
  show();
  return box;
}

/** Creates a diff from its text: lines with + and - are marked. */
export function diff(text) {
  const lines = String(text).slice(0, 200000).split('\n');
  const kind = (line) => {
    if (/^(\+\+\+|---|@@)/.test(line)) return 'hunk';
    return { '+': 'added', '-': 'removed' }[line[0]] ?? 'same';
  };
  const cut = lines.length > 500 || String(text).length > 200000;
  return h('pre', { class: 'diff', tabIndex: 0 },
    lines.slice(0, 500).map((line) => h('span', { class: kind(line) }, clip2(line) + '\n')),
    cut && h('span', { class: 'hunk' }, 'The rest of the changes is not shown.\n'));
}

// Spaces of a diff have a meaning, so they are kept.
const clip2 = (line) => (line.length > 1000 ? line.slice(0, 1000) + '…' : line);

const plain = (value) => (typeof value === 'string' ? value : safeJson(value));

function safeJson(value) {
  try {
    return JSON.stringify(value, null, 1) ?? 'None';
  } catch {
    return 'data that is nested too deeply to be shown as text';
  }
}

const prefixed = (sign, value) => plain(value).slice(0, 20000).split('\n').map((line) => `${sign} ${line}`).join('\n');

/** Creates the changes of a state: diffs as they are, old and new values as lines with - and +. */
export function changes(value) {
  if (!isMap(value)) return tree(value);
  const rows = [];
  const isPair = (one) => isMap(one) && Object.keys(one).every((key) => key === 'old' || key === 'new') && Object.keys(one).length > 0;
  const pair = (one) => diff([
    'old' in one && one.old !== null && one.old !== '' ? prefixed('-', one.old) : null,
    'new' in one && one.new !== null && one.new !== '' ? prefixed('+', one.new) : null,
  ].filter((text) => text !== null).join('\n'));
  if (isPair(value)) return pair(value);
  for (const [key, one] of Object.entries(value).slice(0, STEP)) {
    const title = h('div', { class: 'key' }, clip(key, 200));
    if (typeof one === 'string' && (key === 'diff' || /^(---|@@)/m.test(one))) rows.push(h('div', null, title, diff(one)));
    else if (isPair(one)) rows.push(h('div', null, title, pair(one)));
    else rows.push(entry(key, one));
  }
  const rest = Object.keys(value).length - STEP;
  return h('div', { class: 'tree' }, rows, rest > 0 && h('p', { class: 'dim' }, `${plural(rest, 'further change')} not shown.`));
}

/** Returns whether a return is that of a state run. */
export function isStates(value) {
  const keys = isMap(value) ? Object.keys(value) : [];
  return keys.length > 0 && keys.slice(0, 50).every((key) => STATE.test(key) && isMap(value[key]));
}

/** Returns the result of a state: changed, same, failed, or would change. */
function result(one) {
  if (one.result === false) return ['failed', '✗', 'failed'];
  const changed = isMap(one.changes) && Object.keys(one.changes).length > 0;
  if (one.result === null || one.result === undefined) return ['pending', '◌', 'would change'];
  return changed ? ['changed', '●', 'changed'] : ['done', '✓', 'unchanged'];
}

/** Counts the results of a state run. */
export function summary(states) {
  const counts = {};
  for (const one of Object.values(states)) {
    const [, , name] = result(one);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return Object.entries(counts).map(([name, number]) => `${count(number)} ${name}`).join(', ');
}

/** Creates the table of a state run: failed states first, else in the order of the run. They are open, and changed ones of a short run. */
export function states(value) {
  const rows = Object.entries(value).sort(([, a], [, b]) => (b.result === false) - (a.result === false) || (a.__run_num__ ?? 0) - (b.__run_num__ ?? 0));
  const box = h('div', { class: 'states' });
  const more = h('button', { type: 'button', class: 'more', onclick: () => show() });
  let at = 0;
  const one = ([key, state]) => {
    const [kind, mark, word] = result(state);
    const parts = key.split('_|-');
    const id = state.__id__ ?? parts[1];
    const took = Number.isFinite(Number(state.duration)) && state.duration !== undefined ? `${Number(state.duration).toFixed(0)} ms` : '';
    const hasChanges = isMap(state.changes) && Object.keys(state.changes).length > 0;
    return h('details', { class: kind, open: kind === 'failed' || (kind === 'changed' && rows.length <= 20) },
      h('summary', null, h('span', { class: `mark ${kind}`, title: word, 'aria-label': word }, mark), ' ',
        h('code', null, clip(`${parts[0]}.${parts.at(-1)}`, 80)), ' ', h('span', { class: 'state-id' }, clip(id, 120)), ' ',
        h('span', { class: 'dim' }, took)),
      h('dl', null, h('dt', null, 'Result'), h('dd', null, word),
        String(state.name ?? id) !== String(id) && [h('dt', null, 'Name'), h('dd', null, clip(state.name, 500))],
        h('dt', null, 'Comment'), h('dd', null, block(plain(state.comment ?? ''), 5000)),
        state.__sls__ && [h('dt', null, 'File'), h('dd', null, clip(state.__sls__, 200))]),
      hasChanges && changes(state.changes));
  };
  const show = () => {
    more.before(...rows.slice(at, at + STEP).map(one));
    at += STEP;
    more.hidden = at >= rows.length;
    more.replaceChildren(`Show more of ${plural(rows.length - at, 'state')}`);
  };
  box.append(more);
  show();
  return h('div', null, h('p', null, summary(value)), box);
}

/** Creates the view of one minion's return. */
export function returned(value) {
  if (isStates(value)) return states(value);
  if (typeof value === 'string') return block(value);
  return tree(value);
}

/** Returns a scalar as Salt writes it. */
export function python(value) {
  if (value === null || value === undefined) return 'None';
  return { true: 'True', false: 'False' }[value] ?? String(value);
}

/** Returns a short text about a return, for tables. */
export function brief(value) {
  if (isStates(value)) return summary(value);
  if (typeof value === 'string') return clip(value.trimStart().split('\n', 1)[0], 120);
  if (Array.isArray(value)) return plural(value.length, 'item');
  if (isMap(value)) return plural(Object.keys(value).length, 'key');
  return python(value);
}

/** Returns whether a minion's return of a job is a success. */
export const isGood = (one) => one.success !== false && !one.retcode;
