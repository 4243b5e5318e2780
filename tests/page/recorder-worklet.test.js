// The recorder hands over the microphone's audio to the last sample.

import assert from "node:assert/strict";
import test from "node:test";

test("audio is handed over in whole pieces, and the rest at the end", async () => {
  let processor;
  const posted = [];
  globalThis.AudioWorkletProcessor = /** @type {any} */ (
    class {
      port = { postMessage: (piece) => posted.push(Float32Array.from(piece)) };
    }
  );
  globalThis.registerProcessor = /** @type {any} */ ((name, Processor) => (processor = new Processor()));
  await import("../../assets/page/capture/recorder-worklet.js");
  const samples = Float32Array.from({ length: 19 * 128 }, (_, i) => i / 5000);
  for (let at = 0; at < samples.length; at += 128) processor.process([[samples.subarray(at, at + 128)]]);
  processor.port.onmessage({ data: "flush" });
  assert.deepEqual(posted.map(({ length }) => length), [2048, 384, 0]);
  assert.deepEqual(Float32Array.from(posted.flatMap((piece) => [...piece])), samples);
});
