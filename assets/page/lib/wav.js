// Reads samples from a WAV response while it arrives, and writes WAV files.

export const WAV_HEADER_BYTES = 44; // of the files written here

class NotWav extends Error {}

/**
 * Read a RIFF header. Returns null while it is incomplete, else {sampleRate, start}, with start in bytes.
 *
 * @param {Uint8Array} bytes
 */
function readHeader(bytes) {
  if (bytes.length < 12) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (/** @type {number} */ at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new NotWav("The studio answered with something that is not a WAV stream.");
  let sampleRate = 0;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = view.getUint32(at + 4, true);
    if (tag(at) === "data") return { sampleRate, start: at + 8 };
    if (tag(at) === "fmt ") {
      if (at + 24 > bytes.length) return null;
      const [coding, channels, bits] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true), view.getUint16(at + 22, true)];
      if (coding !== 1 || channels !== 1 || bits !== 16) throw new NotWav("The studio answered with a WAV that is not 16-bit mono.");
      sampleRate = view.getUint32(at + 12, true);
    }
    at += 8 + size + (size % 2);
  }
  return null;
}

/**
 * @param {Uint8Array} first
 * @param {Uint8Array} second
 */
function joined(first, second) {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

/**
 * Yield {sampleRate, pcm: Int16Array} while a WAV response arrives, which may be split anywhere, even inside a sample.
 * Stopping the iteration cancels the request.
 *
 * @param {Response} response
 */
export async function* readWav(response) {
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).getReader();
  /** @type {{ sampleRate: number, start: number } | null} */
  let header = null;
  let rest = new Uint8Array(0);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let bytes = rest.length ? joined(rest, value) : value;
      if (!header) {
        header = readHeader(bytes);
        if (!header) {
          rest = bytes;
          continue;
        }
        bytes = bytes.subarray(header.start);
      }
      const whole = bytes.length - (bytes.length % 2);
      rest = bytes.slice(whole);
      if (whole) yield { sampleRate: header.sampleRate, pcm: new Int16Array(bytes.slice(0, whole).buffer) };
    }
  } finally {
    reader.cancel().catch(() => {}); // stopping cancels the request; after a failure this rejects with the same error
  }
}

/**
 * Build a WAV file from Int16Array pieces; with several channels, their samples are interleaved.
 *
 * @param {Int16Array<ArrayBuffer>[]} pieces
 * @param {number} sampleRate
 */
export function wavFile(pieces, sampleRate, channels = 1) {
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const view = new DataView(new ArrayBuffer(WAV_HEADER_BYTES));
  const put = (/** @type {number} */ at, /** @type {string} */ text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  put(0, "RIFF");
  view.setUint32(4, 36 + bytes, true);
  put(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  put(36, "data");
  view.setUint32(40, bytes, true);
  return new Blob([view, ...pieces], { type: "audio/wav" });
}

/**
 * Convert Int16 samples to floats in [-1, 1).
 *
 * @param {Int16Array} pcm
 */
export function floats(pcm) {
  const samples = new Float32Array(pcm.length);
  for (let i = 0; i < pcm.length; i += 1) samples[i] = pcm[i] / 32768;
  return samples;
}
