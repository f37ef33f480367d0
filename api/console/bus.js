// The live bus: events as they are published, from some minutes ago on, with filters, pause and replay. `histogram.js`
// draws their number over time.

import { events, runner } from './api.js';
import { attempt, block, clip, copier, count, debounce, empty, field, fill, globber, h, notice, setQuery } from './dom.js';
import { Histogram } from './histogram.js';
import { Pane, VirtualList } from './list.js';
import { clock, dateOf } from './time.js';
import { brief, python, tree } from './value.js';

const MAX_EVENTS = 100000;
const MAX_CHARS = 64 << 20;
/** Text of an event that is kept for filters; the details of a larger one are read from the journal. */
const MAX_RAW_CHARS = 64 << 10;
const BATCH = 2000;
/** Events that wait to be drawn, and their text; frames stop in a hidden page. */
const MAX_WAITING = 20000;
const MAX_WAITING_CHARS = 16 << 20;

/** The span that the view begins with. */
const BEGIN = '15m';
/** Events before a linked one that are shown with it. */
const CONTEXT = 100;
/** The functions by which consoles look at the master: their events are hidden at first. */
const OF_CONSOLES = /^(runner\.)?(fleet\.|manage\.(present|targets)$|cache\.grains$|metrics\.show$|reactor\.(list|rules|is_leader|failed|history|graph)$|event_bus\.since$|jobs\.list_job$|fileserver\.file_list$)|^(wheel\.)?key\.(list_all|finger)$|^sys\.(list_functions|argspec|doc)$/;

