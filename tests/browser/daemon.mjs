// A daemon of the real binary in a folder of its own, and a client of its API. What is started here is ended here, by its
// own process id.
import { spawn } from "node:child_process";
import { readdirSync, readlinkSync, rmSync } from "node:fs";
import { mkdtemp, realpath, rename, rm, writeFile } from "node:fs/promises";
import { request as ask, Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How long something that should come soon is waited for, on a slow and busy machine. */
export const PATIENCE_MS = 30_000;

const running = new Set();
const folders = new Set();

/** Ends what works in a folder of ours: commands of a daemon that could not end them. @param {string} folder */
function sweep(folder) {
  for (const id of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${id}/cwd`).replace(/ \(deleted\)$/, "") === folder) process.kill(Number(id), "SIGKILL");
    } catch {
      // It has ended meanwhile, or is nobody's business.
    }
  }
}

process.on("exit", () => {
  running.forEach((child) => child.kill("SIGKILL"));
  for (const folder of folders) {
    sweep(folder);
    rmSync(folder, { recursive: true, force: true });
  }
});
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => process.exit(1));

const pause = (ms) => new Promise((go) => setTimeout(go, ms));

/**
 * Asks until there is an answer that is neither undefined nor false.
 * @template T
 * @param {string} what @param {() => Promise<T> | T} probe @param {number} [patience]
 * @returns {Promise<NonNullable<T>>}
 */
export async function until(what, probe, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (let wait = 5; ; wait = Math.min(wait * 2, 100)) {
    const found = await probe();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await pause(wait);
  }
}

/** The environment without what could point a daemon elsewhere. */
function cleanEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("DUCTOR_")));
}

export class Daemon {
  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    this.listen = "127.0.0.1:0";
    this.url = "";
    this.output = "";
    this.agent = new Agent({ keepAlive: true, maxSockets: 16 });
  }

  /**
   * In a fresh folder, listening on a port that the kernel chooses.
   * @param {string} config @param {{listen?: string}} [options]
   */
  static async start(config, options = {}) {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "ductor-browser-")));
    folders.add(folder);
    const daemon = new Daemon(folder);
    if (options.listen) daemon.listen = options.listen;
    try {
      await daemon.writeConfig(config);
      await daemon.begin();
      return daemon;
    } catch (error) {
      await daemon.end();
      throw error;
    }
  }

  /** Another daemon of the same configuration on the same state directory. Ends by `kill`, before the first. */
  async another() {
    const other = new Daemon(this.folder);
    await other.begin();
    return other;
  }

  /** Replaces the file whole, as an editor does. @param {string} text */
  async writeConfig(text) {
    await writeFile(join(this.folder, "ductor.yaml.new"), text);
    await rename(join(this.folder, "ductor.yaml.new"), join(this.folder, "ductor.yaml"));
  }

  async begin() {
    const binary = process.env.DUCTOR_BIN;
    if (!binary) throw new Error("DUCTOR_BIN names the binary to test");
    const words = ["serve", "--config", join(this.folder, "ductor.yaml"), "--state-dir", join(this.folder, "state"), "--listen", this.listen];
    if (process.env.DUCTOR_WEB_DIR) words.push("--web-dir", process.env.DUCTOR_WEB_DIR);
    const child = spawn(binary, words, { cwd: this.folder, env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    this.child = child;
    this.ended = new Promise((end) => child.on("exit", (code, signal) => {
      running.delete(child);
      end(code ?? signal);
    }));
    let gone = false;
    this.ended.then(() => { gone = true; });
    const keep = (text) => { this.output = (this.output + text).slice(-200_000); };
    let head = "";
    child.stdout.setEncoding("utf8").on("data", (text) => { keep(text); if (head.length < 10_000) head += text; });
    child.stderr.setEncoding("utf8").on("data", keep);
    const url = await until("the URL of the daemon", () => {
      if (gone) throw new Error(`the daemon ended at once:\n${this.output}`);
      return /dashboard\s+(http:\/\/\S+)/.exec(head)?.[1];
    });
    this.url = url.replace(/\/$/, "");
  }

  /** No time for anything: its commands live on and are ended by the next one. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  /** At the same address, with the same state. */
  async restart() {
    this.listen = new URL(this.url).host;
    await this.begin();
  }

  /** Ends its commands too, and takes its folder away. */
  async end() {
    if (this.child && running.has(this.child)) {
      // A second signal spares the wait for running commands.
      this.child.kill("SIGTERM");
      this.child.kill("SIGTERM");
      const hard = setTimeout(() => this.child.kill("SIGKILL"), 15_000);
      await this.ended;
      clearTimeout(hard);
    }
    this.agent.destroy();
    sweep(this.folder);
    folders.delete(this.folder);
    await rm(this.folder, { recursive: true, force: true });
  }

  /**
   * @param {string} method @param {string} path @param {unknown} [body]
   * @returns {Promise<{status: number, body: any}>}
   */
  send(method, path, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    return new Promise((done, failed) => {
      const request = ask(this.url + path, { method, headers, agent: this.agent }, (response) => {
        let all = "";
        response.setEncoding("utf8").on("data", (part) => { all += part; }).on("error", failed);
        response.on("end", () => {
          let read = all;
          try {
            read = JSON.parse(all);
          } catch {
            // A log, or metrics.
          }
          done({ status: response.statusCode ?? 0, body: read });
        });
      });
      request.on("error", failed).end(text);
    });
  }

  /** @param {string} path */
  async get(path) {
    const { status, body } = await this.send("GET", path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    return path.startsWith("/api/") ? body.data : body;
  }

  /** @param {string} path @param {unknown} [body] */
  async post(path, body) {
    const answer = await this.send("POST", path, body);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Starts a job; the id of the run, and of the slot entry if it has one. @param {string} job @param {unknown} [body] @returns {Promise<{runId: string, queueId?: string}>} */
  start(job, body) {
    return this.post(`/jobs/${encodeURIComponent(job)}/start`, body);
  }

  /** Waits until a run is in one of these states. @param {string} id @param {string[]} states */
  run(id, ...states) {
    return until(`run ${id} to be ${states.join(" or ")}`, async () => {
      const run = await this.get(`/api/runs/${id}`);
      return states.includes(run.state) ? run : undefined;
    });
  }

  /** Waits until an entry is in a state. @param {string} slotPool @param {string} id @param {string} state */
  entry(slotPool, id, state) {
    return until(`entry ${id} to be ${state}`, async () => {
      const entry = await this.get(`/pools/${slotPool}/queue/${id}`);
      return entry.state === state ? entry : undefined;
    });
  }
}
