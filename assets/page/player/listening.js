// How a listener listens: volume, speed, and the timer that stops playback.

import { phrase } from "../lib/phrases.js";

/** In place of the minutes of the sleep timer: playback stops where the chapter ends. */
export const CHAPTER_END = -1;

/** Let the bar change the preferences, which the player and the bar follow; pause(words): stops playback, for the reason given. */
export function followPreferences(player, bar, preferences, pause) {
  player.addEventListener("soundless", () => pause(phrase("player.soundless")));
  let sleeping = 0; // timer
  /** Stop after these minutes; 0, or at the end of a chapter: at no time. @param {number} minutes */
  const sleepIn = (minutes) => {
    let left = minutes;
    clearInterval(sleeping);
    bar.listen({ sleep: minutes, left });
    if (minutes <= 0) return;
    sleeping = setInterval(() => {
      left -= 1;
      if (left) return bar.listen({ left });
      sleepIn(0);
      pause();
    }, 60_000);
  };
  bar.addEventListener("rate", ({ detail }) => preferences.set(detail));
  bar.addEventListener("repeat", ({ detail }) => bar.listen(detail));
  bar.addEventListener("volume", ({ detail }) => preferences.set({ volume: detail.value }));
  bar.addEventListener("sleep", ({ detail: { minutes } }) => sleepIn(minutes));
  const follow = () => {
    bar.volume = player.volume = preferences.values.volume;
    player.rate = preferences.values.rate;
    bar.listen({ rate: preferences.values.rate });
    player.fixedWait = preferences.wait;
  };
  preferences.addEventListener("change", follow);
  follow();
}
