// What is copied: commands that do the same in a terminal. Pure, but for the clipboard itself.
import { quote } from "./format.js";

/**
 * The request as curl.
 * @param {{method: string, path: string, body?: unknown, ifMatch?: string}} request @param {string} origin
 */
export function asCurl({ method, path, body, ifMatch }, origin) {
  const words = ["curl", "-sS"];
  if (method !== "GET") words.push("-X", method);
  if (ifMatch) words.push("-H", quote(`If-Match: ${ifMatch}`));
  if (body !== undefined) words.push("-H", quote("Content-Type: application/json"), "-d", quote(JSON.stringify(body)));
  words.push(quote(origin + path));
  return words.join(" ");
}

/**
 * A command line of ductor; the server is named unless it is the one that is asked by default.
 * @param {string[]} words @param {string} origin
 */
export function asCli(words, origin) {
  const server = origin === "http://127.0.0.1:8470" ? [] : ["--server", origin];
  return ["ductor", ...words, ...server].map(quote).join(" ");
}

/** @param {string} text */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Over plain http to another host there is no clipboard object.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
