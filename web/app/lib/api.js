// Requests to the daemon. A refusal is always a `Problem`, also when nobody answers.
import { refused } from "./session.js";

/** Why a request was refused, or could not be made. */
export class Problem extends Error {
  /**
   * @param {{status: number, code: string, detail: string, requestId?: string, errors?: object[], retryable?: boolean,
   *   currentVersion?: unknown, body?: any, place?: {column: number, length: number}, method: string, path: string}} facts
   */
  constructor(facts) {
    super(facts.detail);
    this.status = facts.status;
    this.code = facts.code;
    this.detail = facts.detail;
    this.requestId = facts.requestId;
    this.errors = facts.errors ?? [];
    this.retryable = facts.retryable ?? false;
    this.currentVersion = facts.currentVersion;
    // All of the answer: some refusals say more, like the checks of readiness.
    this.body = facts.body;
    this.place = facts.place;
    this.method = facts.method;
    this.path = facts.path;
  }
}

/**
 * A path with query parameters; a list repeats its name, and what is empty is left out.
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 */
export function withQuery(path, query = {}) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") pairs.append(name, String(one));
    }
  }
  const text = pairs.toString();
  return text ? `${path}${path.includes("?") ? "&" : "?"}${text}` : path;
}

async function send(method, path, options) {
  try {
    return await fetch(path, { method, cache: "no-store", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({
      status: 0,
      code: "UNREACHABLE",
      detail: "no answer: the daemon is not running, or cannot be reached",
      retryable: true,
      method,
      path,
    });
  }
}

async function refusal(response, method, path) {
  if (response.status === 401) refused();
  const body = await response.json().catch(() => ({}));
  return new Problem({
    status: response.status,
    code: body.code ?? "UNKNOWN",
    detail: body.detail ?? `the daemon answered with status ${response.status}`,
    requestId: body.request_id ?? response.headers.get("x-request-id") ?? undefined,
    errors: body.errors,
    retryable: body.retryable,
    currentVersion: body.current_version,
    body,
    place: body.column === undefined ? undefined : { column: body.column, length: body.length ?? 1 },
    method,
    path,
  });
}

/**
 * Reads JSON. Answers under `/api` come without their envelope: `body` is their `data`.
 * @param {string} path
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<{body: any, next?: string, rest: any, etag?: string}>}
 */
export async function get(path, options = {}) {
  const response = await send("GET", path, { signal: options.signal });
  if (!response.ok) throw await refusal(response, "GET", path);
  const whole = await response.json();
  const etag = response.headers.get("etag") ?? undefined;
  if (!path.startsWith("/api/") || whole === null || !("data" in whole)) return { body: whole, rest: {}, etag };
  const { data, pagination, ...rest } = whole;
  // How far a filter that matches little was looked for.
  if (pagination?.scanned_to) rest.scanned_to = pagination.scanned_to;
  return { body: data, next: pagination?.next_cursor, rest, etag };
}

/**
 * Reads bytes, with the answer's headers.
 * @param {string} path
 * @param {{signal?: AbortSignal}} [options]
 */
export async function getBytes(path, options = {}) {
  const response = await send("GET", path, { signal: options.signal });
  if (!response.ok) throw await refusal(response, "GET", path);
  return { bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
}

/**
 * Opens a stream of bytes.
 * @param {string} path
 * @param {{signal: AbortSignal, headers?: Record<string, string>}} options
 */
export async function open(path, options) {
  const response = await send("GET", path, options);
  if (!response.ok || !response.body) throw await refusal(response, "GET", path);
  return response.body;
}

/** A key under which a change is made once, however often it is sent. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * Changes something. The same key must be given again when the same wish is sent again.
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, key?: string, ifMatch?: string}} [options]
 */
export async function act(method, path, options = {}) {
  const headers = { "Idempotency-Key": options.key ?? freshKey() };
  if (options.ifMatch) headers["If-Match"] = options.ifMatch;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const response = await send(method, path, { headers, body });
  if (!response.ok) throw await refusal(response, method, path);
  const whole = await response.json().catch(() => ({}));
  return whole !== null && typeof whole === "object" && "data" in whole ? whole.data : whole;
}
