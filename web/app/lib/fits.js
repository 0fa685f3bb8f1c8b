// How well a name fits what somebody types: letters in order, the closer together the better. Pure.

/** How well a text fits: small is better, -1 not at all. @param {string} text @param {string} wanted */
export function fits(text, wanted) {
  const hay = text.toLowerCase();
  let at = 0;
  let score = 0;
  for (const letter of wanted.toLowerCase()) {
    if (letter === " ") continue;
    const found = hay.indexOf(letter, at);
    if (found < 0) return -1;
    score += found - at;
    at = found + 1;
  }
  return hay.includes(wanted.toLowerCase()) ? score / 100 : score + 1;
}
