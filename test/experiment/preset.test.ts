/** @file Presets: values of constants with the types of their schemas, checked where they stand. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  type ConstantOverride,
  classVars,
  constantProblems,
  Experiment,
  effectiveConstants,
  instantiate,
  unreadConstants,
} from '../../src/experiment/index.js';

abstract class Family extends Experiment.with({
  numLayers: z.int().positive().default(12),
  modelDims: z.int().positive().default(512),
  numHeads: z.int().positive().nullable().default(null),
  hiddenDims: z.int().positive().default(2048),
  kind: z.enum(['pre', 'post']).default('pre'),
  mesh: z.array(z.int()).length(3).default([1, 1, 1]),
}) {}

const flag = (name: string, text: string): ConstantOverride => ({
  name,
  text,
  origin: `--set ${name}=${text}`,
});

class Small extends Family.preset({ numLayers: 4, numHeads: 8, kind: 'post', mesh: [1, 4, 2] }) {}
class Smaller extends Small.preset({ numHeads: null, kind: 'pre' }) {}

test('a preset sets constants; a subclass may set other values, including null', () => {
  const { numLayers, modelDims, numHeads, kind, mesh } = new Small();
  expect([numLayers, modelDims, numHeads, kind, mesh]).toEqual([4, 512, 8, 'post', [1, 4, 2]]);
  expect([new Smaller().numLayers, new Smaller().numHeads, new Smaller().kind]).toEqual([4, null, 'pre']);
  const heads: number | null = new Small().numHeads;
  expect(heads).toBe(8);
});

test('TypeScript checks names and values; errors have the preset’s place', () => {
  // @ts-expect-error no such constant
  expect(() => Small.preset({ numLayer: 4 })).toThrow(
    /^Small has no constant 'numLayer'\. Did you mean 'numLayers'\? Its constants are: hiddenDims, kind, mesh, modelDims, numHeads, numLayers\. \(at test\/experiment\/preset\.test\.ts:\d+\)$/,
  );
  // @ts-expect-error a string is no number
  expect(() => Small.preset({ numLayers: 'four' })).toThrow(
    /^Small\.preset: numLayers: expected a positive integer, got 'four' \(at test\/experiment\/preset\.test\.ts:\d+\)$/,
  );
  // @ts-expect-error one of two
  expect(() => Small.preset({ kind: 'past', modelDims: -1 })).toThrow(
    /^Small\.preset: 2 problems:\n {2}Small\.preset: kind: expected one of 'pre', 'post', got 'past'\n {2}Small\.preset: modelDims: expected a positive integer, got -1\n \(at test/,
  );
});

test('a value may be computed from constants that --set changes', () => {
  class Computed extends Small.preset({ hiddenDims: ({ modelDims }) => 4 * modelDims }) {}
  expect(new Computed().hiddenDims).toBe(2048);
  expect(instantiate(Computed, [flag('modelDims', '10')]).hiddenDims).toBe(40);
  expect(instantiate(Computed, [flag('hiddenDims', '7')]).hiddenDims).toBe(7);
  class Wrong extends Small.preset({ hiddenDims: ({ modelDims }) => modelDims / 3 }) {}
  expect(() => new Wrong()).toThrow(
    /^Wrong\.hiddenDims: expected a positive integer, got 170\.66666666666666 \(at test\/experiment\/preset\.test\.ts:\d+\)$/,
  );
  expect(constantProblems(Wrong)).toHaveLength(1);
});

test('a preset belongs to the class that extends it', () => {
  const vars = classVars(effectiveConstants(instantiate(Smaller, [flag('mesh', '[1, 1, 1]')])));
  expect(Object.fromEntries(vars)).toEqual({
    Small: { numLayers: 4 },
    Family: { modelDims: 512, hiddenDims: 2048 },
    Smaller: { numHeads: null, kind: 'pre' },
    '--set mesh=[1, 1, 1]': { mesh: [1, 1, 1] },
  });
});

test('constants of one declaration can be set at once; unread ones are reported', () => {
  class Reader extends Family.with({ path: z.string() }).preset({ path: 'a.txt', modelDims: 8 }) {}
  const reader = new Reader();
  expect(reader.path).toBe('a.txt');
  expect(unreadConstants(reader)).toEqual(['modelDims']);
});
