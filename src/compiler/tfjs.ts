/**
 * @file TensorFlow.js as the compiler uses it: the operations of tfjs-core with their gradients, and no backend. In
 * Node's build the gradients are registered by tfjs-layers only, on the same engine; the umbrella package would do so
 * too, and take twice as long to load.
 */
import './tfjsLayers.js';
import './convolutionGradients.js';
import './savedTensors.js';
import './tfjsGradients.js';
import './zeroGradients.js';

export * from '@tensorflow/tfjs-core';
