/** @file All operations and decompositions, registered. */
import '../decompositions/index.js';
import './index.js';
import './convolution.js';
import './heldAttention.js';
import './matMulAdd.js';
import './pooling.js';
