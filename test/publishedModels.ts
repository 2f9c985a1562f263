/** @file Folder of published models with trained weights, which scripts of bench/peers fetch. */
import { userInfo } from 'node:os';
import { join } from 'node:path';

const { LUTHIER_PEERS } = process.env;
// Tests have a HOME and a cache of their own.
const peers = LUTHIER_PEERS ?? join(userInfo().homedir, '.cache/luthier/peers');

/** Beside the peers. */
export const publishedModels = join(peers, 'models');
