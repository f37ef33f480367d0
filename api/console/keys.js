// Keys: fingerprints, and to accept, reject and delete them after a confirmation.

import { wheel } from './api.js';
import { attempt, clip, count, debounce, empty, field, fill, h, confirm, natural, notice, plural, select, setQuery } from './dom.js';
import { VirtualList } from './list.js';

const STATES = { minions_pre: 'pending', minions: 'accepted', minions_rejected: 'rejected', minions_denied: 'denied' };
/** Fingerprints that are read at once, and shown in a confirmation. */
const FINGERS = 50;

const nameOf = ({ id, state }) => `${state}/${id}`;

/** Reads fingerprints by exact ids. The function matches globs, so ids with wildcards are read with others and selected. */
async function fingers(keys, signal) {
  const found = new Map();
  for (let at = 0; at < keys.length; at += FINGERS) {
    const match = keys.slice(at, at + FINGERS).map(({ id }) => id);
    const answer = await wheel('key.finger', { match }, signal);
    for (const [state, ids] of Object.entries(answer ?? {})) {
      for (const [id, finger] of Object.entries(ids ?? {})) found.set(nameOf({ id, state }), String(finger));
    }
  }
  return found;
}

const ACTS = {
  accept: { fun: 'key.accept_dict', verb: 'Accept', past: 'accepted', with: { include_rejected: true, include_denied: true },
    may: (state) => state !== 'minions', advice: 'Compare each fingerprint with the output of “salt-call key.finger” on the minion. An accepted minion receives its pillar and runs jobs.' },
  reject: { fun: 'key.reject_dict', verb: 'Reject', past: 'rejected', with: { include_accepted: true, include_denied: true },
    may: (state) => state !== 'minions_rejected', advice: 'A rejected minion cannot authenticate. Its key stays and can be accepted later.' },
  delete: { fun: 'key.delete_dict', verb: 'Delete', past: 'deleted', with: {}, isDangerous: true,
    may: () => true, advice: 'A minion whose key is deleted is unknown to the master; its next authentication adds a pending key.' },
};

export async function show(box, { query, signal }) {
  let all = [];
  let rows = [];
  let known = new Map();
  const selected = new Set();
  const text = h('input', { type: 'search', placeholder: 'part of an id', spellcheck: 'false', value: query.get('id') ?? '' });
  const state = select([['', 'All states'], ...Object.entries(STATES)], query.get('state') ?? '');
  const numbers = h('span', { class: 'dim', role: 'status' }, 'loading');
  const nothing = h('div', { class: 'overlay', hidden: true });
  const buttons = Object.entries(ACTS).map(([name, act]) => h('button', {
    type: 'button', class: act.isDangerous ? 'danger' : undefined, disabled: true, 'data-act': name, onclick: () => attempt(() => apply(act)),
  }, act.verb));
  const list = new VirtualList({
    label: 'Keys', kind: 'keys', columns: [h('span', { class: 'sr' }, 'Selected'), 'Id', 'State', 'Fingerprint'],
    item: (i) => rows[i],
    cells: (key) => [
      h('input', { type: 'checkbox', tabIndex: -1, checked: selected.has(nameOf(key)), 'aria-label': `Select ${clip(key.id, 100)}`, onchange: () => toggle(key) }),
      clip(key.id, 200), h('span', { class: `dot ${key.state}` }, STATES[key.state]), h('code', null, known.get(nameOf(key)) ?? ''),
    ],
    onopen: (key) => toggle(key),
  });
  list.ontoggle = (key) => toggle(key);
  fill(box, h('div', { class: 'bar' }, field('Id', text), field('State', state),
    h('button', { type: 'button', onclick: () => choose() }, 'Select all shown'), buttons,
    h('button', { type: 'button', onclick: () => attempt(load) }, 'Refresh')),
  h('p', { class: 'line' }, numbers), h('div', { class: 'holder' }, list.element, nothing));
  text.addEventListener('input', debounce(150, filter));
  state.addEventListener('change', filter);
  signal.addEventListener('abort', () => list.sized.disconnect());

  function toggle(key) {
    const name = nameOf(key);
    if (!selected.delete(name)) selected.add(name);
    update();
  }

  function choose() {
    const isAll = rows.every((key) => selected.has(nameOf(key)));
    for (const key of rows) {
      if (isAll) selected.delete(nameOf(key));
      else selected.add(nameOf(key));
    }
    update();
  }

  const chosen = () => all.filter((key) => selected.has(nameOf(key)));

  function update() {
    const keys = chosen();
    buttons.forEach((button) => {
      button.disabled = !keys.some((key) => ACTS[button.dataset.act].may(key.state));
    });
    fill(numbers, `${count(rows.length)} of ${plural(all.length, 'key')}, ${count(all.filter((key) => key.state === 'minions_pre').length)} pending, ${count(keys.length)} selected`);
    list.update(rows.length);
  }

  function filter() {
    const needle = text.value.trim().toLowerCase();
    rows = all.filter((key) => (!state.value || key.state === state.value) && key.id.toLowerCase().includes(needle));
    fill(nothing, all.length ? empty('No key matches.', 'Change the filter.')
      : empty('No keys yet.', 'A minion that connects for the first time appears here with a pending key.'));
    nothing.hidden = rows.length > 0;
    setQuery({ id: text.value.trim(), state: state.value });
    update();
  }

  async function load() {
    const answer = await wheel('key.list_all', {}, signal);
    // Pending keys come first: they wait for a decision.
    all = Object.keys(STATES).flatMap((name) => (answer[name] ?? []).toSorted(natural).map((id) => ({ id, state: name })));
    const names = new Set(all.map(nameOf));
    for (const name of selected) if (!names.has(name)) selected.delete(name);
    filter();
    known = await fingers(all.slice(0, 10 * FINGERS), signal);
    list.update(rows.length);
  }

  async function apply(act) {
    const keys = chosen().filter((key) => act.may(key.state));
    const shownKeys = keys.slice(0, FINGERS);
    const found = await fingers(shownKeys, signal);
    const isSure = await confirm({
      title: `${act.verb} ${plural(keys.length, 'key')}?`, action: `${act.verb} ${plural(keys.length, 'key')}`, isDangerous: act.isDangerous,
      body: [h('p', null, act.advice), h('ul', { class: 'fingers' }, shownKeys.map((key) => h('li', null,
        h('strong', null, clip(key.id, 200)), ` (${STATES[key.state]})`, h('br'), h('code', null, found.get(nameOf(key)) ?? 'no fingerprint')))),
      keys.length > FINGERS && h('p', null, `and ${plural(keys.length - FINGERS, 'further key')}`)],
    });
    if (!isSure) return;
    const match = {};
    for (const key of keys) (match[key.state] ??= []).push(key.id);
    await wheel(act.fun, { match, ...act.with }, signal);
    selected.clear();
    notice(`${plural(keys.length, 'key')} ${act.past}.`);
    await load();
  }

  await load();
}
