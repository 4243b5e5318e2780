// Facts about the studio in the page's head.

const metaOf = (/** @type {string} */ name) => globalThis.document?.querySelector(`meta[name=${name}]`)?.getAttribute("content");

/** Whether requests need a key; the page's own are signed in. */
export const needsKey = metaOf("studio-keys") === "needed";

/** {demo, languages} of the model as far as they are known before it is loaded; null: they are not. */
export const knownCard = JSON.parse(metaOf("studio-card") ?? "null");

/** Whether this is ZeroGPU, where only Gradio's requests get a GPU: then speech goes that way, and only as WAV. */
export const isZeroGpu = metaOf("studio-profile") === "zero";
