/** @file Door of the room: ranks and their collectives. */
export { type Launch, launchOf } from './launch.js';
export { collectiveNotes, MpiRanks, mpiSource, RanksError } from './mpi.js';
export { broadcastBytes, gatherJson, type Ranks } from './ranks.js';
