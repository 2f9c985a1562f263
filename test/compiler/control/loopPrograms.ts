/** @file Programs with loops and choices, of the inputs x [5, 2, 3], w [3, 3] and h [2, 3]. */
import { ops, type Tensor, type Tree, tf, valueAndGrad } from '../../../src/compiler/index.js';

/** The inputs of every program. */
export type Inputs = { readonly x: Tensor; readonly w: Tensor; readonly h: Tensor };

/** The sum of squares, the tensors, and the gradients by all inputs. */
const graded =
  (f: (inputs: Inputs) => Tree<Tensor>) =>
  (inputs: Inputs): Tree<Tensor> =>
    valueAndGrad((given: Inputs) => {
      const result = f(given);
      const terms = leaves(result)
        .filter(({ dtype }) => dtype === 'float32')
        .map((tensor) => tf.sum(tf.square(tensor)));
      // So that the value depends on every input, whatever the program reads.
      const rest = Object.values(given).map((tensor) => tf.mul(tf.sum(tensor), 0.5));
      return { value: tf.addN([...terms, ...rest] as tf.Scalar[]), aux: result };
    }, inputs) as unknown as Tree<Tensor>;

function leaves(tree: Tree<Tensor>): Tensor[] {
  return tree instanceof tf.Tensor ? [tree] : Object.values(tree).flatMap(leaves);
}

const int = (value: number): Tensor => tf.scalar(value, 'int32');
const cell = (state: Tensor, w: Tensor, x: Tensor): Tensor => tf.tanh(tf.add(tf.matMul(state, w), x));
const isPositive = (x: Tensor): Tensor => tf.greater(tf.sum(x), 0);

/** Programs that start from constants: no turn may write over them. */
const fromConstants: Readonly<Record<string, (inputs: Inputs) => Tree<Tensor>>> = {
  "sums from a constant, as the guide's": graded(({ x }) =>
    ops.scan(
      (total: Tensor, value: Tensor) => {
        const next = tf.add(total, value);
        return [next, next];
      },
      tf.scalar(0),
      tf.reshape(x, [30]),
    ),
  ),
  'a cell that starts from zeros': graded(({ x, w }) =>
    ops.scan((state: Tensor, input: Tensor) => [cell(state, w, input), state], tf.zeros([2, 3]) as Tensor, x),
  ),
  'an array of constants, a sum of constants, and constants that depend on none': graded(({ x, w }) =>
    ops.scan(
      ({ a, b, c }: Record<'a' | 'b' | 'c', Tensor>, input: Tensor) => [
        { a: tf.add(b, tf.mul(a, 0.5)), b: tf.tanh(tf.add(a, input)), c: tf.add(tf.mul(c, 0.9), tf.sum(w)) },
        [a, b, c],
      ],
      {
        a: tf.tensor2d([1, 2, 3, 4, 5, 6], [2, 3]) as Tensor,
        b: tf.exp(tf.tensor2d([0, 0.1, 0.2, 0.3, 0.4, 0.5], [2, 3])) as Tensor,
        c: tf.cos(tf.fill([2], 0.5)) as Tensor,
      },
      x,
    ),
  ),
  'constants in an inner loop and in a branch': graded(({ x, w, h }) =>
    ops.scan(
      (outer: Tensor, input: Tensor) => {
        const [last, rows] = ops.scan(
          (sum: Tensor, row: Tensor) => [tf.add(sum, row), tf.tanh(tf.mul(row, sum))],
          tf.ones([3]) as Tensor,
          w,
        ) as unknown as [Tensor, Tensor];
        const next = tf.tanh(tf.add(tf.matMul(tf.add(outer, input), rows), last));
        return [
          ops.cond(
            isPositive(input),
            (given: Tensor) =>
              ops.scan(
                (a: Tensor, b: Tensor) => [tf.add(tf.mul(a, 0.5), b), []],
                tf.fill([3], 0.25) as Tensor,
                given,
              )[0],
            () => tf.fill([3], 0.5),
            next,
          ),
          next,
        ] as [Tensor, Tensor];
      },
      tf.zeros([3]) as Tensor,
      tf.add(x, h),
    ),
  ),
  'what an inner loop stacks, multiplied by in each turn': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => {
        const rows = ops.scan(
          (sum: Tensor, row: Tensor) => [tf.add(sum, tf.sum(row)), tf.tanh(tf.mul(row, sum))],
          tf.sum(tf.mul(state, input)),
          w,
        )[1] as Tensor;
        const next = cell(state, rows, input);
        return [next, next];
      },
      h,
      x,
    ),
  ),
  'products and sums of one row, which each row of a carry adds, or one': graded(({ x, w, h }) => {
    const [{ products, sums }] = ops.scan(
      ({ products, sums }: Record<'products' | 'sums', Tensor>, input: Tensor) => [
        {
          products: tf.add(products, tf.matMul(tf.mean(input, 0, true), w)),
          sums: tf.add(sums, tf.sum(input, 0, true)),
        },
        [],
      ],
      { products: h, sums: tf.ones([1, 3]) as Tensor },
      x,
    );
    return [products, tf.matMul(sums, w)];
  }),
  'a counter from a constant': ({ h }) =>
    ops.whileLoop(
      ({ n }) => tf.less(n, int(5)),
      ({ n, a }) => ({ n: tf.add(n, int(1)), a: tf.tanh(tf.add(a, h)) }),
      { n: int(0), a: tf.zeros([2, 3]) as Tensor },
      { maxSteps: 9 },
    ),
};

