// Runs the trace processor of the Perfetto UI, a WebAssembly module, without a browser.
//
//     node perfetto_engine.js DIRECTORY
//
// DIRECTORY holds engine_bundle.js and trace_processor.wasm. Standard input and output carry blocks, each after its
// length in 4 bytes (little-endian): in, TraceProcessorRpcStream messages; out, what the engine answers.

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const directory = process.argv[2];

class FileRequest {
  open(_method, name) {
    this.path = path.join(directory, path.basename(name));
  }
  send() {
    this.response = new Uint8Array(fs.readFileSync(this.path)).buffer;
  }
}

// The bundle refuses to run where it sees Node.js, so it gets a context with what a browser's worker has, and no more.
const worker = {
  console: { log: console.error, warn: console.error, error: console.error },
  location: { href: "http://localhost/engine_bundle.js", protocol: "http:", host: "localhost" },
  performance, setTimeout, clearTimeout, TextDecoder, TextEncoder, URL, Uint8Array,
  XMLHttpRequest: FileRequest,
  WorkerGlobalScope: Object,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), worker);

const port = {
  postMessage(reply) {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(reply.length);
    fs.writeSync(1, size);
    for (let done = 0; done < reply.length; ) done += fs.writeSync(1, reply, done);
  },
};
worker.onmessage({ data: port });

function read(size) {
  const block = Buffer.alloc(size);
  for (let done = 0; done < size; ) {
    const count = fs.readSync(0, block, done, size - done);
    if (count === 0) process.exit(0);
    done += count;
  }
  return block;
}

function serve() {
  port.onmessage({ data: new Uint8Array(read(read(4).readUInt32LE())) });
  setImmediate(serve);
}

// The module is compiled at once and started in a promise, so it is there in the next turn.
setImmediate(serve);
