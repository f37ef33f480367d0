// The reactor: entries with their reactions of the last hour, dead letters, recent reactions, and dry runs.

import { events, runner } from './api.js';
import { spark } from './chart.js';
import { attempt, block, breakable, clip, confirm, count, debounce, empty, field, fill, h, notice, plural } from './dom.js';
import { dateOf, when } from './time.js';
import { tree } from './value.js';

/** Calls are events and jobs of their own, so the metrics are read rarely, and dead letters after an event about them. */
const INTERVAL = 10000;
const SHOWN = 200;
/** Reactions that are read for the sparklines, and their minutes. */
const HISTORY = 1000;
const MINUTES = 60;

/** Reads the counters of reactions by entry from the master's metrics. */
function counters(metrics) {
  const entries = new Map();
  for (const [name, value] of Object.entries(metrics)) {
    const labels = /^brine_reactor_reactions_total\{(.*)\}$/.exec(name)?.[1];
    if (!labels) continue;
    const of = Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text.replace(/\\(.)/g, '$1')]));
    const entry = entries.get(of.entry) ?? {};
    entry[of.outcome] = Number(value);
    entries.set(of.entry, entry);
  }
  return entries;
}

/** Creates a table of which each row is a card in a narrow window; numbers are columns that start with `#`. */
const table = (label, columns, rows) => h('div', { class: 'scroll' }, h('table', { 'aria-label': label, class: 'stacked' },
  h('thead', null, h('tr', null, columns.map((name) => h('th', { scope: 'col', class: name.startsWith('#') ? 'number' : '' }, name.replace('#', '') || h('span', { class: 'sr' }, 'Actions'))))), h('tbody', null, rows)));

const cell = (label, content, kind = '') => h('td', { 'data-label': label || undefined, class: kind }, h('span', null, content));

/** Counts the reactions of each entry in each of the last minutes. */
function byMinute(history) {
  const now = Date.now();
  const found = new Map();
  for (const event of history ?? []) {
    for (const one of event.reactions ?? []) {
      const age = Math.floor((now - dateOf(one.started ?? event.time).getTime()) / 60000);
      if (!(age >= 0 && age < MINUTES)) continue;
      const minutes = found.get(one.entry) ?? new Array(MINUTES).fill(0);
      minutes[MINUTES - 1 - age]++;
      found.set(one.entry, minutes);
    }
  }
  return found;
}

