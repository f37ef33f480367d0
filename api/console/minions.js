// Minions: their state, system and last highstate, targets of all kinds, and the grains of one.

import { runner } from './api.js';
import { attempt, clip, count, debounce, empty, field, fill, h, natural, plural, select, setQuery } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { full, when } from './time.js';
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
    fields: [field('Target', input), field('Kind of target', kinds)], input, kinds,
    set(text, name) {
      input.value = text;
      kinds.value = name;
      hint();
      onchange?.();
    },
    value: () => ({ tgt: kinds.value === 'list' ? input.value.split(/[,\s]+/).filter(Boolean) : input.value.trim(), tgt_type: kinds.value }),
    isEmpty: () => !input.value.trim(),
  };
}

const STATES = { connected: 'connected', away: 'not connected', never: 'never seen', minions_pre: 'key pending', minions_rejected: 'key rejected', minions_denied: 'key denied' };
const HIGHSTATES = [['', 'All highstates'], ['failed', 'Failed'], ['drift', 'Drifted'], ['changed', 'Changed'], ['good', 'In order'], ['none', 'None in the last day']];
/** Where ids are left for the view Run: an address has no room for thousands. */
export const CHOSEN = 'brine.chosen';

/** Returns the result of a minion's last highstate: its kind, and words about it. */
function highstate(run) {
  if (!run) return ['none', '', ''];
  if (!run.success || run.failed) return ['failed', run.failed ? `${count(run.failed)} of ${count(run.states)} failed` : 'failed', 'bad'];
  if (run.pending) return ['drift', `${count(run.pending)} of ${count(run.states)} drifted`, 'warn'];
  if (run.changed) return ['changed', `${count(run.changed)} of ${count(run.states)} changed`, ''];
  return ['good', run.states ? `${count(run.states)} in order` : 'done', 'good'];
}

const lastRun = (run) => {
  const [, words, mark] = highstate(run);
  return run ? h('span', null, h('a', { class: `state ${mark}`, tabIndex: -1, href: `#/jobs/${encodeURIComponent(run.jid)}` }, words), run.test ? ' (test) ' : ' ', h('span', { class: 'dim' }, when(run.time))) : h('span', { class: 'dim' }, '–');
};

