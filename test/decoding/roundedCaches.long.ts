/** @file Caches of 8 bits: the text and log-probabilities of an emulation in floats, by every decoder and engine. */
import { test } from 'vitest';
import { engines } from '../compiler/engines.js';
import { oneIn, title } from '../faults/campaign.js';
import { attentions, decoders, expectEmulated } from './emulatedCaches.js';

const cases = engines.flatMap(([name, { engine, available }]) =>
  Object.entries(attentions).flatMap(([over, attention]) =>
    Object.entries(decoders).map(([by, decoder]) => ({
      ...{ name: `${by}, ${over}, on ${name}`, available },
      run: () => expectEmulated(attention, decoder, engine as 'native' | 'onnx'),
    })),
  ),
);

// One in four is each of the five decoders once.
for (const { name, available, run } of oneIn(4, cases)) test.skipIf(!available)(title(name), run);