export async function show(box, { query, signal }) {
  const [top, letters, recent] = [h('section'), h('section', { id: 'letters' }), h('section')];
  const sls = h('input', { required: true, placeholder: 'salt://reactor/new.sls', value: query.get('sls') ?? '', spellcheck: 'false', list: 'sls-files', size: 34 });
  const files = h('datalist', { id: 'sls-files' });
  const seq = h('input', { required: true, inputmode: 'numeric', pattern: '[0-9]+', placeholder: '120', value: query.get('seq') ?? '', size: 10 });
  const output = h('div', { role: 'status' });
  const dry = h('section', { 'aria-label': 'Dry run' }, h('h2', null, 'Dry run'),
    h('p', { class: 'dim' }, 'Shows the reactions of a file to an event of the journal without dispatching them. Functions that the template calls are called.'),
    h('form', { class: 'bar', onsubmit: (event) => {
      event.preventDefault();
      attempt(dryRun);
    } }, field('SLS file', sls), files, field('Sequence number of the event', seq), h('button', { type: 'submit', class: 'primary' }, 'Dry run'),
    h('button', { type: 'button', onclick: () => attempt(test) }, 'All entries for this event')), output);
  fill(box, query.get('seq') ? [dry, top, letters, recent] : [top, letters, dry, recent]);

  let [listed, rules, leader, minutes, metrics] = [[], {}, true, new Map(), {}];
  const call = (fun) => runner(fun, {}, signal);

  async function load() {
    [listed, rules, leader] = await Promise.all(['reactor.list', 'reactor.rules', 'reactor.is_leader'].map(call));
    await Promise.all([loadRates(), loadFailures()]);
  }

  async function loadRates() {
    metrics = await call('metrics.show');
    showEntries();
  }

  async function loadFailures() {
    const [failed, history] = await Promise.all([call('reactor.failed'), runner('reactor.history', { limit: HISTORY }, signal)]);
    minutes = byMinute(history);
    showLetters(failed);
    showHistory((history ?? []).slice(0, 20));
    showEntries();
  }

  function showEntries() {
    const now = counters(metrics);
    const entries = [...(listed ?? []).flatMap((one) => Object.entries(one)).map(([name, paths]) => [name, [paths].flat().join(', '), false]),
      ...Object.entries(rules ?? {}).map(([name, rule]) => [name, `${rule.function}: ${[rule.react].flat().join(', ')}`, true])];
    fill(files, [...new Set((listed ?? []).flatMap((one) => Object.values(one)).flat())].map((path) => h('option', { value: path })));
    const rows = entries.slice(0, 500).map(([name, paths, isRule]) => {
      const counts = now.get(name) ?? {};
      const lately = minutes.get(name) ?? [];
      const sum = lately.reduce((all, number) => all + number, 0);
      const failures = (counts.failed ?? 0) + (counts.unreadable ?? 0);
      return h('tr', { class: failures ? 'bad' : '' }, h('th', { scope: 'row' }, h('span', null, breakable(clip(name, 200)), isRule && h('span', { class: 'chip' }, 'rule'))), cell('Files', breakable(clip(paths, 300)), paths.trim() ? '' : 'none'),
        cell('Last hour', [spark(lately.length ? lately : [0], `${plural(sum, 'reaction')} in the last hour`), h('span', { class: 'dim' }, plural(sum, 'reaction'))]), cell('Done', count(counts.done ?? 0), 'number'),
        cell('No minion', count(counts.no_minion ?? 0), 'number'), cell('Failed', failures ? h('strong', { class: 'bad' }, count(failures)) : '0', 'number'));
    });
    const paused = Number(metrics.brine_reactor_paused) ? ', paused: too many reactions are unfinished' : '';
    fill(top, h('h2', null, 'Entries and rules'), h('p', { class: 'line' }, leader ? 'The reactor is on' : h('span', { class: 'bad' }, 'The reactor is off: switch it on with salt-run reactor.set_leader True'),
      `, ${count(metrics.brine_reactor_queue_depth ?? 0)} events queued${paused}. Counts are those since the start of the master; “no minion” are reactions whose target matched none.`),
    rows.length ? table('Entries', ['Tag pattern or rule', 'Files', 'Last hour', '#Done', '#No minion', '#Failed'], rows)
      : empty('The reactor has no entries.', 'Add an entry to “reactor” in the configuration of the master: a list of “tag pattern: [SLS files]”. It is applied within seconds.'));
  }

  function showLetters(failed) {
    const all = Object.entries(failed ?? {}).flatMap(([number, of]) => of.map((one) => ({ number, ...one }))).toReversed();
    const rows = all.slice(0, SHOWN).map((one) => h('tr', null, h('th', { scope: 'row' }, h('a', { href: `#/causality/${one.number}` }, one.number), ' ', when(one.time)), cell('Tag', breakable(clip(one.tag ?? '', 150))),
      cell('Reaction', breakable(clip(one.reaction ?? one.file ?? '', 150))), cell('Error', breakable(clip(one.message ?? '', 600)), 'message'),
      cell('', [h('button', { type: 'button', 'aria-label': `Retry the reaction to event ${one.number}`, onclick: () => attempt(() => retry(one.number)) }, 'Retry'), ' ', h('a', { class: 'button', href: `#/reactor?seq=${one.number}&sls=${encodeURIComponent(one.file ?? '')}` }, 'Dry run')])));
    fill(letters, h('h2', null, `Dead letters (${count(all.length)})`), all.length
      ? [h('p', null, h('button', { type: 'button', onclick: () => attempt(() => retry('all', all.length)) }, 'Retry all'), all.length > SHOWN && ` The newest ${SHOWN} are shown.`),
        table('Dead letters', ['Event', 'Tag', 'Reaction', 'Error', ''], rows)]
      : empty('No dead letters.', 'Reactions that fail for good are kept here with their event until they are retried.'));
  }

  function showHistory(history) {
    const rows = history.map((event) => h('tr', null, h('th', { scope: 'row' }, h('a', { href: `#/causality/${event.seq}` }, String(event.seq)), ' ', when(event.time)),
      cell('Tag', breakable(clip(event.tag, 150))), cell('Reactions', (event.reactions ?? []).slice(0, 5).map((one) => h('div', null, breakable(clip(`${one.reaction ?? one.entry}: ${one.outcome}`, 300)))))));
    fill(recent, h('h2', null, 'Newest reactions'), h('p', null, h('button', { type: 'button', onclick: () => attempt(load) }, 'Refresh')), rows.length ? table('Newest reactions', ['Event', 'Tag', 'Reactions'], rows)
      : empty('No reactions yet.', 'Events that an entry matches appear here with their reactions.'));
  }

  async function retry(what, number) {
    if (what === 'all' && !await confirm({ title: `Retry ${plural(number, 'dead letter')}?`, action: 'Retry all', body: h('p', null, 'All failed reactions are dispatched again, oldest first.') })) return;
    const results = await runner('reactor.retry', { what: what === 'all' ? what : Number(what) }, signal);
    const bad = (results ?? []).filter((one) => !one.result);
    notice(bad.length ? `${plural(bad.length, 'reaction')} failed again: ${bad[0].comment}` : `${plural((results ?? []).length, 'reaction')} dispatched.`, bad.length > 0);
    await load();
  }

  async function dryRun() {
    fill(output, h('p', null, 'Rendering…'));
    shown(await runner('reactor.dry_run', { sls: sls.value.trim(), from_seq: Number(seq.value) }, signal).catch(failed));
  }

  async function test() {
    if (!seq.reportValidity()) return;
    fill(output, h('p', null, 'Rendering…'));
    shown(await runner('reactor.test', { from_seq: Number(seq.value) }, signal).catch(failed));
  }

  function failed(error) {
    fill(output);
    throw error;
  }

  function shown(report) {
    const reactions = report.reactions ?? [];
    fill(output, h('h3', null, `Event ${clip(report.tag ?? '', 200)}: ${plural(reactions.length, 'reaction')}`), report.note && h('p', null, clip(report.note, 500)),
      (report.limits ?? []).map((text) => h('p', null, clip(text, 500))), (report.errors ?? []).map((text) => h('p', { class: 'bad', role: 'alert' }, clip(text, 2000))),
      h('div', { class: 'sides' }, h('div', null, h('h3', null, 'Rendered'), Object.entries(report.rendered ?? {}).map(([file, text]) => h('div', { class: 'card' }, h('strong', null, breakable(clip(file, 300))), block(text)))),
        h('div', null, h('h3', null, 'Reactions'), reactions.length ? reactions.slice(0, 100).map((one) => h('div', { class: 'card' }, h('strong', null, clip(one.reaction ?? '', 200)), ' ', h('span', { class: 'dim' }, breakable(clip(one.file ?? '', 300))), tree(one)))
          : h('p', { class: 'dim' }, 'The event has no reaction.'))));
  }

  await load();
  if (query.get('show') === 'letters') letters.scrollIntoView();
  if (query.get('seq') && query.get('sls')) attempt(dryRun);
  else if (query.get('seq')) attempt(test);
  let rounds = 0;
  const timer = setInterval(() => {
    if (document.hidden) return;
    // The history is read anew each minute, and after a failure.
    (++rounds % 6 ? loadRates() : Promise.all([loadRates(), loadFailures()])).catch(() => {});
  }, INTERVAL);
  const stream = events({ tag: 'salt/reactor/error', onevent: debounce(500, () => loadFailures().catch(() => {})) });
  signal.addEventListener('abort', () => {
    clearInterval(timer);
    stream.close();
  });
}
