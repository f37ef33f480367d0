// Runs a function on minions: a preview of the target, the progress of each minion, and the results.

import { events, run, runner } from './api.js';
import { attempt, clip, confirm, count, empty, field, fill, h, plural } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { target } from './minions.js';
import { brief, isGood, returned } from './value.js';

/** Functions for which the console asks again when many minions match. */
const MANY = 20;
const POLL = 2000;
/** Characters of returns that are kept; the job cache has all of them. */
const MAX_KEPT_CHARS = 64 << 20;

/** Splits a line into arguments as a shell does: blanks separate, quotes group. */
export function words(line) {
  const found = [];
  let word = null;
  let quote = '';
  for (const c of line) {
    if (quote) {
      if (c === quote) quote = '';
      else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else if (/\s/.test(c)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? '') + c;
  }
  if (quote) throw new Error(`the arguments are invalid: expected a closing ${quote}`);
  if (word !== null) found.push(word);
  return found;
}

/**
 * Shows the progress of a job and its results. `start` publishes the job and returns its id and minions; events are
 * received from before that, so no return is missed. Where events are not permitted, the job cache is polled.
 */
export async function progress(box, start, signal) {
  const rows = new Map();
  let ids = [];
  let jid = '';
  const early = [];
  const status = h('p', { class: 'line', role: 'status' }, 'Publishing…');
  const bar = h('progress', { max: 1, value: 0, 'aria-label': 'Minions that returned' });
  const list = new VirtualList({
    label: 'Minions of the job', kind: 'returns', columns: ['Minion', 'State', 'Return'],
    item: (i) => rows.get(ids[i]),
    cells: (row) => [clip(row.id, 200), h('span', { class: `dot ${row.state}` }, row.state), row.state === 'waiting' ? '' : brief(row.value)],
    mark: (row) => (row.state === 'failed' ? 'bad' : ''),
    onopen: (row) => show(row),
  });
  const details = new Pane('The return of the selected minion', list);
  fill(box, status, bar, h('div', { class: 'split' }, list.element, details.element));

  function show(row) {
    details.show(h('h2', null, clip(row.id, 200)), h('p', { class: 'dim' }, row.state),
    row.state === 'waiting' ? h('p', null, 'This minion has not returned yet.') : returned(row.value));
  }

  let frame = 0;
  function update() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      const all = [...rows.values()];
      const [done, failed] = ['done', 'failed'].map((state) => all.filter((row) => row.state === state).length);
      bar.max = all.length || 1;
      bar.value = done + failed;
      const waiting = all.length - done - failed;
      fill(status, h('a', { href: `#/jobs/${jid}` }, `Job ${jid}`), `: ${count(done)} done, ${count(failed)} failed, ${count(waiting)} waiting of ${plural(all.length, 'minion')}`);
      list.update(ids.length);
      if (!waiting) finish();
    });
  }

  let kept = 0;
  function take(id, one, size) {
    const row = rows.get(id);
    if (!row || row.state !== 'waiting') return;
    row.state = isGood(one) ? 'done' : 'failed';
    kept += size;
    row.value = kept > MAX_KEPT_CHARS ? 'The returns of this job are too large to be kept here: choose the job.' : one.return;
    update();
  }

  let isLive = false;
  let timer = 0;
  const finish = () => {
    stream.close();
    clearInterval(timer);
  };
  signal.addEventListener('abort', () => {
    finish();
    list.sized.disconnect();
  });
  const received = ({ tag, data }, size) => {
    const [, , ofJid, kind, id] = tag.split('/');
    if (kind === 'ret' && ofJid === jid) take(id, data, size);
  };
  const opened = Promise.withResolvers();
  const stream = events({
    tag: 'salt/job/*',
    onevent: (raw) => {
      let event;
      try {
        event = JSON.parse(raw);
      } catch {
        return;
      }
      if (jid) received(event, raw.length);
      // The poll finds what is left out here.
      else if (early.length < 10000 && raw.length < 10000) early.push(event);
    },
    onstate: (now) => {
      isLive = now === 'open';
      opened.resolve();
    },
  });
  await Promise.race([opened.promise, new Promise((resolve) => setTimeout(resolve, 1500))]);
  let job;
  try {
    job = await start();
  } catch (error) {
    finish();
    throw error;
  }
  if (!job?.jid) {
    finish();
    fill(box, empty('No minion matches the target.', 'The job was not published. Change the target, or accept the key of the minion.'));
    return;
  }
  jid = job.jid;
  ids = [...job.minions].sort();
  for (const id of ids) rows.set(id, { id, state: 'waiting' });
  for (const event of early.splice(0)) received(event, 0);
  update();
  const poll = async () => {
    const found = await runner('jobs.list_job', { jid }, signal);
    for (const [id, one] of Object.entries(found.Result ?? {})) take(id, one, 0);
  };
  let rounds = 0;
  timer = setInterval(() => {
    // With events the job cache is asked rarely, for returns that came while the connection was lost.
    if (!isLive || ++rounds % 5 === 0) poll().catch(() => {});
  }, POLL);
}

