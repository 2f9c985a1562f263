/** @file Registration of all decompositions. */
import { channelsFirstVariants } from './channelsFirst.js';
import { defineDecompositions, defineVariants } from './decomposition.js';
import { fusedDecompositions } from './fused.js';
import { normalizationDecompositions } from './normalizations.js';
import { rearrangementDecompositions } from './rearrangements.js';

defineDecompositions(fusedDecompositions);
defineDecompositions(normalizationDecompositions);
defineDecompositions(rearrangementDecompositions);
defineVariants(channelsFirstVariants);
