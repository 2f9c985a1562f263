/** @file Planted changes of experiments as strangers build them: mixins, presets, results of calls, most of which source text does not tell. */
import { config, experiment, type Plant } from './plantedProject.js';

/** An experiment below `lib`, which those of `experiments` are made of. */
const base = experiment('NAME', 'optimizer.learningRate = this.rate;')
  .replace("'../lib/NAME/parts.js'", "'./parts.js'")
  .replace('import {', "import { z } from 'zod';\nimport {")
  .replace(
    'export class Planted extends Experiment {',
    "export class Base extends Experiment.with({ rate: z.number().default(0.01).describe('Rate.') }) {",
  );

const mixins = `/** Experiments that learn faster. */
export const withRate = (Base: any, rate: number): any =>
  class extends Base {
    override task(): any {
      const task = super.task();
      task.train.learner.optimizer.learningRate = 2 * rate;
      return task;
    }
  };

/** Experiments of these rates. */
export const byName = (Base: any, rates: Record<string, number>): any =>
  Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, Base.preset({ rate })]));
`;

/** Files of an experiment that is declared so. */
const declared = (declaration: string): Record<string, string> => ({
  'lib/NAME/base.ts': base,
  'lib/NAME/mixins.ts': mixins,
  'experiments/NAME.ts': `import { Base } from '../lib/NAME/base.js';
import { byName, withRate } from '../lib/NAME/mixins.js';

void [Base, byName, withRate];
${declaration}
`,
});

const mechanism = 'discovery';
const inMixins = (old: string, text: string) => ({ 'lib/NAME/mixins.ts': [[old, text]] as const });
const mixed = declared('export class Planted extends withRate(Base, 0.02) {}');

export const plantedLayouts: readonly Plant[] = [
  {
    name: 'mixinArgument',
    mechanism,
    files: mixed,
    edits: config('0.02', '0.03'),
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.04 → 0.06' },
  },
  {
    name: 'mixinOfTask',
    mechanism,
    files: mixed,
    edits: inMixins('2 * rate', '3 * rate'),
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.04 → 0.06' },
  },
  {
    name: 'behindMixin',
    mechanism,
    files: mixed,
    edits: { 'lib/NAME/parts.ts': [['0.01 * scale', '0.02 * scale']] },
    ...{ truth: 'differs', status: 'changed', says: 'the training step computes different values' },
  },
  {
    name: 'mixinComment',
    mechanism,
    files: mixed,
    edits: inMixins('learn faster', 'learn twice as fast'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'mixinLost',
    mechanism,
    files: mixed,
    edits: config('extends withRate(Base, 0.02)', 'extends Base'),
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.04 → 0.01' },
  },
  {
    name: 'mixinThrows',
    mechanism,
    files: mixed,
    edits: inMixins(
      'const task = super.task();',
      "const task = super.task();\n      if (rate < 1) throw new Error('too slow');",
    ),
    ...{ truth: 'fails', status: 'broken', says: 'too slow' },
  },
  {
    name: 'mixinFails',
    mechanism,
    files: mixed,
    edits: inMixins('/** Experiments that', "throw new Error('no mixins');\n/** Experiments that"),
    ...{ truth: 'fails', status: 'broken', says: 'no mixins' },
  },
  {
    name: 'presetConstant',
    mechanism,
    files: declared('export const Planted = Base.preset({ rate: 0.02 });'),
    edits: config('0.02', '0.03'),
    ...{ truth: 'differs', status: 'changed', says: 'rate : 0.02 → 0.03' },
  },
  {
    name: 'classExpression',
    mechanism,
    files: declared('export const Planted = class extends Base.preset({ rate: 0.02 }) {};'),
    edits: config('0.02', '0.03'),
    ...{ truth: 'differs', status: 'changed', says: 'rate : 0.02 → 0.03' },
  },
  {
    name: 'oneOfSeveral',
    mechanism,
    files: declared('export const { Planted, Other } = byName(Base, { Planted: 0.02, Other: 0.05 });'),
    edits: config('Planted: 0.02', 'Planted: 0.03'),
    ...{ truth: 'differs', status: 'changed', says: 'rate : 0.02 → 0.03' },
  },
  {
    name: 'handedOn',
    mechanism,
    files: declared("export { Base as Planted } from '../lib/NAME/base.js';"),
    edits: { 'lib/NAME/base.ts': [['default(0.01)', 'default(0.03)']] },
    ...{ truth: 'differs', status: 'changed', says: 'rate : 0.01 → 0.03' },
  },
];
