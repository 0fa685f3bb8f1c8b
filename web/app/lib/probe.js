// A request as it is, for whoever wants to see the answer itself: status, headers, time, and as many bytes as are wanted.

/** Bytes read of an answer; more is not shown. */
const BYTES_MAX = 1_048_576;
/** A stream that goes on is listened to for so long. */
const STREAM_MS = 5000;
const HEADERS = ["content-type", "etag", "location", "x-request-id", "idempotency-replayed", "retry-after", "ratelimit", "x-log-start", "x-log-size", "x-log-done", "content-disposition"];

/**
 * @typedef {{status: number, ms: number, bytes: number, headers: [string, string][], text: string, media: string, cut: "" | "size" | "time"}} Seen
 */

/** @param {string} path @returns {Promise<Seen>} */
export async function probe(path) {
  const began = performance.now();
  const controller = new AbortController();
  const response = await fetch(path, { cache: "no-store", signal: controller.signal });
  const media = (response.headers.get("content-type") ?? "").split(";")[0];
  const { text, bytes, cut } = await read(response, media === "text/event-stream");
  controller.abort();
  const headers = HEADERS.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [/** @type {[string, string]} */ ([name, value])];
  });
  return { status: response.status, ms: performance.now() - began, bytes, headers, text, media, cut };
}

/** @param {Response} response @param {boolean} isStream */
async function read(response, isStream) {
  if (!response.body) return { text: "", bytes: 0, cut: /** @type {""} */ ("") };
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const over = isStream ? new Promise((go) => setTimeout(() => go({ late: true }), STREAM_MS)) : new Promise(() => {});
  for (;;) {
    const step = await Promise.race([reader.read(), over]);
    if (step.late) return { text, bytes, cut: /** @type {"time"} */ ("time") };
    if (step.done) return { text: text + decoder.decode(), bytes, cut: /** @type {""} */ ("") };
    bytes += step.value.length;
    text += decoder.decode(step.value, { stream: true });
    if (bytes > BYTES_MAX) return { text, bytes, cut: /** @type {"size"} */ ("size") };
  }
}