export async function show(box, { path, query, signal }) {
  let all = [];
  let rows = [];
  let chosen = null;
  const selected = new Set();
  const search = target({ tgt: query.get('tgt') ?? '*', kind: query.get('kind') ?? 'glob', onchange: () => attempt(resolve) });
  const state = select([['', 'All states'], ...Object.entries(STATES)], query.get('state') ?? '');
  const last = select(HIGHSTATES, query.get('highstate') ?? '');
  const text = h('input', { type: 'search', placeholder: 'system, version or address', spellcheck: 'false', value: query.get('text') ?? '' });
  // Filters by one value exactly, which the overview sets.
  const exact = { os: query.get('os') ?? '', version: query.get('version') ?? '' };
  const chips = h('div', { class: 'chips' });
  const numbers = h('span', { class: 'dim', role: 'status' }, 'loading');
  const nothing = h('div', { class: 'overlay', hidden: true });
  const list = new VirtualList({
    label: 'Minions', kind: 'minions', columns: [h('span', { class: 'sr' }, 'Selected'), 'Id', 'State', 'System', 'Version', 'Address', 'Last seen', 'Last highstate'],
    item: (i) => rows[i],
    cells: (one) => [
      isAccepted(one) && h('input', { type: 'checkbox', tabIndex: -1, checked: selected.has(one.id), 'aria-label': `Select ${clip(one.id, 100)}`, onchange: () => toggle(one) }),
      h('span', { class: `dot ${one.state}`, title: STATES[one.state] }, clip(one.id, 200)), STATES[one.state], clip(one.os ?? '', 60), clip(one.version ?? '', 40), clip(one.address ?? '', 60),
      one.state === 'connected' ? 'now' : when(one.seen), isAccepted(one) ? lastRun(one.highstate) : ''],
    mark: (one) => (highstate(one.highstate)[0] === 'failed' ? 'bad' : ''),
    onopen: (one) => open(one),
  });
  list.ontoggle = (one) => toggle(one);
  const details = new Pane('The selected minion', list);
  const runOn = h('button', { type: 'button', class: 'primary', disabled: true, onclick: () => {
    const ids = [...selected].sort(natural);
    sessionStorage.setItem(CHOSEN, ids.join(','));
    location.hash = '#/run?chosen=true';
  } }, 'Run on the selected');
  fill(box, h('div', { class: 'bar' }, search.fields, field('State', state), field('Last highstate', last), field('Contains', text),
    h('button', { type: 'button', onclick: () => attempt(load) }, 'Refresh')), chips,
  h('div', { class: 'buttons' }, runOn, h('button', { type: 'button', onclick: () => selectAll() }, 'Select all shown'), numbers),
  h('div', { class: 'split' }, h('div', { class: 'holder' }, list.element, nothing), details.element));
  state.addEventListener('change', filter);
  last.addEventListener('change', filter);
  text.addEventListener('input', debounce(150, filter));
  signal.addEventListener('abort', () => list.sized.disconnect());

  const isAccepted = ({ state: now }) => now === 'connected' || now === 'away' || now === 'never';

  function toggle({ id }) {
    if (!selected.delete(id)) selected.add(id);
    update();
  }

  function selectAll() {
    const ids = rows.filter(isAccepted).map(({ id }) => id);
    const isAll = ids.every((id) => selected.has(id));
    for (const id of ids) {
      if (isAll) selected.delete(id);
      else selected.add(id);
    }
    update();
  }

  function update() {
    runOn.disabled = !selected.size;
    fill(runOn, selected.size ? `Run on ${plural(selected.size, 'minion')}` : 'Run on the selected');
    list.update(rows.length);
  }

  async function load() {
    const answer = await runner('fleet.minions', {}, signal);
    all = (answer.minions ?? []).sort((a, b) => natural(a.id, b.id));
    const known = new Set(all.filter(isAccepted).map(({ id }) => id));
    for (const id of selected) if (!known.has(id)) selected.delete(id);
    await resolve();
  }

  async function resolve() {
    const { tgt, tgt_type } = search.value();
    chosen = search.isEmpty() || (tgt === '*' && tgt_type === 'glob') ? null : new Set(await runner('manage.targets', { tgt, tgt_type }, signal));
    filter();
  }

  function filter() {
    const needle = text.value.trim().toLowerCase();
    const has = (value) => String(value ?? '').toLowerCase().includes(needle);
    rows = all.filter((one) => (!chosen || chosen.has(one.id)) && (!state.value || one.state === state.value)
      && (!last.value || (isAccepted(one) && highstate(one.highstate)[0] === last.value))
      && (!needle || [one.id, one.os, one.version, one.address].some(has))
      && Object.entries(exact).every(([name, value]) => !value || one[name] === value));
    const connected = rows.filter((one) => one.state === 'connected').length;
    fill(numbers, `${count(rows.length)} of ${count(all.length)} minions, ${count(connected)} connected`);
    fill(chips, Object.entries(exact).filter(([, value]) => value).map(([name, value]) => h('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter ${name} ${value}`, onclick: () => {
      exact[name] = '';
      filter();
    } }, `${name}: ${clip(value, 80)} ×`)));
    fill(nothing, all.length
      ? empty('No minion matches.', 'Change the target, the state or another filter.')
      : empty('No minions yet.', 'Start a minion with this master in its configuration, then accept its key in the view Keys.'));
    nothing.hidden = rows.length > 0;
    const { kinds, input } = search;
    const isAll = input.value.trim() === '*' && kinds.value === 'glob';
    setQuery({ tgt: isAll ? '' : input.value.trim(), kind: kinds.value === 'glob' ? '' : kinds.value, state: state.value, highstate: last.value, text: text.value.trim(), ...exact });
    update();
  }

  async function open(one) {
    const { id, state: now } = one;
    const body = h('div', null, 'Loading…');
    const accepted = isAccepted(one);
    const facts = [['State', STATES[now]], one.os && ['System', one.os], one.version && ['Version', one.version], one.address && ['Address', one.address],
      one.seen && now !== 'connected' && ['Last seen', full(one.seen)], accepted && ['Last highstate', one.highstate ? lastRun(one.highstate) : 'none in the last day']].filter(Boolean);
    details.show([accepted && h('a', { class: 'button', href: `#/run?tgt=${encodeURIComponent(id)}&kind=list` }, 'Run on this minion'),
      accepted && h('a', { class: 'button', href: `#/run?tgt=${encodeURIComponent(id)}&kind=list&fun=state.highstate&test=true` }, 'Test its highstate'),
      h('a', { class: 'button', href: `#/jobs?target=${encodeURIComponent(id)}` }, 'Jobs'),
      h('a', { class: 'button', href: `#/bus?since=1h&text=${encodeURIComponent(id)}` }, 'Events'),
      !accepted && h('a', { class: 'button', href: `#/keys?id=${encodeURIComponent(id)}` }, 'Key')], h('h2', null, clip(id, 300)),
    h('dl', null, facts.map(([name, value]) => [h('dt', null, name), h('dd', null, value instanceof Node ? value : clip(value, 200))])), body);
    if (!accepted) {
      fill(body, now === 'minions_denied' ? empty('Another key than the known one was shown for this id.', 'If the minion was reinstalled, delete its keys in the view Keys and accept the new one; if not, somebody else uses its id.')
        : empty('The key of this minion is not accepted.', 'Compare its fingerprint in the view Keys, then accept it.'));
      return;
    }
    try {
      const grains = (await runner('cache.grains', { tgt: [id], tgt_type: 'list' }, signal))?.[id];
      if (!grains || !Object.keys(grains).length) {
        fill(body, empty('The master has no grains of this minion.', 'Minions send them when they start and with saltutil.refresh_pillar.'));
      } else {
        const first = ['fqdn', 'kernelrelease', 'num_cpus', 'mem_total'].filter((name) => grains[name] !== undefined);
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
    if (found) open(found);
  }
}
