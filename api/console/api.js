// The REST API: requests, log-in, calls of runner and wheel functions, and the event stream. The session is a cookie that
// scripts cannot read; what is stored here is the user's name and the time of expiry.

import { clip } from './dom.js';

const ROOT = new URL('../', import.meta.url);
const SESSION = 'brine.session';
const RESPONSE_BYTES = 64 << 20;

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const session = {
  get() {
    try {
      const stored = JSON.parse(localStorage.getItem(SESSION));
      return stored && stored.expire * 1000 > Date.now() ? stored : null;
    } catch {
      return null;
    }
  },
  clear: () => localStorage.removeItem(SESSION),
};

/** Reads a response up to a limit, so that no answer exhausts the memory of the page. */
async function read(response) {
  const reader = response.body?.getReader();
  if (!reader) return '';
  const decoder = new TextDecoder();
  let text = '';
  for (let bytes = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > RESPONSE_BYTES) {
      reader.cancel();
      throw new ApiError('the answer is larger than 64 MiB: narrow the request', 0);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function messageOf(text, status) {
  try {
    const { return: message } = JSON.parse(text);
    if (typeof message === 'string') return message;
  } catch { /* an HTML page, or nothing */ }
  return text && text.length < 300 && !text.includes('<') ? text : `the request failed with status ${status}`;
}

/** Sends a request below the address of the API and returns the decoded answer. */
export async function request(path, { body, signal, method } = {}) {
  let response;
  try {
    response = await fetch(new URL(path, ROOT), {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin',
      cache: 'no-store',
      signal,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('the API does not answer: check that salt-api runs, then reload the page', 0);
  }
  const text = await read(response);
  if (response.ok) {
    try {
      return JSON.parse(text);
    } catch {
      throw new ApiError(`the answer of ${path.split('?')[0]} is not JSON`, response.status);
    }
  }
  const message = messageOf(text, response.status);
  if (response.status === 401 && path !== 'login') {
    if (/authorization schemes/.test(message)) {
      session.clear();
      window.dispatchEvent(new Event('brine:signed-out'));
      throw new ApiError('the session has ended: log in again', 401);
    }
    throw new ApiError(`not permitted: ${message} An administrator permits it in external_auth.`, 401);
  }
  if (response.status === 503) throw new ApiError(`${message} Start the master, then repeat the request.`, 503);
  throw new ApiError(message, response.status);
}

/** Returns the names of the systems of external_auth that the master is configured for. */
export const systems = async () => (await request('console/systems')).return ?? [];

export async function login(eauth, username, password) {
  const answer = await request('login', { body: { eauth, username, password } });
  const { user, expire } = answer.return[0];
  localStorage.setItem(SESSION, JSON.stringify({ user, eauth, expire }));
}

export async function logout() {
  try {
    await request('logout', { body: {} });
  } finally {
    session.clear();
  }
}

/** Runs a chunk of lowstate and returns its answer. */
export async function run(chunk, signal) {
  try {
    const answer = await request('', { body: [chunk], signal });
    return answer.return?.[0];
  } catch (error) {
    // The master does not say what it is that the user may not do.
    if (error.status === 401 && error.message.startsWith('not permitted')) error.message = `not permitted: ${clip(chunk.fun, 100)} (client ${chunk.client}). An administrator permits it in external_auth.`;
    throw error;
  }
}

function unwrap(fun, answer) {
  const data = answer?.data;
  if (data && typeof data === 'object' && 'success' in data) {
    if (!data.success) throw new ApiError(`${fun} failed: ${clip(textOf(data.return), 600).replace(/^Exception occurred in (runner|wheel) [\w.]+: /, '')}`, 200);
    return data.return;
  }
  return answer;
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Calls a runner function; its failure is an error. */
export const runner = async (fun, kwarg = {}, signal) =>
  unwrap(fun, await run({ client: 'runner', fun, kwarg, full_return: true }, signal));

/** Calls a wheel function; its failure is an error. */
export const wheel = async (fun, kwarg = {}, signal) => unwrap(fun, await run({ client: 'wheel', fun, ...kwarg }, signal));

/** Subscribes to events: `since` is a sequence number or a time, `tag` a glob. Returns the stream, for its `close`. */
export function events({ since, tag, onevent, onstate }) {
  const url = new URL('events', ROOT);
  if (since !== undefined) url.searchParams.set('since', since);
  if (tag) url.searchParams.set('tag', tag);
  const stream = new EventSource(url);
  stream.onopen = () => onstate?.('open');
  // The browser connects again by itself, with Last-Event-ID, unless the server refused the request.
  stream.onerror = () => onstate?.(stream.readyState === EventSource.CLOSED ? 'refused' : 'lost');
  stream.onmessage = (message) => onevent(message.data, Number(message.lastEventId) || 0);
  return stream;
}
