// Which takes stand on this browser's list, so that a reload shows them again; the takes themselves are on the server.

const STORE = "voice-studio-takes-1";

/** [{id, number, voiceName}], oldest first. */
export function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    return kept.filter(({ id, number }) => typeof id === "string" && Number.isInteger(number));
  } catch (problem) {
    if (!(problem instanceof SyntaxError || problem instanceof TypeError)) throw problem;
    return [];
  }
}

export function remember(takes) {
  const kept = takes.filter(({ id }) => id).map(({ id, number, voiceName }) => ({ id, number, voiceName }));
  localStorage.setItem(STORE, JSON.stringify(kept.sort((a, b) => a.number - b.number)));
}
