/** @file Registration of all decompositions. */

import { normalizationDecompositions } from './batchNormalization.js';
import { channelsFirstVariants } from './channelsFirst.js';
import { complexKernels } from './complexNumbers.js';
import { defineComplexKernels, defineDecompositions, defineVariants } from './decomposition.js';
import { einsumDecompositions } from './einsum.js';
import { fusedDecompositions } from './fused.js';
import { indexingDecompositions, indexingVariants } from './indexing.js';
import { morphologyDecompositions } from './morphology.js';
import { numberDecompositions, numberVariants } from './numbers.js';
import { rearrangementDecompositions } from './rearrangements.js';
import { resizingDecompositions } from './resizing.js';
import { samplingDecompositions } from './samplingImages.js';
import { sparseDecompositions } from './sparse.js';
import { volumeDecompositions } from './volumes.js';

defineDecompositions(fusedDecompositions);
defineDecompositions(morphologyDecompositions);
defineDecompositions(normalizationDecompositions);
defineDecompositions(numberDecompositions);
defineDecompositions(indexingDecompositions);
defineDecompositions(einsumDecompositions);
defineDecompositions(rearrangementDecompositions);
defineDecompositions(resizingDecompositions);
defineDecompositions(samplingDecompositions);
defineDecompositions(sparseDecompositions);
defineDecompositions(volumeDecompositions);
defineComplexKernels(complexKernels);
defineVariants(channelsFirstVariants);
defineVariants(indexingVariants);
defineVariants(numberVariants);
