/** @file Every experiment of this repository resolves, gives configs, builds and traces. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ConfiguredExperiment, Override } from '../../src/cli/index.js';
import { evalShape, type TensorSpec } from '../../src/compiler/index.js';
import { build, type Config, classOf, isConfig, isSet, iterate } from '../../src/hparams/index.js';
import type { BaseInput } from '../../src/inputs/index.js';
import { evalStep, RolloutInput } from '../../src/tasks/index.js';
import { project } from '../command.js';
import { configured, names } from './zoo.js';

const text: Override[] = [
  { kind: 'set', path: 'dataPath', text: join(project, 'corpus/counting.txt'), origin: '--set dataPath' },
];

/** Constants that an experiment has no default for. */
const required: Readonly<Record<string, Override[]>> = {
  'lm.ShakespeareChar': text,
  'lm.ShakespeareCharBfloat16': text,
};

/** Whether a dataset is sampled by the model in training: no evaluation has such answers. */
const isSampled = (dataset: Config<BaseInput>): boolean => classOf(dataset) === RolloutInput;

test('all families are found', () => {
  expect([...new Set(names.map((name) => name.split('.')[0]))]).toEqual([
    'bert',
    'c4',
    'c4Multislice',
    'chat',
    'lm',
    'lmCloud',
    'sequences',
    'shapes',
    'speech',
    't5',
  ]);
  expect(names.length).toBeGreaterThan(50);
});

describe.each(names)('%s', (name) => {
  let experiment: ConfiguredExperiment;
  beforeAll(async () => {
    experiment = await configured(name, required[name]);
  });

  test('gives configs: a task, a dataset that trains and one that is evaluated or decoded', () => {
    const { task, datasets, decodeDatasets, warnings } = experiment;
    expect([task, ...datasets, ...decodeDatasets].filter((config) => !isConfig(config))).toEqual([]);
    const training = datasets.filter(({ isTraining }) => isTraining);
    expect([training.length, datasets.length]).toEqual([1, isSampled(training[0]!) ? 1 : 2]);
    expect(datasets.length + decodeDatasets.length).toBeGreaterThan(1);
    expect(classOf(task).name).toBe('SingleTask');
    expect(isSet(task, 'train')).toBe(true);
    expect(warnings).toEqual([]);
  });

  test('builds, and an evaluation step traces to scalars without a value in memory', () => {
    // Layers beyond the second are built as that one; test/experiments/parameters.test.ts counts all of them.
    for (const { config } of iterate(experiment.task)) {
      const repeated = config as unknown as Record<
        'numLayers' | 'xTimes' | 'numPipelineStages' | 'circularRepeat',
        number
      >;
      // A stage has at least one layer.
      const least = 'numPipelineStages' in config ? repeated.numPipelineStages * repeated.circularRepeat : 2;
      for (const field of ['numLayers', 'xTimes'] as const)
        if (field in config && isSet(config, field as never) && repeated[field] > least)
          repeated[field] = least;
    }
    const task = build(experiment.task);
    const params = Object.fromEntries(
      task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }]),
    );
    const prngKey = { shape: [2], dtype: 'int32' } as const;
    for (const dataset of experiment.datasets) {
      const batch = build(dataset).batchSpecs() as Record<string, TensorSpec>;
      const { metrics } = evalShape(evalStep(task) as never, { params, batch, prngKey }) as {
        metrics: Record<string, unknown>;
      };
      const scalar = { shape: [], dtype: 'float32' };
      expect(metrics.total_loss).toEqual({ value: scalar, weight: scalar });
    }
  });
});
