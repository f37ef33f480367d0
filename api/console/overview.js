// The overview: what is up, what waits for a decision, and what failed during the last day. Each number leads to its list.

import { runner } from './api.js';
import { meter, outcomeBar, shares, spark } from './chart.js';
import { clip, count, empty, fill, h, plural } from './dom.js';
import { when } from './time.js';

const INTERVAL = 15000;
/** The master still counts the events of the last day. */
const SOON = 1500;

const tile = (label, figure, note, href, kind, extra) => h(href ? 'a' : 'div', { class: `tile ${kind ?? ''}`, href },
  h('span', { class: 'label' }, label), h('span', { class: 'figure' }, figure), extra, h('span', { class: 'note' }, note));

const panel = (title, link, ...content) => h('section', { class: 'panel' }, h('h2', null, title, link), content);

/** Returns a number of bytes in the largest unit. */
function bytes(number) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = Number(number ?? 0);
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

function tiles({ minions, keys, jobs, states, dead_letters: letters, events }) {
  const minutes = events.minutes ?? [];
  const lately = minutes.slice(-6, -1);
  const rate = lately.reduce((sum, number) => sum + number, 0) / Math.max(1, lately.length);
  const bad = (number, kind = 'is-bad') => (number ? kind : 'good');
  return [
    tile('Minions up', count(minions.up), `of ${count(minions.accepted)} accepted`, '#/minions?state=connected', minions.up === minions.accepted ? 'good' : 'warn',
      meter(minions.up, minions.accepted, `${minions.up} of ${minions.accepted} minions are up`)),
    tile('Down', count(minions.down), minions.down ? 'not connected' : 'all known minions are connected', '#/minions?state=away', bad(minions.down)),
    tile('Never seen', count(minions.never), 'accepted, but never connected', '#/minions?state=never', bad(minions.never, 'warn')),
    tile('Pending keys', count(keys.pending), keys.pending ? (keys.pending_ids ?? []).slice(0, 3).map((id) => clip(id, 30)).join(', ') : 'no key waits for a decision', '#/keys?state=minions_pre', bad(keys.pending, 'warn')),
    keys.denied > 0 && tile('Denied keys', count(keys.denied), 'another key for a known id', '#/keys?state=minions_denied', 'is-bad'),
    tile('Failed jobs', count(jobs.failed), `of ${count(jobs.total)} in the last day`, '#/jobs?outcome=failed', bad(jobs.failed)),
    tile('Jobs without all returns', count(jobs.missing), jobs.running ? `${plural(jobs.running, 'job')} running` : 'none is running', jobs.missing ? '#/jobs?outcome=missing' : '#/jobs?outcome=running', bad(jobs.missing, 'warn')),
    tile('Failing states', count(states.failed), 'in the last day', states.failed ? '#/jobs?function=state.*&outcome=failed' : '#/jobs?function=state.*', bad(states.failed)),
    tile('Dead letters', count(letters), letters ? 'reactions that failed for good' : 'no reaction failed for good', '#/reactor?show=letters', bad(letters)),
    tile('Events a minute', rate < 10 ? rate.toFixed(1) : count(Math.round(rate)), `${count(events.day)} in the last day`, '#/bus?since=1h', '',
      spark(minutes, `Events in each of the last ${minutes.length} minutes`, { width: 160 })),
    tile('Store', bytes(events.store_bytes), events.store_failed ? 'refuses writes: see the log of the master' : `journal: ${count(events.journal_events ?? 0)} events, ${bytes(events.journal_bytes)}`, '#/bus?since=1', events.store_failed ? 'is-bad' : 'good'),
  ];
}

function jobItem(job) {
  const words = job.failed ? `${count(job.failed)} of ${count(job.asked)} failed` : `${count(job.asked - job.done)} of ${count(job.asked)} missing`;
  return h('li', null, h('a', { href: `#/jobs/${encodeURIComponent(job.jid)}` }, h('span', { class: 'name' }, clip(job.fun, 100), ' ', h('span', { class: 'dim' }, clip(job.tgt, 100))), when(job.started),
    h('span', { class: 'note' }, h('span', { class: 'outcome' }, outcomeBar(job), h('span', { class: job.failed ? 'bad' : 'state warn' }, words)))));
}

