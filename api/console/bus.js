// The live bus: events as they are published, filters, pause, and replay from the journal.

import { events, runner } from './api.js';
import { attempt, block, clip, clock, count, debounce, empty, field, fill, globber, h, notice } from './dom.js';
import { Pane, VirtualList } from './list.js';
import { brief, tree } from './value.js';

const MAX_EVENTS = 100000;
const MAX_CHARS = 64 << 20;
/** Text of an event that is kept for filters; the details of a larger one are read from the journal. */
const MAX_RAW_CHARS = 64 << 10;
const BATCH = 2000;
/** Events that wait to be drawn, and their text; frames stop in a hidden page. */
const MAX_WAITING = 20000;
const MAX_WAITING_CHARS = 16 << 20;

function summary(item) {
  if (item.summary !== undefined) return item.summary;
  let data = {};
  try {
    data = JSON.parse(item.raw).data ?? {};
  } catch { /* cut off */ }
  const first = ['id', 'act', 'fun', 'tgt', 'retcode', 'user', 'message'];
  const others = Object.keys(data).slice(0, 50).filter((name) => !first.includes(name) && !/^(_|jid$|return$|fun_args$|success$|cmd$)/.test(name));
  const parts = [...first, ...others].filter((name) => data[name] !== undefined && data[name] !== null && data[name] !== '').slice(0, 8)
    .map((name) => `${clip(name, 40)}=${clip(brief(data[name]), 60)}`);
  item.isBad = data.success === false || Number(data.retcode) > 0 || /error|failed/.test(item.tag);
  return item.summary = parts.join('  ') || (item.isCut ? 'large: open it to read it' : '');
}

