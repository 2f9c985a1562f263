/** @file Gathers by results of comparisons, in optimised machine code, which the run of every day doesn't make. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf } from '../../../../src/compiler/index.js';
import { host, ints } from '../../values.js';
import { hasCompiler } from '../compilerSupport.js';

const table = host([3], [-1.5, 0.5, 2.5]);

// gcc 12 takes such an index for a mask, and reads rows in front of the table.
test.skipIf(!hasCompiler).each([3, 4, 8, 17, 64])(
  '%i rows by whether a number is more than 1',
  async (count) => {
    const ids = ints([count], 0, 5);
    const gather = ({ table, ids }: Record<'table' | 'ids', Tensor>) =>
      tf.mul(tf.gather(table, tf.cast(tf.greater(ids, tf.scalar(1, 'int32')), 'int32') as never), 2);
    const executable = await compile(gather, { table, ids } as never, { engine: 'native', name: 'compared' });
    const { data } = (await executable.run({ table, ids } as never)) as unknown as HostTensor;
    expect([...data]).toEqual([...ids.data].map((id) => (id > 1 ? 1 : -3)));
    await executable.dispose();
  },
);
