// The drawing of a graph of causes: boxes with their whole texts, placed from left to right, or as an outline in a narrow
// window, with edges between them.

import { fill, h, s } from './dom.js';
import { dateOf, duration } from './time.js';

const GAP_Y = 14;
const [LEAST, MOST] = [150, 400];
const [GAP_LEAST, GAP_MOST] = [60, 84];
const INDENT = 18;
const NARROW = 620;

/** Marks what leads to a failure. */
function markBad(nodes) {
  for (const node of nodes.toReversed()) node.isBad = node.state === 'failed' || node.below.some((child) => nodes[child].isBad);
}

/** Returns the places of nodes in the order in which they are read: each before what is below it. */
function readingOrder(nodes) {
  const order = [];
  const open = nodes.length ? [0] : [];
  while (open.length) {
    const at = open.pop();
    order.push(at);
    open.push(...nodes[at].below.toReversed());
  }
  return order;
}

/** Returns the time that passed from a node to one below it, if both are known. */
function passed(from, to) {
  if (!from.time || !to.time) return '';
  const ms = dateOf(to.time) - dateOf(from.time);
  return Number.isNaN(ms) || ms < 0 || to.kind === 'entry' ? '' : `+${duration(ms)}`;
}

function element(node, onopen) {
  const inner = [h('span', { class: 'word' }, node.word), h('strong', null, node.title), node.text && h('span', { class: 'text' }, node.text)];
  return h('button', { type: 'button', class: `node ${node.kind} ${node.state ?? ''} ${node.isAsked ? 'asked' : ''}`, 'aria-pressed': 'false', onclick: () => onopen(node) }, inner);
}

/** Draws nodes, of which the first is the root, into a box. `onopen` is called with the node that is chosen. */
export function drawGraph(box, nodes, onopen) {
  markBad(nodes);
  const order = readingOrder(nodes);
  nodes.forEach((node, i) => {
    node.depth ??= 0;
    for (const child of node.below) nodes[child].depth = nodes[i].depth + 1;
  });
  const picture = s('svg', { 'aria-hidden': 'true' });
  const choose = (node) => {
    for (const at of order) nodes[at].element.setAttribute('aria-pressed', String(nodes[at] === node));
    onopen(node);
  };
  for (const at of order) nodes[at].element = element(nodes[at], choose);
  fill(box, picture, order.map((at) => nodes[at].element));

  function place() {
    const room = box.clientWidth - 24;
    if (room < 100) return;
    const depth = Math.max(...nodes.map((node) => node.depth)) + 1;
    const isNarrow = room < NARROW;
    const gap = room / depth < 270 ? GAP_LEAST : GAP_MOST;
    const width = Math.max(LEAST, Math.min(MOST, Math.floor((room - (depth - 1) * gap) / depth)));
    for (const at of order) {
      const own = nodes[at];
      own.width = isNarrow ? Math.max(160, room - own.depth * INDENT) : width;
      own.element.style.width = `${own.width}px`;
    }
    // All heights are read after all widths are set, so the page is laid out once.
    for (const at of order) nodes[at].height = nodes[at].element.offsetHeight;
    let y = 12;
    if (isNarrow) {
      for (const at of order) {
        Object.assign(nodes[at], { x: 12 + nodes[at].depth * INDENT, y });
        y += nodes[at].height + GAP_Y + 6;
      }
    } else {
      for (const at of order) {
        const node = nodes[at];
        node.x = 12 + node.depth * (width + gap);
        if (node.below.length) continue;
        node.y = y;
        y += node.height + GAP_Y;
      }
      for (const at of order.toReversed()) {
        const { below } = nodes[at];
        if (!below.length) continue;
        const [first, last] = [nodes[below[0]], nodes[below.at(-1)]];
        nodes[at].y = Math.max(12, (first.y + last.y + last.height) / 2 - nodes[at].height / 2);
        y = Math.max(y, nodes[at].y + nodes[at].height + GAP_Y);
      }
      separate(order);
    }
    const end = Math.max(...nodes.map((node) => node.y + node.height)) + 12;
    const right = Math.max(...nodes.map((node) => node.x + node.width)) + 12;
    for (const at of order) Object.assign(nodes[at].element.style, { left: `${nodes[at].x}px`, top: `${nodes[at].y}px` });
    picture.setAttribute('width', right);
    picture.setAttribute('height', end);
    fill(picture, order.flatMap((at) => nodes[at].below.map((child) => edge(nodes[at], nodes[child], isNarrow, gap))));
    box.style.height = `${end + 2}px`;
  }

  /** Moves boxes of a column apart that a high parent would cover. */
  function separate() {
    const ends = new Map();
    for (const at of order) {
      const node = nodes[at];
      const least = ends.get(node.depth) ?? 12;
      if (node.y < least) node.y = least;
      ends.set(node.depth, node.y + node.height + GAP_Y);
    }
  }

  function edge(from, to, isNarrow, gap) {
    const kind = to.isBad ? 'edge bad' : 'edge';
    const time = passed(from, to);
    if (isNarrow) {
      const [x, y1, y2] = [from.x + 8, from.y + from.height, to.y + Math.min(18, to.height / 2)];
      return [s('path', { class: kind, d: `M${x} ${y1}V${y2}H${to.x}` }), time && s('text', { class: 'edge-time', x: to.x + 30, y: to.y - 5 }, time)];
    }
    const [x1, y1, x2, y2] = [from.x + from.width, from.y + from.height / 2, to.x, to.y + to.height / 2];
    return [s('path', { class: kind, d: `M${x1} ${y1}C${x1 + gap / 2} ${y1} ${x2 - gap / 2} ${y2} ${x2} ${y2}` }),
      time && s('text', { class: 'edge-time', x: x2 - gap * 0.4, y: y2 - 6 }, time)];
  }

  place();
  let width = box.clientWidth;
  const sized = new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    place();
  });
  sized.observe(box);
  return () => sized.disconnect();
}
