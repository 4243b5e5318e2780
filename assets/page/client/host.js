// Facts about the studio, from meta elements in the page's head.

const metaOf = (/** @type {string} */ name) => globalThis.document?.querySelector(`meta[name=${name}]`)?.getAttribute("content");

/** Whether API requests need a key; the page's own are signed in. */
export const needsKey = metaOf("studio-keys") === "needed";

/** {demo, languages} of the model, as far as known before it is loaded; null: unknown. */
export const knownCard = JSON.parse(metaOf("studio-card") ?? "null");

/** Whether only Gradio's requests get a GPU: speech then goes through Gradio, only as WAV. */
export const isThroughGradio = metaOf("studio-profile") === "gradio";
