// What the view Run offers while one types: functions, their arguments and documentation, SLS files, and minions. Functions
// are those of one connected minion, which knows its custom modules, too. What is not permitted is not offered.

import { run, runner, session } from './api.js';
import { block, clip, fill, h, shown } from './dom.js';
import { python } from './value.js';

const SHOWN = 60;
const HISTORY = 'brine.history';
const MAX_HISTORY = 30;
const OF_SLS = /^state\.(apply|sls|sls_exists|sls_id|show_sls|show_low_sls|show_state_usage|test)$/;

/** Answers of this session: functions never change while a page is looked at. */
const known = new Map();

function once(key, ask) {
  if (!known.has(key)) known.set(key, ask().catch(() => null));
  return known.get(key);
}

/** Calls a function on one minion. */
const call = (id, fun, arg, signal) => run({ client: 'local', tgt: [id], tgt_type: 'list', fun, arg, timeout: 5 }, signal).then((answer) => answer?.[id]);

/** Returns the names of SLS files by the paths of the file server. */
export function slsNames(paths) {
  const names = (paths ?? []).filter((path) => String(path).endsWith('.sls') && path !== 'top.sls');
  return names.map((path) => path.replace(/(\/init)?\.sls$/, '').replaceAll('/', '.')).sort();
}

let lists = 0;
/** Firefox shows the label of an offer in place of its value, others beside it. */
const IN_PLACE = /firefox/i.test(navigator.userAgent);

/** Returns the first sentence of a documentation. */
const sentence = (text) => clip(String(text ?? '').split(/\n\s*\n|\.\s/, 1)[0].trim(), 120);

/**
 * Offers names for an input: `names()` returns all, `part` the part of the text that is completed, `notes()` their
 * documentation by name.
 */
export function offer(input, names, part = (text) => ['', text], notes = () => null) {
  const options = h('datalist', { id: `offer-${++lists}` });
  input.setAttribute('list', options.id);
  input.setAttribute('autocomplete', 'off');
  const update = async () => {
    const [before, word] = part(input.value);
    // Names that hide characters are not what they seem.
    const [all, lines] = await Promise.all([names(), notes()]);
    const label = (name) => (lines?.[name] ? (IN_PLACE ? `${name} – ` : '') + shown(sentence(lines[name])) : null);
    const found = (all ?? []).filter((name) => shown(name) === name);
    const needle = word.toLowerCase();
    const first = found.filter((name) => name.toLowerCase().startsWith(needle));
    const rest = found.filter((name) => name.toLowerCase().indexOf(needle) > 0);
    fill(options, [...first, ...rest].slice(0, SHOWN).map((name) => h('option', { value: before + name, label: label(name) })));
  };
  input.addEventListener('input', update);
  input.addEventListener('focus', update);
  return options;
}

/** The completion of the form of the view Run. `minion()` returns the id of a connected minion that matches. */
export class Completion {
  constructor({ fun, args, minion, signal }) {
    Object.assign(this, { fun, args, minion, signal });
    this.help = h('details', { class: 'card help', hidden: true });
    this.options = [offer(fun, () => this.functions(), undefined, () => this.lines()),
      // The last word of the arguments is completed.
      offer(args, () => this.words(), (text) => {
        const at = text.lastIndexOf(' ') + 1;
        return [text.slice(0, at), text.slice(at)];
      }, () => this.notes)];
    this.notes = {};
  }

  functions() {
    const id = this.minion();
    return id ? once(`functions ${id}`, () => call(id, 'sys.list_functions', [], this.signal)) : [];
  }

  /** Returns the documentation of the functions of the module that is typed. */
  lines() {
    const [module, name] = this.fun.value.trim().split('.');
    const id = this.minion();
    if (!id || name === undefined) return null;
    return once(`docs ${module}`, () => call(id, 'sys.doc', [module], this.signal));
  }

  async words() {
    const sls = OF_SLS.test(this.fun.value.trim()) ? await once('sls', () => runner('fileserver.file_list', {}, this.signal).then(slsNames)) : [];
    return [...(sls ?? []), ...Object.keys(this.notes)];
  }

  /** Shows the arguments and the documentation of the function. */
  async describe() {
    const name = this.fun.value.trim();
    const id = this.minion();
    this.notes = {};
    const all = id && /^\w+\.\w+$/.test(name) ? await this.functions() : null;
    if (!all?.includes?.(name)) {
      this.help.hidden = true;
      return;
    }
    const [spec, doc] = await Promise.all([once(`spec ${name}`, () => call(id, 'sys.argspec', [name], this.signal)), once(`doc ${name}`, () => call(id, 'sys.doc', [name], this.signal))]);
    if (this.fun.value.trim() !== name) return;
    const { args = [], defaults = [] } = spec?.[name] ?? {};
    const names = args ?? [];
    const text = String(doc?.[name] ?? '').trim();
    // A paragraph below the name of the argument, or a sentence after it.
    const note = (parameter) => new RegExp(`(?:^|\\n) *${parameter}\\n +(\\S[^]*)|(?:^|\\s)${parameter}: (\\S[^]*)`).exec(text)?.slice(1).find(Boolean);
    const required = names.length - (defaults?.length ?? 0);
    this.notes = Object.fromEntries(names.map((parameter) => [`${parameter}=`, note(parameter)]));
    const insert = (parameter) => {
      this.args.value = `${this.args.value.trimEnd()} ${parameter}=`.trimStart();
      this.args.focus();
    };
    const chips = names.map((parameter, i) => h('button', { type: 'button', class: 'chip', title: `${i < required ? 'required' : 'optional'}. ${sentence(this.notes[`${parameter}=`])}`, onclick: () => insert(parameter) },
      clip(parameter, 60), i >= required && h('span', { class: 'dim' }, `=${clip(typeof defaults[i - required] === 'string' ? JSON.stringify(defaults[i - required]) : python(defaults[i - required]), 40)}`)));
    fill(this.help, h('summary', null, h('strong', null, name), ' ', h('span', { class: 'dim' }, sentence(text))),
      chips.length > 0 && h('p', { class: 'chips' }, chips), text && block(text, 6000));
    this.help.hidden = false;
  }
}

const place = () => `${HISTORY} ${session.get()?.user ?? ''}`;

/** The commands that this page has run, newest first. They end with the page: arguments may be confidential. */
export const history = {
  get() {
    try {
      return JSON.parse(sessionStorage.getItem(place())) ?? [];
    } catch {
      return [];
    }
  },
  add(command) {
    const text = JSON.stringify(command);
    const others = history.get().filter((one) => JSON.stringify(one) !== text);
    sessionStorage.setItem(place(), JSON.stringify([command, ...others].slice(0, MAX_HISTORY)));
  },
};
