/** @file Runs that start from the variables of another run: which ones are loaded, from where, and what is said of it. */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { writeSafetensors } from '../checkpoints/writeSafetensors.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { tensorsAt } from './runs.js';

const run = oneProcess('src/main.ts');
const flags = (directory: string, ...sets: readonly string[]) => [
  ...['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--engine=onnx'],
  ...sets.flatMap((set) => ['--set', set]),
];
/** The settings of a run that only draws, or loads, its initial values. */
const atStart = 'task.train.numTrainSteps=0';
const rules = (text: string) => `task.train.initFromCheckpoint=[CheckpointLoadingRules(${text})]`;

function checkpoint(directory: string, step: number): string {
  return join(directory, 'checkpoints', `checkpoint_${String(step).padStart(8, '0')}`);
}

const named = (all: Record<string, unknown>, prefix: string) =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  );

let trained: string;
let fresh: string;

beforeAll(async () => {
  [trained, fresh] = [temporaryDirectory(), temporaryDirectory()];
  const average = 'task.train.learner.optimizer.emaDecay=0.5';
  for (const each of [flags(trained, 'numTrainSteps=3', average), flags(fresh, atStart)]) {
    const { code, stderr } = await run(each);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }
});

longTest(
  'all variables, by default; the step and the optimizer begin anew, and a run that resumes loads nothing',
  async () => {
    const [directory, source] = [temporaryDirectory(), temporaryDirectory()];
    cpSync(trained, source, { recursive: true });
    const given = rules(`checkpoint='${source}'`);
    const { code, stdout } = await run(flags(directory, atStart, given));
    expect(code, stdout).toBe(0);
    expect(stdout).toContain(`\nInitial values of 11 of 11 variables come from ${checkpoint(source, 3)}.\n`);
    const [ours, theirs] = [tensorsAt(directory, 0), tensorsAt(source, 3)];
    expect(named(ours, 'params/')).toEqual(named(theirs, 'params/'));
    expect(named(ours, 'params/')).not.toEqual(named(tensorsAt(fresh, 0), 'params/'));
    for (const moment of Object.values(named(ours, 'slots/')))
      expect(new Set(moment as Float32Array)).toEqual(new Set([0]));
    const record = JSON.parse(readFileSync(join(directory, 'init_from_checkpoint.json'), 'utf8'));
    expect(record).toMatchObject({
      checkpoints: [{ path: checkpoint(source, 3), experiment: 'tiny.Tiny', step: 3 }],
      notLoaded: [],
    });
    expect(record.checkpoints[0].variables['lm/softmax/w']).toBe('lm/softmax/w');

    rmSync(source, { recursive: true });
    const resumed = await run(flags(directory, 'task.train.numTrainSteps=1', given));
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout).not.toContain('Initial values');
  },
);

test('rules map paths, read averages, and leave variables their own values', async () => {
  const directory = temporaryDirectory();
  const mapped = rules(
    `checkpoint='${trained}', step=3, ignoreRules=['lm/softmax/.*'], ` +
      `loadRules=[['lm/(final|other)_ln/(.*)', 'ema/lm/{0}_ln/{}'], ['(.*)/key/w', '{}/value/w'], ['(.*)/emb_var', '{}/emb_var']]`,
  );
  // {0} is the first group; {} the next that no earlier {} took.
  const wrong = await run(flags(directory, atStart, mapped));
  expect(wrong).toEqual({
    code: 2,
    stdout: expect.any(String),
    stderr:
      `task.train.initFromCheckpoint[0]: the model can't start from ${checkpoint(trained, 3)}:\n` +
      "  lm/final_ln/scale: the checkpoint has no 'lm/final_ln/final'. Did you mean 'lm/final_ln/scale'?\n" +
      'Map paths by loadRules, and name variables that shall keep their own initial values in ignoreRules.\n',
  });
  const { code, stderr, stdout } = await run(
    flags(directory, atStart, mapped.replace('ema/lm/{0}_ln/{}', 'ema/lm/{}_ln/{}')),
  );
  expect(code, stderr).toBe(0);
  expect(stdout).toContain(
    '\nNot loaded, with initial values of their own: lm/transformer/x_layers_0/self_attention/query/w, ',
  );
  const [ours, theirs, own] = [tensorsAt(directory, 0), tensorsAt(trained, 3), tensorsAt(fresh, 0)];
  const attention = 'lm/transformer/x_layers_0/self_attention';
  expect(ours['params/lm/final_ln/scale']).toEqual(theirs['slots/ema/lm/final_ln/scale']);
  expect(ours[`params/${attention}/key/w`]).toEqual(theirs[`params/${attention}/value/w`]);
  expect(ours[`params/${attention}/query/w`]).toEqual(own[`params/${attention}/query/w`]);
  expect(ours['params/lm/softmax/w']).toEqual(own['params/lm/softmax/w']);
});

