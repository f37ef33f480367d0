// Times: of the day, relative to now, and durations. The API has times in microseconds since 1970, events have stamps.

import { clip, h } from './dom.js';

/** Returns a time as a Date: microseconds since 1970, or the stamp of an event. */
export function dateOf(value) {
  if (typeof value === 'number') return new Date(value / 1000);
  const text = String(value ?? '');
  return new Date(/[Z+]/.test(text.slice(10)) ? text : `${text}Z`);
}

const two = (number, width = 2) => String(number).padStart(width, '0');
const isTime = (date) => !Number.isNaN(date.getTime());

/** Returns the time of day of a stamp, in the browser's time zone. */
export function clock(stamp) {
  const date = dateOf(stamp);
  if (!isTime(date)) return clip(stamp ?? '', 30);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

/** Returns a date and time to the second, in the browser's time zone. */
export function full(value) {
  const date = dateOf(value);
  if (!isTime(date)) return '';
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(value).slice(0, 8)}`;
}

/** Returns a duration in milliseconds for people. */
export function duration(milliseconds) {
  const ms = Math.max(0, milliseconds);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** Returns how long ago a time was, in one unit. */
export function ago(value) {
  const date = dateOf(value);
  if (!isTime(date)) return '';
  const seconds = Math.max(0, Math.round((Date.now() - date.getTime()) / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** Creates a relative time with the exact one as its title. */
export function when(value) {
  const date = dateOf(value);
  if (!value || !isTime(date)) return h('span', { class: 'dim' }, '–');
  return h('time', { datetime: date.toISOString(), title: full(value) }, ago(value));
}
