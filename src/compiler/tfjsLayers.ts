/**
 * @file tfjs-layers, loaded for the gradients that it registers. It is required, not imported: Node takes longer to find the
 * names that a CommonJS module of its size exports than to load it.
 */
import { createRequire } from 'node:module';

createRequire(import.meta.url)('@tensorflow/tfjs-layers');
