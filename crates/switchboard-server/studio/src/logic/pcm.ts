/** Sound as the service sends and takes it: 16 bit, one channel, 24,000 samples a second. */

export const SAMPLE_RATE = 24_000;

/** Samples from -1 to 1 as 16 bit numbers, little-endian. */
export function toPcm16(samples: Float32Array): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(samples.length * 2));
  for (let at = 0; at < samples.length; at += 1) {
    const sample = Math.max(-1, Math.min(1, samples[at]!));
    view.setInt16(at * 2, Math.round(sample < 0 ? sample * 0x8000 : sample * 0x7fff), true);
  }
  return view.buffer;
}

export function fromPcm16(bytes: ArrayBuffer): Float32Array<ArrayBuffer> {
  const view = new DataView(bytes);
  const samples = new Float32Array(Math.floor(bytes.byteLength / 2));
  for (let at = 0; at < samples.length; at += 1) samples[at] = view.getInt16(at * 2, true) / 0x8000;
  return samples;
}

/** Changes the sample rate of a stream, piece by piece, by linear interpolation. */
export class Resampler {
  private position = 0;
  private last = 0;

  constructor(private readonly from: number, private readonly to: number) {}

  push(samples: Float32Array): Float32Array {
    if (this.from === this.to) return samples.slice();
    const step = this.from / this.to;
    const made: number[] = [];
    // Position 0 is the last sample of the piece before.
    while (this.position < samples.length) {
      const index = Math.floor(this.position);
      const share = this.position - index;
      const left = index === 0 ? this.last : samples[index - 1]!;
      made.push(left + (samples[index]! - left) * share);
      this.position += step;
    }
    this.position -= samples.length;
    if (samples.length > 0) this.last = samples[samples.length - 1]!;
    return Float32Array.from(made);
  }
}
