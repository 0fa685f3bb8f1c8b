// Where the bytes of a log come from: ranges, its growth as a stream, and the search. Knows the addresses and nothing else.
import { get, getBytes, open, withQuery } from "./api.js";
import { readEvents } from "./sse.js";

/** @typedef {{start: number, size: number, done: boolean, bytes: Uint8Array}} Range */

export class LogSource {
  /** @param {{runId: string, step: string, attempt: number | string, fence?: number, base?: string}} of */
  constructor({ runId, step, attempt, fence, base = "/api" }) {
    const encode = encodeURIComponent;
    this.run = `${base}/runs/${encode(runId)}`;
    this.path = `${this.run}/steps/${encode(step)}/attempts/${attempt}/log`;
    this.fence = fence;
  }

  /** @param {string} end @param {Record<string, unknown>} query */
  address(end, query = {}) {
    return withQuery(this.path + end, { ...query, fence: this.fence });
  }

  /** What the command wrote, as a file: without the tags of the records. */
  get download() {
    return this.address("", { download: "text" });
  }

  /** @param {number} offset a negative one counts from the end @param {number} limit @param {AbortSignal} [signal] @returns {Promise<Range>} */
  async read(offset, limit, signal) {
    const { bytes, headers } = await getBytes(this.address("", { offset, limit }), { signal });
    return {
      bytes,
      start: Number(headers.get("x-log-start")),
      size: Number(headers.get("x-log-size")),
      done: headers.get("x-log-done") === "true",
    };
  }

  /**
   * Follows the log from an offset until it ends or the signal is given.
   * @param {number} offset @param {AbortSignal} signal
   * @param {(piece: {offset: number, to: number, text: string}) => void} take
   * @param {() => void} begun somebody answers
   * @returns {Promise<boolean>} whether the log is complete; false: come again
   */
  async follow(offset, signal, take, begun) {
    const body = await open(this.address("/tail"), { signal, headers: { "Last-Event-ID": String(offset) } });
    begun();
    let complete = false;
    await readEvents(body, (event) => {
      if (event.event === "end") complete = true;
      else if (event.event === "message" && !event.comment) {
        const { offset: from, text } = JSON.parse(event.data);
        take({ offset: from, to: Number(event.id), text });
      }
    });
    return complete;
  }

  /**
   * The next match from an offset on, or before it; the daemon reads a bounded piece of the log for one answer.
   * @param {{q: string, from?: number, direction: "next" | "previous", limit: number, case: "exact" | "ignore"}} wanted @param {AbortSignal} signal
   */
  async search(wanted, signal) {
    const { body } = await get(this.address("/search", wanted), { signal });
    return body;
  }

  /** Bytes that the attempt wrote, as far as its run knows. */
  async wrote(step, attempt) {
    const { body } = await get(this.run);
    const found = body.steps?.find((each) => each.ref === step)?.attempts ?? [];
    return found.findLast?.((each) => each.number === Number(attempt))?.log_bytes ?? 0;
  }
}
