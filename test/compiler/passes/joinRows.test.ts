/** @file Products by the same matrix as one product: which are joined, and that no bit of a result changes. */
import { expect, test } from 'vitest';
import { compile, prngKey, type Tensor, tf, uniform } from '../../../src/compiler/index.js';
import { joinRows, optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

type Inputs = Record<'x' | 'y' | 'v' | 'w', Tensor>;

const float32 = (...shape: number[]) => ({ shape, dtype: 'float32' as const });
const specs = { x: float32(5, 24), y: float32(17, 24), v: float32(24, 40), w: float32(40, 24) };

/** Two chains through the same matrices; the second reads a result of the first where they are linked. */
const chains =
  (areLinked: boolean) =>
  ({ x, y, v, w }: Inputs) => {
    const through = (rows: Tensor) => tf.matMul(tf.relu(tf.matMul(rows, v)), w) as Tensor;
    const first = through(x);
    return { first, second: through(areLinked ? (tf.add(y, tf.sum(first)) as Tensor) : y) };
  };

const productsOf = (areLinked: boolean): string[] => {
  const { nodes } = joinRows(optimize(traceProgram(chains(areLinked), specs).graph));
  return nodes.filter(({ op }) => op === 'BatchMatMul').map(({ outputs }) => outputs[0]!.shape.join('x'));
};

test('products by one matrix are joined, unless one needs the result of another', () => {
  expect(productsOf(false)).toEqual(['22x40', '22x24']);
  expect(productsOf(true)).toEqual(['5x40', '5x24', '17x40', '17x24']);
});

test('joined products have the bits of single ones', async () => {
  const given = Object.fromEntries(
    Object.entries(specs).map(([name, spec], i) => {
      const data = Float32Array.from(uniform(prngKey(i), spec.shape[0]! * spec.shape[1]!), (u) => u - 0.5);
      return [name, { ...spec, data }];
    }),
  );
  const results = await Promise.all(
    [false, true].map(async (joinsRows) => {
      const executable = await compile(chains(false), specs, { joinsRows });
      const { first, second } = await executable.run(given);
      await executable.dispose();
      return [[...first.data], [...second.data]];
    }),
  );
  expect(results[1]).toEqual(results[0]);
});