export async function show(box, { query, signal }) {
  const chosen = target({ tgt: query.get('tgt') ?? '*', kind: query.get('kind') ?? 'glob', onchange: () => preview() });
  const fun = h('input', { value: query.get('fun') ?? 'test.ping', spellcheck: 'false', autocapitalize: 'none', required: true });
  const args = h('input', { value: query.get('arg') ?? '', spellcheck: 'false', placeholder: "web mode='0644'" });
  const isTest = h('input', { type: 'checkbox' });
  const hint = h('p', { class: 'line', role: 'status' });
  const ids = h('details', { class: 'preview' });
  const output = h('section', { 'aria-label': 'Results' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Run');
  let matching = [];
  fill(box, h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    attempt(submit);
  } }, chosen.fields, field('Function', fun), field('Arguments', args, 'separated by blanks; key=value for keywords'),
  h('label', { class: 'check' }, isTest, ' test=True'), button), hint, ids, output);

  let round = 0;
  async function preview() {
    const own = ++round;
    if (chosen.isEmpty()) {
      matching = [];
      fill(hint, 'Enter a target.');
      fill(ids);
      return;
    }
    try {
      const [found, present] = await Promise.all([runner('manage.targets', chosen.value(), signal), runner('manage.present', {}, signal)]);
      if (own !== round) return;
      matching = found;
      const connected = new Set(present);
      const away = found.filter((id) => !connected.has(id));
      fill(hint, found.length ? `${plural(found.length, 'minion')} match${found.length === 1 ? 'es' : ''}${away.length ? `, ${count(away.length)} not connected` : ''}.`
        : 'No minion matches this target.');
      fill(ids, h('summary', null, 'Matching minions'), h('p', null, found.slice(0, 300).map((id) => h('span', { class: connected.has(id) ? 'chip' : 'chip away' }, clip(id, 80))),
        found.length > 300 && ` and ${plural(found.length - 300, 'further minion')}`));
      ids.hidden = !found.length;
    } catch (error) {
      if (own === round && error.name !== 'AbortError') {
        matching = [];
        fill(hint, h('span', { class: 'bad' }, `No preview: ${error.message}`));
        ids.hidden = true;
      }
    }
  }

  async function submit() {
    const arg = words(args.value);
    if (isTest.checked) arg.push('test=True');
    if (matching.length > MANY && !/^(test\.|grains\.|pillar\.(get|item|items)$)/.test(fun.value)) {
      const isSure = await confirm({ title: `Run ${fun.value} on ${plural(matching.length, 'minion')}?`, action: `Run on ${plural(matching.length, 'minion')}`,
        body: [h('p', null, h('code', null, clip([fun.value, ...arg].join(' '), 500)))] });
      if (!isSure) return;
    }
    button.disabled = true;
    try {
      await progress(output, () => run({ client: 'local_async', fun: fun.value.trim(), arg, ...chosen.value() }, signal), signal);
    } finally {
      button.disabled = false;
    }
  }

  await preview();
}
