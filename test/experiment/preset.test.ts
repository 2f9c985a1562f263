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

test('a computed value follows other constants, however and in whatever order they are set', () => {
  class Computed extends Small.preset({ hiddenDims: ({ modelDims }) => 4 * modelDims }) {}
  expect(new Computed().hiddenDims).toBe(2048);
  expect(instantiate(Computed, [flag('modelDims', '10')]).hiddenDims).toBe(40);
  expect(instantiate(Computed, [flag('hiddenDims', '7')]).hiddenDims).toBe(7);
  class Narrow extends Computed.preset({ modelDims: 10 }) {}
  class Field extends Computed {
    override modelDims = 11;
  }
  class Chained extends Computed.preset({ modelDims: ({ numLayers }) => 3 * numLayers }) {}
  class Reset extends Narrow.preset({ hiddenDims: 5 }) {}
  class Doubled extends Narrow.preset({ hiddenDims: ({ hiddenDims }) => 2 * hiddenDims }) {}
  const dims = [Narrow, Field, Chained, Reset, Doubled].map((cls) => instantiate(cls).hiddenDims);
  expect(dims).toEqual([40, 44, 48, 5, 80]);
  expect(instantiate(Narrow, [flag('modelDims', '3')]).hiddenDims).toBe(12);
  expect(instantiate(Chained, [flag('numLayers', '5')]).hiddenDims).toBe(60);
  expect(instantiate(Doubled, [{ name: 'modelDims', origin: '--unset', toDefault: true }]).hiddenDims).toBe(
    4096,
  );
  // The class that computes a value sets it, whichever class sets what it follows.
  expect(Object.fromEntries(classVars(effectiveConstants(instantiate(Narrow))))).toMatchObject({
    Computed: { hiddenDims: 40 },
    Narrow: { modelDims: 10 },
  });
});

test('a subclass may set what a value without default is computed from, also to null', () => {
  abstract class Needs extends Family.with({ width: z.int().nullable() }) {}
  class Wide extends Needs.preset({ hiddenDims: ({ width }) => 2 * (width ?? 50) }) {}
  class Given extends Wide.preset({ width: 8 }) {}
  class None extends Wide.preset({ width: null }) {}
  class Kept extends None.preset({ width: ({ width }) => width }) {}
  expect([Given, None, Kept].map((cls) => instantiate(cls).hiddenDims)).toEqual([16, 100, 100]);
  expect(constantProblems(Wide).map(String)).toEqual([
    "ConfigError: Wide needs a value for its constant 'width': it has no default. Set it with --set width=VALUE, or in the class with preset({ width: … }).",
  ]);
});

test('a computed value that is invalid is an error as the experiment is made', () => {
  class Wrong extends Small.preset({ hiddenDims: ({ modelDims }) => modelDims / 3 }) {}
  expect(() => instantiate(Wrong)).toThrow(
    /^Wrong\.hiddenDims: expected a positive integer, got 170\.66666666666666 \(at test\/experiment\/preset\.test\.ts:\d+\)$/,
  );
  expect(constantProblems(Wrong)).toHaveLength(1);
  class Mended extends Wrong.preset({ modelDims: 6 }) {}
  expect(instantiate(Mended).hiddenDims).toBe(2);
});

test('constants that are computed from each other are an error, until one of them is set', () => {
  class Cycle extends Small.preset({
    hiddenDims: ({ modelDims }) => 4 * modelDims,
    modelDims: ({ numLayers }) => 4 * numLayers,
    numLayers: ({ hiddenDims }) => hiddenDims / 16,
  }) {}
  expect(() => instantiate(Cycle)).toThrow(
    /^The constants numLayers → hiddenDims → modelDims → numLayers are computed from each other: set one of them to a value, in a preset or by --set numLayers=VALUE\. \(at test\/experiment\/preset\.test\.ts:\d+\)$/,
  );
  expect(instantiate(Cycle, [flag('numLayers', '2')]).hiddenDims).toBe(32);
  class Cut extends Cycle.preset({ numLayers: 3 }) {}
  expect(instantiate(Cut).hiddenDims).toBe(48);
});

test('a class field that used a constant which a subclass or flag changes is an error', () => {
  class Base extends Small {
    override hiddenDims = 4 * this.modelDims;
  }
  expect(instantiate(Base).hiddenDims).toBe(2048);
  class Narrow extends Base {
    override modelDims = 10;
  }
  expect(() => instantiate(Narrow)).toThrow(
    'Narrow.hiddenDims was computed from modelDims = 512, and modelDims is 10 now: a class field does not follow what is ' +
      'set later. Compute it in a preset, which does: preset({ hiddenDims: ({ modelDims }) => … }).',
  );
  expect(instantiate(Narrow, [flag('hiddenDims', '3')]).hiddenDims).toBe(3);
  expect(instantiate(Base, [flag('modelDims', '10')]).hiddenDims).toBe(40);
  class Both extends Narrow {
    override hiddenDims = 40;
  }
  expect(instantiate(Both).hiddenDims).toBe(40);
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