/** Sums over x's five slices of a chunk's products with w, and with h where `term` adds them, and the rows' sums. */
const chunked = ({ x, w, h }: Inputs, { isDoubled = false } = {}) =>
  ops.sumOfChunks((chunk: Tensor) => {
    const made = ops.checkpoint((rows: Tensor) => tf.tanh(tf.matMul(rows, w)))(chunk);
    const first = tf.sum(tf.square(made));
    return [isDoubled ? [first, tf.sum(tf.mul(chunk, tf.sin(h)))] : [first], { rows: tf.sum(made, -1) }];
  }, x);

/** The gradients of a value by all inputs, and another result. */
const gradedBy = (f: (inputs: Inputs) => { value: Tensor; aux: Tree<Tensor> }) => (inputs: Inputs) =>
  valueAndGrad(f, inputs) as unknown as Tree<Tensor>;

/** Sums whose gradients are made with them. */
const chunks: Readonly<Record<string, (inputs: Inputs) => Tree<Tensor>>> = {
  'a sum over chunks': gradedBy((given) => {
    const [[sum], aux] = chunked(given);
    // The sum's cotangent depends on the other inputs.
    return { value: tf.mul(tf.square(sum!), tf.sum(given.h)), aux };
  }),
  'two sums over chunks, of which each is a term': gradedBy((given) => {
    const [sums, aux] = chunked(given, { isDoubled: true });
    return { value: tf.mul(tf.addN([...sums] as tf.Scalar[]), tf.sum(given.w)), aux };
  }),
  'sums over chunks that a loss weighs otherwise, and their rows': gradedBy((given) => {
    const [[first, second], { rows }] = chunked(given, { isDoubled: true });
    const value = tf.add(tf.add(first!, tf.mul(second!, 2)), tf.sum(tf.square(rows)));
    return { value: value as Tensor, aux: {} };
  }),
  'the gradient of a gradient of a sum over chunks': gradedBy((given) => {
    const slope = tf.grad((w: Tensor) => chunked({ ...given, w })[0][0]!)(given.w);
    return { value: tf.sum(tf.mul(tf.square(slope), tf.sum(given.h))), aux: {} };
  }),
  'sums over chunks in each turn of a loop': gradedBy((given) => {
    const [last, aux] = ops.scan(
      (state: Tensor, input: Tensor): [Tensor, Tensor] => {
        const [[sum]] = chunked({ ...given, w: tf.add(given.w, tf.tanh(tf.sum(tf.mul(state, input)))) });
        return [cell(state, tf.mul(given.w, sum!), input), sum!];
      },
      given.h,
      given.x,
    );
    return { value: tf.sum(last), aux };
  }),
  'sums over chunks without a gradient': (given) => chunked(given) as unknown as Tree<Tensor>,
};

