/**
 * @file Loads tfjs-layers for the gradients that it registers. It is required, not imported: for a CommonJS module of
 * this size, Node takes longer to find the exported names than to load it.
 */
import { createRequire } from 'node:module';

createRequire(import.meta.url)('@tensorflow/tfjs-layers');
