// Plans that need an approval: the newest, and one with its groups of minions that would change in the same way.

import { runner } from './api.js';
import { attempt, breakable, clip, confirm, count, empty, fill, h, notice, plural } from './dom.js';
import { changes } from './value.js';

/** The number of plans, and of states and minions of a group, that are shown. */
const SHOWN = 200;

const state = ({ applied, approved_by: by }) => (applied ? ['done', `applied by job ${applied}`] : by ? ['changed', `approved by ${by}`] : ['pending', 'waits for an approval']);

const dot = (plan) => {
  const [kind, text] = state(plan);
  return h('span', { class: `dot ${kind}` }, clip(text, 200));
};

const named = (ids) => clip(ids.slice(0, SHOWN).join(', '), 4000) + (ids.length > SHOWN ? ` and ${count(ids.length - SHOWN)} more` : '');

const words = (plan) => [plan.fun, ...(plan.arg ?? []).flatMap((one) => (one && typeof one === 'object'
  ? Object.entries(one).filter(([name]) => name !== '__kwarg__').map(([name, value]) => `${name}=${JSON.stringify(value)}`) : [String(one)]))].join(' ');

/** Creates a group: its minions, and what each of them would change. */
const group = ({ minions, states = [] }) => h('details', { open: states.length < 20 },
  h('summary', null, h('strong', null, plural(minions.length, 'minion')), `: ${plural(states.length, 'state')}: ${named(minions)}`),
  states.slice(0, SHOWN).map((one) => h('div', { class: 'state' }, h('p', null, h('strong', null, breakable(clip(one.id, 500))), ` (${clip(one.state, 200)})`),
    h('p', { class: 'dim' }, clip(one.comment ?? '', 2000)), Object.keys(one.changes ?? {}).length > 0 && changes(one.changes))),
  states.length > SHOWN && h('p', { class: 'dim' }, `${count(states.length - SHOWN)} further states are not shown.`));

export async function show(box, { path: [id], signal }) {
  const status = h('p', { class: 'line', role: 'status' }, 'loading');
  const body = h('div');
  fill(box, status, body);
  return id ? one(id) : all();

  async function all() {
    const plans = (await runner('plan.list', {}, signal)) ?? [];
    fill(status, plans.length > SHOWN ? `The newest ${SHOWN} of ${plural(plans.length, 'plan')}` : plural(plans.length, 'plan'));
    if (!plans.length) return fill(body, empty('No plans.', 'With “plan_approval: True”, the master keeps the plans that “salt … --plan” makes.'));
    const row = (plan) => h('tr', null, h('td', null, h('a', { href: `#/plans/${encodeURIComponent(plan.id)}` }, clip(plan.id, 40))),
      plan.error ? h('td', { colSpan: 5, class: 'bad' }, clip(plan.error, 500)) : [clip(plan.fun, 100), clip(String(plan.tgt), 100), clip(plan.user, 100),
        `${plural(plan.minions, 'minion')} in ${plural(plan.groups, 'way')}`, dot(plan)].map((cell) => h('td', null, cell)));
    return fill(body, h('table', null, h('thead', null, h('tr', null, ['Plan', 'Function', 'Target', 'By', 'Changes', 'State'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', null, plans.slice(0, SHOWN).map(row))));
  }

  async function one(name) {
    const plan = await runner('plan.show', { id: name }, signal);
    const { groups = [], failed = [], silent = [], unchanged = [] } = plan;
    fill(status, h('a', { href: '#/plans' }, 'All plans'), ` · ${clip(words(plan), 500)} · target ${clip(String(plan.tgt), 200)} · by ${clip(plan.user, 100)} · `, dot(plan));
    const approve = h('button', { type: 'button', class: 'primary', 'data-act': 'approve', hidden: Boolean(plan.approved_by || plan.applied), onclick: () => attempt(async () => {
      const sum = groups.reduce((sum, { minions }) => sum + minions.length, 0);
      const isSure = await confirm({ title: 'Approve this plan?', action: 'Approve', body: [h('p', null, `${plural(sum, 'minion')} may then be changed in exactly ${plural(groups.length, 'way')}, once.`)] });
      if (!isSure) return;
      // The digest is that of the plan on the screen.
      await runner('plan.approve', { id: name, digest: plan.digest }, signal);
      notice('The plan is approved.');
      await one(name);
    }) }, 'Approve');
    fill(body, h('p', { class: 'bar' }, approve), groups.map(group),
      failed.map(({ minions, errors }) => h('div', null, h('p', { class: 'bad' }, `${plural(minions.length, 'minion')} cannot be planned: ${named(minions)}`), errors.slice(0, 20).map((text) => h('p', { class: 'dim' }, clip(text, 2000))))),
      silent.length > 0 && h('p', { class: 'bad' }, `${plural(silent.length, 'minion')} did not answer: ${named(silent)}`),
      unchanged.length > 0 && h('p', { class: 'dim' }, `${plural(unchanged.length, 'minion')} would not change: ${named(unchanged)}`));
  }
}
