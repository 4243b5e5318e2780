// What the browser, Gradio and this page put into every script's reach, for the type checker alone.

interface Window {
  /** Gradio's, with the path under which it is served. */
  gradio_config?: { root?: string };
  /** Of the page of a Space around this one. */
  supports_zerogpu_headers?: boolean;
  /** For Gradio's buttons, and for who measures the page. */
  studio: object;
}

/** Our own events are CustomEvents; each class says in its comment what they carry. */
interface Event {
  readonly detail: any;
}

// Of the scope of a worklet, which TypeScript does not bring.
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: typeof AudioWorkletProcessor): void;
declare const sampleRate: number;
declare const currentTime: number;
