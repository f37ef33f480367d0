// Elements, text that is safe to show, notices and dialogs. Text becomes text nodes and attribute values only.

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'hidden', 'open', 'selected', 'indeterminate', 'tabIndex']);

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false && !PROPERTIES.has(name)) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? '' : name === 'title' || name === 'aria-label' ? shown(String(value)) : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(shown(String(child))));
  }
}

/** Creates an element; `on<event>` properties are listeners, other children than nodes become text. */
export const h = (name, props, ...children) => build(document.createElement(name), props, children);

/** Creates an SVG element. */
export const s = (name, props, ...children) => build(document.createElementNS(SVG, name), props, children);

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Control characters, and those that reorder or hide text.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function symbol(c) {
  const code = c.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

/** Returns the text with control characters and invisible ones as escapes. */
export const shown = (text) => text.replace(HIDDEN, symbol);

/** Returns at most `limit` characters of a text on one line. */
export function clip(text, limit = 200) {
  const start = String(text).slice(0, limit + 1).replace(/\s+/g, ' ');
  return start.length > limit ? start.slice(0, limit) + '…' : start;
}

/** Creates a block of text that shows long text step by step. */
export function block(text, first = 20000, props = {}) {
  text = String(text);
  const pre = h('pre', { tabIndex: 0, ...props }, text.slice(0, first));
  if (text.length <= first) return pre;
  let end = first;
  const button = h('button', { type: 'button', class: 'more', onclick: () => {
    const next = Math.min(end * 4, 1000000);
    pre.append(shown(text.slice(end, next)));
    end = next;
    label();
  } });
  const label = () => {
    const rest = text.length - end;
    button.hidden = rest <= 0;
    button.disabled = end >= 1000000;
    fill(button, button.disabled ? `${count(rest)} more characters are not shown` : `Show more of ${count(rest)} characters`);
  };
  label();
  return h('div', null, pre, button);
}

export const count = (number) => Number(number).toLocaleString('en-US');

/** Returns `1 minion`, `2 minions`. */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Shows a message for some seconds; errors stay until they are closed. */
export function notice(message, isError = false) {
  const close = () => box.remove();
  const box = h('div', { class: isError ? 'notice bad' : 'notice', role: isError ? 'alert' : undefined },
    clip(message, 600), h('button', { type: 'button', 'aria-label': 'Close the message', onclick: close }, '×'));
  const notices = document.getElementById('notices');
  while (notices.children.length > 3) notices.firstChild.remove();
  notices.append(box);
  if (!isError) setTimeout(close, 6000);
}

/** Runs an action of a view: its error becomes a notice, unless the view was left. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name !== 'AbortError') notice(error.message, true);
    return undefined;
  }
}

/** Closes the dialogs of a view that is left: their answer is no. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
}

/** Asks for a confirmation in a modal dialog. */
export function confirm({ title, body, action, isDangerous }) {
  return new Promise((resolve) => {
    const yes = h('button', { type: 'submit', value: 'yes', class: isDangerous ? 'danger' : 'primary' }, action);
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', onclose: () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    } },
    h('form', { method: 'dialog' }, h('h2', { id: 'dialog-title' }, title), h('div', { class: 'dialog-body' }, body),
      h('div', { class: 'buttons' }, h('button', { type: 'submit', value: 'no', autofocus: true }, 'Cancel'), yes)));
    // `form-action 'none'` forbids submissions, so the buttons close the dialog themselves.
    dialog.addEventListener('submit', (event) => {
      event.preventDefault();
      dialog.close(event.submitter?.value);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Shows information in a modal dialog. */
export function inform(title, ...body) {
  const close = () => dialog.close();
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title', onclose: () => dialog.remove() },
    h('h2', { id: 'dialog-title' }, title), h('div', { class: 'dialog-body' }, body),
    h('div', { class: 'buttons' }, h('button', { type: 'button', autofocus: true, onclick: close }, 'Close')));
  document.body.append(dialog);
  dialog.showModal();
}

let labels = 0;

/** Creates a labelled input, select or textarea. */
export function field(label, control, hint) {
  control.id ||= `field-${++labels}`;
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, hint && h('small', null, hint));
}

export const select = (values, chosen, props) =>
  h('select', props, values.map(([value, text]) => h('option', { value, selected: value === chosen }, text ?? value)));

/** Creates a text that says what an empty view means and what to do. */
export const empty = (title, ...advice) => h('div', { class: 'empty' }, h('strong', null, title), h('p', null, advice));

/** Delays calls until there were none for some milliseconds, but for `most` milliseconds at most. */
export function debounce(milliseconds, call, most = Infinity) {
  let timer = 0;
  let first = 0;
  return (...args) => {
    const now = Date.now();
    first ||= now;
    clearTimeout(timer);
    timer = setTimeout(() => {
      first = 0;
      call(...args);
    }, Math.max(0, Math.min(milliseconds, first + most - now)));
  };
}

/** Compares names in natural order: `web2` before `web10`. */
export const natural = new Intl.Collator('en', { numeric: true }).compare;

/** Sets the query of the address without showing the view again, so that a reload or a link shows the same. */
export function setQuery(values) {
  const [path, old] = location.hash.split('?');
  const query = new URLSearchParams(old);
  for (const [name, value] of Object.entries(values)) {
    if (value === '' || value === null || value === undefined || value === false) query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, '', `${path || '#/'}${query.size ? `?${query}` : ''}`);
}

/** Creates a button that copies a text. */
export const copier = (label, text) => h('button', { type: 'button', onclick: () => attempt(async () => {
  if (!navigator.clipboard) throw new Error('the browser permits copying with HTTPS only: copy the address of the page');
  await navigator.clipboard.writeText(text());
  notice('Copied.');
}) }, label);

/** Returns text in which a line may break after separators, and nowhere else unless a word is wider than its box. */
export const breakable = (text) => shown(String(text)).split(/(?<=[/.:_*-])/).flatMap((part, i) => (i ? [h('wbr'), part] : [part]));

/** Matches a tag with a glob as the reactor does; without wildcards, with a part of the tag. */
export function globber(glob) {
  if (!glob) return () => true;
  if (!/[*?[]/.test(glob)) return (text) => text.includes(glob);
  let pattern = '';
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i];
    const end = c === '[' ? glob.indexOf(']', i + 2) : -1;
    if (c === '*') pattern += pattern.endsWith('[^]*') ? '' : '[^]*';
    else if (c === '?') pattern += '[^]';
    else if (end > 0) {
      const set = glob.slice(i + 1, end).replace(/[\\\]]/g, '\\$&');
      pattern += `[${set.startsWith('!') ? '^' + set.slice(1) : set.replace(/^\^/, '\\^')}]`;
      i = end;
    } else pattern += c.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  }
  try {
    const regex = new RegExp(`^${pattern}$`);
    return (text) => regex.test(text);
  } catch {
    return () => false;
  }
}
