/** @file `luthier validate` and `list --build` on experiments that only loading finds, and on modules that fail to load. */
import { expect, test } from 'vitest';
import { runLuthier } from '../../command.js';
import { isShort, seed } from '../../faults/campaign.js';
import { byName, family, project } from '../experiments.js';

const own = project({
  'lib/mixins.ts': `export const withRate = (Base: any, rate: number): any =>
  class extends Base {
    override task(): any {
      if (rate < 0) throw new Error('It goes backwards.');
      return super.task();
    }
  };
export const bySize = (Base: any, modelDims: number): any => Base.preset({ modelDims });
`,
  'experiments/base.ts': `${family}\nexport class Plain extends Family {}\n`,
  'experiments/mixed.ts': `import { bySize, withRate } from '../lib/mixins.js';
import { Plain } from './base.js';

export class Mixed extends withRate(Plain, 1) {}
export class Backwards extends withRate(Plain, -1) {}
export const Wide = bySize(Plain, 32);
export const half = Math.sqrt(0.25);
`,
  'experiments/unready.ts':
    "import { withRate } from '../lib/mixins.js';\nexport class Unready extends withRate(Object, 1) {}\nthrow new Error('It is not ready.');\n",
});

/** With SHORT=1, one of three runs tries them. */
const isTried = !isShort || seed % 3 === 0;

test.runIf(isTried)('validate checks them as others, and tells of a module that fails to load', async () => {
  const { code, stdout } = await runLuthier(['validate', '--format=json'], own);
  const passed = { state: 'passed', reached: 'trace', problems: [], warnings: [] };
  expect(byName(stdout)).toEqual({
    'base.Plain': { ...passed, place: 'experiments/base.ts:31', parameters: 3888 },
    'mixed.Mixed': { ...passed, place: 'experiments/mixed.ts:4', parameters: 3888 },
    'mixed.Wide': { ...passed, place: 'experiments/mixed.ts:6', parameters: 13_920 },
    'mixed.Backwards': {
      ...{ state: 'failed', reached: 'resolve', place: 'experiments/mixed.ts:5', warnings: [] },
      problems: [{ level: 'task', message: 'It goes backwards.', place: 'lib/mixins.ts:4' }],
    },
    unready: {
      ...{ state: 'failed', reached: null, place: 'experiments/unready.ts', warnings: [] },
      problems: [
        {
          level: 'resolve',
          message: 'It fails to load: It is not ready. No experiment can be found in it.',
          place: 'experiments/unready.ts',
        },
      ],
    },
  });
  expect(code).toBe(1);
});

test.runIf(isTried)('list --build has them with their parameters, or their errors', async () => {
  const { code, stdout, stderr } = await runLuthier(['list', '--build'], own);
  expect(stderr).toBe('experiments/unready.ts: It fails to load: It is not ready. It is skipped.\n');
  expect(stdout).toBe(`base.Plain  experiments/base.ts:31  extends Family
  3.89k parameters

mixed.Backwards  experiments/mixed.ts:5  found by loading, extends withRate(Plain, -1)
  task: It goes backwards. (at lib/mixins.ts:4)

mixed.Mixed  experiments/mixed.ts:4  found by loading, extends withRate(Plain, 1)
  3.89k parameters

mixed.Wide  experiments/mixed.ts:6  found by loading, extends bySize(Plain, 32)
  13.9k parameters

4 experiments in 2 files.
`);
  expect(code).toBe(0);
});
