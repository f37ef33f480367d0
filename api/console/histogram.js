// The number of events over time: bars, failures red. A chosen bar is the span of a filter.

import { count, fill, h, s } from './dom.js';
import { clock } from './time.js';

const BARS = 60;
const HEIGHT = 56;
const WIDTH = 1200;
/** Widths of bars in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];

export class Histogram {
  /** `onchoose` is called with the span of the chosen bar in milliseconds, or `null`. */
  constructor(onchoose) {
    Object.assign(this, { onchoose, seconds: new Map(), first: Infinity, last: 0, frame: 0, chosen: null });
    this.picture = h('div', { tabIndex: 0, role: 'group', 'aria-label': 'Events over time: the left and right arrow keys choose a bar, Escape none', onkeydown: (event) => this.key(event) });
    this.axis = h('div', { class: 'axis' });
    this.element = h('div', { hidden: true }, this.picture, this.axis);
  }

  set(items) {
    this.seconds.clear();
    [this.first, this.last] = [Infinity, 0];
    if (!items.length) this.chosen = null;
    for (const item of items) this.add(item);
    this.draw();
  }

  /** Counts an event by its second. */
  add({ time, isBad }) {
    if (!time) return;
    const second = Math.floor(time / 1000);
    const [all, bad] = this.seconds.get(second) ?? [0, 0];
    this.seconds.set(second, [all + 1, bad + (isBad ? 1 : 0)]);
    this.first = Math.min(this.first, second);
    this.last = Math.max(this.last, second);
    this.draw();
  }

  draw() {
    this.frame ||= setTimeout(() => {
      this.frame = 0;
      this.drawNow();
    }, 100);
  }

  choose(span) {
    this.chosen = span;
    this.onchoose(span);
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === 'Escape' && this.chosen) this.choose(null);
    else if (by && this.filled?.length) {
      const at = this.filled.findIndex(([start]) => start === this.chosen?.[0]);
      const next = at < 0 ? (by > 0 ? 0 : this.filled.length - 1) : at + by;
      if (this.filled[next]) this.choose(this.filled[next]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  drawNow() {
    this.element.hidden = this.seconds.size < 2;
    if (this.element.hidden) return;
    const step = STEPS.find((one) => (this.last - this.first) / one < BARS) ?? 86400;
    const start = Math.floor(this.first / step) * step;
    const number = Math.min(BARS + 1, Math.floor((this.last - start) / step) + 1);
    const bars = Array.from({ length: number }, () => [0, 0]);
    for (const [second, [all, bad]] of this.seconds) {
      const bar = bars[Math.min(number - 1, Math.floor((second - start) / step))];
      if (!bar) continue;
      bar[0] += all;
      bar[1] += bad;
    }
    const most = Math.max(...bars.map(([all]) => all), 1);
    const wide = WIDTH / number;
    const tall = (value) => (value ? Math.max(2, (value / most) * (HEIGHT - 6)) : 0);
    this.filled = [];
    const shapes = bars.map(([all, bad], i) => {
      const span = [(start + i * step) * 1000, (start + (i + 1) * step) * 1000];
      if (all) this.filled.push(span);
      const isChosen = this.chosen?.[0] === span[0];
      const words = `${clock(span[0] * 1000).slice(0, 8)}: ${count(all)} events${bad ? `, ${count(bad)} of them failures` : ''}`;
      return [all > 0 && s('rect', { x: i * wide, width: Math.max(1, wide - 2), y: HEIGHT - tall(all), height: tall(all) }), bad > 0 && s('rect', { class: 'bad', x: i * wide, width: Math.max(1, wide - 2), y: HEIGHT - tall(bad), height: tall(bad) }),
        s('rect', { class: isChosen ? 'hit chosen' : 'hit', x: i * wide, width: wide, y: 0, height: HEIGHT, onclick: () => this.choose(isChosen ? null : span) }, s('title', null, words))];
    });
    const total = bars.reduce((sum, [all]) => sum + all, 0);
    fill(this.picture, s('svg', { class: 'histogram', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${count(total)} events from ${clock(start * 1e6)} to ${clock((this.last + 1) * 1e6)}` }, shapes));
    const unit = step < 60 ? `${step} s` : step < 3600 ? `${step / 60} min` : `${step / 3600} h`;
    fill(this.axis, h('span', null, clock(start * 1e6).slice(0, 8)), h('span', null, `a bar is ${unit}, at most ${count(most)} events`), h('span', null, clock(this.last * 1e6).slice(0, 8)));
  }
}