function stateItem(one) {
  return h('li', null, h('a', { href: `#/jobs/${encodeURIComponent(one.jid)}?minion=${encodeURIComponent(one.minion)}` },
    h('span', { class: 'name' }, clip(one.id, 150), ' ', h('code', { class: 'dim' }, clip(one.fun, 80))), h('span', { class: 'state bad' }, plural(one.minions, 'minion')),
    h('span', { class: 'note' }, clip(one.comment, 300), ` – ${clip(one.minion, 60)}, `, when(one.time))));
}

function panels({ jobs, states, keys, versions, systems }) {
  const listOf = (name) => (value) => `#/minions?${name}=${encodeURIComponent(value)}`;
  return [
    panel('Failed jobs', h('a', { href: '#/jobs?outcome=bad' }, 'All'), jobs.newest.length ? h('ul', { class: 'items' }, jobs.newest.slice(0, 6).map(jobItem))
      : empty('No job failed in the last day.', 'Jobs that fail, or that lack returns, are listed here.')),
    panel('Failing states', h('a', { href: '#/jobs?function=state.*&outcome=failed' }, 'Jobs'), states.newest.length ? h('ul', { class: 'items' }, states.newest.slice(0, 6).map(stateItem))
      : empty('No state failed in the last day.', 'States that fail are listed here, with the number of their minions.')),
    panel('Versions of minions', h('a', { href: '#/minions' }, 'Minions'), Object.keys(versions).length ? shares(versions, listOf('version')) : empty('No versions are known.', 'Minions send their grains when they start.')),
    panel('Systems', h('a', { href: '#/minions' }, 'Minions'), Object.keys(systems).length ? shares(systems, listOf('os')) : empty('No systems are known.', 'Minions send their grains when they start.')),
    keys.pending > 0 && panel('Pending keys', h('a', { href: '#/keys?state=minions_pre' }, 'Decide'),
      h('ul', { class: 'items' }, keys.pending_ids.map((id) => h('li', null, h('a', { href: `#/keys?state=minions_pre&id=${encodeURIComponent(id)}` }, h('span', { class: 'name' }, clip(id, 200))))))),
  ];
}

export async function show(box, { signal }) {
  const status = h('p', { class: 'line dim', role: 'status' }, 'Loading…');
  const [top, below] = [h('div', { class: 'tiles' }), h('div', { class: 'panels' })];
  fill(box, status, top, below);
  let timer = 0;
  let shown = '';

  async function load() {
    clearTimeout(timer);
    let next = INTERVAL;
    try {
      if (!document.hidden) {
        const all = await runner('fleet.overview', {}, signal);
        fill(status, `Master ${clip(all.master.id, 100)}, Brine ${clip(all.master.version, 30)}. Jobs, states and events are those of the last day.`,
          !all.complete && ' The master is still counting them.');
        // The focus stays where it is, unless something has changed.
        const text = JSON.stringify({ ...all, time: 0, events: { ...all.events, last_seq: 0 } });
        if (text !== shown) {
          const focused = document.activeElement?.closest('.view a')?.getAttribute('href');
          fill(top, tiles(all));
          fill(below, panels(all));
          if (focused) [...box.querySelectorAll('a')].find((one) => one.getAttribute('href') === focused)?.focus({ preventScroll: true });
          shown = text;
        }
        if (!all.complete) next = SOON;
      }
    } catch (error) {
      if (error.name === 'AbortError') return;
      fill(status, h('span', { class: 'bad' }, error.message));
      if (error.status === 401) {
        fill(below, empty('The overview is not permitted.', 'The other views show what this user may see.'));
        return;
      }
    }
    timer = setTimeout(load, next);
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) load();
  }, { signal });
  signal.addEventListener('abort', () => clearTimeout(timer));
  await load();
}
