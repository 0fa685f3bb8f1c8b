// Whether the daemon wants to know who looks: set by the first answer 401, lifted by signing in.
import { signal } from "./dom.js";

/** Nothing is shown but the page to sign in. */
export const locked = signal(false);
let entering = 0;

/** An answer 401 has come. While a sign-in is under way it may be about a moment ago. */
export function refused() {
  if (entering === 0) locked.value = true;
}

/**
 * Signs in by `send`; what is refused meanwhile locks nothing.
 * @param {() => Promise<any>} send
 */
export async function enter(send) {
  entering += 1;
  try {
    await send();
    locked.value = false;
  } finally {
    entering -= 1;
  }
}
