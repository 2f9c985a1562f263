/** @file Experiment classes: constants set by class fields, as before there were presets; checks, overrides, who set what. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  type ConstantOverride,
  checkRequired,
  classVars,
  classVarsText,
  constantProblems,
  constantsOf,
  Experiment,
  effectiveConstants,
  instantiate,
  type MissingConstantError,
  parseClassVars,
  unreadConstants,
} from '../../src/experiment/index.js';

abstract class Family extends Experiment.with({
  numLayers: z.int().positive().default(12).describe('Transformer blocks.'),
  modelDims: z.int().positive().default(512),
  kind: z.enum(['pre', 'post']).default('pre'),
}) {
  get hiddenDims() {
    return 4 * this.modelDims;
  }
}

class Small extends Family {
  override numLayers = 4;
}

const flag = (name: string, text: string): ConstantOverride => ({
  name,
  text,
  origin: `--set ${name}=${text}`,
});

test('constants have their defaults until a class field overrides them', () => {
  const small = new Small();
  expect([small.numLayers, small.modelDims, small.kind, small.hiddenDims]).toEqual([4, 512, 'pre', 2048]);
  expect(Object.keys(constantsOf(Small))).toEqual(['numLayers', 'modelDims', 'kind']);
});

test('constants are readonly and typed', () => {
  const small = new Small();
  const dims: number = small.modelDims;
  expect(dims).toBe(512);
  // @ts-expect-error no such constant
  expect(small.modelDimz).toBeUndefined();
  class Wrong extends Family {
    // @ts-expect-error a string is no number
    override numLayers = 'four';
  }
  expect(() => new Wrong()).toThrow(
    /^Wrong\.numLayers: expected a positive integer, got 'four' \(at test\/experiment\/experiment\.test\.ts:\d+\)/,
  );
});

test('a misspelt class field is an error at once, with or without override', () => {
  class Loud extends Family {
    // @ts-expect-error not in the base class
    override numLayerz = 4;
  }
  class Silent extends Family {
    numLayerz = 4;
  }
  for (const cls of [Loud, Silent]) {
    expect(() => new cls()).toThrow(
      new RegExp(
        `^${cls.name} has no constant 'numLayerz'\\. Did you mean 'numLayers'\\? ` +
          `Its constants are: kind, modelDims, numLayers\\. \\(at test/experiment/experiment\\.test\\.ts:\\d+\\)$`,
      ),
    );
  }
});

test('the schema checks a field: a value that does not fit is an error that shows it', () => {
  class Negative extends Family {
    override modelDims = -1;
  }
  expect(() => new Negative()).toThrow(
    /^Negative\.modelDims: expected a positive integer, got -1 \(at test\/experiment\/experiment/,
  );
});

test('a later write is checked as well', () => {
  const small = new Small() as { numLayers: unknown };
  expect(() => {
    small.numLayers = 1.5;
  }).toThrow(/^Small\.numLayers: .*got 1\.5/);
});

test('fields computed from a constant follow its override', () => {
  class Derived extends Family.with({ ffDims: z.int().default(1) }) {
    override ffDims = 3 * this.modelDims;
  }
  expect(new Derived().ffDims).toBe(1536);
  const experiment = instantiate(Derived, [flag('modelDims', '10')]);
  expect([experiment.modelDims, experiment.ffDims]).toEqual([10, 30]);
});

test('an override wins over the class field; of two, the later one wins', () => {
  const experiment = instantiate(Small, [
    flag('numLayers', '6'),
    flag('kind', 'post'),
    flag('numLayers', '8'),
  ]);
  expect([experiment.numLayers, experiment.kind]).toEqual([8, 'post']);
});

test('overrides are parsed by the schema', () => {
  expect(() => instantiate(Small, [flag('numLayers', 'six')])).toThrow(
    "Small.numLayers: expected a positive integer, got 'six' (at --set numLayers=six)",
  );
  expect(() => instantiate(Small, [flag('kind', 'past')])).toThrow(
    "Small.kind: expected one of 'pre', 'post', got 'past'. Did you mean 'post'? (at --set kind=past)",
  );
  expect(() => instantiate(Small, [flag('numLayer', '6')])).toThrow(
    "Small has no constant 'numLayer'. Did you mean 'numLayers'? " +
      'Its constants are: kind, modelDims, numLayers. (at --set numLayer=6)',
  );
});

abstract class Corpus extends Experiment.with({
  dataPath: z.string().describe('The text file to learn from.'),
}) {}
class Reader extends Corpus {}

test('a constant without a default must be set: reading it says how', () => {
  const message =
    "Reader needs a value for its constant 'dataPath' (The text file to learn from): it has no default. " +
    'Set it with --set dataPath=PATH, or in the class with preset({ dataPath: … }).';
  const reader = new Reader();
  expect(() => reader.dataPath).toThrow(message);
  expect(() => checkRequired(reader)).toThrow(message);
  const set = instantiate(Reader, [flag('dataPath', 'a.txt')]);
  checkRequired(set);
  expect(set.dataPath).toBe('a.txt');
});

test('without task and datasets, an experiment reports what is missing', () => {
  expect(() => new Small().task()).toThrow('Small does not say what to train: define task().');
  expect(() => new Small().datasets()).toThrow('Small does not say what to train on: define datasets().');
  expect(new Small().decodeDatasets()).toEqual([]);
});

class A extends Experiment.with({
  intVar: z.int().default(0),
  strVar: z.string().default('A'),
  listVar: z.array(z.union([z.int(), z.string()])).default([0, 'A']),
}) {}
class B extends A.with({ boolVar: z.boolean().default(false), path: z.string() }) {
  override strVar = 'B';
  override boolVar = true;
}
class C extends B {}

test('effective constants belong to the class that set them, and the text reads back', () => {
  const experiment = instantiate(C, []);
  const vars = classVars(effectiveConstants(experiment));
  expect([...vars]).toEqual([
    ['A', { intVar: 0, listVar: [0, 'A'] }],
    ['B', { strVar: 'B', boolVar: true, path: undefined }],
  ]);
  expect(classVarsText(experiment)).toBe(
    'A:\n  intVar: 0\n  listVar: [0,"A"]\nB:\n  strVar: "B"\n  boolVar: true\n  path: (not set)\n',
  );
  expect([...parseClassVars(classVarsText(experiment))]).toEqual([...vars]);
});

test('a value set to the same as the parent is still the child’s, and a flag’s is the flag’s', () => {
  class D extends B {
    override strVar = 'B';
  }
  const experiment = instantiate(D, [flag('intVar', '7')]);
  const setBy = Object.fromEntries(effectiveConstants(experiment).map((c) => [c.name, c.setBy]));
  expect(setBy).toEqual({ intVar: '--set intVar=7', strVar: 'D', listVar: 'A', boolVar: 'B', path: 'B' });
});

test('all errors of constants are reported at once: flags, fields and missing values', () => {
  class Troubled extends Family.with({ dataPath: z.string(), size: z.int() }) {
    numLayerz = 4;
    override modelDims = -1;
  }
  const problems = constantProblems(Troubled, [flag('kind', 'past'), flag('kynd', 'pre')]) as Error[];
  expect(problems.map(({ message }) => message.replace(/ \(at test\/.*\)$/, ' (at …)'))).toEqual([
    expect.stringMatching(/^Troubled\.kind: expected one of 'pre', 'post', got 'past'/),
    expect.stringMatching(/^Troubled has no constant 'kynd'\. Did you mean 'kind'\?/),
    expect.stringMatching(/^Troubled has no constant 'numLayerz'\. Did you mean 'numLayers'\?/),
    'Troubled.modelDims: expected a positive integer, got -1 (at …)',
    expect.stringMatching(/^Troubled needs a value for its constant 'dataPath': it has no default\./),
    expect.stringMatching(/^Troubled needs a value for its constant 'size': it has no default\./),
  ]);
  expect((problems[4] as MissingConstantError).flag).toBe('--set dataPath=PATH');
  expect(constantProblems(Small)).toEqual([]);
  // A field that fails ends the construction, and is told like the rest.
  class Thrown extends Family {
    override numLayers = this.modelDims > 1 ? Number(null!) || fail() : 1;
  }
  const fail = (): never => {
    throw new RangeError('no layers');
  };
  expect(constantProblems(Thrown)).toEqual([new RangeError('no layers')]);
  // Afterwards the first problem is thrown, as ever.
  expect(() => new Troubled()).toThrow(/numLayerz/);
});

test('constants that fields set in vain are those that nothing read', () => {
  class Wide extends Small {
    override modelDims = 1024;
    override kind = 'post' as const;
  }
  const experiment = instantiate(Wide, [flag('kind', 'pre')]);
  expect(unreadConstants(experiment)).toEqual(['numLayers', 'modelDims']);
  expect(experiment.hiddenDims).toBe(4096);
  expect(unreadConstants(experiment)).toEqual(['numLayers']);
});
