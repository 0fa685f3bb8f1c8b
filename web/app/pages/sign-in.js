// Signing in: a key is traded for a cookie that no script can read.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { enter, locked } from "../lib/session.js";
import { refresh } from "../lib/store.js";
import { Icon } from "../ui/icons.js";

/** @param {string} key */
export const signIn = (key) => enter(() => act("POST", "/api/session", { body: { key } })).then(refresh);

/** @param {{status: number, detail: string}} problem */
const sentence = (problem) => (problem.status === 401 ? "This key opens nothing. It may have ended, or a letter is missing." : problem.detail);

export function SignIn() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => {
    document.title = "Sign in · ductor";
    field.current?.focus();
  }, []);
  const onSubmit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await signIn(key.trim());
    } catch (problem) {
      // The first key may have gone with its state directory: nobody has to sign in then.
      if (problem.status === 409) locked.value = false;
      setError(sentence(problem));
      setBusy(false);
      field.current?.select();
    }
  };
  return html`<main class="sign-in" id="main" tabindex="-1">
    <form class="card" onSubmit=${onSubmit}>
      <div class="brand"><img src="/web/icon.svg" width="28" height="28" alt="" />ductor</div>
      <h1>Sign in</h1>
      <label class="field" for="sign-in-key"><span>API key</span>
        <input class="input mono" id="sign-in-key" ref=${field} type="password" value=${key} onInput=${(event) => setKey(event.currentTarget.value)}
          required autocomplete="current-password" spellcheck="false" placeholder="dk_…" aria-describedby="sign-in-hint" aria-invalid=${error ? "true" : undefined} />
        <span class="quiet tiny" id="sign-in-hint">Whoever looks after this daemon makes one with <code>ductor key create</code>.</span>
      </label>
      ${error && html`<p class="state of-bad" role="alert"><${Icon} of="cross" /><span>${error}</span></p>`}
      <button type="submit" class="button main" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button>
    </form>
  </main>`;
}
