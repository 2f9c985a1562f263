/** @file Fusion of matrix products with the sums that read them, for lowerings whose products can accumulate. */
import type { Graph } from '../program/ir.js';
import { sameShape, sizeOf } from '../program/tensors.js';
import { any, node, once, op } from './patterns.js';
import { applyRules, reshaped, rule } from './rewriting.js';

const [a, b, c] = [any('a'), any('b'), any('c')];
const product = once(node('product', op('BatchMatMul', a, b)));

/** A sum with a matrix product that nothing else reads. Of two products, the later one accumulates. */
const fused = (pattern: typeof product) =>
  rule(op('Add', c, pattern), ({ a, b, c, product, out }, make) => {
    const areMatrices = a.shape.length === 2 && b.shape.length === 2;
    if (!areMatrices || out.dtype !== 'float32' || !sameShape(c.shape, out.shape)) return false;
    const { shape } = product.outputs[0]!;
    if (sizeOf(shape) !== sizeOf(out.shape)) return false;
    const start = reshaped(c, shape, make);
    return reshaped(make('MatMulAdd', [a, b, start], product.attrs), out.shape, make);
  });

const RULES = [fused(product), fused(once(op('Reshape', product)))];

/** Rewrites `Add(product, c)` as one MatMulAdd; a reshape in between moves behind it. */
export const fuseMatMulAdd = (graph: Graph): Graph => applyRules(RULES, graph);
