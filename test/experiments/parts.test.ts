/** @file Rotary positions and experts come into every language experiment of the project. */
import { expect, test } from 'vitest';
import { useExperts, useRotaryPositions } from '../../experiments/parts.js';
import { parseSet } from '../../src/cli/index.js';
import { build, derive, select } from '../../src/hparams/index.js';
import { listVariables, TransformerLm } from '../../src/layers/index.js';
import type { BaseModel } from '../../src/models/index.js';
import type { SingleTask } from '../../src/tasks/index.js';
import { configured, names } from './zoo.js';

const modelOf = (task: SingleTask): BaseModel => task.model;

/** One of each kind; `ALL=1` takes every experiment. */
const few = [
  'lm.Small',
  'lm.ShakespeareChar',
  't5.Small',
  'lmCloud.LmCloudSpmdTest',
  'c4.C4SpmdPipelineGpt3SmallAdam8Replicas',
];

test('language experiments take them', async () => {
  let found = 0;
  for (const name of process.env.ALL ? names : few) {
    const { task } = await configured(
      name,
      /Shakespeare/.test(name) ? [parseSet('dataPath=package.json')] : [],
    );
    if ([...select(task, TransformerLm)].length === 0) continue;
    found++;
    const changed = derive(task, (draft) => {
      useRotaryPositions(draft);
      useExperts(draft);
    });
    const variables = listVariables(modelOf(build(changed)));
    expect(
      variables.some(({ path }) => path.endsWith('/ff_layer/gate')),
      name,
    ).toBe(true);
    expect(
      variables.filter(({ path }) => /position_emb|ffn_layer/.test(path)),
      name,
    ).toEqual([]);
  }
  expect(found).toBeGreaterThanOrEqual(few.length);
});
