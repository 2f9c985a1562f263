/** @file Passes: functions from graph to graph, each with one idea. `optimize` runs them in the order that pays. */
import type { Graph } from '../ir.js';
import { eliminateCommonSubexpressions } from './cse.js';
import { eliminateDeadCode } from './dce.js';
import { dropEmpties } from './empty.js';
import { foldConstants } from './foldConstants.js';
import { simplify } from './simplify.js';
import { verify, verifyNoEmpties } from './verify.js';

export { eliminateCommonSubexpressions } from './cse.js';
export { eliminateDeadCode } from './dce.js';
export { dropEmpties, isEmpty } from './empty.js';
export { expandComposites } from './expand.js';
export { foldConstants } from './foldConstants.js';
export { fuseMatMulAdd } from './fuseMatMulAdd.js';
export { simplify } from './simplify.js';
export { verifyNoEmpties } from './verify.js';

/** The passes that every lowering wants: less to compute, the same results. */
export function optimize(graph: Graph): Graph {
  let current = dropEmpties(eliminateDeadCode(graph));
  current = foldConstants(current);
  current = simplify(current);
  current = eliminateDeadCode(eliminateCommonSubexpressions(current));
  verify(current);
  verifyNoEmpties(current);
  return current;
}
