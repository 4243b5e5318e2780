// How a listener listens: volume, speed, and the timer that stops playback.

/** Let the bar change the preferences, which the player and the bar follow; pause: stops playback. */
export function followPreferences(player, bar, preferences, pause) {
  let sleeping = 0; // timer
  bar.addEventListener("rate", ({ detail }) => preferences.set(detail));
  bar.addEventListener("volume", ({ detail }) => preferences.set({ volume: detail.value }));
  bar.addEventListener("sleep", ({ detail: { minutes } }) => {
    clearTimeout(sleeping);
    bar.listen({ sleep: minutes });
    if (!minutes) return;
    sleeping = setTimeout(() => {
      bar.listen({ sleep: 0 });
      pause();
    }, minutes * 60_000);
  });
  const follow = () => {
    bar.volume = player.volume = preferences.values.volume;
    player.rate = preferences.values.rate;
    bar.listen({ rate: preferences.values.rate });
    player.fixedWait = preferences.wait;
  };
  preferences.addEventListener("change", follow);
  follow();
}
