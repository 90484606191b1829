/** Runs beside the page: collects the sound of the microphone into pieces of about 20 ms. */

declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: unknown): void;

const SIZE = Math.ceil(sampleRate / 50);

class Microphone extends AudioWorkletProcessor {
  private piece = new Float32Array(SIZE);
  private filled = 0;

  process(inputs: Float32Array[][]): boolean {
    for (const sample of inputs[0]?.[0] ?? []) {
      this.piece[this.filled] = sample;
      this.filled += 1;
      if (this.filled < SIZE) continue;
      // The memory goes to the page, so a new piece is begun.
      this.port.postMessage(this.piece, [this.piece.buffer]);
      this.piece = new Float32Array(SIZE);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
