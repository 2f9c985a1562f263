/** @file Peak memory of training as analyses tell it, beside what a process takes. */
import { expect, test } from 'vitest';
import { analyze } from '../../src/analysis/analyze.js';
import { startCommand } from '../command.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { longTest } from '../longTest.js';
import { configured, Gpt } from './models.js';

// What is resident is also a matter of the system: bench/README.md has the figures of a quiet machine, which differ by 6 %.
longTest(
  'a training step takes about what its plan says',
  async () => {
    const shape = { layers: 4, heads: 4, width: 256, context: 128, batch: 8, vocabulary: 256, steps: 1 };
    const { finished } = startCommand([JSON.stringify(shape)], undefined, 'bench/luthierMemory.ts');
    const { code, stdout, stderr } = await finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { said, grown } = JSON.parse(stdout);
    expect(said.total / grown).toBeGreaterThan(0.75);
    expect(said.total / grown).toBeLessThan(1.25);
  },
  hasCompiler,
);

test('more heads take next to no more: weights of attention are not stored', () => {
  const [few, many] = [1, 4].map(
    (heads) => analyze(configured(Gpt, { heads, dims: 64, time: 256 })).memory.total,
  );
  expect(many! / few!).toBeLessThan(1.03);
});
