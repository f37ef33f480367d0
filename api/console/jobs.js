// Jobs: the list with filters and pages of the server, one job with its results, and to run it again.

import { request, run, runner } from './api.js';
import { attempt, clip, confirm, count, empty, field, fill, h, plural } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { progress } from './run.js';
import { brief, isGood, returned, tree } from './value.js';

const PAGE = 100;
/** All functions but those of runner and wheel calls, of which the console itself makes many. */
const OF_MINIONS = '[!rw]*,r[!u]*,ru[!n]*,run[!n]*,w[!h]*,wh[!e]*';

/** Returns arguments as on a command line. */
function written(args) {
  const one = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const parts = [];
  for (const value of Array.isArray(args) ? args : []) {
    if (value?.__kwarg__) {
      for (const [key, inner] of Object.entries(value)) if (key !== '__kwarg__') parts.push(`${key}=${one(inner)}`);
    } else parts.push(one(value));
  }
  return parts.join(' ');
}

const target = (job) => (Array.isArray(job.Target) ? job.Target.join(',') : String(job.Target ?? ''));

export async function show(box, context) {
  if (context.path[0]) await showJob(box, context.path[0], context.signal);
  else await showList(box, context);
}

async function showList(box, { query, signal }) {
  let jobs = [];
  // The `before` of each page up to this one: the server pages by job id.
  let places = [''];
  let next;
  const input = (name, props) => h('input', { name, value: query.get(name) ?? '', spellcheck: 'false', ...props });
  const inputs = [
    ['Function', input('function', { placeholder: 'state.*' })], ['Target', input('target', { placeholder: 'web*' })],
    ['User', input('user')], ['From', input('since', { type: 'datetime-local', title: 'In the time zone of the master' })], ['Until', input('until', { type: 'datetime-local', title: 'In the time zone of the master' })],
  ];
  const failed = h('input', { type: 'checkbox', name: 'failed', checked: query.get('failed') === 'true' });
  const calls = h('input', { type: 'checkbox', name: 'calls', checked: query.get('calls') === 'true' });
  const numbers = h('span', { class: 'dim', role: 'status' }, 'loading');
  const nothing = h('div', { class: 'overlay', hidden: true });
  const list = new VirtualList({
    label: 'Jobs', kind: 'jobs', columns: ['Started', 'Job id', 'Function', 'Target', 'User'],
    item: (i) => jobs[i],
    cells: (job) => [clip(job.StartTime ?? '', 30), h('a', { href: `#/jobs/${encodeURIComponent(job.jid)}`, tabIndex: -1 }, job.jid),
      clip(`${job.Function} ${written(job.Arguments)}`, 300), clip(target(job), 200), clip(job.User ?? '', 60)],
    onopen: (job) => {
      location.hash = `#/jobs/${encodeURIComponent(job.jid)}`;
    },
  });
  const older = h('button', { type: 'button', onclick: () => page([...places, next]) }, 'Older');
  const newer = h('button', { type: 'button', onclick: () => page(places.slice(0, -1)) }, 'Newer');
  fill(box, h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    page(['']);
  } }, inputs.map(([label, control]) => field(label, control)), h('label', { class: 'check' }, failed, ' failed only'), h('label', { class: 'check' }, calls, ' runner and wheel calls'),
  h('button', { type: 'submit' }, 'Search')), h('p', { class: 'line' }, numbers, ' ', newer, ' ', older),
  h('div', { class: 'holder' }, list.element, nothing));
  signal.addEventListener('abort', () => list.sized.disconnect());

  const page = (to) => attempt(async () => {
    const params = new URLSearchParams({ limit: PAGE });
    for (const [, control] of inputs) if (control.value.trim()) params.set(control.name, control.value.trim());
    if (!calls.checked && !params.has('function')) params.set('function', OF_MINIONS);
    if (failed.checked) params.set('failed', 'true');
    if (to.at(-1)) params.set('before', to.at(-1));
    const answer = await request(`jobs?${params}`, { signal });
    jobs = Object.entries(answer.return?.[0] ?? {}).map(([jid, job]) => ({ jid, ...job })).sort((a, b) => (a.jid < b.jid ? 1 : -1));
    [places, next] = [to, answer.next];
    newer.disabled = places.length === 1;
    older.disabled = !next;
    fill(numbers, jobs.length ? `${plural(jobs.length, 'job')} on page ${places.length}, newest first` : 'no jobs');
    fill(nothing, next ? empty('No job of this page matches.', 'The server looks at a limited number of jobs for each page: choose “Older”.')
      : empty('No job matches.', 'Change the filters, or run a function in the view Run. The master keeps jobs for keep_jobs_seconds.'));
    nothing.hidden = jobs.length > 0;
    list.element.scrollTop = 0;
    list.update(jobs.length);
  });
  await page(['']);
}