export async function show(box, { query, signal }) {
  let items = [];
  let matching = [];
  let chars = 0;
  let dropped = 0;
  let waiting = [];
  let waitingChars = 0;
  let last = 0;
  let stream = null;
  let replayTag = '';

  const tag = h('input', { type: 'search', placeholder: 'salt/job/*', value: query.get('tag') ?? '', spellcheck: 'false' });
  const text = h('input', { type: 'search', placeholder: 'any text', spellcheck: 'false' });
  const since = h('input', { placeholder: '10m, a time or a number', size: 22, value: query.get('since') ?? '' });
  const pause = h('button', { type: 'button', 'data-pause': true, 'aria-keyshortcuts': 'p', onclick: () => toggle() }, 'Pause');
  const state = h('span', { class: 'dim', role: 'status' }, 'connecting');
  const numbers = h('span', { class: 'dim' });
  const list = new VirtualList({
    label: 'Events', kind: 'bus', columns: ['Time', 'Number', 'Tag', 'Summary'],
    item: (i) => matching[i],
    cells: (item) => [clock(item.stamp), item.seq || '–', clip(item.tag, 300), summary(item)],
    mark: (item) => (summary(item) !== undefined && item.isBad ? 'bad' : ''),
    onopen: (item) => open(item),
  });
  const details = new Pane('The selected event', list);
  list.follows = true;
  list.onscroll = () => {
    list.follows = list.isAtEnd;
  };
  const nothing = h('div', { class: 'overlay' }, empty('No events yet.', 'Events appear here as soon as the master publishes them. To see earlier ones, enter a time span such as 10m and replay the journal.'));

  const form = h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    replay();
  } }, field('Tag', tag), field('Contains', text), field('Replay from', since),
  h('button', { type: 'submit', title: 'Clears the list and reads the journal; a tag with wildcards is matched by the server' }, 'Replay'),
  pause, h('button', { type: 'button', onclick: () => clear() }, 'Clear'));
  fill(box, form, h('p', { class: 'line' }, state, ' · ', numbers), h('div', { class: 'split' }, h('div', { class: 'holder' }, list.element, nothing), details.element));

  let matches = () => true;
  const filter = () => {
    const isTag = globber(tag.value.trim());
    const needle = text.value.toLowerCase();
    matches = (item) => isTag(item.tag) && (!needle || item.raw.toLowerCase().includes(needle));
    matching = tag.value.trim() || needle ? items.filter(matches) : items.slice();
    dropped = 0;
    list.active = -1;
    refresh();
  };
  tag.addEventListener('input', debounce(150, filter));
  text.addEventListener('input', debounce(250, filter));

  function refresh() {
    fill(numbers, items.length === matching.length ? `${count(items.length)} events` : `${count(matching.length)} of ${count(items.length)} events`);
    nothing.hidden = matching.length > 0;
    list.update(matching.length, dropped);
    dropped = 0;
  }

  // Events are parsed and drawn in batches, so that a burst does not block the page.
  let frame = 0;
  function take() {
    frame = 0;
    for (const [raw, seq] of waiting.splice(0, BATCH)) {
      waitingChars -= raw.length;
      const item = read(raw, seq);
      if (item.seq) last = Math.max(last, item.seq);
      items.push(item);
      chars += item.raw.length;
      if (matches(item)) matching.push(item);
    }
    let excess = 0;
    while (items.length - excess > MAX_EVENTS || (chars > MAX_CHARS && items.length - excess > 1)) chars -= items[excess++].raw.length;
    if (excess) {
      const gone = new Set(items.splice(0, excess));
      let first = 0;
      while (first < matching.length && gone.has(matching[first])) first++;
      matching.splice(0, first);
      dropped += first;
    }
    refresh();
    if (waiting.length) schedule();
  }
  const schedule = () => {
    frame ||= requestAnimationFrame(take);
    if (waiting.length > MAX_WAITING || waitingChars > MAX_WAITING_CHARS) {
      cancelAnimationFrame(frame);
      take();
    }
  };

  function read(raw, seq) {
    let event = null;
    try {
      event = JSON.parse(raw);
    } catch { /* shown as it is */ }
    const data = event?.data ?? {};
    return {
      seq: seq || Number(data._seq) || 0, tag: String(event?.tag ?? ''), stamp: data._stamp ?? '',
      raw: raw.length > MAX_RAW_CHARS ? raw.slice(0, MAX_RAW_CHARS) : raw, isCut: raw.length > MAX_RAW_CHARS,
    };
  }

  function connect(from) {
    stream?.close();
    waiting = [];
    waitingChars = 0;
    stream = events({
      since: from, tag: replayTag,
      onevent: (raw, seq) => {
        waiting.push([raw, seq]);
        waitingChars += raw.length;
        schedule();
      },
      onstate: (now) => {
        const words = { open: 'live', lost: 'connection lost: connecting again', refused: 'the server refused the events' };
        fill(state, replayTag && now === 'open' ? `live, tags ${replayTag} only` : words[now]);
        if (now === 'refused') notice('the events are not available: the session has ended, the user may not read events, or the start of the replay is invalid', true);
      },
    });
    pause.setAttribute('aria-pressed', 'false');
    fill(pause, 'Pause');
  }

  // A pause ends the subscription, and its end reads the journal from the last event on: nothing is missed or kept.
  function toggle() {
    if (stream) {
      stream.close();
      stream = null;
      for (; waiting.length;) take();
      pause.setAttribute('aria-pressed', 'true');
      fill(pause, 'Resume');
      fill(state, 'paused: later events wait in the journal');
    } else {
      connect(last ? last + 1 : undefined);
    }
  }

  function clear() {
    items = [];
    matching = [];
    chars = 0;
    details.hide();
    refresh();
  }

  function replay() {
    const from = since.value.trim();
    const glob = tag.value.trim();
    clear();
    list.follows = true;
    replayTag = from && /[*?[]/.test(glob) ? glob : '';
    filter();
    connect(from || undefined);
  }

  function open(item) {
    const jid = /^salt\/(?:job|run|wheel)\/(\d{20})\//.exec(item.tag)?.[1];
    const body = h('div', null, 'Loading…');
    details.show([item.seq > 0 && h('a', { class: 'button', href: `#/causality/${item.seq}` }, 'Causes'),
    item.seq > 0 && h('a', { class: 'button', href: `#/reactor?seq=${item.seq}` }, 'Dry run'),
    jid && h('a', { class: 'button', href: `#/jobs/${jid}` }, 'Job')],
    h('h2', null, clip(item.tag, 500)), h('p', { class: 'dim' }, `number ${item.seq || 'unknown'}, ${clip(item.stamp, 40)}`), body);
    showBody(item, body);
  }

  async function showBody(item, body) {
    if (!item.isCut) {
      let data;
      try {
        data = JSON.parse(item.raw).data;
      } catch {
        fill(body, block(item.raw));
        return;
      }
      fill(body, tree(data));
      return;
    }
    fill(body, h('p', null, 'This event is large. ', h('button', { type: 'button', onclick: () => attempt(async () => {
      const found = await runner('event_bus.since', { since: item.seq, limit: 1 }, signal);
      if (found?.[0]?.seq !== item.seq) throw new Error(`the journal has no event ${item.seq} any more`);
      fill(body, tree(found[0].data));
    }) }, 'Read it from the journal')), block(item.raw, 5000));
  }

  // A browser has few connections to a server: a hidden page gives its own up and reads the journal when it is seen again.
  let hidden = null;
  document.addEventListener('visibilitychange', () => {
    if (document.hidden && stream) {
      hidden = new Date().toISOString();
      stream.close();
      stream = null;
    } else if (!document.hidden && hidden) {
      connect(last ? last + 1 : hidden);
      hidden = null;
    }
  }, { signal });

  signal.addEventListener('abort', () => {
    stream?.close();
    cancelAnimationFrame(frame);
    list.sized.disconnect();
  });
  filter();
  connect(query.get('since') || undefined);
}
