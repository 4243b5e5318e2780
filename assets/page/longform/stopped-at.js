// Where a listener stopped in each project, kept in this browser.

import { keep, kept } from "../lib/storage.js";

const NAME = "listened-1";
const MOST = 100; // projects
const EVERY = 5; // seconds of sound between two notes

/** position: of the part. @typedef {{ part: string, seconds: number, position?: number }} Place */

/** @param {string} project @returns {Place | null} */
export const stoppedAt = (project) => kept(NAME, {})[project] ?? null;

/**
 * Note the place, or none once the project has been heard to its end.
 *
 * @param {string} project
 * @param {Place | null} place
 */
export function noteStop(project, place) {
  const { [project]: _, ...others } = kept(NAME, {});
  keep(NAME, Object.fromEntries([...Object.entries(others), ...(place ? [[project, place]] : [])].slice(-MOST)));
}

/** Note where projects that play on are heard. @param {import("../player/now-playing.js").NowPlaying} nowPlaying */
export function followListening(nowPlaying) {
  let last = { part: "", seconds: 0, position: 0 };
  const note = ({ detail: { take, state } }) => {
    if (!take?.of?.project || !nowPlaying.isPlayedOn) return;
    const { project, part, position } = take.of;
    const { position: seconds } = nowPlaying;
    const isEnd = state === "over" && take === nowPlaying.tracks.at(-1);
    if (state === "playing" && part === last.part && Math.abs(seconds - last.seconds) < EVERY) return;
    last = { part, seconds, position };
    noteStop(project, isEnd ? null : last);
  };
  nowPlaying.addEventListener("moved", note);
  nowPlaying.addEventListener("state", note); // a pause, which the player does not report; and before the button that continues is named
}
