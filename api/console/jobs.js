// Jobs: the list with outcomes, filters and pages of the server, one job with its results, and to run it again.

import { run, runner } from './api.js';
import { outcomeBar } from './chart.js';
import { attempt, clip, confirm, count, empty, field, fill, h, natural, plural, select, setQuery } from './dom.js';
import { VirtualList } from './list.js';
import { Returns } from './returns.js';
import { progress } from './run.js';
import { duration, full, when } from './time.js';
import { tree } from './value.js';

const PAGE = 100;
const INTERVAL = 10000;
const OUTCOMES = [['', 'All outcomes'], ['bad', 'Failed or missing'], ['failed', 'Failed'], ['missing', 'Missing returns'], ['running', 'Running'], ['done', 'Done']];
const ORDERS = [['failed', 'Failed first'], ['newest', 'Newest first']];
const RANK = { failed: 0, missing: 1, running: 2 };

/** Returns arguments as on a command line. */
function written(args) {
  const one = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const parts = [];
  for (const value of Array.isArray(args) ? args : args ? [args] : []) {
    if (value?.__kwarg__) {
      for (const [key, inner] of Object.entries(value)) if (key !== '__kwarg__') parts.push(`${key}=${one(inner)}`);
    } else parts.push(one(value));
  }
  return parts.join(' ');
}

const names = (value) => (Array.isArray(value) ? value.join(', ') : String(value ?? ''));
const took = (job) => (job.last ? duration((job.last - job.started) / 1000) : '');

/** Creates the outcome of a job at a glance: a bar, and what is most important about it. */
function outcome(job) {
  if (!job.outcome) return h('span', { class: 'dim', title: 'The last day has no event of this job: open it to see its returns' }, '–');
  const missing = job.asked - job.done - job.failed;
  const words = { failed: [`${count(job.failed)} of ${count(job.asked)} failed`, 'bad'], missing: [`${count(missing)} of ${count(job.asked)} missing`, 'warn'],
    running: [`${count(job.done)} of ${count(job.asked)}, running`, ''], done: [job.asked ? `${count(job.done)} done` : 'no minion', job.asked ? 'good' : ''] }[job.outcome];
  return h('span', { class: 'outcome' }, outcomeBar(job), h('span', { class: `state ${words[1]}` }, words[0]));
}

export async function show(box, context) {
  if (context.path[0]) await showJob(box, context);
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
  const wanted = select(OUTCOMES, query.get('outcome') ?? '');
  const order = select(ORDERS, query.get('order') ?? 'failed');
  const calls = h('input', { type: 'checkbox', name: 'calls', checked: query.get('calls') === 'true' });
  const numbers = h('span', { class: 'dim', role: 'status' }, 'loading');
  const nothing = h('div', { class: 'overlay', hidden: true });
  const list = new VirtualList({
    label: 'Jobs', kind: 'jobs', columns: ['Outcome', 'Function', 'Target', 'Started', 'Duration', 'User', 'Job id'],
    item: (i) => jobs[i],
    cells: (job) => [outcome(job), clip(`${names(job.fun)} ${written(job.arg)}`, 300), clip(names(job.tgt), 200), when(job.started), took(job), clip(job.user ?? '', 60),
      h('a', { href: `#/jobs/${encodeURIComponent(job.jid)}`, tabIndex: -1 }, job.jid)],
    mark: (job) => (job.outcome === 'failed' ? 'bad' : ''),
    onopen: (job) => {
      location.hash = `#/jobs/${encodeURIComponent(job.jid)}`;
    },
  });
  const older = h('button', { type: 'button', disabled: true, onclick: () => page([...places, next]) }, 'Older');
  const newer = h('button', { type: 'button', disabled: true, onclick: () => page(places.slice(0, -1)) }, 'Newer');
  fill(box, h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    page(['']);
  } }, inputs.map(([label, control]) => field(label, control)), field('Outcome', wanted), field('Order', order), h('label', { class: 'check' }, calls, ' runner and wheel calls'),
  h('button', { type: 'submit' }, 'Search')), h('p', { class: 'line' }, numbers, ' ', newer, ' ', older),
  h('div', { class: 'holder' }, list.element, nothing));
  wanted.addEventListener('change', () => page(['']));
  order.addEventListener('change', () => draw());
  calls.addEventListener('change', () => page(['']));
  signal.addEventListener('abort', () => list.sized.disconnect());

  function draw() {
    const rank = (job) => (order.value === 'failed' ? RANK[job.outcome] ?? 3 : 0);
    jobs.sort((a, b) => rank(a) - rank(b) || (a.jid < b.jid ? 1 : -1));
    setQuery({ order: order.value === 'failed' ? '' : order.value });
    list.update(jobs.length);
  }

  async function load(to) {
    const filters = { limit: PAGE, calls: calls.checked };
    for (const [, control] of inputs) if (control.value.trim()) filters[control.name] = control.value.trim();
    if (wanted.value) filters.outcome = wanted.value;
    setQuery({ ...Object.fromEntries(inputs.map(([, control]) => [control.name, control.value.trim()])), outcome: wanted.value, calls: calls.checked });
    if (to.at(-1)) filters.before = to.at(-1);
    const answer = await runner('fleet.jobs', filters, signal);
    jobs = answer.jobs ?? [];
    [places, next] = [to, answer.next];
    newer.disabled = places.length === 1;
    older.disabled = !next;
    const bad = jobs.filter((job) => job.outcome === 'failed').length;
    fill(numbers, jobs.length ? `${plural(jobs.length, 'job')} on page ${places.length}${bad ? `, ${count(bad)} failed` : ''}${answer.complete ? '' : '; the master still counts outcomes'}` : 'no jobs');
    fill(nothing, empty('No job matches.', 'Change the filters, or run a function in the view Run. The master keeps jobs for keep_jobs_seconds.'));
    nothing.hidden = jobs.length > 0;
    draw();
  }

  const page = (to) => attempt(async () => {
    list.element.scrollTop = 0;
    try {
      await load(to);
    } catch (error) {
      fill(numbers, 'not available');
      throw error;
    }
  });
  // The first page is kept up to date while it is looked at.
  const timer = setInterval(() => {
    if (!document.hidden && places.length === 1 && list.element.scrollTop === 0 && !box.contains(document.activeElement?.closest('form'))) load(places).catch(() => {});
  }, INTERVAL);
  signal.addEventListener('abort', () => clearInterval(timer));
  await page(['']);
}

