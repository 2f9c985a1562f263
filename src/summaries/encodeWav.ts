/** @file WAV files of float sounds: RIFF, PCM of 16 bits (Microsoft's WAVE specification). */

const HEADER_BYTES = 44;
const PCM = 1;
const SAMPLE_BYTES = 2;

/**
 * The WAV file of a sound.
 *
 * @param samples [samples, channels] from -1 to 1; values outside are clipped, NaN is 0.
 * @param sampleRate samples per second.
 */
export function encodeWav(samples: Float32Array, channels: number, sampleRate: number): Buffer {
  const size = SAMPLE_BYTES * samples.length;
  const file = Buffer.alloc(HEADER_BYTES + size);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(HEADER_BYTES - 8 + size, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(PCM, 20);
  file.writeUInt16LE(channels, 22);
  file.writeUInt32LE(sampleRate, 24);
  file.writeUInt32LE(sampleRate * channels * SAMPLE_BYTES, 28);
  file.writeUInt16LE(channels * SAMPLE_BYTES, 32);
  file.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(size, 40);
  for (const [i, sample] of samples.entries()) {
    const clipped = Number.isNaN(sample) ? 0 : Math.max(-1, Math.min(1, sample));
    file.writeInt16LE(Math.round(clipped * 32767), HEADER_BYTES + SAMPLE_BYTES * i);
  }
  return file;
}
