/** @file Caches of 8 bits: the text and log-probabilities of an emulation in floats, by every decoder and engine. */
import { describe, test } from 'vitest';
import { engines } from '../compiler/engines.js';
import { attentions, decoders, expectEmulated } from './emulatedCaches.js';

describe.each(engines)('%s', (_, { engine, available }) => {
  describe.each(Object.entries(attentions))('%s', (_, attention) => {
    test.skipIf(!available).each(Object.entries(decoders))('%s', (_, decoder) =>
      expectEmulated(attention, decoder, engine as 'native' | 'onnx'),
    );
  });
});
