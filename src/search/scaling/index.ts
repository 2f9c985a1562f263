/** @file Scaling studies: ladders of sizes and lengths, the law of their losses, and a picture. */
export { ladder } from './ladder.js';
export { ladderPicture } from './ladderPicture.js';
export {
  FEWEST,
  fitScalingLaw,
  lossOf,
  optimalPowers,
  type Training,
} from './scalingLaw.js';
