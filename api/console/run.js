// Runs a function on minions: a preview of the target, the progress of each minion, and the results.

import { events, run, runner } from './api.js';
import { Completion, history, offer } from './complete.js';
import { attempt, clip, confirm, count, debounce, empty, field, fill, h, natural, plural } from './dom.js';
import { CHOSEN, target } from './minions.js';
import { Returns } from './returns.js';
import { duration } from './time.js';

/** The number of minions above which the console asks again, and functions for which it never does. */
const MANY = 10;
const HARMLESS = /^(test\.|grains\.(get|item|items|ls|keys|has_value)$|pillar\.(get|item|items|ls|keys)$|sys\.|status\.|state\.show_|disk\.(usage|inodeusage)$|network\.(interfaces|ip_addrs|ping)$|pkg\.(version|list_pkgs|list_upgrades)$|service\.(status|get_all|available)$)/;
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
  let jid = '';
  let begun = 0;
  const early = [];
  const returns = new Returns(signal);
  fill(returns.status, 'Publishing…');
  fill(box, returns.element);

  const update = debounce(100, () => {
    const { done, failed, waiting, asked } = returns.numbers();
    fill(returns.status, h('a', { href: `#/jobs/${jid}` }, `Job ${jid}`), `: ${count(done)} done, ${count(failed)} failed, ${count(waiting)} waiting of ${plural(asked, 'minion')}`,
      !waiting && `, after ${duration(Date.now() - begun)}`);
    returns.draw();
    if (!waiting) {
      finish();
      if (asked === 1) returns.open([...returns.rows.keys()][0]);
    }
  }, 500);

  let kept = 0;
  function take(id, one, size) {
    if (!returns.rows.has(id)) return;
    kept += size;
    if (returns.set(id, kept > MAX_KEPT_CHARS ? { ...one, return: 'The returns of this job are too large to be kept here: choose the job.' } : one)) update();
  }

  let isLive = false;
  let timer = 0;
  const finish = () => {
    stream.close();
    clearInterval(timer);
  };
  signal.addEventListener('abort', finish);
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
    begun = Date.now();
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
  returns.expect(job.minions, 'waiting');
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
  const isChosen = query.get('chosen') === 'true';
  const chosen = target({ tgt: isChosen ? sessionStorage.getItem(CHOSEN) ?? '' : query.get('tgt') ?? '*', kind: isChosen ? 'list' : query.get('kind') ?? 'glob', onchange: () => preview() });
  const fun = h('input', { value: query.get('fun') ?? 'test.ping', spellcheck: 'false', autocapitalize: 'none', required: true, size: 26 });
  const args = h('input', { value: query.get('arg') ?? '', spellcheck: 'false', placeholder: "web mode='0644'", size: 40 });
  const hint = h('p', { class: 'line', role: 'status' });
  const ids = h('details', { class: 'preview' });
  const past = h('details', { class: 'preview' });
  const output = h('section', { 'aria-label': 'Results' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Run');
  const test = h('button', { type: 'button', title: 'Shows what would change, and changes nothing', onclick: () => {
    if (form.reportValidity()) attempt(() => submit(true));
  } }, 'Run with test=True');
  let matching = [];
  let connected = new Set();
  const completion = new Completion({ fun, args, signal, minion: () => matching.find((id) => connected.has(id)) });
  const targets = offer(chosen.input, () => (chosen.kinds.value === 'glob' || chosen.kinds.value === 'list' ? everyone() : []), (text) => {
    const at = chosen.kinds.value === 'list' ? text.lastIndexOf(',') + 1 : 0;
    return [text.slice(0, at), text.slice(at)];
  });
  const form = h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    attempt(() => submit(false));
  } }, chosen.fields, targets, field('Function', fun), field('Arguments', args, 'separated by blanks; key=value for keywords'), completion.options, button, test);
  fill(box, form, hint, ids, completion.help, past, output);
  const describe = debounce(400, () => {
    test.hidden = !fun.value.startsWith('state.');
    completion.describe().catch(() => {});
  });
  fun.addEventListener('input', describe);

  let all = null;
  const everyone = () => (all ??= runner('manage.targets', { tgt: '*', tgt_type: 'glob' }, signal).then((found) => found.sort(natural), () => []));

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
      matching = found.sort(natural);
      connected = new Set(present);
      const away = found.filter((id) => !connected.has(id));
      fill(hint, found.length ? `${plural(found.length, 'minion')} match${found.length === 1 ? 'es' : ''}${away.length ? `, ${count(away.length)} not connected` : ''}.`
        : 'No minion matches this target.');
      fill(ids, h('summary', null, 'Matching minions'), h('p', null, found.slice(0, 300).map((id) => h('span', { class: connected.has(id) ? 'chip' : 'chip away' }, clip(id, 80))),
        found.length > 300 && ` and ${plural(found.length - 300, 'further minion')}`));
      ids.hidden = !found.length;
      describe();
    } catch (error) {
      if (own === round && error.name !== 'AbortError') {
        matching = [];
        fill(hint, h('span', { class: 'bad' }, `No preview: ${error.message}`));
        ids.hidden = true;
      }
    }
  }

  function remember() {
    const commands = history.get();
    past.hidden = !commands.length;
    fill(past, h('summary', null, `History (${count(commands.length)})`), h('ul', { class: 'plain' }, commands.map((one) => h('li', null,
      h('button', { type: 'button', class: 'plain', onclick: () => {
        fun.value = one.fun;
        args.value = one.arg;
        chosen.set(one.tgt, one.kind);
        describe();
        fun.focus();
      } }, h('code', null, clip(`${one.fun} ${one.arg}`, 200)), ' ', h('span', { class: 'dim' }, clip(`${one.tgt} (${one.kind})`, 100)))))));
  }

  /** Returns whether a call needs a confirmation: it may change something, on all minions or on many. */
  function isWide(isTest) {
    if (HARMLESS.test(fun.value.trim()) || (isTest && fun.value.startsWith('state.'))) return false;
    const { tgt, tgt_type } = chosen.value();
    return matching.length > MANY || (tgt === '*' && tgt_type === 'glob' && matching.length !== 1) || !matching.length;
  }

  async function submit(isTest) {
    const arg = words(args.value);
    if (isTest && !arg.includes('test=True')) arg.push('test=True');
    if (isWide(isTest || arg.includes('test=True'))) {
      const who = matching.length ? plural(matching.length, 'minion') : 'a target that matches no known minion';
      const isSure = await confirm({ title: `Run ${clip(fun.value, 100)} on ${who}?`, action: matching.length ? `Run on ${who}` : 'Run',
        body: [h('p', null, h('code', null, clip([fun.value, ...arg].join(' '), 500))), h('p', { class: 'dim' }, clip(matching.slice(0, 40).join(', '), 800), matching.length > 40 && ', …')] });
      if (!isSure) return;
    }
    button.disabled = test.disabled = true;
    try {
      history.add({ fun: fun.value.trim(), arg: args.value.trim(), tgt: chosen.input.value, kind: chosen.kinds.value });
      await progress(output, () => run({ client: 'local_async', fun: fun.value.trim(), arg, ...chosen.value() }, signal), signal);
    } finally {
      button.disabled = test.disabled = false;
      remember();
    }
  }

  remember();
  describe();
  await preview();
  if (query.get('test') === 'true') test.focus();
}
