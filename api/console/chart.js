// Small charts: bars over time, and bars of shares.

import { clip, count, h, s } from './dom.js';

/** Creates a sparkline of bars; its text is read in the place of the bars. */
export function spark(values, text, { width = 120, height = 24 } = {}) {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  return s('svg', { class: 'spark', width, height, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': text },
    s('title', null, text),
    s('line', { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5 }),
    values.map((value, i) => {
      const tall = value ? Math.max(2, (value / most) * (height - 1)) : 0;
      return value > 0 && s('rect', { x: (i * step).toFixed(2), y: (height - tall).toFixed(2), width: Math.max(1, step - 1).toFixed(2), height: tall.toFixed(2) });
    }));
}

/** Creates a list of names with bars of their numbers; `href(name)` is the list that a name leads to. */
export function shares(counts, href) {
  const entries = Object.entries(counts);
  const most = Math.max(1, ...entries.map(([, number]) => number));
  return h('ul', { class: 'shares' }, entries.map(([name, number]) => {
    const bar = h('progress', { max: most, value: number, 'aria-hidden': 'true', tabIndex: -1 });
    const inner = [h('span', { class: 'name' }, clip(name || 'others', 60)), bar, h('span', { class: 'number' }, count(number))];
    return h('li', null, name ? h('a', { href: href(name) }, inner) : h('span', { class: 'share' }, inner));
  }));
}

/** Creates a bar of the parts of a job: done, failed, and without return. */
export function outcomeBar({ done = 0, failed = 0, asked = 0, running = false }) {
  const all = Math.max(1, asked, done + failed);
  const waiting = all - done - failed;
  const words = [`${count(done)} done`, `${count(failed)} failed`, `${count(asked ? waiting : 0)} ${running ? 'running' : 'missing'}`].join(', ');
  let x = 0;
  // A single failure among thousands is still seen.
  const wide = (number) => (number ? 4 + (number / all) * 88 : 0);
  const sum = wide(done) + wide(failed) + (asked ? wide(waiting) : 0) || 1;
  const part = (name, number) => {
    const width = (wide(number) / sum) * 100;
    const rect = number > 0 && s('rect', { class: name, x, y: 0, width, height: 8 });
    x += width;
    return rect;
  };
  return s('svg', { class: 'outcome-bar', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
    s('title', null, words), part('failed', failed), part('done', done), part(running ? 'running' : 'missing', asked ? waiting : 0));
}

/** Creates a meter of a part of a whole. */
export const meter = (part, whole, text) => h('progress', { class: 'meter', max: whole || 1, value: part, 'aria-label': text });
