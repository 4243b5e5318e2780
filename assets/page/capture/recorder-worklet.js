// Passes on the microphone's samples, in pieces and unchanged. Stores nothing.

const PIECE = 2048; // samples per message

class Recorder extends AudioWorkletProcessor {
  piece = new Float32Array(PIECE);
  filled = 0;

  constructor() {
    super();
    this.port.onmessage = () => { // the recording ends: send the incomplete piece, then an empty one
      if (this.filled) this.port.postMessage(this.piece.slice(0, this.filled));
      this.filled = 0;
      this.port.postMessage(new Float32Array(0));
    };
  }

  process([input]) {
    const [samples] = input;
    if (!samples) return true;
    for (const sample of samples) {
      this.piece[this.filled] = sample;
      this.filled += 1;
      if (this.filled === PIECE) {
        this.port.postMessage(this.piece, [this.piece.buffer]);
        this.piece = new Float32Array(PIECE);
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