async function showJob(box, jid, signal) {
  fill(box, h('p', null, 'Loading…'));
  const job = await runner('jobs.list_job', { jid }, signal);
  if (job.Error) {
    fill(box, empty(`The job cache has no job ${clip(jid, 30)}.`, 'It was removed after keep_jobs_seconds, or it is on another master.'), h('p', null, h('a', { href: '#/jobs' }, 'All jobs')));
    return;
  }
  const results = job.Result ?? {};
  const isCall = /^(runner|wheel)\./.test(String(job.Function));
  const expected = job.Minions ?? Object.keys(results);
  const ids = [...new Set([...expected, ...Object.keys(results)])].sort();
  const stateOf = (id) => (!(id in results) ? 'missing' : isGood(results[id]) ? 'done' : 'failed');
  const of = (state) => ids.filter((id) => stateOf(id) === state);
  const [failed, missing] = [of('failed'), of('missing')];
  const order = { failed: 0, missing: 1, done: 2 };
  ids.sort((a, b) => order[stateOf(a)] - order[stateOf(b)] || (a < b ? -1 : 1));
  const list = new VirtualList({
    label: 'Returns', kind: 'returns', columns: ['Minion', 'State', 'Return'], item: (i) => ids[i],
    cells: (id) => [clip(id, 200), h('span', { class: `dot ${stateOf(id)}` }, stateOf(id)), id in results ? brief(results[id].return) : 'no return'],
    mark: (id) => (stateOf(id) === 'done' ? '' : 'bad'),
    onopen: (id) => open(id),
  });
  signal.addEventListener('abort', () => list.sized.disconnect());
  const details = new Pane('The return of the selected minion', list);
  const again = h('section', { 'aria-label': 'The new job' });
  const repeat = (label, which) => h('button', { type: 'button', disabled: which.length === 0 || isCall, onclick: () => attempt(() => rerun(which)) }, `${label} (${count(which.length)})`);
  const fields = { Function: `${job.Function} ${written(job.Arguments)}`, Target: `${target(job)} (${job['Target-type'] ?? 'glob'})`, User: job.User, Started: job.StartTime };
  fill(box, h('p', null, h('a', { href: '#/jobs' }, 'All jobs'), ' / ', h('strong', null, jid)),
    h('dl', { class: 'wide' }, Object.entries(fields).map(([name, value]) => [h('dt', null, name), h('dd', null, clip(value ?? '', 500))])),
    h('p', { class: 'line', role: 'status' }, `${count(of('done').length)} done, ${count(failed.length)} failed, ${count(missing.length)} missing of ${plural(ids.length, 'minion')}`),
    h('div', { class: 'buttons' }, repeat('Run again on failed', failed), repeat('Run again on missing', missing), repeat('Run again on failed and missing', [...failed, ...missing]),
      h('a', { class: 'button', href: `#/causality/${encodeURIComponent(jid)}` }, 'Causes'),
      h('button', { type: 'button', onclick: () => attempt(() => showJob(box, jid, signal)) }, 'Refresh')),
    again, h('div', { class: 'split' }, h('div', { class: 'holder' }, list.element), details.element));
  list.update(ids.length);
  if (ids.length === 1) open(ids[0]);

  function open(id) {
    const one = results[id];
    details.show(h('h2', null, clip(id, 200)), h('p', { class: 'dim' }, one ? `${stateOf(id)}, exit code ${one.retcode ?? 0}` : 'missing'),
    one ? returned(one.return) : empty('This minion has not returned.', 'It is not connected, or it still runs the job.'));
  }

  async function rerun(which) {
    const values = Array.isArray(job.Arguments) ? job.Arguments : [];
    const arg = values.filter((value) => !value?.__kwarg__);
    const kwarg = Object.assign({}, ...values.filter((value) => value?.__kwarg__));
    delete kwarg.__kwarg__;
    const isSure = await confirm({ title: `Run ${clip(job.Function, 100)} again?`, action: `Run on ${plural(which.length, 'minion')}`,
      body: [h('p', null, h('code', null, clip(fields.Function, 500))), h('p', null, clip(which.join(', '), 1000)), Object.keys(kwarg).length > 0 && tree(kwarg)] });
    if (!isSure) return;
    await progress(again, () => run({ client: 'local_async', fun: job.Function, arg, kwarg, tgt: which, tgt_type: 'list' }, signal), signal);
  }
}
