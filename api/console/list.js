// A virtual list: a grid that has elements for the visible rows only, so that 100,000 rows cost as much as forty; and the
// pane with the details of a row.

import { fill, h } from './dom.js';

const SPARE = 6;
let lists = 0;

export class VirtualList {
  /**
   * `columns` are names, `cells(item)` returns the content of a row, `item(i)` an item, `onopen(item, i)` is called by
   * Enter and by a click, `mark(item)` returns a class.
   */
  constructor({ label, kind, columns, cells, item, onopen, mark }) {
    Object.assign(this, { cells, item, onopen, mark, count: 0, active: -1, follows: false, pool: [] });
    this.name = `list-${++lists}`;
    this.body = h('div', { class: 'rows', role: 'rowgroup' });
    const head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': 1 },
      columns.map((name) => h('span', { role: 'columnheader' }, name)));
    this.element = h('div', {
      class: `list ${kind}`, role: 'grid', tabIndex: 0, 'aria-label': label, 'aria-rowcount': 1,
      onkeydown: (event) => this.key(event), onscroll: () => this.scrolled(),
    }, head, this.body);
    this.columns = columns.length;
    this.height = 32;
    this.sized = new ResizeObserver(() => {
      this.measure();
      this.draw();
    });
    this.sized.observe(this.element);
  }

  /** Sets the number of rows and draws them. `dropped` rows left at the start since the last call. */
  update(count, dropped = 0) {
    this.count = count;
    if (dropped) {
      this.active = Math.max(-1, this.active - dropped);
      if (!this.follows) this.element.scrollTop -= dropped * this.height;
    }
    if (this.active >= count) this.active = count - 1;
    this.element.setAttribute('aria-rowcount', count + 1);
    this.body.style.height = `${count * this.height}px`;
    if (!this.follows) return this.draw();
    // What scrolled into view is drawn at once: a replay would show empty space until its end.
    this.element.scrollTop = this.element.scrollHeight;
    return this.drawNow();
  }

  /** Reads the height of a row, which the style sheet decides: narrow windows have higher ones. */
  measure() {
    const height = this.pool.find((row) => !row.hidden)?.offsetHeight;
    if (!height || height === this.height) return;
    this.height = height;
    this.body.style.height = `${this.count * height}px`;
  }

  get isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 2 * this.height;
  }

  scrolled() {
    this.onscroll?.();
    this.draw();
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - SPARE);
    const visible = Math.ceil(this.element.clientHeight / this.height) + 2 * SPARE;
    const last = Math.min(this.count, first + visible);
    for (let place = 0; place < Math.max(last - first, this.pool.length); place++) {
      const index = first + place;
      const row = this.pool[place] ?? this.add(place);
      row.hidden = index >= last;
      if (row.hidden) continue;
      const item = this.item(index);
      Object.assign(row, { index, item });
      row.id = `${this.name}-${index}`;
      row.setAttribute('aria-rowindex', index + 2);
      row.setAttribute('aria-selected', index === this.active);
      row.className = `row ${this.mark?.(item) ?? ''}${index === this.active ? ' active' : ''}`;
      row.style.transform = `translateY(${index * this.height}px)`;
      this.cells(item).forEach((cell, i) => fill(row.children[i], cell));
    }
    const before = this.height;
    this.measure();
    if (this.height !== before) this.draw();
    const active = this.active >= first && this.active < last ? `${this.name}-${this.active}` : '';
    this.element.setAttribute('aria-activedescendant', active);
  }

  add(place) {
    const cells = Array.from({ length: this.columns }, () => h('span', { role: 'gridcell' }));
    const row = h('div', { class: 'row', role: 'row', onclick: (event) => {
      if (!event.target.closest('input,a,button')) this.open(row);
    } }, cells);
    this.pool[place] = row;
    this.body.append(row);
    return row;
  }

  /** Opens the item that a row shows. The items may have changed since it was drawn, and its index may mean another one. */
  open(row) {
    if (!row || row.hidden) return;
    this.active = Math.min(row.index, this.count - 1);
    this.draw();
    this.onopen?.(row.item, row.index);
  }

  get activeRow() {
    return this.pool.find((row) => !row.hidden && row.index === this.active);
  }

  move(to) {
    this.active = Math.max(0, Math.min(this.count - 1, to));
    const { scrollTop, clientHeight } = this.element;
    const [top, bottom] = [this.active * this.height, (this.active + 2) * this.height];
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
    this.draw();
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 2);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.key in steps && this.count) {
      const from = this.active < 0 && steps[event.key] > 0 ? -1 : this.active;
      this.move(from + steps[event.key]);
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === 'Enter') {
      this.open(this.activeRow);
      event.preventDefault();
    } else if (event.key === ' ' && this.ontoggle && this.activeRow) {
      this.ontoggle(this.activeRow.item);
      event.preventDefault();
    }
  }
}

/** A pane beside a list for the details of its selected row: `show` takes buttons or a title, and the content. */
export class Pane {
  constructor(label, list) {
    this.list = list;
    this.element = h('aside', { class: 'details', 'aria-label': label, hidden: true });
  }

  show(head, ...content) {
    const close = h('button', { type: 'button', 'data-close': true, 'aria-label': 'Close the details', onclick: () => {
      this.hide();
      (this.list.element.querySelector('[aria-pressed=true]') ?? this.list.element).focus();
    } }, '×');
    fill(this.element, h('div', { class: 'buttons' }, head, h('span', { class: 'grow' }), close), content);
    this.element.hidden = false;
    if (getComputedStyle(this.element.parentElement).flexDirection === 'column') this.element.scrollIntoView({ block: 'nearest' });
    else this.element.scrollTop = 0;
  }

  hide() {
    this.element.hidden = true;
  }
}
