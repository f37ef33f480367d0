// Starts `brine lsp` for the SLS files and templates of a window.
'use strict';

const vscode = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

async function start() {
  const command = vscode.workspace.getConfiguration('brine').get('path') || 'brine';
  client = new LanguageClient(
    'brine',
    'Brine',
    { command, args: ['lsp'] },
    {
      documentSelector: [
        { scheme: 'file', language: 'sls' },
        { scheme: 'file', pattern: '**/*.{jinja,j2,jinja2}' },
        { scheme: 'file', pattern: '**/{master,minion,master.d/*.conf,minion.d/*.conf}' },
      ],
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(`Starting '${command} lsp' failed: ${error.message}; set 'brine.path'.`);
  }
}

async function activate(context) {
  const restart = async () => {
    await deactivate();
    await start();
  };
  context.subscriptions.push(
    vscode.commands.registerCommand('brine.restart', restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('brine.path')) restart();
    }),
  );
  await start();
}

async function deactivate() {
  const running = client;
  client = undefined;
  if (running) await running.stop();
}

module.exports = { activate, deactivate };
