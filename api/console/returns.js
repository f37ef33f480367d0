// The returns of a job: equal ones as one group, or each minion on its own, with the selected one beside the list.

import { outcomeBar } from './chart.js';
import { clip, count, empty, fill, h, natural, plural } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { brief, isGood, isStates, returned } from './value.js';

/** Minions of a group that are named at first. */
const NAMED = 100;
/** The fields of a state that differ between minions with the same result. */
const OWN = new Set(['duration', 'start_time', '__run_num__', 'pid']);
const ORDER = { failed: 0, missing: 1, waiting: 2, done: 3 };

/** Returns a text that equal returns have in common. */
function signature(value) {
  try {
    if (!isStates(value)) return JSON.stringify(value) ?? 'undefined';
    return JSON.stringify(value, (key, inner) => (OWN.has(key) ? undefined : inner));
  } catch {
    return `unique ${Math.random()}`;
  }
}

export class Returns {
  /** `onshow` is called with the minion that was opened, for the address. */
  constructor(signal, { onshow } = {}) {
    Object.assign(this, { rows: new Map(), onshow, items: [], sets: [], isGrouped: true, isChosen: false });
    this.status = h('p', { class: 'line', role: 'status' });
    this.bar = h('div');
    const dot = (state) => h('span', { class: `dot ${state}` }, state);
    const mark = ({ state }) => (state === 'failed' ? 'bad' : '');
    this.minions = new VirtualList({
      label: 'Returns', kind: 'returns', columns: ['Minion', 'State', 'Return'], item: (i) => this.items[i], mark,
      cells: (row) => [clip(row.id, 200), dot(row.state), row.text], onopen: (row) => this.showMinion(row),
    });
    this.groups = new VirtualList({
      label: 'Groups of equal returns', kind: 'groups', columns: ['Minions', 'State', 'Which', 'Return'], item: (i) => this.sets[i], mark,
      cells: (group) => [`${count(group.ids.length)} ×`, dot(group.state), clip(group.ids.slice(0, 8).join(', '), 200), group.text], onopen: (group) => this.showGroup(group),
    });
    this.details = new Pane('The selected return', this.groups);
    const choice = (label, isGrouped) => h('button', { type: 'button', onclick: () => {
      this.isChosen = true;
      this.group(isGrouped);
    } }, label);
    this.choices = [choice('Equal returns', true), choice('Each minion', false)];
    this.segments = h('div', { class: 'segments', role: 'group', 'aria-label': 'Show' }, this.choices);
    this.holder = h('div', { class: 'holder' }, this.groups.element);
    this.element = h('div', { class: 'results' }, this.status, this.bar, h('div', { class: 'buttons' }, this.segments), h('div', { class: 'split' }, this.holder, this.details.element));
    signal.addEventListener('abort', () => {
      this.minions.sized.disconnect();
      this.groups.sized.disconnect();
    });
  }

  expect(ids, state) {
    for (const id of ids) if (!this.rows.has(id)) this.rows.set(id, { id, state, text: state === 'missing' ? 'no return' : '', key: state });
  }

  /** Stores the return of a minion; the first one counts. */
  set(id, one) {
    const row = this.rows.get(id);
    if (row && 'value' in row) return false;
    const state = isGood(one) ? 'done' : 'failed';
    this.rows.set(id, { id, state, value: one.return, retcode: one.retcode ?? 0, text: brief(one.return), key: `${state} ${signature(one.return)}` });
    return true;
  }

  of(state) {
    return [...this.rows.values()].filter((row) => row.state === state).map((row) => row.id);
  }

  numbers() {
    const numbers = { done: 0, failed: 0, missing: 0, waiting: 0, asked: this.rows.size };
    for (const { state } of this.rows.values()) numbers[state]++;
    return numbers;
  }

  group(isGrouped) {
    this.isGrouped = isGrouped;
    this.details.hide();
    this.draw();
  }

  draw() {
    const all = [...this.rows.values()].sort((a, b) => ORDER[a.state] - ORDER[b.state] || natural(a.id, b.id));
    const groups = new Map();
    for (const row of all) {
      const group = groups.get(row.key) ?? { ...row, ids: [] };
      group.ids.push(row.id);
      groups.set(row.key, group);
    }
    // A group for each minion says nothing new.
    if (!this.isChosen) this.isGrouped = all.length > 1 && groups.size < all.length;
    const list = this.isGrouped ? this.groups : this.minions;
    this.items = all;
    this.sets = [...groups.values()].sort((a, b) => ORDER[a.state] - ORDER[b.state] || b.ids.length - a.ids.length);
    const number = this.isGrouped ? this.sets.length : all.length;
    if (this.holder.firstChild !== list.element) fill(this.holder, list.element);
    this.details.list = list;
    this.choices.forEach((button, i) => button.setAttribute('aria-pressed', String((i === 0) === this.isGrouped)));
    fill(this.choices[0], `Equal returns (${count(groups.size)})`);
    fill(this.choices[1], `Each minion (${count(all.length)})`);
    this.segments.hidden = all.length < 2;
    fill(this.bar, outcomeBar({ ...this.numbers(), running: this.of('waiting').length > 0 }));
    this.bar.firstChild.classList.add('wide');
    // The height of the list follows its rows.
    list.element.style.height = `min(60vh, ${Math.max(3, number + 1) * list.height + 34}px)`;
    this.minions.count = all.length;
    this.groups.count = this.sets.length;
    list.update(number);
  }

  open(id) {
    const row = this.rows.get(id);
    if (row) this.showMinion(row);
  }

  showMinion(row) {
    this.onshow?.(row.id);
    const isHere = 'value' in row;
    this.details.show(h('h2', null, clip(row.id, 200)), h('p', { class: 'dim' }, isHere ? `${row.state}, exit code ${clip(row.retcode, 20)}` : row.state),
      isHere ? returned(row.value) : empty('This minion has not returned.', 'It is not connected, or it still runs the job.'));
  }

  showGroup(group) {
    if (group.ids.length === 1) return this.showMinion(this.rows.get(group.ids[0]));
    this.onshow?.('');
    const chip = (id) => h('button', { type: 'button', class: 'chip', onclick: () => this.open(id) }, clip(id, 80));
    const rest = group.ids.slice(NAMED);
    const more = rest.length > 0 && h('button', { type: 'button', class: 'chip', onclick: () => more.replaceWith(...rest.slice(0, 5000).map(chip)) }, `${count(rest.length)} more`);
    this.details.show(h('h2', null, `${plural(group.ids.length, 'minion')}: ${group.state}`), h('p', { class: 'chips' }, group.ids.slice(0, NAMED).map(chip), more),
      'value' in group ? returned(group.value) : empty('These minions have not returned.', 'They are not connected, or they still run the job.'));
    return undefined;
  }
}
