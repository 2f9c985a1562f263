/** @file Programs of one rank from programs of whole tensors. */
export { type Collective, collectivesOf } from './collectivesOf.js';
export { partition } from './partition.js';
export { type ProgramBorders, partitionProgram } from './partitionProgram.js';
export { piecesOf } from './pieces.js';
export { localShape, type MeshShape, type Sharding } from './sharding.js';
