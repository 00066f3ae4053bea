// Runs before the script, in the same realm. It captures what it needs, so that a script that changes built-in objects
// changes only itself. Returns the functions that the host calls: `start`, `answer`, `wake`.
(function (host) {
  'use strict';
  const { stringify } = JSON;
  const { create, defineProperty, getPrototypeOf, keys } = Object;
  const { apply, construct, ownKeys, deleteProperty } = Reflect;
  const { isArray } = Array;
  const PromiseConstructor = Promise;
  const ErrorConstructor = Error;
  const TypeErrorConstructor = TypeError;
  const EvalErrorConstructor = EvalError;
  const ProxyConstructor = Proxy;
  const StringFunction = String;
  const NumberFunction = Number;
  const RealDate = Date;
  const { isSafeInteger, isFinite: isFiniteNumber } = Number;
  const wellFormed = String.prototype.toWellFormed;
  const bigIntToString = BigInt.prototype.toString;
  const dateToString = RealDate.prototype.toString;
  const mapSize = Object.getOwnPropertyDescriptor(Map.prototype, 'size').get;
  const mapForEach = Map.prototype.forEach;
  const setSize = Object.getOwnPropertyDescriptor(Set.prototype, 'size').get;
  const setForEach = Set.prototype.forEach;

  // Own data properties, whatever `Object.prototype` has become.
  const define = (object, key, value, enumerable) =>
    defineProperty(object, key, { __proto__: null, value, writable: true, enumerable, configurable: true });
  const lock = (object, key, value) =>
    defineProperty(object, key, { __proto__: null, value, writable: false, enumerable: false, configurable: false });
  const text = (value) => apply(wellFormed, StringFunction(value), []);

  // ---- Globals: only those of this list stay. What depends on time, memory or threads does not.
  const kept = create(null);
  for (const name of [
    'AggregateError', 'Array', 'ArrayBuffer', 'BigInt', 'BigInt64Array', 'BigUint64Array', 'Boolean', 'DataView',
    'Date', 'Error', 'EvalError', 'Float16Array', 'Float32Array', 'Float64Array', 'Function', 'Infinity',
    'Int16Array', 'Int32Array', 'Int8Array', 'InternalError', 'Iterator', 'JSON', 'Map', 'Math', 'NaN', 'Number',
    'Object', 'Promise', 'Proxy', 'RangeError', 'ReferenceError', 'Reflect', 'RegExp', 'Set', 'String', 'Symbol',
    'SyntaxError', 'TypeError', 'URIError', 'Uint16Array', 'Uint32Array', 'Uint8Array', 'Uint8ClampedArray',
    'WeakMap', 'WeakSet', 'decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'eval',
    'globalThis', 'isFinite', 'isNaN', 'parseFloat', 'parseInt', 'queueMicrotask', 'undefined', 'unescape',
  ]) kept[name] = true;
  for (const name of ownKeys(globalThis)) {
    if (typeof name === 'string' && !kept[name]) deleteProperty(globalThis, name);
  }

  // ---- No code from text.
  const NoCode = function Function() {
    throw new EvalErrorConstructor('code cannot be made from text in a script: write the function itself');
  };
  const functionPrototype = getPrototypeOf(function () {});
  NoCode.prototype = functionPrototype;
  for (const sample of [function () {}, async function () {}, function* () {}, async function* () {}]) {
    lock(getPrototypeOf(sample), 'constructor', NoCode);
  }
  define(globalThis, 'Function', NoCode, false);
  define(globalThis, 'eval', function () {
    throw new EvalErrorConstructor('`eval` does not exist in a script: write the code itself');
  }, false);
  // Stack traces are read by the host.
  deleteProperty(Error, 'prepareStackTrace');
  deleteProperty(Error, 'stackTraceLimit');

  // ---- Fixed clock and seeded random numbers: a run can be repeated.
  const FixedDate = function Date(...parts) {
    if (new.target === undefined) return apply(dateToString, construct(RealDate, [host.now()]), []);
    return construct(RealDate, parts.length === 0 ? [host.now()] : parts, new.target);
  };
  lock(FixedDate, 'prototype', RealDate.prototype);
  define(FixedDate, 'length', 7, false);
  define(FixedDate, 'parse', RealDate.parse, false);
  define(FixedDate, 'UTC', RealDate.UTC, false);
  define(FixedDate, 'now', () => host.now(), false);
  lock(RealDate.prototype, 'constructor', FixedDate);
  define(globalThis, 'Date', FixedDate, false);
  define(Math, 'random', () => host.random(), false);

  // ---- JSON, with the values that JSON has no form for.
  const isMap = (value) => { try { apply(mapSize, value, []); return true; } catch { return false; } };
  const isSet = (value) => { try { apply(setSize, value, []); return true; } catch { return false; } };
  const replace = (key, value) => {
    if (typeof value === 'bigint') {
      const number = NumberFunction(value);
      return isSafeInteger(number) ? number : apply(bigIntToString, value, []);
    }
    if (typeof value !== 'object' || value === null || isArray(value)) return value;
    if (isMap(value)) {
      const object = create(null);
      apply(mapForEach, value, [(entry, name) => define(object, typeof name === 'symbol' ? name : text(name), entry, true)]);
      return object;
    }
    if (isSet(value)) {
      const list = [];
      let length = 0;
      apply(setForEach, value, [(entry) => define(list, length++, entry, true)]);
      return list;
    }
    return value;
  };
  const toJson = (value) => stringify(value, replace);

  // ---- Errors of tools.
  class ToolError extends ErrorConstructor {
    #tool;
    #call;
    constructor(tool) {
      super('');
      this.#tool = tool;
      define(this, 'name', 'ToolError', false);
    }
    static describe(error, tool, failure) {
      error.#tool = tool;
      define(error, 'message', failure.message, false);
      define(error, 'kind', failure.kind, true);
      if (failure.hint !== undefined) define(error, 'hint', failure.hint, true);
      if (failure.signature !== undefined) define(error, 'signature', failure.signature, true);
      return error;
    }
    static mark(error, call) {
      error.#call = call;
    }
    static callOf(error) {
      return #call in error ? error.#call : undefined;
    }
    static toolOf(error) {
      return #tool in error ? error.#tool : undefined;
    }
  }
  define(globalThis, 'ToolError', ToolError, false);
  const { describe, mark, callOf, toolOf } = ToolError;
  deleteProperty(ToolError, 'describe');
  deleteProperty(ToolError, 'mark');
  deleteProperty(ToolError, 'callOf');
  deleteProperty(ToolError, 'toolOf');
  const failure = (kind, message, hint) => ({ __proto__: null, kind, message, hint, signature: undefined });

  // Errors of calls that nothing in the script handles, by the number of the call: how many promises have them.
  const unhandled = create(null);
  const rejected = (reason, isHandled) => {
    if (typeof reason !== 'object' || reason === null) return;
    const id = callOf(reason);
    if (id === undefined) return;
    unhandled[id] ??= { __proto__: null, count: 0, error: reason };
    unhandled[id].count += isHandled ? -1 : 1;
  };

  // ---- Calls and sleeps: promises that the host settles.
  const calls = create(null);
  const sleeps = create(null);
  const invoke = (name, given) => {
    // Made here, so that its stack names the line of the call.
    const error = new ToolError(name);
    return new PromiseConstructor((resolve, reject) => {
      let value, json;
      try {
        value = given.length === 0 || given[0] === undefined ? {} : given[0];
        if (given.length > 1 || typeof value !== 'object' || value === null || isArray(value)) {
          reject(describe(error, name, failure('invalid_arguments',
            `\`${name}\` takes one object with named arguments`, `write \`({ name: value })\``)));
          return;
        }
        json = toJson(value);
      } catch (cause) {
        reject(describe(error, name, failure('invalid_arguments',
          `the arguments of \`${name}\` cannot be written as JSON: ${messageOf(cause)}`)));
        return;
      }
      const id = host.call(name, typeof json === 'string' ? json : '');
      if (typeof id === 'number') {
        mark(error, id);
        calls[id] = { __proto__: null, name, error, resolve, reject };
      } else {
        reject(describe(error, name, failure(id.kind, id.message, id.hint)));
      }
    });
  };
  const sleep = function sleep(ms) {
    const time = NumberFunction(ms);
    return new PromiseConstructor((resolve, reject) => {
      if (!isFiniteNumber(time) || time < 0) {
        reject(new TypeErrorConstructor('`sleep` takes a number of milliseconds'));
        return;
      }
      const id = host.sleep(time);
      if (typeof id === 'number') sleeps[id] = { __proto__: null, resolve };
      else reject(new ErrorConstructor(id.message));
    });
  };
  define(globalThis, 'sleep', sleep, true);

  // ---- `tools`: `tools.SERVER.TOOL(args)` and `tools["NAME"](args)`.
  // Engines and libraries look these up on any value.
  const probed = create(null);
  for (const name of ['then', 'constructor', 'prototype', 'toString', 'valueOf', 'inspect', 'nodeType', 'length', 'name',
    'call', 'apply', 'bind', '__proto__', 'hasOwnProperty', 'catch', 'finally', '$$typeof', 'asymmetricMatch']) {
    probed[name] = true;
  }
  const { hasOwnProperty } = Object.prototype;
  const hasOwn = (object, key) => apply(hasOwnProperty, object, [key]);
  const refuse = () => { throw new TypeErrorConstructor('`tools` cannot be changed'); };
  const node = (target, path) => {
    const handler = {
      __proto__: null,
      get(members, key) {
        if (hasOwn(members, key)) return members[key];
        if (typeof key === 'symbol') return undefined;
        if (key === 'toJSON') return () => keys(members);
        if (probed[key]) return key === 'toString' ? () => `[object ${path}]` : undefined;
        const error = new ToolError(undefined);
        throw describe(error, undefined, failure('unknown_tool', host.unknown(path, text(key))));
      },
      set: refuse,
      defineProperty: refuse,
      deleteProperty: refuse,
      setPrototypeOf: refuse,
      preventExtensions: refuse,
    };
    return new ProxyConstructor(target, handler);
  };
  const callable = (name) => (...given) => invoke(name, given);
  const makeTools = (list) => {
    const root = create(null);
    const servers = create(null);
    for (let i = 0; i < list.length; i++) {
      const { name, member } = list[i];
      if (member === undefined) continue;
      servers[member[0]] ??= create(null);
      define(servers[member[0]], member[1], name, true);
    }
    for (let i = 0; i < list.length; i++) {
      const { name, member } = list[i];
      // A server of the same name gets the tool as its call.
      if (!hasOwn(servers, name)) define(root, name, callable(name), member === undefined);
    }
    const names = keys(servers);
    for (let i = 0; i < names.length; i++) {
      const server = names[i];
      let target = create(null);
      for (let j = 0; j < list.length; j++) {
        if (list[j].name === server) {
          target = callable(server);
          deleteProperty(target, 'name');
          deleteProperty(target, 'length');
        }
      }
      const members = keys(servers[server]);
      for (let j = 0; j < members.length; j++) {
        define(target, members[j], callable(servers[server][members[j]]), true);
      }
      define(root, server, node(target, `tools.${server}`), true);
    }
    return node(root, 'tools');
  };

  // ---- `console`.
  const shown = (value) => {
    try {
      if (typeof value === 'string') return value;
      if (typeof value === 'function' && !hasOwn(value, 'toJSON')) return `[function ${text(value.name)}]`;
      if (value instanceof ErrorConstructor) return `${text(value.name)}: ${messageOf(value)}`;
      const json = toJson(value);
      return json === undefined ? text(value) : json;
    } catch (cause) {
      return `[not shown: ${messageOf(cause)}]`;
    }
  };
  const write = (level) => (...values) => {
    let line = '';
    for (let i = 0; i < values.length; i++) line += (i > 0 ? ' ' : '') + shown(values[i]);
    host.log(level, text(line));
  };
  const console = create(null);
  for (const [name, level] of [['log', 'log'], ['debug', 'log'], ['trace', 'log'], ['dir', 'log'], ['table', 'log'],
    ['info', 'info'], ['warn', 'warn'], ['error', 'error'], ['assert', null], ['time', null], ['timeEnd', null],
    ['group', null], ['groupEnd', null]]) {
    define(console, name, level === null ? () => {} : write(level), true);
  }
  define(globalThis, 'console', console, true);

  // ---- The end of the script.
  const messageOf = (error) => {
    try {
      if (typeof error === 'object' && error !== null && typeof error.message === 'string') return text(error.message);
      const json = typeof error === 'string' ? error : toJson(error);
      return text(json === undefined ? error : json);
    } catch {
      return 'an error without a message';
    }
  };
  const part = (error, key) => {
    try {
      const value = error[key];
      return typeof value === 'string' ? text(value) : undefined;
    } catch {
      return undefined;
    }
  };
  const fail = (error) => {
    const isObject = typeof error === 'object' && error !== null;
    let tool, isToolError = false;
    try {
      isToolError = isObject && getPrototypeOf(error) === ToolError.prototype;
      tool = isToolError ? toolOf(error) : undefined;
    } catch { /* a proxy */ }
    host.fail({
      __proto__: null,
      name: (isObject ? part(error, 'name') : undefined) ?? '',
      message: messageOf(error),
      stack: (isObject ? part(error, 'stack') : undefined) ?? '',
      hint: isToolError ? part(error, 'hint') : undefined,
      kind: isToolError ? part(error, 'kind') : undefined,
      tool: typeof tool === 'string' ? tool : undefined,
      isNull: error === null,
    });
  };
  const finish = (value) => {
    let json;
    try {
      json = toJson(value);
    } catch (cause) {
      host.unwritable(messageOf(cause), cause === null);
      return;
    }
    host.finish(json === undefined ? 'null' : json);
    // Whoever waits for a call gets an error. What `Promise.race` has left handles it; a call that nothing awaits does not.
    const left = keys(calls);
    for (let i = 0; i < left.length; i++) {
      const { name, error, reject } = calls[left[i]];
      delete calls[left[i]];
      reject(describe(error, name, failure('ended', 'the script ended before this call')));
    }
  };

  return {
    __proto__: null,
    // Defines what the script finds beside the language.
    prepare(list, input) {
      define(globalThis, 'tools', makeTools(list), true);
      define(globalThis, 'input', input, true);
    },
    // Ends the script with a value, or with what an object with `then` makes of itself.
    async settle(value) {
      try {
        value = await value;
      } catch (error) {
        fail(error);
        return;
      }
      finish(value);
    },
    fail,
    rejected,
    // Calls whose error nothing has handled, each with the stack of the call.
    notAwaited() {
      const found = [];
      const ids = keys(unhandled);
      let length = 0;
      for (let i = 0; i < ids.length; i++) {
        const { count, error } = unhandled[ids[i]];
        if (count > 0) {
          define(found, length++, { __proto__: null, id: NumberFunction(ids[i]), stack: part(error, 'stack') ?? '' }, true);
        }
      }
      return found;
    },
    answer(id, value, problem) {
      const call = calls[id];
      if (call === undefined) return false;
      delete calls[id];
      if (problem === undefined) call.resolve(value);
      else call.reject(describe(call.error, call.name, problem));
      return true;
    },
    wake(id) {
      const waiting = sleeps[id];
      if (waiting === undefined) return false;
      delete sleeps[id];
      waiting.resolve();
      return true;
    },
  };
})
