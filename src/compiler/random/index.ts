/** @file Counter-based random numbers, without TensorFlow.js: worker threads load it. */
export { foldIn, hashString, type PrngKey, prngKey, randomBits, threefry2x32 } from './prng.js';
