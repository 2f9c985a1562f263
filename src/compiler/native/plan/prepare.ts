/** @file Graph preparation for the native lowering: expands operations without a form of their own. */

import {
  dropEmpties,
  eliminateDeadCode,
  expandComposites,
  foldConstants,
  mergeProducts,
  simplify,
} from '../../passes/index.js';
import { type Graph, mapBodies, type Node } from '../../program/ir.js';
import { withLogSums } from './attentionSums.js';
import { expandOps } from './expansions.js';
import { formOf } from './forms.js';
import { readHeldKeys } from './heldKeys.js';
import { withSquaresRepeated } from './repeatedSquares.js';
import { addProductsInPlace } from './runningSums.js';

/** Whether a composite stays whole. */
function isWhole(node: Node): boolean {
  const form = formOf(node.op);
  return form !== undefined && (form.keeps?.(node) ?? true);
}

/**
 * Prepares an optimized graph. Common subexpressions of the forward and backward passes are not merged again: values
 * that are cheap to recompute would have to be stored.
 */
export const prepareForNative = (graph: Graph): Graph => withSquaresRepeated(expanded(withLogSums(graph)));

function expanded(graph: Graph): Graph {
  const current = dropEmpties(eliminateDeadCode(expandComposites(readHeldKeys(graph), isWhole)));
  const merged = mergeProducts(simplify(foldConstants(current)));
  return addProductsInPlace(mapBodies(eliminateDeadCode(expandOps(merged)), expanded));
}
