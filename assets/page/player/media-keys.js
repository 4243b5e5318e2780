// Media keys, headphones and the lock screen control the player.

import { wavFile } from "../lib/wav.js";

const [SECONDS, RATE] = [10, 8000]; // of silence; browsers give no media keys to sounds of less than five seconds
const SKIP = 10; // seconds

/** @param {import("./now-playing.js").NowPlaying} nowPlaying */
export function offerMediaKeys(nowPlaying) {
  const { mediaSession } = navigator;
  if (!mediaSession) return;
  /** Chromium gives media keys only to a page that plays an element, even if Web Audio is heard. @type {HTMLAudioElement | null} */
  let silence = null;
  const hold = (isPlaying) => {
    if (isPlaying && !silence) {
      silence = new Audio(URL.createObjectURL(wavFile([new Int16Array(SECONDS * RATE)], RATE)));
      silence.loop = true;
    }
    if (isPlaying) silence?.play().catch(() => {}); // not allowed before a press; the player's own sound needs one too
    else silence?.pause();
  };
  /** @type {[MediaSessionAction, (details: MediaSessionActionDetails) => unknown][]} */
  const keys = [
    ["play", () => nowPlaying.isPlaying || nowPlaying.playOrPause()],
    ["pause", () => nowPlaying.pause()],
    ["stop", () => nowPlaying.pause()],
    ["seekbackward", ({ seekOffset = SKIP }) => nowPlaying.skip(-seekOffset)],
    ["seekforward", ({ seekOffset = SKIP }) => nowPlaying.skip(seekOffset)],
    ["seekto", ({ seekTime }) => seekTime !== undefined && nowPlaying.seek(seekTime)],
    ["previoustrack", () => nowPlaying.step(-1)],
    ["nexttrack", () => nowPlaying.step(1)],
  ];
  for (const [key, work] of keys) {
    try {
      mediaSession.setActionHandler(key, work);
    } catch (problem) {
      if (!(problem instanceof TypeError)) throw problem; // a key that this browser does not know
    }
  }
  nowPlaying.addEventListener("state", () => {
    const { current } = nowPlaying;
    const isPlaying = nowPlaying.isPlaying && current !== null; // it waits for its first track too
    hold(isPlaying);
    mediaSession.playbackState = isPlaying ? "playing" : current ? "paused" : "none";
    if (isPlaying) mediaSession.metadata = new MediaMetadata({ title: current.name });
  });
  let shown = NaN; // the second
  nowPlaying.addEventListener("moved", ({ detail: { take, position } }) => {
    if (shown === Math.floor(position)) return;
    shown = Math.floor(position);
    const duration = Math.max(take.seconds, take.expectedSeconds, position);
    mediaSession.setPositionState?.({ duration, position, playbackRate: nowPlaying.player.rate }); // else the lock screen shows the silence's
  });
}
