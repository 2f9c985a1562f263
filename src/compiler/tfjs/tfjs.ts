/**
 * @file TensorFlow.js as the compiler uses it: the operations of tfjs-core and their gradients, without a backend. In
 * Node's build only tfjs-layers registers the gradients on the same engine; the umbrella package would do so too, but
 * takes twice as long to load.
 */
import './tfjsLayers.js';
import './convolutionGradients.js';
import './savedTensors.js';
import './tfjsGradients.js';
import './zeroGradients.js';
import './complexGradients.js';

export * from '@tensorflow/tfjs-core';
