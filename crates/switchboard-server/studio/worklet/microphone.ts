/** Runs beside the page: collects the sound of the microphone into frames of 40 ms. */

import { Resampler, SAMPLE_RATE, toPcm16 } from "../src/logic/pcm";

declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: unknown): void;

const FRAME = (SAMPLE_RATE * 40) / 1000;

class Microphone extends AudioWorkletProcessor {
  private readonly resampler = new Resampler(sampleRate, SAMPLE_RATE);
  private frame = new Float32Array(FRAME);
  private filled = 0;

  process(inputs: Float32Array[][]): boolean {
    const channel = inputs[0]?.[0];
    if (channel) {
      for (const sample of this.resampler.push(channel)) {
        this.frame[this.filled] = sample;
        this.filled += 1;
        if (this.filled === FRAME) {
          const bytes = toPcm16(this.frame);
          this.port.postMessage(bytes, [bytes]);
          this.filled = 0;
        }
      }
    }
    return true;
  }
}

registerProcessor("microphone", Microphone);
