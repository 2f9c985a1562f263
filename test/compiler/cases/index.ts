/** @file The cases of every operation. */
import type { CaseTable } from './case.js';
import { complexCases } from './complexNumbers.js';
import { compositeCases } from './composites.js';
import { convolutionCases } from './convolution.js';
import { elementwiseCases } from './elementwise.js';
import { fusedCases } from './fused.js';
import { imageCases } from './images.js';
import { indexCases, variantCases } from './indices.js';
import { numberCases } from './numbers.js';
import { indexingCases, reduceCases } from './reduce.js';
import { resizingCases } from './resizing.js';
import { samplingCases } from './sampling.js';
import { shapeCases } from './shape.js';
import { volumeCases } from './volumes.js';

const cases: CaseTable = {
  ...elementwiseCases,
  ...shapeCases,
  ...reduceCases,
  ...indexingCases,
  ...compositeCases,
  ...complexCases,
  ...convolutionCases,
  ...fusedCases,
  ...imageCases,
  ...numberCases,
  ...resizingCases,
  ...samplingCases,
  ...volumeCases,
  ...indexCases,
};

/** All cases by operation. */
export const caseTable: CaseTable = {
  ...cases,
  ...Object.fromEntries(Object.entries(variantCases).map(([op, more]) => [op, [...cases[op]!, ...more]])),
};
