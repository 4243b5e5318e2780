// Globals provided by the browser, Gradio and this page, for the type checker only.

interface Window {
  /** Gradio's configuration, with the path under which it is served. */
  gradio_config?: { root?: string };
  /** For Gradio's buttons, and for measuring the page. */
  studio: object;
}

/** Our own events are CustomEvents; each class documents their details. */
interface Event {
  readonly detail: any;
}

// Globals of an audio worklet, missing from TypeScript's libraries.
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: typeof AudioWorkletProcessor): void;
declare const sampleRate: number;
declare const currentTime: number;
