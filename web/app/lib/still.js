// Rows that hold still while somebody reads or points at them. Pure.

/**
 * The rows to show: those that were shown keep their places with their newest facts; what came since waits outside.
 * @template T
 * @param {string[]} shown keys in their order when the list began to hold still
 * @param {T[]} rows as they are now
 * @param {(row: T) => string} keyOf
 * @param {Map<string, T>} known rows as they were seen last: what left the list meanwhile stays until it goes on
 * @returns {{rows: T[], fresh: number}} `fresh`: how many wait outside
 */
export function holdStill(shown, rows, keyOf, known) {
  const now = new Map(rows.map((row) => [keyOf(row), row]));
  const kept = [];
  for (const key of shown) {
    const row = now.get(key) ?? known.get(key);
    if (row !== undefined) kept.push(row);
  }
  const inside = new Set(shown);
  const first = rows.findIndex((row) => inside.has(keyOf(row)));
  const last = rows.findLastIndex((row) => inside.has(keyOf(row)));
  // What is behind the last one was loaded on purpose and moves nothing.
  const behind = last < 0 ? [] : rows.slice(last + 1);
  const fresh = rows.filter((row, at) => !inside.has(keyOf(row)) && (last < 0 || at < last)).length;
  return { rows: first < 0 && shown.length === 0 ? rows : [...kept, ...behind], fresh: shown.length === 0 ? 0 : fresh };
}

/**
 * The first page, the rows that it has pushed out since, and the further ones, without a hole between them.
 * @template T
 * @param {T[]} before all rows as they were shown last
 * @param {T[]} first @param {T[]} further @param {(row: T) => string} keyOf
 */
export function bridge(before, first, further, keyOf) {
  const seen = new Set(first.map(keyOf));
  const rest = further.filter((row) => !seen.has(keyOf(row)));
  if (further.length === 0 || first.length === 0) return [...first, ...rest];
  const behind = new Set(rest.map(keyOf));
  const last = keyOf(first[first.length - 1]);
  const from = before.findIndex((row) => keyOf(row) === last);
  const pushed = [];
  if (from >= 0) {
    for (const row of before.slice(from + 1)) {
      if (behind.has(keyOf(row))) break;
      if (!seen.has(keyOf(row))) pushed.push(row);
    }
  }
  return [...first, ...pushed, ...rest];
}

/**
 * The newest rows, but the very objects of before where nothing has changed: what is drawn from them stays as it is.
 * @template T
 * @param {T[]} before @param {T[]} rows @param {(row: T) => string} keyOf
 */
export function reuse(before, rows, keyOf) {
  const old = new Map(before.map((row) => [keyOf(row), row]));
  return rows.map((row) => {
    const same = old.get(keyOf(row));
    return same !== undefined && (same === row || JSON.stringify(same) === JSON.stringify(row)) ? same : row;
  });
}
