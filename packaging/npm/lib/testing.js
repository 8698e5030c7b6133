import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream, existsSync, openSync, closeSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { program } from "./program.js";

const STOP_TIMEOUT_MS = 15_000;

/**
 * How smalt is started.
 * @typedef {object} Options
 * @property {string} [location] directory of the data; without it everything is in memory
 * @property {string} [seed] seed file or folder
 * @property {Record<string, string>} [accounts] keys in Base64 by name, in place of Azurite's account
 * @property {string[]} [arguments] further arguments of the command line
 * @property {number} [startTimeoutMs] 30,000 by default
 */

/**
 * What goes wrong: `kind` and its settings are those of a fault of the control endpoint.
 * @typedef {object} Fault
 * @property {string} kind
 * @property {string} [operation] id of an operation; every one by default
 * @property {string} [resource] start of the path
 * @property {number} [nth] first matching call that the rule affects
 * @property {number} [times] how many calls it affects
 * @property {number} [status]
 * @property {number} [retry_after_s]
 * @property {number} [delay_ms]
 * @property {number} [after_bytes]
 * @property {number} [duration_s]
 */

/**
 * A fault rule and what it did.
 * @typedef {{ rule: object, seen: number, fired: number }} FaultReport
 */

/**
 * Starts smalt on free ports and waits until it serves.
 *
 * @param {Options} [options]
 * @returns {Promise<Smalt>}
 * @throws {Error} with the end of its log if it does not start
 */
export async function start(options = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), "smalt-"));
  const ready = path.join(folder, "ready.json");
  const log = path.join(folder, "log");
  const output = openSync(log, "w");
  const child = spawn(program(), [...commandLine(options), "--readyFile", ready], {
    stdio: ["pipe", output, output],
  });
  closeSync(output);
  /** @type {Error | undefined} */
  let failure;
  child.on("error", (error) => (failure = error));
  const deadline = Date.now() + (options.startTimeoutMs ?? 30_000);
  while (!existsSync(ready)) {
    if (failure !== undefined || child.exitCode !== null || Date.now() > deadline) {
      child.kill("SIGKILL");
      const text = failure?.message ?? (await readFile(log, "utf8")).slice(-2000);
      await rm(folder, { recursive: true, force: true });
      throw new Error(`smalt did not start: ${text}`);
    }
    await sleep(10);
  }
  return new Smalt(child, folder, JSON.parse(await readFile(ready, "utf8")));
}

/**
 * @param {Options} options
 * @returns {string[]}
 */
function commandLine(options) {
  const line = ["blob", "queue", "table", "control"].flatMap((name) => [`--${name}Port`, "0"]);
  // smalt ends when this process does, however it ends.
  line.push("--stopWithStdin");
  if (options.location === undefined) line.push("--inMemoryPersistence");
  else line.push("--location", options.location);
  if (options.seed !== undefined) line.push("--seed", options.seed);
  if (options.accounts !== undefined) {
    const accounts = Object.entries(options.accounts).map(([name, key]) => `${name}:${key}`);
    line.push("--accounts", accounts.join(";"));
  }
  return line.concat(options.arguments ?? []);
}

/** One running smalt. */
export class Smalt {
  #child;
  #folder;
  #ready;

  /**
   * Called by `start`.
   *
   * @param {import("node:child_process").ChildProcess} child
   * @param {string} folder
   * @param {any} ready
   */
  constructor(child, folder, ready) {
    this.#child = child;
    this.#folder = folder;
    this.#ready = ready;
    // Neither the process nor its pipe keeps the test runner alive.
    child.unref();
    /** @type {any} */ (child.stdin).unref?.();
    /** The clock of the services. */
    this.clock = new Clock(this);
    /** Rules that make requests fail. */
    this.faults = new Faults(this);
    /** Named snapshots of the whole state. */
    this.snapshots = new Snapshots(this);
  }

  /** The connection string of the first account, for Microsoft's SDKs. @returns {string} */
  get connectionString() {
    return this.#ready.accounts[0].connection_string;
  }

  /** The name of the first account. @returns {string} */
  get account() {
    return this.#ready.accounts[0].name;
  }

  /** The key of the first account, in Base64. @returns {string} */
  get key() {
    return this.#ready.accounts[0].key;
  }

  /**
   * The URL of a service with the account, or of the control endpoint.
   *
   * @param {"blob" | "queue" | "table" | "control"} service
   * @returns {string}
   */
  url(service) {
    const { url } = this.#ready[service];
    return service === "control" ? url : `${url}/${this.account}`;
  }

  /** Returns to the state after the start, seeds included. Fault rules stay. */
  async reset() {
    await this.ask("POST", "/state/reset");
  }

