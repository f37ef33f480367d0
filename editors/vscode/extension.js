// Starts `brine lsp` for the SLS files and templates of a window.
'use strict';

const { execFile } = require('node:child_process');
const vscode = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

const SELECTOR = [
  { scheme: 'file', language: 'sls' },
  { scheme: 'file', pattern: '**/*.{jinja,j2,jinja2}' },
  { scheme: 'file', pattern: '**/{master,minion,master.d/*.conf,minion.d/*.conf}' },
];

let client;
// One start or stop after the other: both wait for the server.
let queue = Promise.resolve();

// Returns why a program cannot be started, or undefined.
function refusal(command) {
  return new Promise((resolve) => {
    execFile(command, ['--version'], { timeout: 10000 }, (error) => {
      if (!error) resolve(undefined);
      else if (error.code === 'ENOENT') resolve('there is no such program');
      else if (error.code === 'EACCES') resolve('the program may not be executed');
      else resolve(error.message.trim());
    });
  });
}

async function start() {
  const command = vscode.workspace.getConfiguration('brine').get('path') || 'brine';
  let cause = await refusal(command);
  if (!cause) {
    const started = new LanguageClient('brine', 'Brine', { command, args: ['lsp'] }, { documentSelector: SELECTOR });
    try {
      await started.start();
      client = started;
      return;
    } catch (error) {
      // The client rejects with errors and with texts.
      cause = error?.message ?? String(error);
    }
  }
  // The answer is not waited for: the message stays until it is closed.
  vscode.window
    .showErrorMessage(`starting '${command} lsp' failed: ${cause}: install Brine, or set 'brine.path'`, 'Open settings')
    .then((chosen) => {
      if (chosen) vscode.commands.executeCommand('workbench.action.openSettings', 'brine.path');
    });
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) await running.stop();
}

// Runs steps behind those that are under way; one that fails does not keep the next from running.
function enqueue(...steps) {
  for (const step of steps) queue = queue.then(step, step);
  return queue;
}

function activate(context) {
  const restart = () => enqueue(stop, start);
  context.subscriptions.push(
    vscode.commands.registerCommand('brine.restart', restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('brine.path')) restart();
    }),
  );
  return enqueue(start);
}

function deactivate() {
  return enqueue(stop);
}

module.exports = { activate, deactivate };
