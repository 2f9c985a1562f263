/**
 * @file Loads tfjs-layers for the gradients that it registers. It is required, not imported: nothing of it has a name here,
 * and to find the names that a CommonJS module of its size exports takes Node longer than to load it.
 */
import { createRequire } from 'node:module';

createRequire(import.meta.url)('@tensorflow/tfjs-layers');