async function showJob(box, context) {
  const { path: [jid], query, signal } = context;
  fill(box, h('p', null, 'Loading…'));
  const job = await runner('jobs.list_job', { jid }, signal);
  if (job.Error) {
    fill(box, empty(`The job cache has no job ${clip(jid, 30)}.`, 'It was removed after keep_jobs_seconds, or it is on another master.'), h('p', null, h('a', { href: '#/jobs' }, 'All jobs')));
    return;
  }
  const results = job.Result ?? {};
  const isCall = /^(runner|wheel)\./.test(String(job.Function));
  const returns = new Returns(signal, { onshow: (id) => setQuery({ minion: id }) });
  for (const [id, one] of Object.entries(results)) returns.set(id, isCall && one.return?.fun ? { ...one, ...one.return } : one);
  returns.expect(job.Minions ?? [], 'missing');
  const [failed, missing] = [returns.of('failed'), returns.of('missing')].map((ids) => ids.sort(natural));
  const again = h('section', { 'aria-label': 'The new job' });
  const repeat = (label, which) => which.length > 0 && !isCall && h('button', { type: 'button', onclick: () => attempt(() => rerun(which)) }, `${label} (${count(which.length)})`);
  const command = `${names(job.Function)} ${written(job.Arguments)}`;
  const started = Date.UTC(jid.slice(0, 4), jid.slice(4, 6) - 1, jid.slice(6, 8), jid.slice(8, 10), jid.slice(10, 12), jid.slice(12, 14));
  const fields = [['Function', h('code', null, clip(command, 500))], ['Target', clip(`${names(job.Target)} (${job['Target-type'] ?? 'glob'})`, 500)], ['User', clip(job.User ?? '', 100)],
    ['Started', `${clip(job.StartTime ?? full(started * 1000), 60)} (time of the master)`]];
  const numbers = returns.numbers();
  fill(box, h('p', null, h('a', { href: '#/jobs' }, 'All jobs'), ' / ', h('strong', null, jid)),
    h('dl', { class: 'wide' }, fields.map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
    h('div', { class: 'buttons' }, repeat('Run again on failed', failed), repeat('Run again on missing', missing), failed.length > 0 && repeat('Run again on failed and missing', missing.length ? [...failed, ...missing] : []),
      h('a', { class: 'button', href: `#/causality/${encodeURIComponent(jid)}` }, 'Causes'),
      !isCall && h('a', { class: 'button', href: `#/run?${new URLSearchParams({ fun: names(job.Function), arg: quoted(job.Arguments), tgt: names(job.Target).replaceAll(', ', ','), kind: job['Target-type'] ?? 'glob' })}` }, 'Change and run'),
      h('button', { type: 'button', onclick: () => attempt(() => showJob(box, context)) }, 'Refresh')),
    again, returns.element);
  fill(returns.status, `${count(numbers.done)} done, ${count(numbers.failed)} failed, ${count(numbers.missing)} missing of ${plural(numbers.asked, 'minion')}`);
  returns.draw();
  if (query.get('minion')) returns.open(query.get('minion'));
  else if (numbers.asked === 1) returns.open([...returns.rows.keys()][0]);

  async function rerun(which) {
    const values = Array.isArray(job.Arguments) ? job.Arguments : [];
    const arg = values.filter((value) => !value?.__kwarg__);
    const kwarg = Object.assign({}, ...values.filter((value) => value?.__kwarg__));
    delete kwarg.__kwarg__;
    const isSure = await confirm({ title: `Run ${clip(job.Function, 100)} again?`, action: `Run on ${plural(which.length, 'minion')}`,
      body: [h('p', null, h('code', null, clip(command, 500))), h('p', null, clip(which.join(', '), 1000)), Object.keys(kwarg).length > 0 && tree(kwarg)] });
    if (!isSure) return;
    await progress(again, () => run({ client: 'local_async', fun: job.Function, arg, kwarg, tgt: which, tgt_type: 'list' }, signal), signal);
  }
}

/** Returns arguments as the view Run reads them: with quotes where they have blanks. */
function quoted(args) {
  const quote = (text) => (/[\s'"]/.test(text) ? `'${text.replaceAll("'", '"')}'` : text);
  return (Array.isArray(args) ? args : []).map((value) => (value?.__kwarg__ ? written([value]).split(/ (?=\w+=)/).map(quote).join(' ') : quote(written([value])))).join(' ');
}
