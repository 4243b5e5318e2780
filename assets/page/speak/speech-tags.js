// The tags that Fish Audio documents for S2, by kind, and our own [pause:1s]; any other words in [brackets] may work too.

export const OFTEN = ["excited", "sad", "whispering", "laughing", "sighing", "emphasis", "pause:1s"];

export const TAGS = {
  Feelings: [
    "angry", "calm", "confident", "curious", "delighted", "depressed", "disgusted", "embarrassed", "empathetic", "excited",
    "frustrated", "grateful", "happy", "moved", "nervous", "proud", "relaxed", "sad", "sarcastic", "satisfied", "scared",
    "surprised", "upset", "worried",
  ],
  "Finer feelings": [
    "anxious", "ashamed", "bored", "compassionate", "confused", "contemptuous", "determined", "disappointed", "disdainful",
    "doubtful", "envious", "guilty", "hopeful", "hysterical", "indifferent", "jealous", "lonely", "nostalgic", "optimistic",
    "pessimistic", "regretful", "resigned", "sympathetic", "uncertain", "unhappy",
  ],
  Tone: ["emphasis", "in a hurry tone", "screaming", "shouting", "soft tone", "whispering"],
  Sounds: [
    "chuckling", "clear throat", "crying loudly", "gasping", "groaning", "laughing", "panting", "sighing", "snoring", "sobbing",
    "yawning",
  ],
  "Pauses and rooms": ["pause:1s", "break", "long-break", "audience laughing", "background laughter", "crowd laughing"],
};

export const KNOWN = new Set(Object.values(TAGS).flat());

const PAUSE = "pause:1s"; // the studio's own, for every model
const OTHERS = "Other models only";

/**
 * What to offer of a model's tags, null where it does not say: the chips, the groups, and whether a group's tags do nothing.
 *
 * @param {string[] | null} own
 * @returns {{ often: string[], groups: { name: string, tags: string[], isIdle: boolean }[] }}
 */
export function offered(own) {
  if (!own) return { often: OFTEN, groups: Object.entries(TAGS).map(([name, tags]) => ({ name, tags, isIdle: false })) };
  const tags = [...own, ...(own.includes(PAUSE) ? [] : [PAUSE])];
  const rest = [...KNOWN].filter((tag) => !tags.includes(tag));
  return {
    often: tags.slice(0, 7),
    groups: [
      { name: "This model's", tags, isIdle: false },
      { name: OTHERS, tags: rest, isIdle: true },
    ],
  };
}
