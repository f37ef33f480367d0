// The frame of the console: routes, log-in, theme and keyboard shortcuts. Each view is a module with `show`.

import { login, logout, session, systems } from './api.js';
import { attempt, closeDialogs, field, fill, h, inform, select } from './dom.js';
import * as bus from './bus.js';
import * as causality from './causality.js';
import * as jobs from './jobs.js';
import * as keys from './keys.js';
import * as minions from './minions.js';
import * as overview from './overview.js';
import * as plans from './plans.js';
import * as reactor from './reactor.js';
import * as run from './run.js';

const VIEWS = {
  overview: ['Overview', 'o', overview],
  bus: ['Events', 'e', bus],
  minions: ['Minions', 'm', minions],
  keys: ['Keys', 'k', keys],
  run: ['Run', 'r', run],
  jobs: ['Jobs', 'j', jobs],
  plans: ['Plans', 'p', plans],
  causality: ['Causes', 'c', causality],
  reactor: ['Reactor', 'x', reactor],
};

const main = document.getElementById('main');
const header = document.getElementById('header');
const nav = document.getElementById('nav');
let view = null;

const links = Object.entries(VIEWS).map(([name, [label, key]]) =>
  h('a', { href: `#/${name}`, 'data-view': name, 'aria-keyshortcuts': `g ${key}` }, label));
nav.append(...links);

/** Shows the view of the address: `#/jobs/JID?name=value`. */
function route() {
  view?.abort();
  closeDialogs();
  document.getElementById('notices').replaceChildren();
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = path.split('/');
  const signedIn = session.get();
  header.hidden = !signedIn;
  if (!signedIn) return showLogin();
  fill(document.getElementById('user'), signedIn.user);
  const known = Object.hasOwn(VIEWS, name) ? name : 'overview';
  const [label, , module] = VIEWS[known];
  for (const link of links) {
    if (link.dataset.view === known) {
      link.setAttribute('aria-current', 'page');
      link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    } else link.removeAttribute('aria-current');
  }
  document.title = `${label} – Brine console`;
  view = new AbortController();
  const title = h('h1', { tabIndex: -1 }, label);
  const box = h('div', { class: `view ${known}` });
  fill(main, title, box);
  title.focus({ preventScroll: true });
  const decoded = rest.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  attempt(async () => {
    try {
      await module.show(box, { path: decoded, query: new URLSearchParams(query), signal: view.signal });
    } catch (error) {
      for (const one of box.querySelectorAll('[role=status]')) if (one.textContent === 'loading') fill(one, 'not available');
      throw error;
    }
  });
}

/** Shows the log-in with the systems that the master is configured for. */
async function showLogin() {
  document.title = 'Log in – Brine console';
  fill(main);
  const stored = localStorage.getItem('brine.eauth');
  let names = [];
  let problem = '';
  try {
    names = await systems();
    if (!names.length) problem = 'Nobody can log in: external_auth in the configuration of the master is empty.';
  } catch (failure) {
    problem = failure.message;
  }
  if (session.get() || main.firstChild) return;
  const backend = select(names.map((name) => [name]), names.includes(stored) ? stored : names[0], { name: 'eauth' });
  const user = h('input', { name: 'username', autocomplete: 'username', required: true, autocapitalize: 'none', spellcheck: 'false' });
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true });
  const error = h('p', { class: 'bad', role: 'alert' }, problem);
  const button = h('button', { class: 'primary', type: 'submit' }, 'Log in');
  const form = h('form', { class: 'login', onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    fill(error);
    try {
      await login(backend.value, user.value, password.value);
      localStorage.setItem('brine.eauth', backend.value);
      route();
    } catch (failure) {
      fill(error, failure.status === 401 ? 'Log-in failed. Check the user, the password, and that external_auth permits this user.' : failure.message);
      password.value = '';
      password.focus();
    } finally {
      button.disabled = false;
    }
  } }, h('h1', null, 'Brine console'), names.length > 1 ? field('Authentication', backend) : h('span', { hidden: true }, backend), field('User', user), field('Password', password), error, button);
  fill(main, form);
  user.focus();
}

const THEMES = ['auto', 'light', 'dark'];
const themeButton = document.getElementById('theme');

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem('brine.theme', theme);
  fill(themeButton, `Theme: ${theme}`);
}

const theme = () => {
  const stored = localStorage.getItem('brine.theme');
  return THEMES.includes(stored) ? stored : 'auto';
};
setTheme(theme());
themeButton.addEventListener('click', () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));

function showHelp() {
  const rows = [
    ...Object.values(VIEWS).map(([label, key]) => [`g ${key}`, label]),
    ['/', 'Go to the first filter of the view'],
    ['p', 'Pause or resume the events'],
    ['↑ ↓ or k j', 'Move in a list'],
    ['Enter', 'Open the selected row'],
    ['Space', 'Select a row in the lists of keys and minions'],
    ['Esc', 'Close a dialog or the details'],
    ['?', 'This help'],
  ];
  inform('Keyboard shortcuts', h('table', null, h('tbody', null,
    rows.map(([keysOf, effect]) => h('tr', null, h('th', { scope: 'row' }, h('kbd', null, keysOf)), h('td', null, effect))))),
  h('p', { class: 'dim' }, 'The documentation of the console is docs/console.md in the sources of Brine.'));
}

document.getElementById('help').addEventListener('click', showHelp);
document.getElementById('logout').addEventListener('click', async () => {
  await attempt(logout);
  sessionStorage.clear();
  route();
});

let isGoing = 0;
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !session.get() || document.querySelector('dialog[open]')) return;
  if (event.target.closest('input,select,textarea')) return;
  const going = Date.now() - isGoing < 1500;
  isGoing = 0;
  const target = going && Object.keys(VIEWS).find((name) => VIEWS[name][1] === event.key);
  if (target) location.hash = `#/${target}`;
  else if (event.key === 'g') isGoing = Date.now();
  else if (event.key === '?') showHelp();
  else if (event.key === '/') main.querySelector('input,select')?.focus();
  else if (event.key === 'p') main.querySelector('[data-pause]')?.click();
  else if (event.key === 'Escape') main.querySelector('[data-close]')?.click();
  else return;
  event.preventDefault();
});

window.addEventListener('hashchange', route);
window.addEventListener('brine:signed-out', route);
window.addEventListener('storage', (event) => {
  if (event.key === 'brine.session') route();
});
// A session ends while its page is open.
setInterval(() => {
  if (!header.hidden && !session.get()) route();
}, 10000);
route();
