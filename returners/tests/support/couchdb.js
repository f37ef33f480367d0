// A server of CouchDB's protocol in memory, of the npm packages express-pouchdb and PouchDB:  couchdb.js PORT
const PouchDB = require('pouchdb-core')
  .plugin(require('pouchdb-adapter-memory'))
  .plugin(require('pouchdb-mapreduce'))
  .plugin(require('pouchdb-find'));
const express = require('express');
const app = express();
app.use('/', require('express-pouchdb')(PouchDB.defaults({ adapter: 'memory' }), { mode: 'minimumForPouchDB', inMemoryConfig: true }));
app.listen(Number(process.argv[2]), '127.0.0.1');
