// Minions: accepted ones with their state, targets of all kinds, and the grains of one.

import { runner, wheel } from './api.js';
import { attempt, clip, count, debounce, empty, field, fill, h, select } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { tree } from './value.js';

/** The kinds of targets, with an example each. */
export const KINDS = [
  ['glob', 'Glob', 'web*'], ['list', 'List', 'web1,web2'], ['pcre', 'Regular expression', 'web\\d+'],
  ['grain', 'Grain', 'os:Debian'], ['grain_pcre', 'Grain, regular expression', 'os:(Debian|Ubuntu)'],
  ['pillar', 'Pillar', 'role:web*'], ['pillar_pcre', 'Pillar, regular expression', 'role:(web|db)'], ['pillar_exact', 'Pillar, exact', 'role:web'],
  ['nodegroup', 'Node group', 'group1'], ['ipcidr', 'Address or network', '10.0.0.0/8'], ['compound', 'Compound', 'G@os:Debian and web*'],
];

/** Creates the inputs for a target: `value()` returns the target, `onchange` is called after changes. */
export function target({ tgt = '*', kind = 'glob', onchange }) {
  const kinds = select(KINDS.map(([value, text]) => [value, text]), kind);
  const input = h('input', { value: tgt, spellcheck: 'false', autocapitalize: 'none' });
  const hint = () => input.setAttribute('placeholder', KINDS.find(([name]) => name === kinds.value)?.[2] ?? '');
  const changed = debounce(300, () => onchange?.());
  kinds.addEventListener('change', () => {
    hint();
    changed();
  });
  input.addEventListener('input', changed);
  hint();
  return {
    fields: [field('Target', input), field('Kind of target', kinds)], input,
    value: () => ({ tgt: kinds.value === 'list' ? input.value.split(/[,\s]+/).filter(Boolean) : input.value.trim(), tgt_type: kinds.value }),
    isEmpty: () => !input.value.trim(),
  };
}

const STATES = { connected: 'connected', away: 'not connected', minions_pre: 'key pending', minions_rejected: 'key rejected', minions_denied: 'key denied' };

export async function show(box, { path, signal }) {
  let all = [];
  let rows = [];
  let chosen = null;
  const search = target({ onchange: () => attempt(resolve) });
  const state = select([['', 'All states'], ...Object.entries(STATES)], '');
  const numbers = h('span', { class: 'dim', role: 'status' }, 'loading');
  const nothing = h('div', { class: 'overlay', hidden: true });
  const list = new VirtualList({
    label: 'Minions', kind: 'minions', columns: ['Id', 'State'],
    item: (i) => rows[i],
    cells: ({ id, state: now }) => [clip(id, 200), h('span', { class: `dot ${now}` }, STATES[now])],
    onopen: ({ id, state: now }) => open(id, now),
  });
  const details = new Pane('The selected minion', list);
  fill(box, h('div', { class: 'bar' }, search.fields, field('State', state),
    h('button', { type: 'button', onclick: () => attempt(load) }, 'Refresh')),
  h('p', { class: 'line' }, numbers), h('div', { class: 'split' }, h('div', { class: 'holder' }, list.element, nothing), details.element));
  state.addEventListener('change', filter);
  signal.addEventListener('abort', () => list.sized.disconnect());

  async function load() {
    const [keys, present] = await Promise.all([wheel('key.list_all', {}, signal), runner('manage.present', {}, signal)]);
    const connected = new Set(present);
    all = (keys.minions ?? []).map((id) => ({ id, state: connected.has(id) ? 'connected' : 'away' }));
    for (const name of ['minions_pre', 'minions_rejected', 'minions_denied']) {
      all.push(...(keys[name] ?? []).map((id) => ({ id, state: name })));
    }
    all.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    await resolve();
  }

  async function resolve() {
    const { tgt, tgt_type } = search.value();
    chosen = search.isEmpty() || (tgt === '*' && tgt_type === 'glob') ? null : new Set(await runner('manage.targets', { tgt, tgt_type }, signal));
    filter();
  }

  function filter() {
    rows = all.filter((one) => (!chosen || chosen.has(one.id)) && (!state.value || one.state === state.value));
    const connected = rows.filter((one) => one.state === 'connected').length;
    fill(numbers, `${count(rows.length)} of ${count(all.length)} minions, ${count(connected)} connected`);
    fill(nothing, all.length
      ? empty('No minion matches.', 'Change the target or the state.')
      : empty('No minions yet.', 'Start a minion with this master in its configuration, then accept its key in the view Keys.'));
    nothing.hidden = rows.length > 0;
    list.update(rows.length);
  }

  async function open(id, now) {
    const body = h('div', null, 'Loading…');
    const isAccepted = now === 'connected' || now === 'away';
    details.show([isAccepted && h('a', { class: 'button', href: `#/run?tgt=${encodeURIComponent(id)}&kind=list` }, 'Run on this minion'),
      h('a', { class: 'button', href: `#/jobs?target=${encodeURIComponent(id)}` }, 'Jobs'),
      !isAccepted && h('a', { class: 'button', href: '#/keys' }, 'Key')], h('h2', null, clip(id, 300)), h('p', { class: 'dim' }, STATES[now] ?? ''), body);
    if (!isAccepted) {
      fill(body, empty('The key of this minion is not accepted.', 'Compare its fingerprint in the view Keys, then accept it.'));
      return;
    }
    try {
      const grains = (await runner('cache.grains', { tgt: [id], tgt_type: 'list' }, signal))?.[id];
      if (!grains || !Object.keys(grains).length) {
        fill(body, empty('The master has no grains of this minion.', 'Minions send them when they start and with saltutil.refresh_pillar.'));
      } else {
        const first = ['os', 'osrelease', 'kernelrelease', 'saltversion', 'fqdn', 'num_cpus', 'mem_total'].filter((name) => grains[name] !== undefined);
        const sorted = Object.fromEntries(Object.entries(grains).sort(([a], [b]) => (a < b ? -1 : 1)));
        fill(body, h('dl', null, first.map((name) => [h('dt', null, name), h('dd', null, clip(grains[name], 200))])), h('h3', null, 'Grains'), tree(sorted));
      }
    } catch (error) {
      if (error.name !== 'AbortError') fill(body, h('p', { class: 'bad' }, error.message));
    }
  }

  await load();
  if (path[0]) {
    const found = all.find((one) => one.id === path[0]);
    if (found) open(found.id, found.state);
  }
}
