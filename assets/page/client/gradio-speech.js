// Speech through Gradio's own API, for hosts that provide a GPU only for Gradio's requests, such as ZeroGPU. No user interface.

import { address } from "./address.js";
import { lostConnection, Refusal } from "./refusal.js";
import { exactly } from "./requests.js";
import { wavFile } from "../lib/wav.js";
import { phrase } from "../lib/phrases.js";

const CALL = "/gradio_api/call/synthesize_stream";
const HOST = "https://huggingface.co";

/**
 * Like requestSpeech: return a Response that streams the WAV. Throws Refusal, or AbortError after signal.abort().
 *
 * @param {Record<string, any>} request
 * @param {AbortSignal | null} [signal]
 */
export async function speakThroughGradio(request, signal) {
  try {
    const items = calls(await join(request, signal), signal);
    const { value: first } = await items.next();
    const headers = { "content-type": "audio/wav", "x-request-id": first.request_id, "x-seed": String(first.seed) };
    return new Response(wav(first, items), { headers });
  } catch (problem) {
    if (problem instanceof TypeError) throw lostConnection();
    throw problem;
  }
}

/**
 * Add the request to Gradio's queue. Returns the event's id.
 *
 * @param {Record<string, any>} request
 * @param {AbortSignal | null} [signal]
 */
async function join(request, signal) {
  const { input, voice = "default", ref_audio, ref_text = "", seed = -1, temperature, top_p, top_k, max_new_tokens = 0, speed = 1 } = request;
  const clip = ref_audio ? await upload(ref_audio, signal) : null;
  const [before, after] = [[input, voice, clip, ref_text], [temperature, top_p, top_k, max_new_tokens, speed, true]].map((values) => JSON.stringify(values).slice(1, -1));
  const headers = { "Content-Type": "application/json", ...(await visitorHeaders()) };
  const response = await fetch(address(CALL), { method: "POST", headers, body: `{"data":[${before},${seed},${after}]}`, signal });
  if (!response.ok) throw refusal(phrase("refusal.gradio", { status: String(response.status) }));
  return (await response.json()).event_id;
}

/**
 * @param {string} dataUrl
 * @param {AbortSignal | null} [signal]
 */
async function upload(dataUrl, signal) {
  const form = new FormData();
  form.append("files", await (await fetch(dataUrl)).blob(), "clip.wav");
  const response = await fetch(address("/gradio_api/upload"), { method: "POST", body: form, signal });
  if (!response.ok) throw refusal(phrase("refusal.gradio.clip", { status: String(response.status) }));
  return { path: (await response.json())[0], meta: { _type: "gradio.FileData" } };
}

/** On a Space, get the headers that identify the visitor, whose GPU quota is used, from the surrounding page. */
function visitorHeaders() {
  if (window.parent === window || !location.hostname.endsWith(".hf.space") || !(/** @type {any} */ (window).supports_zerogpu_headers)) return {};
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = ({ data }) => {
      channel.port1.close();
      resolve(data ?? {});
    };
    window.parent.postMessage("zerogpu-headers", HOST, [channel.port2]);
  });
}

/**
 * Yield the items of one event, each once.
 *
 * @param {string} id
 * @param {AbortSignal | null} [signal]
 */
async function* calls(id, signal) {
  const response = await fetch(address(`${CALL}/${id}`), { signal });
  let seen = -1;
  for await (const { event, data } of serverEvents(response)) {
    if (event === "error") throw refusal(data?.error ?? data ?? phrase("refusal.host"));
    const item = data?.[0];
    if (!item || item.number <= seen) continue; // the last item arrives twice
    seen = item.number;
    yield item;
    if (item.done) return;
  }
  throw lostConnection();
}

/** @param {Response} response */
async function* serverEvents(response) {
  const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let text = "";
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      const parts = (text + value).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s)));
        if (fields.event) yield { event: fields.event, data: exactly(fields.data ?? "null") };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // after a failure this rejects with the same error
  }
}

/**
 * @param {Record<string, any>} first
 * @param {AsyncGenerator<any, void>} items
 */
function wav(first, items) {
  return new ReadableStream({
    async start(stream) {
      stream.enqueue(new Uint8Array(await wavFile([], first.sample_rate).arrayBuffer()));
      stream.enqueue(bytesOf(first.pcm));
    },
    async pull(stream) {
      try {
        const { done, value } = await items.next();
        if (done || value.done) stream.close();
        else stream.enqueue(bytesOf(value.pcm));
      } catch (problem) {
        stream.error(problem);
      }
    },
    cancel: async () => {
      await items.return();
    },
  });
}

const bytesOf = (/** @type {string} */ base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** @param {unknown} why */
function refusal(why) {
  return new Refusal({ what: phrase("refusal.other"), why: String(why), advice: phrase("refusal.host.advice") });
}
