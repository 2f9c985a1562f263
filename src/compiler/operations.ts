/** @file All operations and decompositions, registered. */
import './decompositions/index.js';
import './ops/index.js';
import './ops/convolution.js';
import './ops/matMulAdd.js';
import './ops/pooling.js';
