/** @file All planted changes of experiments: what a review says of each is checked against runs. */
import { plantedContents } from './plantedContents.js';
import { plantedLayouts } from './plantedLayouts.js';
import { plantedNumerics } from './plantedNumerics.js';
import type { Plant } from './plantedProject.js';
import { plantedState } from './plantedState.js';
import { plantedVarying } from './plantedVarying.js';

export const allPlants: readonly Plant[] = [
  ...plantedNumerics,
  ...plantedContents,
  ...plantedLayouts,
  ...plantedVarying,
  ...plantedState,
];
