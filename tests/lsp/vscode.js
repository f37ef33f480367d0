// Runs the extension of Visual Studio Code against the real program, with as much of an editor as the extension and its
// client use: node vscode.js EXTENSION PROGRAM TREE prints a line of JSON with what the editor would have shown.
'use strict';

const Module = require('node:module');
const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');

const [extension, program, tree] = process.argv.slice(2);
const shown = { messages: [], findings: {}, providers: [], commands: [] };
const providers = {};
const listeners = {};
const commands = {};

class Disposable {
  constructor(end = () => {}) {
    this.end = end;
  }
  dispose() {
    this.end();
  }
}

class Uri {
  constructor(text) {
    this.text = text;
    this.scheme = text.split(':')[0];
    this.fsPath = this.scheme === 'file' ? fileURLToPath(text) : text;
    this.path = this.fsPath;
  }
  static parse(text) {
    return new Uri(text);
  }
  static file(name) {
    return new Uri(pathToFileURL(name).href);
  }
  toString() {
    return this.text;
  }
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(start, end, ...rest) {
    if (rest.length) [start, end] = [new Position(start, end), new Position(...rest)];
    Object.assign(this, { start, end });
  }
}

class EventEmitter {
  constructor() {
    this.all = new Set();
    this.event = (one) => {
      this.all.add(one);
      return new Disposable(() => this.all.delete(one));
    };
  }
  fire(value) {
    for (const one of this.all) one(value);
  }
  dispose() {}
}

class CancellationTokenSource {
  constructor() {
    this.token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
  }
  cancel() {}
  dispose() {}
}

class MarkdownString {
  constructor(value = '') {
    this.value = value;
  }
  appendMarkdown(text) {
    this.value += text;
    return this;
  }
  appendCodeblock(text) {
    return this.appendMarkdown(text);
  }
}

class Hover {
  constructor(contents) {
    this.contents = Array.isArray(contents) ? contents : [contents];
  }
}

class Diagnostic {
  constructor(range, message) {
    Object.assign(this, { range, message });
  }
}

class CodeActionKind {
  static Empty = new CodeActionKind('');
  constructor(value) {
    this.value = value;
  }
  append(part) {
    return new CodeActionKind([this.value, part].filter(Boolean).join('.'));
  }
}

// A name space: what is not in it are events, registrations and functions that do nothing.
function space(known) {
  return new Proxy(known, {
    get(target, name) {
      if (name in target || typeof name === 'symbol') return target[name];
      if (name.startsWith('on')) return ((listeners[name] ??= new EventEmitter()), listeners[name].event);
      if (name.startsWith('register')) {
        return (...given) => {
          shown.providers.push(name);
          providers[name] = given.find((one) => typeof one === 'object' && Object.keys(one).some((key) => /^(provide|resolve|prepare)/.test(key)));
          return new Disposable();
        };
      }
      return () => undefined;
    },
  });
}

const sheet = () => space({ name: 'Brine', append() {}, appendLine() {}, show() {}, dispose() {} });
const folder = { uri: Uri.file(tree), name: 'tree', index: 0 };
const settings = { path: program };
const documents = [];

const vscode = space({
  version: '1.82.0',
  Disposable,
  Uri,
  Position,
  Range,
  EventEmitter,
  CancellationTokenSource,
  MarkdownString,
  Hover,
  CodeActionKind,
  Diagnostic,
  env: { language: 'en', appName: 'test' },
  commands: {
    registerCommand(name, run) {
      shown.commands.push(name);
      commands[name] = run;
      return new Disposable();
    },
    executeCommand: async (name, ...rest) => void shown.commands.push([name, ...rest]),
  },
  window: space({
    visibleTextEditors: [],
    tabGroups: { all: [], onDidChangeTabs: () => new Disposable(), onDidChangeTabGroups: () => new Disposable() },
    createOutputChannel: sheet,
    // The button of a message is pressed at once.
    showErrorMessage: async (text, ...buttons) => (shown.messages.push(text), buttons[0]),
  }),
  workspace: space({
    workspaceFolders: [folder],
    textDocuments: documents,
    notebookDocuments: [],
    getWorkspaceFolder: () => folder,
    getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
    createFileSystemWatcher: () => space({ dispose() {} }),
  }),
  languages: space({
    match: (selectors, { languageId }) => (selectors.some(({ language }) => language === languageId) ? 10 : 0),
    createDiagnosticCollection: () => ({
      set: (uri, findings) => {
        shown.findings[path.relative(tree, uri.fsPath)] = findings.map((one) => `${one.code?.value ?? one.code}: ${one.message}`);
        wake();
      },
      get: () => [],
      has: () => false,
      delete() {},
      clear() {},
      dispose() {},
    }),
  }),
});

// Everything else are classes, which the client derives its own from, and lists of constants.
const made = {};
const whole = new Proxy(vscode, {
  get(target, name) {
    if (Object.hasOwn(target, name)) return target[name];
    return (made[name] ??= class {
      constructor(...given) {
        this.given = given;
      }
    });
  },
});

let wake = () => {};
const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? whole : load(name, ...rest));

// Waits until a condition holds; the test ends a run that waits for ever.
async function until(condition) {
  while (!condition()) await new Promise((resolve) => (wake = resolve));
}

function open(name) {
  const text = fs.readFileSync(path.join(tree, name), 'utf8');
  const document = { uri: Uri.file(path.join(tree, name)), fileName: name, languageId: 'sls', version: 1, isClosed: false, getText: () => text };
  documents.push(document);
  listeners.onDidOpenTextDocument?.fire(document);
  return document;
}

async function main() {
  const { activate, deactivate } = require(extension);
  const { token } = new CancellationTokenSource();
  await activate({ subscriptions: [] });
  if (!shown.messages.length) {
    const document = open('web.sls');
    await until(() => shown.findings['web.sls']);
    const hover = await providers.registerHoverProvider.provideHover(document, new Position(1, 4), token);
    shown.hover = hover.contents.map(({ value }) => value).join('\n');
    // A second server takes the place of the first.
    shown.findings = {};
    await commands['brine.restart']();
    await until(() => shown.findings['web.sls']);
  }
  await new Promise((resolve) => setImmediate(resolve));
  await deactivate();
  console.log(JSON.stringify(shown));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
