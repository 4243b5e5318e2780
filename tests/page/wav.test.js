// Writing WAV files, and reading them from chunks of any size.

import assert from "node:assert/strict";
import test from "node:test";

import { floats, readWav, WAV_HEADER_BYTES, wavFile } from "../../assets/page/lib/wav.js";

const PCM = Int16Array.of(0, 1, -1, 32767, -32768, 1234);
const fileOf = async (rate = 24000) => new Uint8Array(await wavFile([PCM.slice(0, 2), PCM.slice(2)], rate).arrayBuffer());

/** A response whose body comes in chunks of `size` bytes. */
function answer(bytes, size) {
  return new Response(
    new ReadableStream({
      start(stream) {
        for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
        stream.close();
      },
    }),
  );
}

async function read(response) {
  const sound = { rate: 0, samples: [] };
  for await (const { sampleRate, pcm } of readWav(response)) {
    sound.rate = sampleRate;
    sound.samples.push(...pcm);
  }
  return sound;
}

test("a file is read back as written, whatever the chunk size", async () => {
  const bytes = await fileOf();
  assert.equal(bytes.length, WAV_HEADER_BYTES + PCM.byteLength);
  for (let size = 1; size <= bytes.length; size += 1) {
    assert.deepEqual(await read(answer(bytes, size)), { rate: 24000, samples: [...PCM] }, `in pieces of ${size}`);
  }
});

test("RIFF chunks before the samples are skipped, even those of odd length", async () => {
  const bytes = await fileOf(44100);
  const note = new Uint8Array([..."LIST"].map((letter) => letter.charCodeAt(0)).concat([3, 0, 0, 0, 1, 2, 3, 0]));
  const longer = new Uint8Array([...bytes.slice(0, 36), ...note, ...bytes.slice(36)]);
  assert.deepEqual(await read(answer(longer, 7)), { rate: 44100, samples: [...PCM] });
});

test("a response that is not a WAV, or not 16-bit mono, is refused", async () => {
  await assert.rejects(read(answer(new TextEncoder().encode("<!doctype html><html>"), 5)), /not a WAV stream/);
  const stereo = await fileOf();
  stereo[22] = 2;
  await assert.rejects(read(answer(stereo, 100)), /not 16-bit mono/);
});

test("a stream that ends within a sample yields the complete ones", async () => {
  const bytes = await fileOf();
  assert.deepEqual((await read(answer(bytes.slice(0, -1), 9))).samples, [...PCM.slice(0, -1)]);
});

test("the header of a stereo file states two channels", async () => {
  const view = new DataView(await wavFile([PCM], 44100, 2).arrayBuffer());
  assert.deepEqual([view.getUint16(22, true), view.getUint32(28, true), view.getUint16(32, true)], [2, 176400, 4]);
});

test("samples become floats from -1 to 1", () => {
  assert.deepEqual([...floats(Int16Array.of(-32768, 0, 16384))], [-1, 0, 0.5]);
});
