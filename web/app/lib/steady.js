// Rows that stand still while somebody reads or points at them. Pure.

/**
 * The rows as they were shown, with what is new about them: what has gone stays in its place and is marked, what has come is
 * at the end.
 * @template T
 * @param {{row: T, gone: boolean}[]} shown @param {T[]} fresh @param {(row: T) => string} keyOf
 * @returns {{row: T, gone: boolean}[]}
 */
export function steady(shown, fresh, keyOf) {
  const now = new Map(fresh.map((row) => [keyOf(row), row]));
  const kept = shown.map(({ row }) => {
    const key = keyOf(row);
    const still = now.get(key);
    now.delete(key);
    return { row: still ?? row, gone: still === undefined };
  });
  return [...kept, ...[...now.values()].map((row) => ({ row, gone: false }))];
}
