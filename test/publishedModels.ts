/** @file What scripts of bench/peers install and fetch: published models with trained weights, and an interpreter of Python. */
import { userInfo } from 'node:os';
import { join } from 'node:path';

const { LUTHIER_PEERS } = process.env;
// Tests have a HOME and a cache of their own.
const peers = LUTHIER_PEERS ?? join(userInfo().homedir, '.cache/luthier/peers');

/** Beside the peers. */
export const publishedModels = join(peers, 'models');

/** Their interpreter, with PyTorch, transformers and PEFT. */
export const peersPython = join(peers, 'venv/bin/python');

/** The interpreter of bench/peers/trackio.sh. */
export const trackioPython = join(peers, 'trackio/bin/python');
