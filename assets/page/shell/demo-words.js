// What the page says of a demo model and of what S2 Pro would need. It shows nothing.

const GIB = 2 ** 30;
const [ENOUGH, WITH_FOUR_ROWS] = [22, 14]; // GiB of a GPU, as its driver counts: an engine with the usual settings, one with MAX_ROWS=4

const LANGUAGES = new Intl.DisplayNames("en", { type: "language" });
const LIST = new Intl.ListFormat("en");

/**
 * One line about the model. languages: ISO 639-1 codes of those that it speaks; none: it does not say.
 *
 * @param {string[]} languages
 */
export function demoLine(languages) {
  const only = languages.length ? `${LIST.format(languages.map((code) => LANGUAGES.of(code) ?? code))} only, ` : "";
  return `You hear a small demo model: ${only}synthetic voices, and clones only come near.`;
}

/**
 * What it is, and what S2 Pro is beside it.
 *
 * @param {string} model
 * @param {number} parameters
 */
export function modelWords(model, parameters) {
  const size = Math.round(parameters / 1e6);
  return `${model} is a demo of ${size} million parameters, so that the studio speaks on any machine. S2 Pro has 4.6 billion: it is for any person's voice, for other languages and for acting.`;
}

/**
 * Whether S2 Pro fits the studio's GPU. gpu: as /health has it, null where there is none; isLent: the host lends one for each take.
 *
 * @param {{ name: string, memory_bytes: number } | null} gpu
 * @param {boolean} [isLent]
 */
export function gpuWords(gpu, isLent = false) {
  if (!gpu) return "No GPU that the studio can use. Run the command on a machine that has one.";
  const gib = Math.round(gpu.memory_bytes / GIB);
  const verdict = gib >= ENOUGH ? "enough" : gib >= WITH_FOUR_ROWS ? "enough with MAX_ROWS=4" : "too little";
  return `${gpu.name}, ${gib} GiB${isLent ? ", lent for each take" : ""}: ${verdict}.`;
}
