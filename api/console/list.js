// A virtual list: a grid that has elements for the visible rows only, so that 100,000 rows cost as much as forty; and the
// pane with the details of a row.

import { fill, h } from './dom.js';

const ROW = 28;
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
    this.sized = new ResizeObserver(() => this.draw());
    this.sized.observe(this.element);
  }

  /** Sets the number of rows and draws them. `dropped` rows left at the start since the last call. */
  update(count, dropped = 0) {
    this.count = count;
    if (dropped) {
      this.active = Math.max(-1, this.active - dropped);
      if (!this.follows) this.element.scrollTop -= dropped * ROW;
    }
    if (this.active >= count) this.active = count - 1;
    this.element.setAttribute('aria-rowcount', count + 1);
    this.body.style.height = `${count * ROW}px`;
    if (this.follows) this.element.scrollTop = this.element.scrollHeight;
    this.draw();
  }

  get isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 2 * ROW;
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
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - SPARE);
    const visible = Math.ceil(this.element.clientHeight / ROW) + 2 * SPARE;
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
      row.style.transform = `translateY(${index * ROW}px)`;
      this.cells(item).forEach((cell, i) => fill(row.children[i], cell));
    }
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
    const [top, bottom] = [this.active * ROW, (this.active + 2) * ROW];
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
    this.draw();
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
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
      this.list.element.focus();
    } }, '×');
    fill(this.element, h('div', { class: 'buttons' }, head, h('span', { class: 'grow' }), close), content);
    this.element.hidden = false;
    this.element.scrollIntoView({ block: 'nearest' });
  }

  hide() {
    this.element.hidden = true;
  }
}
