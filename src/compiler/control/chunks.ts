/** @file Sums over chunks of rows, whose gradient is made in the forward pass, so that no chunk is computed again for it. */

import { eliminateCommonSubexpressions } from '../passes/cse.js';
import { eliminateDeadCode } from '../passes/dce.js';
import type { Tree } from '../program/tensors.js';
import { flattenTree, mapTree } from '../program/tensorTrees.js';
import { onTape, taping } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';
import { isTensor } from '../trace/gradients.js';
import { isTracing, tracedNodes } from '../trace/tracing.js';
import { type Body, traceBody } from './body.js';
import { differentiating, gradientsWith, recordGradient, specOf, zerosOf } from './bodyGradients.js';
import { isUnrolling, recordScan, refill, scan, scanGradients } from './scan.js';

/** The sums of a chunk, scalars, and what it gives for its rows. */
type Chunk<Y> = readonly [sums: readonly tf.Tensor[], rows: Y];

const leavesOf = (tree: Tree<tf.Tensor>): tf.Tensor[] =>
  flattenTree<tf.Tensor>(tree, isTensor).map(({ value }) => value);

const total = (stacked: tf.Tensor): tf.Tensor => tf.sum(stacked);

/**
 * Sums over the slices of `xs` along their first axis, the chunks, of what `body` gives for each: what is large within a
 * chunk, such as the logits of its rows, stands in memory for one chunk at a time. As each sum is linear in the chunks, the
 * gradient of a chunk is made beside its value and only scaled in the backward pass; `scan` would compute each chunk
 * twice, or keep all of them. Where nothing is differentiated, no gradient is made.
 *
 * In eager execution tfjs differentiates the chunks, an independent check of the gradient.
 *
 * @param body takes a chunk, a structure of slices, and gives scalars to sum and a structure of tensors for its rows. It may
 *   use tensors from outside, which have gradients too. It is called once while tracing.
 * @param xs a structure of tensors [chunks, ...].
 * @returns the sums, and the rows' tensors stacked along a first axis. The gradient made beside the values is that of the sum
 *   of all sums: where a loss weighs sums differently, depends on rows or is differentiated twice, each chunk is computed
 *   again for its gradient.
 */
export function sumOfChunks<X extends Tree<tf.Tensor>, Y extends Tree<tf.Tensor>>(
  body: (x: X) => Chunk<Y>,
  xs: X,
): Chunk<Y> {
  const leaves = leavesOf(xs);
  const isMade =
    isTracing() &&
    taping.isTapeOn() &&
    !isUnrolling() &&
    leaves.every(({ size }) => size > 0) &&
    (leaves[0]?.shape[0] ?? 0) > 1;
  if (!isMade) {
    const [, { sums, rows }] = scan(
      (_: readonly tf.Tensor[], x: X) => {
        const [sums, rows] = body(x);
        return [[], { sums, rows }];
      },
      [],
      xs,
    );
    return [sums.map(total), rows];
  }
  let example: Chunk<Y> | undefined;
  const specs = leaves.map((leaf) => ({ ...specOf(leaf), shape: leaf.shape.slice(1) }));
  const chunk = traceBody(specs, (inputs) => {
    example = body(refill(xs, inputs));
    return [...example[0], ...leavesOf(example[1])];
  });
  const [sums, rows] = recorded(chunk, leaves, example![0].length);
  let next = 0;
  return [sums, mapTree<tf.Tensor, tf.Tensor>(example![1], isTensor, () => rows[next++]!) as Y];
}

/** Records the loop over the chunks with their gradients, of whose outputs the first `count` are summed. */
function recorded(chunk: Body, xs: readonly tf.Tensor[], count: number): [tf.Tensor[], tf.Tensor[]] {
  // Numbers of the outer tensors and of the xs that have a gradient.
  let [outer, sliced]: [number[], number[]] = [[], []];
  const both = chunk.extended((input) => {
    const summed = chunk.outputs.slice(0, count);
    const found = gradientsWith(
      summed,
      summed.map(() => tf.scalar(1)),
      [...chunk.inputs, ...chunk.outer],
    );
    const [ofSlices, ofOuter] = [found.slice(0, xs.length), found.slice(xs.length)];
    const present = (list: typeof found): number[] => [...list.keys()].filter((i) => list[i] !== undefined);
    [outer, sliced] = [present(ofOuter), present(ofSlices)];
    const added = outer.map((i) => input(specOf(chunk.outer[i]!)));
    return {
      inputs: [...added, ...chunk.inputs],
      outputs: [
        ...outer.map((i, k) => tf.add(added[k]!, ofOuter[i]!)),
        ...chunk.outputs,
        ...sliced.map((i) => ofSlices[i]!),
      ],
    };
  });
  // What is differentiated by is the sums below, not the loop.
  const [outputs, gradients] = onTape(null, () => {
    const start = outer.map((i) => zerosOf(chunk.outer[i]!));
    const made = recordScan(both, start, xs, { length: xs[0]!.shape[0]!, reverse: false });
    const given = made.slice(outer.length, outer.length + chunk.outputs.length);
    return [
      [...given.slice(0, count).map(total), ...given.slice(count)],
      [...made.slice(outer.length + chunk.outputs.length), ...made.slice(0, outer.length)],
    ];
  });
  const inputs = [...xs, ...chunk.outer];
  const places = [...sliced, ...outer.map((i) => xs.length + i)];
  const gradientsOf = (dys: readonly (tf.Tensor | undefined)[]) =>
    differentiating((isLast) => {
      const scale = isLast ? commonCotangent(dys, count) : null;
      if (scale === null) return againWith(chunk, xs, dys, count);
      const all: (tf.Tensor | undefined)[] = inputs.map(() => undefined);
      places.forEach((place, k) => {
        all[place] = tf.mul(gradients[k]!, scale);
      });
      return all;
    });
  recordGradient('SumOfChunks', inputs, outputs, gradientsOf, chunk.tape!);
  return [outputs.slice(0, count), outputs.slice(count)];
}

/** The cotangent of every sum, where it is one and only sums have one; else null. */
function commonCotangent(dys: readonly (tf.Tensor | undefined)[], count: number): tf.Tensor | null {
  const given = dys.filter((dy) => dy !== undefined);
  if (given.length !== count || dys.slice(0, count).includes(undefined)) return null;
  return given.every((dy) => isSame(dy, given[0]!)) ? given[0]! : null;
}

/** Whether two traced tensors are the same computation. */
function isSame(x: tf.Tensor, y: tf.Tensor): boolean {
  const traced = tracedNodes();
  if (x === y || traced === undefined) return x === y;
  const both = { inputs: [], nodes: traced.nodes, outputs: [x, y].map(traced.unwrap) };
  const [first, second] = eliminateCommonSubexpressions(eliminateDeadCode(both)).outputs;
  return first === second;
}

/** The gradients with any cotangents: a loop that computes each chunk again. */
function againWith(
  chunk: Body,
  xs: readonly tf.Tensor[],
  dys: readonly (tf.Tensor | undefined)[],
  count: number,
): (tf.Tensor | undefined)[] {
  const length = xs[0]!.shape[0]!;
  const ofTurns = dys.map((dy, i) => (dy && i < count ? tf.tile(tf.reshape(dy, [1]), [length]) : dy));
  return scanGradients(chunk, [], xs, { length, reverse: false }, chunk.outputs, new Map(), ofTurns);
}