  /** Writes the whole state to a file. @param {string} file */
  async exportState(file) {
    await pipeline(await this.#send("GET", "/state/export"), createWriteStream(file));
  }

  /** Replaces the state by that of an exported file. @param {string} file */
  async importState(file) {
    const { size } = await stat(file);
    (await this.#send("POST", "/state/import", createReadStream(file), size)).resume();
  }

  /** Stops smalt and waits until it has ended. */
  async stop() {
    const child = this.#child;
    if (child.exitCode === null && child.signalCode === null) {
      child.ref();
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(late);
    }
    child.stdin?.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.stop();
  }

  /**
   * Asks the control endpoint.
   *
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @returns {Promise<any>} the answer's JSON
   */
  async ask(method, path, body) {
    const text = body === undefined ? "" : JSON.stringify(body);
    const answer = await readAll(await this.#send(method, path, text, Buffer.byteLength(text)));
    return answer === "" ? undefined : JSON.parse(answer);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {string | import("node:stream").Readable} [body]
   * @param {number} [length]
   * @returns {Promise<http.IncomingMessage>}
   */
  async #send(method, path, body = "", length = 0) {
    const headers = { "content-length": length };
    // Not `fetch`, which test frameworks replace.
    const request = http.request(`${this.url("control")}${path}`, { method, headers });
    const answered = once(request, "response");
    if (typeof body === "string") request.end(body);
    else body.pipe(request);
    const [answer] = await answered;
    if (answer.statusCode >= 300) {
      throw new Error(`${method} ${path}: ${answer.statusCode} ${await readAll(answer)}`);
    }
    return answer;
  }
}

/**
 * @param {http.IncomingMessage} answer
 * @returns {Promise<string>}
 */
async function readAll(answer) {
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += chunk;
  return text;
}

/** The clock of the services. */
export class Clock {
  #smalt;

  /** @param {Smalt} smalt */
  constructor(smalt) {
    this.#smalt = smalt;
  }

  /** The services' current time. @returns {Promise<Date>} */
  async now() {
    return new Date((await this.#smalt.ask("GET", "/clock")).now);
  }

  /** Sets the time. It cannot go below that of the last write. @param {Date} moment */
  async set(moment) {
    await this.#smalt.ask("PUT", "/clock", { now: moment.toISOString() });
  }

  /** Advances the clock by so many seconds. @param {number} seconds */
  async advance(seconds) {
    await this.#smalt.ask("PUT", "/clock", { advance_s: seconds });
  }

  /** Stops time until `run`. */
  async freeze() {
    await this.#smalt.ask("PUT", "/clock", { mode: "frozen" });
  }

  /** Lets time run on. */
  async run() {
    await this.#smalt.ask("PUT", "/clock", { mode: "running" });
  }
}

/** Rules that make requests fail. */
export class Faults {
  #smalt;

  /** @param {Smalt} smalt */
  constructor(smalt) {
    this.#smalt = smalt;
  }

  /** Adds a rule. @param {Fault} fault */
  async add({ operation = "*", resource = "", nth = 1, times = 1, ...fault }) {
    await this.#smalt.ask("POST", "/faults", { operation, resource, nth, times, fault });
  }

  /** The rules, with how many calls each saw and how often it fired. @returns {Promise<FaultReport[]>} */
  async rules() {
    return this.#smalt.ask("GET", "/faults");
  }

  /** Removes all rules and returns what each did. @returns {Promise<FaultReport[]>} */
  async clear() {
    return this.#smalt.ask("DELETE", "/faults");
  }
}

/** Named snapshots of the whole state. */
export class Snapshots {
  #smalt;

  /** @param {Smalt} smalt */
  constructor(smalt) {
    this.#smalt = smalt;
  }

  /** Saves the state under a name, and replaces an earlier one of this name. @param {string} name */
  async save(name) {
    await this.#smalt.ask("PUT", `/state/snapshots/${name}`);
  }

  /** Replaces the state by a saved one. @param {string} name */
  async load(name) {
    await this.#smalt.ask("POST", `/state/snapshots/${name}`);
  }

  /** Deletes a saved state. @param {string} name */
  async delete(name) {
    await this.#smalt.ask("DELETE", `/state/snapshots/${name}`);
  }
}

/**
 * Starts a smalt for a file of tests and gives each test an empty account. Works with vitest, jest,
 * mocha and node:test: pass their hooks.
 *
 *     import { afterAll, beforeAll, beforeEach, test } from "vitest";
 *     const smalt = useSmalt({ beforeAll, beforeEach, afterAll });
 *     test("uploads", () => BlobServiceClient.fromConnectionString(smalt().connectionString));
 *
 * @param {{
 *   beforeAll: (run: () => Promise<void>) => unknown,
 *   beforeEach: (run: () => Promise<void>) => unknown,
 *   afterAll: (run: () => Promise<void>) => unknown,
 * }} hooks
 * @param {Options} [options]
 * @returns {() => Smalt} the running smalt, inside hooks and tests
 */
export function useSmalt({ beforeAll, beforeEach, afterAll }, options) {
  /** @type {Smalt | undefined} */
  let running;
  const smalt = () => {
    if (running === undefined) throw new Error("smalt runs only inside hooks and tests");
    return running;
  };
  beforeAll(async () => {
    running = await start(options);
  });
  beforeEach(async () => {
    await smalt().faults.clear();
    await smalt().reset();
    await smalt().clock.run();
  });
  afterAll(async () => {
    await running?.stop();
  });
  return smalt;
}
