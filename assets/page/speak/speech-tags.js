// The tags documented by Fish Audio for S2, by kind, and our own [pause:1s]; other words in [brackets] may work too.

import { phrase } from "../lib/phrases.js";

export const OFTEN = ["excited", "sad", "whispering", "laughing", "sighing", "emphasis", "pause:1s"];

export const TAGS = {
  "speak.tags.feelings": [
    "angry", "calm", "confident", "curious", "delighted", "depressed", "disgusted", "embarrassed", "empathetic", "excited",
    "frustrated", "grateful", "happy", "moved", "nervous", "proud", "relaxed", "sad", "sarcastic", "satisfied", "scared",
    "surprised", "upset", "worried",
  ],
  "speak.tags.finer": [
    "anxious", "ashamed", "bored", "compassionate", "confused", "contemptuous", "determined", "disappointed", "disdainful",
    "doubtful", "envious", "guilty", "hopeful", "hysterical", "indifferent", "jealous", "lonely", "nostalgic", "optimistic",
    "pessimistic", "regretful", "resigned", "sympathetic", "uncertain", "unhappy",
  ],
  "speak.tags.tone": ["emphasis", "in a hurry tone", "screaming", "shouting", "soft tone", "whispering"],
  "speak.tags.sounds": [
    "chuckling", "clear throat", "crying loudly", "gasping", "groaning", "laughing", "panting", "sighing", "snoring", "sobbing",
    "yawning",
  ],
  "speak.tags.rooms": ["pause:1s", "break", "long-break", "audience laughing", "background laughter", "crowd laughing"],
};

/** A tag after a backslash is plain text. */
export const BRACKETS = /(\\?)\[([^[\]]*)\]/g;

/**
 * Return the contents of brackets: tag names and any other words.
 *
 * @param {string} text
 */
export const bracketedIn = (text) => [...text.matchAll(BRACKETS)].filter(([, backslash]) => !backslash).map(([, , name]) => name.trim());

/** The phrase keys of the kinds' names, with their tags. */
const kinds = () => /** @type {[import("../lib/phrases.js").Key, string[]][]} */ (Object.entries(TAGS));

export const KNOWN = new Set(Object.values(TAGS).flat());

const PAUSE = "pause:1s"; // the studio's own, works with every model

/**
 * Return the tags to offer for a model's own tags (null: not known): chips, and groups; isIdle: the model ignores its tags.
 *
 * @param {string[] | null} own
 * @returns {{ often: string[], groups: { name: string, tags: string[], isIdle: boolean }[] }}
 */
export function offered(own) {
  if (!own) return { often: OFTEN, groups: kinds().map(([key, tags]) => ({ name: phrase(key), tags, isIdle: false })) };
  const tags = [...own, ...(own.includes(PAUSE) ? [] : [PAUSE])];
  const rest = [...KNOWN].filter((tag) => !tags.includes(tag));
  return {
    often: tags.slice(0, 7),
    groups: [
      { name: phrase("speak.tags.model"), tags, isIdle: false },
      { name: phrase("speak.tags.others"), tags: rest, isIdle: true },
    ],
  };
}