export const programs: Readonly<Record<string, (inputs: Inputs) => Tree<Tensor>>> = {
  ...fromConstants,
  ...chunks,
  'a recurrent cell': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => {
        const next = cell(state, w, input);
        return [next, tf.mul(next, 2)];
      },
      h,
      x,
    ),
  ),
  'in reverse, with a structure, an integer and an input that is also used from outside': graded(
    ({ x, w, h }) =>
      ops.scan(
        (state: { h: Tensor; i: Tensor }, { x: input }: { x: Tensor }) => {
          const next = cell(state.h, w, tf.mul(input, h));
          return [
            { h: next, i: tf.add(state.i, int(1)) },
            { y: next, i: state.i },
          ];
        },
        { h, i: int(0) },
        { x },
        { reverse: true },
      ),
  ),
  'a loop in a loop, without slices': graded(({ x, w, h }) =>
    ops.scan(
      (outer: Tensor, input: Tensor) => {
        const turn = (inner: Tensor): [Tensor, Tensor] => [cell(inner, w, input), tf.sum(inner)];
        return ops.scan<Tensor, [], Tensor>(turn, outer, [], { length: 3 });
      },
      h,
      x,
    ),
  ),
  'a loop over slices of slices': graded(({ x, w }) => {
    const square = tf.stack([w, tf.add(w, 1), tf.mul(w, 2)]);
    return ops.scan(
      (total: Tensor, matrix: Tensor) =>
        ops.scan(
          (sum: Tensor, row: Tensor) => [tf.add(sum, tf.sum(tf.sin(row))), tf.mul(row, sum)],
          total,
          matrix,
          { reverse: true },
        ),
      tf.mean(x),
      square,
    );
  }),
  'ys alone': graded(({ x, w }) => {
    const row = tf.slice(w, [0, 0], [2, 3]);
    return ops.scan((none: [], input: Tensor) => [none, tf.sin(tf.mul(input, row))], [], x)[1];
  }),
  'a carry alone': graded(
    ({ x, w, h }) =>
      ops.scan((state: Tensor, input: Tensor): [Tensor, []] => [cell(state, w, input), []], h, x)[0],
  ),
  'carries that trade places, and one that stays': graded(({ x, h }) =>
    ops.scan(
      ({ a, b, k }: { a: Tensor; b: Tensor; k: Tensor }, input: Tensor) => [
        { a: b, b: a, k },
        tf.add(tf.mul(k, input), a),
      ],
      { a: tf.scalar(1), b: tf.sum(h), k: h },
      x,
    ),
  ),
  'slices, and tensors from outside, that are returned as they are': graded(({ x, w, h }) =>
    ops.scan((state: Tensor, input: Tensor) => [tf.add(state, 1), { input, w, h, w2: w }], tf.sum(h), x),
  ),
  'one turn': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => [cell(state, w, input), tf.mul(state, input)],
      h,
      tf.slice(x, [0, 0, 0], [1, 2, 3]),
    ),
  ),
  'no turns': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => [cell(state, w, input), tf.mul(state, input)],
      h,
      tf.slice(x, [0, 0, 0], [0, 2, 3]),
    ),
  ),
  'empty tensors among carries, slices and ys': graded(({ x, h }) => {
    type State = { none: Tensor; sum: Tensor };
    const xs = { x, none: tf.slice(x, [0, 0, 0], [5, 0, 3]) };
    return ops.scan(
      ({ none, sum }: State, { x: input, none: empty }: typeof xs) => [
        { none: tf.mul(none, 2), sum: tf.add(sum, tf.sum(input)) },
        { none, empty, sum },
      ],
      { none: tf.zeros([0, 3]), sum: tf.sum(h) },
      xs,
    );
  }),
  'bools and integers': ({ x }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => [
        tf.logicalXor(state, isPositive(input)),
        { state, whole: tf.cast(tf.mul(input, 10), 'int32'), isNegative: tf.less(input, 0) },
      ],
      tf.scalar(true, 'bool'),
      x,
    ),
  'indices that a body works out': graded(({ x, w }) =>
    ops.scan(
      (at: Tensor, input: Tensor) => [
        tf.mod(tf.add(at, int(1)), int(3)),
        tf.add(tf.gather(w, at), tf.sum(input)),
      ],
      int(0),
      x,
    ),
  ),
  'a gradient within the body': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => {
        const slope = tf.grad((s: Tensor) => tf.sum(cell(s, w, input)))(state);
        return [tf.sub(state, tf.mul(slope, 0.1)), slope];
      },
      h,
      x,
    ),
  ),
  'a gradient of a gradient': ({ x, w, h }) =>
    graded((inputs) => {
      const of = (given: Inputs) => {
        const [last, ys] = ops.scan(
          (state: Tensor, input: Tensor) => [cell(state, given.w, input), tf.mul(state, input)],
          given.h,
          given.x,
        );
        return { value: tf.add(tf.sum(tf.square(ys)), tf.sum(last)), aux: {} };
      };
      return valueAndGrad(of, inputs).grads;
    })({ x, w, h }),
  'both branches, with operands and tensors from outside': graded(({ x, w, h }) =>
    [isPositive(x), tf.logicalNot(isPositive(x))].map((predicate) => {
      const { u, v } = ops.cond(
        predicate,
        ({ a }: { a: Tensor }) => ({ u: tf.matMul(tf.sin(a), w), v: a }),
        // Names tell which result is which, not their order.
        ({ a }) => ({ v: tf.mul(h, a), u: tf.mul(a, 3) }),
        { a: h },
      );
      return [u, v];
    }),
  ),
  'a choice in each turn': graded(({ x, w, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => {
        const next = ops.cond(
          isPositive(input),
          (given: Tensor) => cell(given, w, input),
          (given) => tf.add(given, input),
          state,
        );
        return [next, tf.sum(next)];
      },
      h,
      x,
    ),
  ),
  'a loop in a branch': graded(({ x, w, h }) => {
    const loop = (start: Tensor) =>
      ops.scan((state: Tensor, input: Tensor): [Tensor, []] => [cell(state, w, input), []], start, x)[0];
    return [true, false].map((wanted) =>
      ops.cond(tf.equal(isPositive(x), tf.scalar(wanted, 'bool')), loop, (start) => tf.mul(start, 2), h),
    );
  }),
  'until a sum is large': graded(({ w, h }) =>
    ops.whileLoop(
      ({ a }) => tf.less(tf.sum(tf.abs(a)), 20),
      ({ a, n }) => ({ a: tf.add(tf.mul(a, 1.5), tf.matMul(a, w)), n: tf.add(n, int(1)) }),
      { a: h, n: int(0) },
      { maxSteps: 10 },
    ),
  ),
  'a loop that ends by a counter or a sum, in a loop': graded(({ x, h }) =>
    ops.scan(
      (state: Tensor, input: Tensor) => {
        const { a, n } = ops.whileLoop(
          ({ a, n }) => tf.logicalAnd(tf.less(n, int(3)), tf.less(tf.sum(tf.abs(a)), 4)),
          ({ a, n }) => ({
            a: tf.add(a, tf.sin(tf.mul(a, input))) as Tensor,
            n: tf.add(n, int(1)) as Tensor,
          }),
          { a: state, n: int(0) },
          { maxSteps: 4 },
        );
        return [tf.tanh(a), n];
      },
      h,
      x,
    ),
  ),
  'a carry, slices and a tensor from outside that are casts': graded(({ x, w, h }) => {
    const [start, slices, outer] = [h, x, w].map((each) => tf.cast(each, 'float32')) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    return ops.scan(
      (state: Tensor, input: Tensor): [Tensor, []] => [cell(state, outer, input), []],
      start,
      slices,
    )[0];
  }),
  'a condition that does not come to hold': graded(({ h }) =>
    ops.whileLoop(
      (state) => isPositive(tf.abs(state)),
      (state) => tf.mul(state, 0.5),
      h,
      { maxSteps: 4 },
    ),
  ),
};
