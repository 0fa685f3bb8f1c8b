// Daemons that several tests only look at; begun when the first one wants them.
import { Daemon } from "./daemon.mjs";
import { demo } from "./demo.mjs";

/** @type {ReturnType<typeof demo> | undefined} */
let scene;
export const theScene = () => (scene ??= demo());

/** @type {Promise<Daemon> | undefined} */
let empty;
export const anEmptyDaemon = () => (empty ??= Daemon.start("jobs: []\n"));

export async function endScenes() {
  for (const begun of [scene?.then(({ daemon }) => daemon), empty]) await begun?.then((daemon) => daemon.end(), () => {});
}
