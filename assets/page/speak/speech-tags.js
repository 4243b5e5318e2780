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
