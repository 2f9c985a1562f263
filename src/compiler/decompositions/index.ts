/** @file Registration of all decompositions. */
import { defineDecompositions } from './decomposition.js';
import { fusedDecompositions } from './fused.js';

defineDecompositions(fusedDecompositions);