/** Whether an event is of a call by which a console looks at the master. */
function isOfConsole(item) {
  if (!/^salt\/(run|wheel|job)\//.test(item.tag)) return false;
  const fun = /"fun": ?"([\w.]+)"/.exec(item.raw)?.[1];
  return Boolean(fun) && OF_CONSOLES.test(fun);
}

/** Creates a tag of which the end, which tells most, is always seen. */
function tagOf(tag) {
  const text = clip(tag, 300);
  const end = text.length > 28 && /^(.*?)((?:\/[^/]{1,24}){1,2})$/.exec(text);
  return end && end[1] ? h('span', { class: 'tag', title: text }, h('span', null, end[1]), h('span', null, end[2])) : text;
}

/** Returns the value at a path of an event's data. */
function at(raw, path) {
  try {
    return path.reduce((value, key) => value?.[key], JSON.parse(raw).data);
  } catch {
    return undefined;
  }
}

function summary(item) {
  if (item.summary !== undefined) return item.summary;
  let data = {};
  try {
    data = JSON.parse(item.raw).data ?? {};
  } catch { /* cut off */ }
  const first = ['id', 'act', 'fun', 'tgt', 'retcode', 'user', 'message'];
  const others = Object.keys(data).slice(0, 50).filter((name) => !first.includes(name) && !/^(_|jid$|return$|fun_args$|success$|cmd$|ts$)/.test(name));
  const parts = [...first, ...others].filter((name) => data[name] !== undefined && data[name] !== null && data[name] !== '').slice(0, 8)
    .map((name) => `${clip(name, 40)}=${clip(brief(data[name]), 60)}`);
  item.isBad = data.success === false || Number(data.retcode) > 0 || /error|failed/.test(item.tag);
  return item.summary = parts.join('  ') || (item.isCut ? 'large: open it to read it' : '');
}

export async function show(box, { query, signal }) {
  const linked = Number(query.get('seq')) || 0;
  let wanted = linked;
  let items = [];
  let matching = [];
  let chars = 0;
  let dropped = 0;
  let waiting = [];
  let waitingChars = 0;
  let last = 0;
  let stream = null;
  let replayTag = '';
  // Filters by values, and the span of the histogram's chosen bar.
  let values = [];
  let span = null;

  const tag = h('input', { type: 'search', placeholder: 'salt/job/*', value: query.get('tag') ?? '', spellcheck: 'false' });
  const text = h('input', { type: 'search', placeholder: 'any text', spellcheck: 'false', value: query.get('text') ?? '' });
  const since = h('input', { placeholder: '10m, a time or a number', size: 22, value: linked ? String(Math.max(1, linked - CONTEXT)) : query.get('since') ?? BEGIN });
  const calls = h('input', { type: 'checkbox', checked: query.get('calls') === 'true' });
  const chips = h('div', { class: 'chips' });
  const histogram = new Histogram((chosen) => {
    span = chosen;
    filter();
  });
  const pause = h('button', { type: 'button', 'data-pause': true, 'aria-keyshortcuts': 'p', onclick: () => toggle() }, 'Pause');
  const state = h('span', { class: 'dim', role: 'status' }, 'connecting');
  const numbers = h('span', { class: 'dim' });
  const list = new VirtualList({
    label: 'Events', kind: 'bus', columns: ['Time', 'Sequence', 'Tag', 'Summary'],
    item: (i) => matching[i],
    cells: (item) => [clock(item.stamp), item.seq || '–', tagOf(item.tag), summary(item)],
    mark: (item) => (summary(item) !== undefined && item.isBad ? 'bad' : ''),
    onopen: (item) => open(item),
  });
  const details = new Pane('The selected event', list);
  list.follows = true;
  list.onscroll = () => {
    list.follows = list.isAtEnd;
  };
  const nothing = h('div', { class: 'overlay' }, empty('No events yet.', 'Events appear here as soon as the master publishes them. To see earlier ones, enter a time span such as 2h and replay the journal.'));

  const form = h('form', { class: 'bar', onsubmit: (event) => {
    event.preventDefault();
    replay();
  } }, field('Tag', tag), field('Contains', text), field('Replay from', since),
  h('button', { type: 'submit', title: 'Clears the list and reads the journal; a tag with wildcards is matched by the server' }, 'Replay'),
  pause, h('button', { type: 'button', onclick: () => clear() }, 'Clear'), h('label', { class: 'check' }, calls, ' calls of consoles'));
  fill(box, form, chips, h('p', { class: 'line' }, state, ' · ', numbers), histogram.element, h('div', { class: 'split' }, h('div', { class: 'holder' }, list.element, nothing), details.element));

  let matches = () => true;
  let counted = matches;
  const filter = () => {
    const isTag = globber(tag.value.trim());
    const needle = text.value.toLowerCase();
    const isShown = (item) => isTag(item.tag) && (calls.checked || item.seq === linked || !isOfConsole(item)) && (!needle || item.raw.toLowerCase().includes(needle))
      && values.every(({ path, value }) => at(item.raw, path) === value);
    matches = (item) => isShown(item) && (!span || (item.time >= span[0] && item.time < span[1]));
    matching = items.filter(matches);
    histogram.set(items.filter(isShown));
    counted = isShown;
    fill(chips, values.map((one) => h('button', { type: 'button', class: 'chip', 'aria-label': `Remove the filter ${clip(one.path.join('.'), 80)}`, onclick: () => {
      values = values.filter((other) => other !== one);
      filter();
    } }, `${clip(one.path.join('.'), 80)} = ${clip(python(one.value), 80)} ×`)), span && h('button', { type: 'button', class: 'chip', onclick: () => histogram.choose(null) }, `${clock(span[0] * 1000)} – ${clock(span[1] * 1000)} ×`));
    setQuery({ tag: tag.value.trim(), text: text.value.trim(), calls: calls.checked });
    dropped = 0;
    list.active = -1;
    refresh();
  };
  tag.addEventListener('input', debounce(150, filter));
  text.addEventListener('input', debounce(250, filter));
  calls.addEventListener('change', filter);

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
      if (counted(item)) {
        summary(item);
        histogram.add(item);
        if (matches(item)) matching.push(item);
      }
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
    if (wanted && last >= wanted) {
      const place = matching.findIndex((item) => item.seq === wanted);
      wanted = 0;
      if (place >= 0) {
        list.follows = false;
        list.move(place);
        open(matching[place]);
      } else notice(`the journal has no event ${linked} any more`, true);
    }
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
    const time = dateOf(data._stamp).getTime();
    return {
      time: Number.isNaN(time) ? 0 : time,
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
    span = null;
    histogram.set([]);
    details.hide();
    refresh();
  }

  function replay() {
    const from = since.value.trim();
    const glob = tag.value.trim();
    clear();
    list.follows = true;
    setQuery({ since: from === BEGIN ? '' : from, seq: '' });
    replayTag = from && /[*?[]/.test(glob) ? glob : '';
    filter();
    connect(from || undefined);
  }

  function open(item) {
    const jid = /^salt\/(?:job|run|wheel)\/(\d{20})\//.exec(item.tag)?.[1];
    const body = h('div', null, 'Loading…');
    details.show([item.seq > 0 && h('a', { class: 'button', href: `#/causality/${item.seq}` }, 'Causes'),
    item.seq > 0 && h('a', { class: 'button', href: `#/reactor?seq=${item.seq}` }, 'Dry run'),
    jid && h('a', { class: 'button', href: `#/jobs/${jid}` }, 'Job'),
    item.seq > 0 && copier('Copy link', () => `${location.href.split('#')[0]}#/bus?seq=${item.seq}`)],
    h('h2', null, clip(item.tag, 500)), h('p', { class: 'dim' }, `sequence number ${item.seq || 'unknown'}, ${clip(item.stamp, 40)}`), body);
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
      fill(body, tree(data, { onfilter: (path, value) => {
        values = [...values, { path, value }];
        filter();
      } }));
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
  connect(since.value.trim() || undefined);
}
