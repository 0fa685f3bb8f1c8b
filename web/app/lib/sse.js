// Server-sent events over `fetch`: unlike `EventSource` it shows the heartbeats, which tell a quiet daemon from a dead one.

/**
 * Splits a stream into events as text comes in.
 * @returns {(text: string) => {id?: string, event: string, data: string, comment?: boolean}[]}
 */
export function parser() {
  let rest = "";
  return (text) => {
    rest += text;
    const found = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(rest);
      if (!end) return found;
      const block = rest.slice(0, end.index);
      rest = rest.slice(end.index + end[0].length);
      found.push(readBlock(block));
    }
  };
}

/** @param {string} block */
function readBlock(block) {
  /** @type {{id?: string, event: string, data: string, comment: boolean}} */
  const read = { id: undefined, event: "message", data: "", comment: true };
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") read.event = value;
    else if (field === "id") read.id = value;
  }
  read.data = data.join("\n");
  read.comment = data.length === 0 && read.event === "message";
  return read;
}

/**
 * Reads a body to its end and hands each event over, comments too.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: {id?: string, event: string, data: string, comment?: boolean}) => void} take
 */
export async function readEvents(body, take) {
  const parse = parser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parse(decoder.decode(value, { stream: true })).forEach(take);
  }
}
