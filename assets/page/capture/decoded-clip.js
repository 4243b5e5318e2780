// A clip decoded by the browser: its outline, playback of any cut as recorded or as it will be used, and cuts as files.

import { wavFile } from "../lib/wav.js";
import { Recorded } from "../player/track.js";

const OUTLINE = 600; // bars of a whole clip
const PATIENCE = 10_000; // ms for a browser to determine a file's duration
const FAR = 1e7; // seconds, beyond any end
const UNREADABLE = ["EncodingError", "NotReadableError", "RangeError"]; // the last two: the file was moved, too little memory

/** Return a file's seconds without decoding it; null if this browser cannot read it or does not know. */
export function secondsOf(blob) {
  const audio = new Audio();
  const address = URL.createObjectURL(blob);
  return new Promise((resolve) => {
    const done = (seconds) => {
      clearTimeout(patience);
      audio.removeAttribute("src");
      audio.load();
      URL.revokeObjectURL(address);
      resolve(Number.isFinite(seconds) ? seconds : null);
    };
    const patience = setTimeout(done, PATIENCE, null);
    audio.addEventListener("durationchange", () => {
      if (audio.duration === Infinity) audio.currentTime = FAR; // recorded by a browser: seek to find the end
      else done(audio.duration);
    });
    audio.addEventListener("error", () => done(null));
    Object.assign(audio, { preload: "metadata", src: address });
  });
}

/** Decode a clip. Return null if this browser cannot read it (the server may be able to). */
export async function decodeClip(blob) {
  const context = new OfflineAudioContext(1, 1, 44100);
  try {
    return new Clip(await context.decodeAudioData(await blob.arrayBuffer()));
  } catch (problem) {
    if (!UNREADABLE.includes(problem.name)) throw problem;
    return null;
  }
}

/** Fires "position" with {seconds} while playing, null at the end. */
export class Clip extends EventTarget {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AudioBufferSourceNode | null} */
  #source = null;
  #frame = 0;

  constructor(buffer) {
    super();
    this.buffer = buffer;
    this.seconds = buffer.duration;
    this.bars = outline(buffer);
  }

  get isPlaying() {
    return this.#source !== null;
  }

  /** cut: {start, end, gain_db, channel} as in the API. */
  play(cut) {
    this.stop();
    const context = (this.#context ??= new AudioContext());
    context.resume();
    const [from, to] = [cut.start ?? 0, Math.min(cut.end ?? this.seconds, this.seconds)];
    const source = new AudioBufferSourceNode(context, { buffer: oneChannel(this.buffer, cut.channel, from, to) });
    const gain = new GainNode(context, { gain: 10 ** ((cut.gain_db ?? 0) / 20) });
    source.connect(gain).connect(context.destination);
    const began = context.currentTime;
    source.onended = () => this.#source === source && this.stop();
    source.start();
    this.#source = source;
    const follow = () => {
      this.#tell(Math.min(from + context.currentTime - began, to));
      this.#frame = requestAnimationFrame(follow);
    };
    follow();
  }

  /** Return all of it as a track for the player. */
  track(name) {
    const samples = oneChannel(this.buffer, null, 0, this.seconds).getChannelData(0);
    const track = new Recorded({ name });
    track.add(this.buffer.sampleRate, Int16Array.from(samples, (sample) => Math.max(-1, Math.min(1, sample)) * 32767));
    track.close();
    return track;
  }

  /** Return a part, in seconds, as a WAV file: one or two channels unchanged, more as their mean. */
  file(from, to) {
    const { sampleRate, numberOfChannels } = this.buffer;
    const channels = numberOfChannels > 2 ? 1 : numberOfChannels;
    const part = [...Array(channels).keys()].map((channel) => oneChannel(this.buffer, channels > 1 ? channel : null, from, to).getChannelData(0));
    const pcm = new Int16Array(channels * part[0].length);
    for (let i = 0; i < pcm.length; i += 1) pcm[i] = Math.round(Math.max(-1, Math.min(1, part[i % channels][Math.floor(i / channels)])) * 32767);
    return wavFile([pcm], sampleRate, channels);
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    const source = this.#source;
    this.#source = null;
    if (!source) return;
    source.stop();
    this.#tell(null);
  }

  /** Release the audio output. */
  close() {
    this.stop();
    this.#context?.close();
    this.#context = null;
  }

  #tell(seconds) {
    this.dispatchEvent(new CustomEvent("position", { detail: { seconds } }));
  }
}

/** Return a part of one channel, or of the mean of all, as on the server; from, to in seconds. */
function oneChannel(buffer, channel, from, to) {
  const [first, last] = [from, to].map((seconds) => Math.round(seconds * buffer.sampleRate)); // 30 seconds must not be a sample longer
  const mono = new AudioBuffer({ length: Math.max(1, last - first), sampleRate: buffer.sampleRate });
  const out = mono.getChannelData(0);
  const all = Number.isInteger(channel) ? [Math.min(channel, buffer.numberOfChannels - 1)] : [...Array(buffer.numberOfChannels).keys()];
  for (const number of all) {
    const samples = buffer.getChannelData(number).subarray(first, last);
    for (let i = 0; i < samples.length; i += 1) out[i] += samples[i] / all.length;
  }
  return mono;
}

function outline(buffer) {
  const samples = buffer.getChannelData(0);
  const room = Math.max(1, Math.ceil(samples.length / OUTLINE));
  const bars = [];
  for (let from = 0; from < samples.length; from += room) {
    let loudest = 0;
    for (let i = from; i < Math.min(from + room, samples.length); i += 1) loudest = Math.max(loudest, Math.abs(samples[i]));
    bars.push(loudest);
  }
  return bars;
}