test('rules that can not hold are told together, before anything is trained', async () => {
  const directory = temporaryDirectory();
  const bad = rules(
    `checkpoint='${trained}', loadRules=[['lm/soft_max/(.*)', 'x/{}'], ['(.*)', '{}']], ignoreRules=['nothing']`,
  );
  const { code, stderr } = await run(flags(directory, atStart, 'modelDims=32', bad));
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^task\.train\.initFromCheckpoint\[0\]: the model can't start from .*checkpoint_00000003:\n {2}lm\//,
  );
  expect(stderr).toMatch(
    /\n {2}lm\/final_ln\/scale is \[32\], and 'lm\/final_ln\/scale' in the checkpoint \[16\]\.\n/,
  );
  expect(stderr).toContain("\n  the pattern 'lm/soft_max/(.*)' matches no variable that is left to it.");
  expect(stderr).toContain("\n  the pattern 'nothing' of ignoreRules matches no variable.\n");
  const missing = join(trained, 'nowhere');
  expect((await run(flags(directory, atStart, rules(`checkpoint='${missing}'`)))).stderr).toBe(
    `Checkpoint directory checkpoint_dir=${missing} does not exist\n`,
  );
  expect((await run(flags(directory, atStart, rules(`checkpoint='${trained}', step=2`)))).stderr).toBe(
    `${join(trained, 'checkpoints')}: no checkpoint for step 2; there are checkpoints for steps 0, 3\n`,
  );
});

test.each([
  ['other order and no metadata', {}],
  ['the name of its writer', { format: 'torch.pt' }],
])('a state that another program has written anew, with %s, is loaded as a file', async (_, metadata) => {
  const source = temporaryDirectory();
  cpSync(trained, source, { recursive: true });
  const path = join(checkpoint(source, 3), 'state.safetensors');
  const file = new SafetensorsFile(path);
  const written = file.layout.tensors.map((place) => ({ ...place, data: file.read(place.name) }));
  file.close();
  rmSync(path);
  writeSafetensors(path, written.reverse(), metadata);

  const directory = temporaryDirectory();
  const { code, stderr, stdout } = await run(flags(directory, atStart, rules(`checkpoint='${path}'`)));
  expect(code, stderr).toBe(0);
  expect(stdout).toContain(`\nInitial values of 11 of 11 variables come from ${path}.\n`);
  expect(named(tensorsAt(directory, 0), 'params/')).toEqual(named(tensorsAt(trained, 3), 'params/'));
  const whole = await run(flags(temporaryDirectory(), atStart, rules(`checkpoint='${source}'`)));
  expect(whole.stderr).toBe(
    `${path}: another program has rewritten it, so it is not the file described by metadata.json; its values can be ` +
      'loaded by the path of the file itself, in train.initFromCheckpoint\n',
  );
});

test('weights are no run: --checkpoint says where they go', async () => {
  const folder = join(import.meta.dirname, '../fixtures/published/gpt2');
  for (const path of [folder, join(folder, 'model.safetensors'), join(folder, 'config.json')]) {
    for (const mode of ['eval', 'train']) {
      const directory = temporaryDirectory();
      const { code, stderr } = await run([...flags(directory), `--mode=${mode}`, `--checkpoint=${path}`]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `${path}: it is neither a run nor a checkpoint; if it has weights, train.initFromCheckpoint starts from them\n`,
      });
    }
  }
});

