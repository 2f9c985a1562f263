/** @file Passes: functions from graph to graph. `optimize` runs them in order. */
import { type Graph, mapBodies } from '../program/ir.js';
import { eliminateCommonSubexpressions } from './cse.js';
import { eliminateDeadCode } from './dce.js';
import { dropEmpties } from './empty.js';
import { foldConstants } from './foldConstants.js';
import { hoistSums } from './hoistSums.js';
import { readPackedWeights } from './packedWeights.js';
import { simplify } from './simplify.js';
import { simplifyBodies } from './simplifyBodies.js';
import { verify, verifyNoEmpties } from './verify.js';

export { eliminateCommonSubexpressions } from './cse.js';
export { eliminateDeadCode } from './dce.js';
export { dropEmpties, isEmpty } from './empty.js';
export { expandComposites } from './expand.js';
export { foldConstants } from './foldConstants.js';
export { fuseMatMulAdd } from './fuseMatMulAdd.js';
export { hoistSums, runningSums } from './hoistSums.js';
export { joinRows } from './joinRows.js';
export { mergeProducts } from './mergeProducts.js';
export { simplify } from './simplify.js';
export { SOFTMAX_FORMS } from './softmaxForms.js';
export { verifyNoEmpties } from './verify.js';

/** Passes for every lowering: less computation, the same results. */
export function optimize(graph: Graph): Graph {
  let current = dropEmpties(eliminateDeadCode(simplifyBodies(eliminateDeadCode(graph))));
  current = mapBodies(current, optimize);
  current = eliminateDeadCode(hoistSums(current));
  current = foldConstants(current);
  current = readPackedWeights(simplify(current));
  current = eliminateDeadCode(eliminateCommonSubexpressions(current));
  verify(current);
  verifyNoEmpties(current);
  return current;
}