longTest('--checkpoint=PATH evaluates the checkpoint of another run', async () => {
  const directory = temporaryDirectory();
  const evaluate = async (path: string) => {
    const { code, stdout, stderr } = await run([
      ...flags(directory, 'numTrainSteps=3'),
      ...['--mode=eval', `--checkpoint=${path}`],
    ]);
    return { code, stderr, loss: /total_loss ([\d.]+)/.exec(stdout)?.[1] };
  };
  const [newest, first, fromFresh] = [
    await evaluate(trained),
    await evaluate(checkpoint(trained, 0)),
    await evaluate(join(fresh, 'checkpoints')),
  ];
  expect(newest).toEqual({ code: 0, stderr: '', loss: expect.any(String) });
  expect(first).toEqual(fromFresh);
  expect(Number(newest.loss)).toBeLessThan(Number(first.loss));
  expect((await evaluate('./nowhere')).stderr).toBe(
    'Checkpoint directory checkpoint_dir=./nowhere does not exist\n',
  );
});

longTest(
  'frozen variables have no slots; when they are frozen no longer, the optimizer starts anew for them',
  async () => {
    const directory = temporaryDirectory();
    const settings = [
      ...['task.train.learner.optimizer.emaDecay=0.5', 'task.train.evalUseEmaStates=true'],
      rules(`checkpoint='${trained}'`),
    ];
    const given = (...more: string[]) => [...flags(directory, ...settings, ...more), '--mode=train_and_eval'];
    const frozen = await run(
      given('numTrainSteps=2', "task.train.learner.bpropVariableExclusion=['lm/softmax/.*']"),
    );
    expect(frozen.code, frozen.stderr).toBe(0);
    const [before, after] = [tensorsAt(trained, 3), tensorsAt(directory, 2)];
    const own = Object.keys(named(after, 'params/'));
    expect(own).toContain('lm/softmax/w');
    const trainedOnes = own.filter((name) => !name.startsWith('lm/softmax/'));
    for (const slot of ['m', 'v', 'ema'])
      expect(Object.keys(named(after, `slots/${slot}/`)).sort()).toEqual(trainedOnes.sort());
    expect(after['params/lm/softmax/w']).toEqual(before['params/lm/softmax/w']);

    // The average of a frozen variable is the variable.
    const average = temporaryDirectory();
    const loaded = await run(
      flags(average, atStart, rules(`checkpoint='${directory}', loadRules=[['(.*)', 'ema/{}']]`)),
    );
    expect(loaded.code, loaded.stderr).toBe(0);
    const taken = named(tensorsAt(average, 0), 'params/');
    expect(taken).toEqual({
      ...named(after, 'slots/ema/'),
      ...Object.fromEntries(
        own.filter((name) => !trainedOnes.includes(name)).map((name) => [name, after[`params/${name}`]]),
      ),
    });
    const evaluated = await run([...flags(directory, ...settings), '--mode=eval']);
    expect(evaluated.code, evaluated.stderr).toBe(0);

    const resumed = await run(given('numTrainSteps=2', 'task.train.numTrainSteps=3'));
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout).toContain(
      "\nNo longer frozen, with the optimizer's state of a first step: lm/softmax/w.\n",
    );
    const last = tensorsAt(directory, 3);
    expect(Object.keys(named(last, 'slots/ema/')).sort()).toEqual(own.sort());
    const [value, ema] = [last['params/lm/softmax/w']!, last['slots/ema/lm/softmax/w']!];
    const start = before['params/lm/softmax/w']!;
    expect(value).not.toEqual(start);
    // The average moves by 1 - (1 + 2) / (10 + 2) at the third step.
    const moved = (values: ArrayLike<number | bigint>) => Number(values[0]) - Number(start[0]);
    expect(moved(ema) / moved(value)).toBeCloseTo(0.75, 2);
  },
);
